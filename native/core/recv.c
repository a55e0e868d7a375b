/* SPDX-License-Identifier: MIT */
#include "core/recv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/arrive.h"
#include "core/complete.h"
#include "core/flow_control.h"
#include "core/pin.h"
#include "core/peer.h"
#include "core/progress.h"
#include "core/lease.h"

/* So many posted receives with one envelope need no tables; moving them there takes some microseconds. */
#define RECV_RUN_MAX 128u
/* Polls of a receive that is not posted: the lock may be held for all of them. */
#define RECV_LOOKS 2

static enum match_class recv_class(int source, int tag)
{
	return match_class_of(source == IBVX_ANY_SOURCE, tag == IBVX_ANY_TAG);
}

/* The tables of wildcard classes are filled when the first wildcard of that class is used. */
static void recv_index(struct ibvx *ep, enum match_class c)
{
	ep->unexpected_used[c] = true;
	for (struct list *l = ep->arrivals.next; l != &ep->arrivals; l = l->next) {
		struct umsg *u = LIST_ITEM(l, struct umsg, link);

		match_append(&ep->unexpected[c], &u->node[c],
			     match_key_of(c, u->context, u->peer->rank, u->tag), u->node[0].order);
	}
}

void recv_store(struct ibvx *ep, struct umsg *u)
{
	uint64_t order = ep->order++;

	for (int c = 0; c < MATCH_CLASSES; c++) {
		if (!ep->unexpected_used[c])
			continue;
		match_append(&ep->unexpected[c], &u->node[c],
			     match_key_of((enum match_class)c, u->context, u->peer->rank, u->tag), order);
	}
	list_append(&ep->arrivals, &u->link);
	ep->unexpected_count++;
	u->peer->unexpected_in++;
	progress_on_message(ep);
}

struct umsg *recv_peek(struct ibvx *ep, int source, int tag, int context)
{
	enum match_class c = recv_class(source, tag);
	struct match_node *n;

	if (list_empty(&ep->arrivals))
		return NULL;
	if (!ep->unexpected_used[c])
		recv_index(ep, c);
	n = match_first(&ep->unexpected[c], match_key_of(c, context, source, tag));
	return n ? LIST_ITEM(n - c, struct umsg, node) : NULL;
}

void recv_extract(struct ibvx *ep, struct umsg *u)
{
	for (int c = 0; c < MATCH_CLASSES; c++) {
		if (ep->unexpected_used[c])
			match_remove(&ep->unexpected[c], &u->node[c]);
	}
	list_remove(&u->link);
	ep->unexpected_count--;
}

void recv_interest(struct ibvx *ep, int source, int by)
{
	if (source == IBVX_ANY_SOURCE)
		ep->interest_any += by;
	else
		ep->peers[source].interest += by;
}

/* A wildcard receive that finds nothing must learn of every death once, and must not wait
 * when nobody is left to send. */
static struct peer *recv_bad_news(struct ibvx *ep)
{
	if (ep->failed_rank < 0 && (ep->open_peers > 0 || ep->size == 1))
		return NULL;
	for (int r = 0; r < ep->size; r++) {
		if (ep->peers[r].state == PEER_FAILED && !ep->peers[r].reported)
			return &ep->peers[r];
	}
	if (ep->open_peers > 0)
		return NULL;
	for (int r = 0; r < ep->size; r++) {
		if (ep->peers[r].state != PEER_OPEN)
			return &ep->peers[r];
	}
	return NULL;
}

/* The peer whose end forbids this receive or probe to wait, or NULL. */
static struct peer *recv_hopeless_apart(struct ibvx *ep, int source)
{
	if (ep->fault_job && ep->failed_rank >= 0)
		return &ep->peers[ep->failed_rank];
	if (source == IBVX_ANY_SOURCE)
		return recv_bad_news(ep);
	return ep->peers[source].state == PEER_OPEN ? NULL : &ep->peers[source];
}

struct peer *recv_hopeless(struct ibvx *ep, int source)
{
	if (source != IBVX_ANY_SOURCE && ep->peers[source].state == PEER_OPEN && ep->failed_rank < 0)
		return NULL;
	return recv_hopeless_apart(ep, source);
}

