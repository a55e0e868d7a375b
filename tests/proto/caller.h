/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_CALLER_H
#define TESTS_PROTO_CALLER_H
/*
 * caller: one blocking send or receive of pinnable memory, on a thread of its own.
 */
#include <pthread.h>

#include "directed.h"
#include "fake_array.h"

struct caller {
	pthread_t thread;
	struct ibvx *ep;
	struct fake_array m;
	bool send, sync;
	int peer, tag;
	size_t bytes;
	uint64_t user;
	int err;
	struct ibvx_status status;
	char text[200];
};

/* A network of two ranks by seed; its time is that of a clock. */
struct world_config timed(uint64_t seed);

/* What the thread is to call: a send is filled from its tag. Its m may be changed before call_start(). */
void call_prepare(struct caller *c, struct world *w, int rank, bool send, int peer, int tag, size_t bytes);
void call_start(struct caller *c);
/* Both. */
void call(struct caller *c, struct world *w, int rank, bool send, int peer, int tag, size_t bytes);
/* Waits for the end of the call: what it returned. Nothing is pinned. */
int ended(struct caller *c);
/* The same for a call that needs the others' turns, too. */
int ended_with(struct caller *c, struct world *w);
void caller_free(struct caller *c);

/* A call of rank 0 (by seed a send or a receive) with its like of rank 1, which dies after a while: the call of rank 0 ends, and
 * reports it. */
void call_dies(struct world_config cfg, uint64_t seed, size_t bytes, unsigned after_us);

#endif
