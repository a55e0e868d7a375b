/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PIN_H
#define IBVX_CORE_PIN_H
/*
 * pin: requests whose memory must be pinned to have an address (ibvx_pin.h; PROTOCOL.md section 10).
 *
 * The memory of such a request is in reach (pin_address() is not NULL) only while the thread that waits for it has its
 * region open *and* holds the core's lock.  Whoever else has something for it stages it, or leaves it, and wakes that thread.
 * The caller holds the lock.
 */
#include <errno.h>

#include "core/core.h"
#include "ibvx_pin.h"

static inline char *pin_address(const struct request *r)
{
	return r->base[0];
}

/* From here on r's memory moves. */
static inline void pin_mark(struct request *r)
{
	r->pinnable = true;
	list_init(&r->wanting);
}

/* Any thread of the layer above may open regions of r's memory (ibvx_heap.drop). */
static inline bool pin_zero_copy(const struct request *r)
{
	return r->pinnable && r->pin && r->pin->drop;
}

/* The request is no more: if its memory was lent, its end will be told (pin_unlock). */
void pin_drop(struct ibvx *ep, struct request *r);

/* core_unlock(), and ends what was lent. The calls of ibvx_pin.h do that. */
void pin_unlock(struct ibvx *ep);

/* The endpoint is being freed, its requests are gone. No lock. */
void pin_close(struct ibvx *ep);

/* What a send returns whose memory is out of reach though there is room for it: only this one waits, not the peer. */
#define PIN_ABSENT (-EINPROGRESS)

/* There is room for a piece of r, a send whose memory is out of reach: its owner is to come. PIN_ABSENT */
int pin_want(struct request *r);

/* Wakes the thread that is to serve r. */
void pin_call(struct request *r);

/* There is something to do for the thread that waits for r, or for any of the layer above if r's memory is lent. */
void pin_call_owner(struct request *r);

/* Brings what has arrived for r (a receive) to its memory, or to the stage. */
void pin_write(struct request *r, uint64_t at, const void *from, size_t len);

/* A get or a put has filled the stage of r, if r has one. */
static inline void pin_filled(struct request *r)
{
	if (r->pinnable)
		r->bounce_end = request_total(r);
}

/* The stage of a receive that has matched; NULL: no memory. */
char *pin_bounce(struct request *r);

/* In reach from here on, at this address; or no longer (NULL). */
void pin_set_address(struct request *r, void *at);

#endif