/* Puts a receive into the table of its class, behind all that were filed before. */
static void recv_file(struct ibvx *ep, struct request *r)
{
	enum match_class c = recv_class(r->source, r->tag);

	match_append(&ep->posted[c], &r->node, match_key_of(c, r->context, r->source, r->tag), ep->order++);
	ep->posted_count++;
}

/* May r stand behind the posted receives of the run? */
static bool recv_runs(const struct ibvx *ep, const struct request *r)
{
	const struct request *first = LIST_ITEM(ep->run.next, struct request, link);

	return first->context == r->context && first->source == r->source && first->tag == r->tag &&
	       ep->run_count < RECV_RUN_MAX;
}

static void recv_file_run(struct ibvx *ep)
{
	while (!list_empty(&ep->run)) {
		struct request *r = LIST_ITEM(ep->run.next, struct request, link);

		list_remove(&r->link);
		recv_file(ep, r);
	}
	ep->run_count = 0;
}

void recv_post(struct ibvx *ep, struct request *r)
{
	struct umsg *u = recv_peek(ep, r->source, r->tag, r->context);
	struct peer *gone;

	if (u) {
		recv_extract(ep, u);
		recv_extracted(ep, r, u);
		return;
	}
	gone = recv_hopeless(ep, r->source);
	if (gone && (r->blocking || r->source != IBVX_ANY_SOURCE || gone->state == PEER_FAILED)) {
		r->peer = gone;
		complete_request(ep, r, gone->state == PEER_CLOSED ? -EPIPE : gone->fail_code);
		return;
	}
	recv_interest(ep, r->source, 1);
	if (ep->posted_count == 0 && (list_empty(&ep->run) || recv_runs(ep, r))) {
		list_append(&ep->run, &r->link);
		ep->run_count++;
	} else {
		recv_file_run(ep);
		recv_file(ep, r);
	}
	flow_emergency_source(ep, r->source);
}

void recv_unpost(struct ibvx *ep, struct request *r)
{
	if (r->node.next) {
		match_remove(&ep->posted[recv_class(r->source, r->tag)], &r->node);
		ep->posted_count--;
	} else if (!list_empty(&r->link)) {
		list_remove(&r->link);
		ep->run_count--;
	} else {
		return;
	}
	recv_interest(ep, r->source, -1);
}

void recv_end_posted(struct ibvx *ep, struct request *r)
{
	struct peer *gone = recv_hopeless(ep, r->source);

	if (!gone || gone->state != PEER_CLOSED)
		return;
	recv_unpost(ep, r);
	r->peer = gone;
	complete_request(ep, r, -EPIPE);
}

/* Nothing that a receive would have to stand behind, nothing else for its thread to do, and hope. */
static bool direct_recv_allowed(const struct ibvx *ep, int source)
{
	return !ep->poller && list_empty(&ep->waiters) && list_empty(&ep->run) && ep->posted_count == 0 &&
	       list_empty(&ep->arrivals) && list_empty(&ep->busy) && list_empty(&ep->wanting) && ep->stalled_peers == 0 &&
	       !ep->closing && !ep->aborted && ep->failed_rank < 0 &&
	       (source == IBVX_ANY_SOURCE ? ep->open_peers > 0 : ep->peers[source].state == PEER_OPEN);
}

void direct_recv_poll(struct ibvx *ep, struct direct_recv *l)
{
	for (int looks = 1; direct_recv_allowed(ep, l->source); looks++) {
		int events;

		ep->direct = l;
		events = progress_poll(ep, 1);
		ep->direct = NULL;
		if (l->done || l->request || looks == RECV_LOOKS)
			return;
		if (events == 0 && !progress_spin_once(ep))
			return;
	}
}

/* The landing becomes a receive that has matched. */
static struct request *direct_recv_to_request(struct ibvx *ep)
{
	struct direct_recv *l = ep->direct;
	struct request *r = recv_new(ep, l->buf, l->source, l->tag, l->context);

	if (!r)
		return NULL;
	r->blocking = true;
	r->want = l->want;
	r->want_mask = l->want_mask;
	l->request = r;
	ep->direct = NULL;
	return r;
}

static bool recv_fits(const struct request *r, int rank, int context, int tag)
{
	return r->context == context && (r->source == rank || r->source == IBVX_ANY_SOURCE) &&
	       (r->tag == tag || r->tag == IBVX_ANY_TAG);
}

