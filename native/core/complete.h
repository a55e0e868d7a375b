/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_COMPLETE_H
#define IBVX_CORE_COMPLETE_H
/*
 * complete: the one function through which requests end, and what their owner gets.
 * The caller holds the core's lock.
 */
#include "core/core.h"
#include "core/pin.h"
#include "core/waiter.h"

/* The operation has ended: 0 or a negative errno.  Wakes the thread that waits for it. */
static inline void complete_request(struct ibvx *ep, struct request *r, int error);

/* The transport lets go of the request's memory, if it held any for r->peer. */
void complete_release_rkey(struct request *r);

/* The request's control packet has gone (or nobody is left to get it): gives the slot back if
 * nobody else needs it. */
static inline void complete_released(struct ibvx *ep, struct request *r)
{
	if (r->state != REQ_DONE || r->pending_control || r->served || (!r->consumed && !r->detached))
		return;
	if (buffer_needs_fini(&r->buffer)) {
		pin_drop(ep, r);
		buffer_fini(&r->buffer);
	}
	request_put(&ep->requests, r);
}

/* The owner takes the result: fills status (may be NULL; body is NULL), gives the slot back, sets the error text.
 * r must be DONE. Returns the operation's error. */
static inline int complete_consume(struct ibvx *ep, struct request *r, struct ibvx_status *status);

/* Their seldom parts: a transition that is not legal; a request that failed, whose memory is pinnable or shared, or that was given up; the text of an
 * error, which it returns. */
void complete_refused(const struct ibvx *ep, const struct request *r) __attribute__((cold));
void complete_apart(struct ibvx *ep, struct request *r, int error);
int complete_text(const struct ibvx *ep, const struct request *r) __attribute__((cold));

static inline void complete_request(struct ibvx *ep, struct request *r, int error)
{
	if (!request_set_state(r, REQ_DONE)) {
		complete_refused(ep, r);
		return;
	}
	if (error || buffer_is_pinnable(&r->buffer) || r->rkey_packed || r->detached || r->background || r->watched) {
		complete_apart(ep, r, error);
		return;
	}
	atomic_store_explicit(&r->done, 1, memory_order_release);
	if (!r->blocking)
		list_append(&ep->finished, &r->finished);
	waiter_on_complete(ep, r);
}

static inline int complete_consume(struct ibvx *ep, struct request *r, struct ibvx_status *status)
{
	int error = r->error ? complete_text(ep, r) : 0;

	if (status) {
		*status = (struct ibvx_status){
			.source = r->peer ? r->peer->rank : r->source,
			.tag = r->tag,
			.context = r->context,
			.error = error,
			.head_bytes = r->buffer.bytes[0],
			.body_bytes = r->buffer.bytes[1],
			.user = r->user,
		};
	}
	list_drop(&r->finished);
	r->waiter = NULL;
	r->consumed = true;
	complete_released(ep, r);
	return error;
}

#endif
