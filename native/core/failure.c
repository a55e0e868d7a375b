/* SPDX-License-Identifier: MIT */
#include "core/failure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/complete.h"
#include "core/continuation.h"
#include "core/cost.h"
#include "core/flow_control.h"
#include "core/match.h"
#include "core/peer.h"
#include "core/rendezvous.h"
#include "core/waiter.h"

/* Does the end of p (code) end r too? */
static bool peer_concerns(const struct peer *p, const struct request *r, int code)
{
	if (r->state == REQ_DONE || r->state == REQ_FREE || r->state == REQ_ENDING)
		return false;
	if (code != -EPIPE && p->ep->fault_job)
		return r->state != REQ_MESSAGE;
	if (code != -EPIPE && r->completion && r->completion->owner->needs(r->completion->owner, p->rank))
		return true;
	if (r->state == REQ_POSTED && r->source == IBVX_ANY_SOURCE)
		return code != -EPIPE || (p->ep->open_peers == 0 && (r->blocking || r->waiter || r->watched));
	if (r->state == REQ_POSTED)
		return r->source == p->rank;
	if (r->state == REQ_MESSAGE)
		return false; /* decided when it is received */
	return r->peer == p;
}

/* Every request that the end of p ends, through the same function as success. */
static void peer_end_requests(struct peer *p, int code)
{
	struct ibvx *ep = p->ep;
	uint32_t slots = ep->requests.chunk_count * REQUEST_CHUNK;

	for (uint32_t i = 0; i < slots; i++) {
		struct request *r = request_at(&ep->requests, i);
		int rc;

		if (!r)
			continue;
		if (r->pending_control && r->peer == p) {
			list_remove(&r->link);
			r->pending_control = 0;
			complete_released(ep, r);
			if (r->state == REQ_FREE)
				continue;
		}
		if (!peer_concerns(p, r, code))
			continue;
		if (r->state == REQ_POSTED)
			match_unpost(ep, r);
		rc = rendezvous_abort(r); /* its memory is known to its own peer's transport, p is only to blame */
		cost_forget(r);
		if (r->peer && r->peer->inflow_request == r) {
			r->peer->inflow = INFLOW_DROP;
			r->peer->inflow_request = NULL;
		}
		list_remove(&r->link);
		r->pending_control = 0;
		if (rc == -EINPROGRESS)
			r->rkey_packed = false;
		complete_release_rkey(r);
		if (r->kind == REQ_RECV)
			r->peer = p;
		r->error = code;
		if (rc != -EINPROGRESS || !request_set_state(r, REQ_ENDING))
			complete_request(ep, r, code);
	}
}

static void peer_gone(struct peer *p, enum peer_state state)
{
	if (p->state == PEER_OPEN && p->rank != p->ep->rank)
		p->ep->open_peers--;
	p->state = state;
	flow_stalled(p, false);
	p->pending_credit = 0;
	p->pending_emergency = false;
	p->pending_stalled = false;
	p->hints_pending = false;
	p->pending_bye = false;
	peer_not_busy(p);
}

void peer_on_bye(struct peer *p)
{
	if (p->state != PEER_OPEN)
		return;
	log_debug(&p->ep->log, "rank %d has finished", p->rank);
	peer_gone(p, PEER_CLOSED);
	peer_end_requests(p, -EPIPE);
	waiter_signal_all(p->ep);
}

void peer_left(struct peer *p)
{
	const struct transport *t = p->transport;

	p->left = true;
	/* the control tree is another path than that of the messages, and may be faster */
	if (p->state != PEER_OPEN || !t || !t->ops->awaits || !t->ops->awaits(t, p->rank))
		peer_on_bye(p);
}

/* The first death that this rank learns of: if we end because of it, others should name it. */
static void peer_blame(const struct peer *p)
{
	struct ibvx *ep = p->ep;

	ep->failed_rank = p->rank;
	for (int i = 0; i < ep->transport_count; i++) {
		if (ep->transports[i]->ops->blame)
			ep->transports[i]->ops->blame(ep->transports[i], p->rank);
	}
}

void peer_fail(struct peer *p, int code, const char *why)
{
	struct ibvx *ep = p->ep;

	if (p->state != PEER_OPEN || p->rank == ep->rank)
		return;
	log_warn(&ep->log, "rank %d failed: %s", p->rank, why);
	if (why != p->why) {
		free(p->why);
		p->why = strdup(why);
	}
	p->fail_code = code;
	if (ep->failed_rank < 0)
		peer_blame(p);
	peer_gone(p, PEER_FAILED);
	p->transport->ops->forget(p->transport, p->rank);
	/* the end of a process shows in the control tree by itself, a dead link does not: a rank that only waits must be notified */
	if (ep->fault_job && code != -ECONNRESET && ep->bootstrap)
		bootstrap_report_lost(ep->bootstrap, p->rank, why);
	peer_end_requests(p, code);
	waiter_signal_all(ep);
}

void peer_died(struct peer *p, const char *why)
{
	struct ibvx *ep = p->ep;
	char first[160];

	for (int i = 0; p->state == PEER_OPEN && i < ep->transport_count; i++) {
		const struct transport *t = ep->transports[i];
		int cause = t->ops->cause ? t->ops->cause(t, p->rank) : -1;

		if (cause < 0 || cause == p->rank)
			continue;
		snprintf(first, sizeof(first), "rank %d died, and rank %d gave up because of it", cause, p->rank);
		peer_fail(&ep->peers[cause], -ECONNRESET, first);
	}
	peer_fail(p, -ECONNRESET, why);
}