struct request *recv_match(struct ibvx *ep, struct peer *p, int context, int tag)
{
	struct match_node *best = NULL;

	if (ep->direct) /* and nothing posted */
		return direct_recv_matches(ep->direct, p->rank, context, tag) ? direct_recv_to_request(ep) : NULL;
	if (!list_empty(&ep->run)) { /* and nothing in the tables */
		struct request *r = LIST_ITEM(ep->run.next, struct request, link);

		if (!recv_fits(r, p->rank, context, tag))
			return NULL;
		list_remove(&r->link);
		ep->run_count--;
		recv_interest(ep, r->source, -1);
		return r;
	}
	if (ep->posted_count == 0)
		return NULL;
	for (int c = 0; c < MATCH_CLASSES; c++) {
		struct match_node *n;

		if (!ep->posted[c].entry_count)
			continue;
		n = match_first(&ep->posted[c], match_key_of((enum match_class)c, context, p->rank, tag));
		if (n && (!best || n->order < best->order))
			best = n;
	}
	if (!best)
		return NULL;
	recv_unpost(ep, LIST_ITEM(best, struct request, node));
	return LIST_ITEM(best, struct request, node);
}

int recv_accept_apart(struct request *r, const struct recv_envelope *e)
{
	if ((e->user ^ r->want) & r->want_mask)
		return -EPROTOTYPE;
	if ((r->split ? e->head : e->head + e->body) > r->capacity)
		return -EMSGSIZE;
	if (r->split && e->body > 0) {
		r->base[1] = malloc(e->body);
		if (!r->base[1])
			return -ENOMEM;
	}
	return 0;
}

/* The pieces of a matched receive's memory, head and body. */
static void *recv_piece(const struct request *r, int i)
{
	char *base = r->pinnable ? r->bounce : r->base[0];

	if (i == 0)
		return base;
	return r->split ? r->base[1] : base ? base + r->bytes[0] : NULL;
}

/* Fills in the get for a matched rendezvous. */
static int recv_start_get(struct request *r, const void *desc, size_t desc_bytes)
{
	struct peer *p = r->peer;
	char *stage = r->pinnable ? pin_bounce(r) : NULL;
	struct transport_rma get = {
		.cookie = request_handle(r),
		.desc = desc,
		.desc_bytes = desc_bytes,
		.local = {{recv_piece(r, 0), r->bytes[0]}, {recv_piece(r, 1), r->bytes[1]}},
	};

	if (r->pinnable && !stage)
		return -ENOMEM;
	return p->transport->ops->get(p->transport, p->rank, &get);
}

int recv_emit_cts(struct request *r)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	const void *base[2] = {recv_piece(r, 0), recv_piece(r, 1)};
	struct transport_slot slot;
	int desc_bytes = 0;
	int rc = ops->reserve(p->transport, p->rank, r->wants_put ? WIRE_RMA_MAX : 0, &slot);

	if (rc < 0)
		return rc;
	if (r->wants_put)
		desc_bytes = ops->pack_rkey(p->transport, p->rank, request_handle(r), TRANSPORT_PUT, base, r->bytes, slot.payload);
	if (desc_bytes < 0)
		desc_bytes = 0; /* streaming needs no description */
	r->exposed = desc_bytes > 0;
	p->streams_in += !r->exposed && !r->leased;
	p->puts_in += r->exposed;
	slot.hdr->kind = WIRE_CTS;
	slot.hdr->flags = (uint8_t)((r->exposed ? WIRE_RMA : 0) | (r->leased ? WIRE_LEASE : 0));
	slot.hdr->len = (uint32_t)desc_bytes;
	slot.hdr->ctl = (struct wire_ctl){.id = r->remote, .from = request_wire_id(r)};
	ops->commit(p->transport, p->rank, &slot);
	return 0;
}

void recv_ask(struct request *r)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;

	request_set_state(r, REQ_FILLING);
	r->wants_put = r->at == 0 && !r->leased && ops->prefers_put && ops->prefers_put(p->transport, p->rank, request_total(r)) &&
		       (!r->pinnable || pin_bounce(r));
	peer_queue_control(r, WIRE_CTS);
}

