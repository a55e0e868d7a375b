/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_HEAP_H
#define IBVX_CORE_HEAP_H
/*
 * heap: requests whose memory moves (ibvx_heap.h; PROTOCOL.md section 10).
 *
 * The memory of such a request is in reach (heap_address() is not NULL) only while the thread that waits for it has its
 * region open *and* holds the core's lock.  Whoever else has something for it stages it, or leaves it, and wakes that thread.
 * The caller holds the lock.
 */
#include <errno.h>

#include "core/core.h"

/* Most bytes that one region moves before it is closed: a copy of some ten microseconds. */
#define HEAP_REGION_BYTES (64u << 10)
/* Packets that a region takes in of each peer, at most. */
#define HEAP_REGION_PACKETS 4

static inline char *heap_address(const struct request *r)
{
	return r->base[0];
}

/* What a send returns whose memory is out of reach though there is room for it: only this one waits, not the peer. */
#define HEAP_ABSENT (-EINPROGRESS)

/* There is room for a piece of r, a send whose memory is out of reach: its owner is to come. HEAP_ABSENT */
int heap_want(struct request *r);

/* Brings what has arrived for r (a receive) to its memory, or to the stage. */
void heap_write(struct request *r, uint64_t at, const void *from, size_t len);

/* A get or a put has filled the stage of r, if r has one. */
static inline void heap_moved(struct request *r)
{
	if (r->heap)
		r->stage_end = request_total(r);
}

/* The stage of a receive that has matched; NULL: no memory. */
char *heap_stage(struct request *r);

/* In reach from here on, at this address; or no longer (NULL). */
void heap_reach(struct request *r, void *at);

/* A region that is about to be closed has been open for this time. */
void heap_count_region(struct ibvx *ep, int64_t ns);

/* A waiter's turn: if w waits for a request whose memory could be used now, opens the region, moves a piece, closes
 * it; releases the lock meanwhile.  False: nothing was done. */
bool heap_turn(struct ibvx *ep, struct waiter *w);

#endif
