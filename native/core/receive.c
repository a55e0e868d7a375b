/* SPDX-License-Identifier: MIT */
#include "core/receive.h"

#include <errno.h>

#include "base/pool.h"
#include "core/complete.h"
#include "core/eager.h"
#include "core/flow_control.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/progress.h"
#include "core/rendezvous.h"

void receive_post(struct ibvx *ep, struct request *r)
{
	struct umsg *u = match_peek(ep, r->source, r->tag, r->context);
	struct peer *gone;

	if (u) {
		match_extract(ep, u);
		receive_extracted(ep, r, u);
		return;
	}
	gone = peer_ended_source(ep, r->source);
	if (gone && (r->blocking || r->source != IBVX_ANY_SOURCE || gone->state == PEER_FAILED)) {
		r->peer = gone;
		complete_request(ep, r, gone->state == PEER_CLOSED ? -EPIPE : gone->fail_code);
		return;
	}
	match_post(ep, r);
	flow_emergency_source(ep, r->source);
}

void receive_end_posted(struct ibvx *ep, struct request *r)
{
	struct peer *gone = peer_ended_source(ep, r->source);

	if (!gone || gone->state != PEER_CLOSED)
		return;
	match_unpost(ep, r);
	r->peer = gone;
	complete_request(ep, r, -EPIPE);
}

/* Polls of a direct receive: the lock may be held for all of them. */
#define DIRECT_RECV_LOOKS 2

/* Nothing that a receive would have to stand behind, nothing else for its thread to do, and hope. */
static bool direct_recv_allowed(const struct ibvx *ep, int source)
{
	return !ep->poller && list_empty(&ep->waiters) && list_empty(&ep->run) && ep->posted_count == 0 && list_empty(&ep->arrivals) &&
	       list_empty(&ep->busy) && list_empty(&ep->wanting) && ep->stalled_peers == 0 && !ep->closing && !ep->aborted &&
	       ep->failed_rank < 0 && (source == IBVX_ANY_SOURCE ? ep->open_peers > 0 : ep->peers[source].state == PEER_OPEN);
}

void direct_recv_poll(struct ibvx *ep, struct direct_recv *d)
{
	for (int looks = 1; direct_recv_allowed(ep, d->args.source); looks++) {
		int events;

		ep->direct = d;
		events = progress_poll(ep, 1);
		ep->direct = NULL;
		if (d->done || d->request || looks == DIRECT_RECV_LOOKS)
			return;
		if (events == 0 && !progress_spin_once(ep))
			return;
	}
}

void receive_extracted(struct ibvx *ep, struct request *r, struct umsg *u)
{
	struct envelope e = {.tag = u->tag, .user = u->user, .head = u->bytes[0], .body = u->bytes[1], .id = u->id};
	struct peer *p = u->peer;
	int error = envelope_accept(r, p, &e);

	if (!u->rts) {
		eager_receive(ep, r, u, error);
	} else if (p->state != PEER_OPEN) {
		complete_request(ep, r, p->state == PEER_CLOSED ? -EPIPE : p->fail_code);
	} else {
		struct rndv_offer offer = {u->payload, u->rkey_bytes, u->at, u->leasable};

		if (u->lost && u->at > 0 && !error)
			error = -ENOMEM;
		flow_release(p, u->cost);
		rendezvous_receive(ep, r, error, &offer);
	}
	pool_put(u);
}

void receive_discard(struct ibvx *ep, struct umsg *u)
{
	struct request *r = request_get(&ep->requests, REQ_RECV, REQ_POSTED);

	if (!r) { /* its sender is notified if there is room now */
		if (u->rts || u->sync)
			peer_control(u->peer, u->rts ? WIRE_FIN : WIRE_ACK, u->id, 0, 0);
		if (u->peer->inflow_umsg == u)
			u->peer->inflow = INFLOW_DROP;
		else
			flow_release(u->peer, u->cost);
		pool_put(u);
		return;
	}
	r->detached = true;
	r->context = u->context;
	r->source = u->peer->rank;
	r->buffer.capacity = 0;
	receive_extracted(ep, r, u);
}

void receive_free_all(struct ibvx *ep)
{
	while (!list_empty(&ep->arrivals)) {
		struct umsg *u = LIST_ITEM(ep->arrivals.next, struct umsg, link);

		list_remove(&u->link);
		pool_put(u);
	}
	for (uint32_t i = 0; i < ep->requests.chunk_count * REQUEST_CHUNK; i++) {
		struct request *r = request_at(&ep->requests, i);

		if (!r)
			continue;
		pool_put(r->message);
		pin_drop(ep, r);
		buffer_fini(&r->buffer);
	}
}
