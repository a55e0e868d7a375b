/* SPDX-License-Identifier: MIT */
#ifndef TESTS_NETLIB_DOUBLE_H
#define TESTS_NETLIB_DOUBLE_H
/*
 * double: every call of a communication library that its transport makes, around endpoints in memory.
 *
 * A packet that is sent lies in its receiver's queue until that endpoint makes progress.  A test can make any call that creates
 * something fail, let packets overtake each other, keep completions back, and end connections.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

/* The transport, and what its env.test is. */
extern const struct transport_ops *const double_transport;
extern void *const double_test;
/* The calls that create something, in the order in which open() makes them, ends with NULL: the last one fails by lack of memory.  And the
 * one that connects a peer. */
extern const char *const double_opening[];
extern const char *const double_connecting;
/* Statuses that mean the loss of a connection, what they are as -errno; ends with 0. The first is that of a connection reset. */
extern const struct double_loss {
	int status, code;
} double_losses[];

/* The library reports lost connections by itself, and the sender of a packet that came in part.  Else only sends show that. */
extern const bool double_reports_ends;

struct double_faults {
	int fail_call;      /* the n-th call from now that creates something fails; 0: none */
	int calls;          /* such calls so far */
	const char *failed; /* the one that failed */
	bool shuffle;       /* packets arrive in any order */
	bool hold;          /* sends complete at double_release() */
	bool lose;          /* sends vanish, as into a dead host */
	int send;           /* sends fail with it */
	bool busy;          /* arming reports news */
	bool loud;          /* the descriptor is readable at once, although there is nothing */
	bool slow_close;    /* closing an endpoint takes a turn of progress */
};
extern struct double_faults double_faults;
/* The core's lock is held: a call that may take its time ends the program. */
extern bool double_locked;
/* Sends so far. */
extern unsigned double_sends;

/* Forgets the faults; everything must be gone. */
void double_reset(void);
/* Objects and requests that exist. */
int double_live(void);
/* Held sends complete, the last first. */
void double_release(void);
/* All connections to this endpoint report the status. */
void double_fail(int endpoint, int status);
/* A packet from nowhere arrives at the endpoint.  whole: the library has all of it. */
void double_inject(int endpoint, const void *header, size_t header_bytes, const void *data, size_t bytes, bool whole);

#endif
