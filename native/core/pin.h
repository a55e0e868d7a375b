/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PIN_H
#define IBVX_CORE_PIN_H
/*
 * pin: requests whose buffer is pinnable memory (buffer.h, ibvx_pin.h; PROTOCOL.md section 10): which thread pins
 * it, and how that thread is called.
 *
 * Such memory has an address only while its owner has pinned it *and* holds the core's lock.  The owner is
 * the thread that waits for the request; of a zero-copy send it is any thread of the embedding layer that is
 * inside the library.  Other threads bounce what arrives, leave what is to be sent, and call the owner.
 * The caller holds the lock.
 */
#include <errno.h>

#include "core/core.h"
#include "ibvx_pin.h"

/* A zero-copy send: any thread of the layer may pin its memory (ibvx_pin.drop). */
static inline bool pin_is_zero_copy(const struct request *r)
{
	return buffer_is_pinnable(&r->buffer) && r->buffer.pin && r->buffer.pin->drop;
}

/* The owner of pinnable memory waits for this request and no other. */
static inline bool pin_is_attended(const struct request *r)
{
	return buffer_is_pinnable(&r->buffer) && r->buffer.pin && !r->buffer.pin->drop;
}

/* The request is gone: if it was a zero-copy send, pin_unlock() will give its memory back. */
void pin_drop(struct ibvx *ep, struct request *r);

/* Gives back the memory of zero-copy sends that have ended.  close: of an endpoint that is being freed, no lock. */
void pin_unlock_drop(struct ibvx *ep);
void pin_close(struct ibvx *ep);

/* core_unlock() of calls that may complete a zero-copy send. */
static inline void pin_unlock(struct ibvx *ep)
{
	if (ep->dropped)
		pin_unlock_drop(ep);
	else
		core_unlock(ep);
}

/* What a send returns whose memory cannot be read now though there is room for it: only this one waits, not the peer. */
#define PIN_ABSENT (-EINPROGRESS)

/* There is room for a piece of r, a send whose memory cannot be read now: calls its owner. PIN_ABSENT */
int pin_want(struct request *r);

/* Wakes the owner of r. */
void pin_call(struct request *r);

/* The owner of r has something to do: wakes it unless it knows. */
void pin_call_owner(struct request *r);

/* The thread that waits for r becomes its owner with this pin, or (NULL) no longer is.  Nothing unless r is pinnable and
 * no zero-copy send. */
void pin_attend(struct request *r, struct ibvx_pin *pin);

/* What of r, complete, pinnable, without error, is still in the bounce buffer: to *pin, or as the return value if pin is NULL (pool_put()). */
void *pin_take_rest(struct request *r, struct ibvx_pin *pin);

#endif
