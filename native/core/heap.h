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
#include "ibvx_heap.h"

/* Most bytes that one region moves through a ring before it is closed, as many as one holds by default: a copy of some ten microseconds
 * (measured: ARCHITECTURE.md). */
#define HEAP_REGION_BYTES (256u << 10)
/* Packets that a region takes in of each peer, at most. */
#define HEAP_REGION_PACKETS 4

static inline char *heap_address(const struct request *r)
{
	return r->base[0];
}

/* From here on r's memory moves. */
static inline void heap_mark(struct request *r)
{
	r->heap = true;
	list_init(&r->wanting);
}

/* Any thread of the layer above may open regions of r's memory (ibvx_heap.drop). */
static inline bool heap_lent(const struct request *r)
{
	return r->heap && r->place && r->place->drop;
}

/* The request is no more: if its memory was lent, its end will be told (heap_unlock). */
void heap_drop(struct ibvx *ep, struct request *r);

/* core_unlock(), and ends what was lent. The calls of ibvx_heap.h do that. */
void heap_unlock(struct ibvx *ep);

/* The endpoint is being freed, its requests are gone. No lock. */
void heap_close(struct ibvx *ep);

/* What a send returns whose memory is out of reach though there is room for it: only this one waits, not the peer. */
#define HEAP_ABSENT (-EINPROGRESS)

/* There is room for a piece of r, a send whose memory is out of reach: its owner is to come. HEAP_ABSENT */
int heap_want(struct request *r);

/* There is something to do for the thread that waits for r, or for any of the layer above if r's memory is lent. */
void heap_call_owner(struct request *r);

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

/* Opens a region of r, moves a piece, closes it; releases the lock meanwhile.  False: there was no region. */
bool heap_serve(struct ibvx *ep, struct request *r);

/* Serves lent memory for which there is room, for a call that does not wait; releases the lock meanwhile if there is any. */
void heap_serve_lent_now(struct ibvx *ep);

static inline void heap_serve_lent(struct ibvx *ep)
{
	if (!list_empty(&ep->wanting))
		heap_serve_lent_now(ep);
}

/* A waiter's turn: serves the request that w waits for, or one whose memory is lent, if that could be used now.  Releases the
 * lock meanwhile.  False: nothing was done. */
bool heap_turn(struct ibvx *ep, struct waiter *w);

#endif
