/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_FAKE_H
#define TESTS_PROTO_FAKE_H
/*
 * fake: one endpoint's side of the fake transport; only for fake_*.c.
 */
#include "fabric.h"

#define FAKE_MAGIC UINT64_C(0x66616b6564657363)

struct fake {
	struct transport base;
	struct fabric *f;
	int rank;
	struct transport_sink sink;
	struct transport_wakeups *wakeups;
	struct transport_watch watch;
	int watched;        /* a descriptor that never has anything to report, or -1 */
	int open_peer;      /* the peer whose slot is open, or -1 */
	_Atomic int inside; /* the thread that is in a locked function */
	int depth;
};

struct fake *fake_of(struct transport *base);

/* Around every function that is called with the core's lock held: takes the fabric's, and looks whether the seam's contract is kept. */
void fake_enter(struct fake *t, const char *what);
void fake_leave(struct fake *t);

/* fake_transport.c */
bool fake_prefers_get(const struct transport *base, int peer, size_t bytes);
/* fake_lease.c */
extern const struct transport_lease fake_lease;

#endif
