/* SPDX-License-Identifier: MIT */
#include "core/complete.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "core/continuation.h"
#include "core/pin.h"
#include "core/waiter.h"
#include "core/watch.h"

void complete_release_rkey(struct request *r)
{
	if (!r->rkey_packed)
		return;
	r->peer->transport->ops->release_rkey(r->peer->transport, r->peer->rank, request_handle(r));
	r->rkey_packed = false;
}

void complete_refused(const struct ibvx *ep, const struct request *r)
{
	log_error(&ep->log, "request %u cannot complete in state %s", r->slot, request_state_name(r->state));
}

void complete_apart(struct ibvx *ep, struct request *r, int error)
{
	if (error == 0 && r->buffer.lost)
		error = -ENOMEM;
	r->error = error;
	if (r->background)
		ep->background_count--;
	r->background = false;
	complete_release_rkey(r);
	if (buffer_is_pinnable(&r->buffer))
		list_remove(&r->buffer.wanting);
	atomic_store_explicit(&r->done, 1, memory_order_release);
	if (r->detached) {
		if (r->completion)
			continuation_complete(ep, r, error ? (complete_text(ep, r), error_text()) : NULL);
		complete_released(ep, r);
		return;
	}
	if (r->watched) {
		watch_complete(ep, r);
		return;
	}
	if (!r->blocking)
		list_append(&ep->finished, &r->finished);
	waiter_on_complete(ep, r);
}

/* The text; *rank: the rank that it names. */
static int complete_describe(const struct ibvx *ep, const struct request *r, int *rank)
{
	switch (r->error) {
	case -EMSGSIZE:
		return error_set(r->error,
				 "a message of %zu bytes from rank %d (tag %d, context %d) is longer than the "
				 "receive buffer of %zu bytes: receive it into a larger buffer (probe for the size)",
				 buffer_is_split(&r->buffer) ? r->buffer.bytes[0] : request_total(r), r->peer->rank, r->tag, r->context,
				 r->buffer.capacity);
	case -EPROTOTYPE:
		return error_set(r->error, "a message of type %#llx from rank %d (tag %d, context %d) met a receive of type %#llx",
				 (unsigned long long)r->user, r->peer->rank, r->tag, r->context, (unsigned long long)r->want);
	case -ECANCELED: *rank = -1; return error_set(r->error, "the receive was cancelled");
	case -EPIPE:
		return error_set(r->error, "rank %d has finished: %s", r->peer->rank,
				 r->kind == REQ_RECV ? "the message that this receive waits for will not come"
						     : "it will not receive this message");
	case -ENOMEM: return error_set(r->error, "no memory for a message of %zu bytes", request_total(r));
	default: break;
	}
	if (ep->fault_job && ep->failed_rank >= 0) {
		*rank = ep->failed_rank;
		return error_set(r->error, "%s", ep->peers[ep->failed_rank].why);
	}
	if (r->peer && r->peer->why) {
		r->peer->reported = true;
		return error_set(r->error, "%s", r->peer->why);
	}
	return error_sys(r->error, "message %s rank %d", r->kind == REQ_RECV ? "from" : "to", r->peer ? r->peer->rank : r->source);
}

int complete_text(const struct ibvx *ep, const struct request *r)
{
	int rank = r->peer ? r->peer->rank : -1;
	int rc = complete_describe(ep, r, &rank);

	return error_concerns(rc, rank);
}