void recv_rendezvous(struct ibvx *ep, struct request *r, int error, const struct recv_rts *rts)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);

	p->rndv_in++;
	r->at = rts->first_bytes;
	if (error || total == 0) {
		peer_queue_control(r, WIRE_FIN);
		complete_request(ep, r, error);
		return;
	}
	if (rts->desc_bytes > 0 && !p->no_get && p->transport->ops->prefers_get(p->transport, p->rank, total)) {
		request_set_state(r, REQ_GETTING);
		if (recv_start_get(r, rts->rest, rts->desc_bytes) == 0) {
			p->gets++;
			return;
		}
	}
	r->leased = rts->pinnable && lease_possible(r);
	recv_ask(r); /* and while the sender sees to it: */
	request_write(r, 0, rts->rest, rts->first_bytes);
}

/* The tail of a fragmented message that was unexpected so far goes to r from now on. */
static void recv_redirect(struct request *r, struct umsg *u, int error)
{
	struct peer *p = u->peer;

	if (p->inflow_umsg != u)
		return;
	p->inflow_umsg = NULL;
	p->inflow = error ? INFLOW_DROP : INFLOW_REQUEST;
	p->inflow_request = error ? NULL : r;
}

static void recv_eager(struct ibvx *ep, struct request *r, struct umsg *u, int error)
{
	struct peer *p = u->peer;
	bool whole = u->at == u->bytes[0] + u->bytes[1];

	if (u->lost && !error)
		error = -ENOMEM;
	if (!error && u->at)
		request_write(r, 0, u->payload, u->at);
	r->at = u->at;
	if (!whole && p->state != PEER_OPEN) {
		error = error ? error : p->fail_code ? p->fail_code : -EPIPE;
	} else if (!whole) {
		recv_redirect(r, u, error);
	} else {
		flow_release(p, u->cost);
	}
	if (u->sync)
		peer_queue_control(r, WIRE_ACK);
	if (whole || error)
		complete_request(ep, r, error);
	else
		request_set_state(r, REQ_FILLING);
}

void recv_extracted(struct ibvx *ep, struct request *r, struct umsg *u)
{
	struct recv_envelope e = {
		.tag = u->tag, .user = u->user, .head = u->bytes[0], .body = u->bytes[1], .id = u->id};
	struct peer *p = u->peer;
	int error = recv_accept(r, p, &e);

	if (!u->rts) {
		recv_eager(ep, r, u, error);
	} else if (p->state != PEER_OPEN) {
		complete_request(ep, r, p->state == PEER_CLOSED ? -EPIPE : p->fail_code);
	} else {
		struct recv_rts rts = {u->payload, u->desc_bytes, u->at, u->pinnable};

		if (u->lost && u->at > 0 && !error)
			error = -ENOMEM;
		flow_release(p, u->cost);
		recv_rendezvous(ep, r, error, &rts);
	}
	free(u);
}

void recv_discard(struct ibvx *ep, struct umsg *u)
{
	struct request *r = request_get(&ep->requests, REQ_RECV, REQ_POSTED);

	if (!r) { /* its sender is told if there is room just now */
		if (u->rts || u->sync)
			peer_control(u->peer, u->rts ? WIRE_FIN : WIRE_ACK, u->id, 0, 0);
		if (u->peer->inflow_umsg == u)
			u->peer->inflow = INFLOW_DROP;
		else
			flow_release(u->peer, u->cost);
		free(u);
		return;
	}
	r->detached = true;
	r->context = u->context;
	r->source = u->peer->rank;
	r->capacity = 0;
	recv_extracted(ep, r, u);
}

void recv_free_all(struct ibvx *ep)
{
	while (!list_empty(&ep->arrivals)) {
		struct umsg *u = LIST_ITEM(ep->arrivals.next, struct umsg, link);

		list_remove(&u->link);
		free(u);
	}
	for (uint32_t i = 0; i < ep->requests.chunk_count * REQUEST_CHUNK; i++) {
		struct request *r = request_at(&ep->requests, i);

		if (!r)
			continue;
		free(r->message);
		free(r->bounce);
		pin_drop(ep, r);
		if (r->kind == REQ_RECV && r->split && !r->consumed)
			free(r->base[1]);
	}
}
