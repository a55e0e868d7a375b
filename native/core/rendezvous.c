/* SPDX-License-Identifier: MIT */
/* The receiver's side of rendezvous.h, and the table of schemes. */
#include "core/rendezvous.h"

#include <errno.h>
#include <string.h>

#include "core/complete.h"
#include "core/cost.h"
#include "core/flow_control.h"
#include "core/lease.h"
#include "core/match.h"
#include "core/packet.h"
#include "core/peer.h"

/* The method that carried r, if it is the one that its sender offered. */
static void received_timed(struct request *r)
{
	if (r->scheme == RNDV_GET || r->scheme == RNDV_LEASED_GET)
		cost_end(r, COST_GET);
	else if (r->scheme == RNDV_PIPELINE && !r->offered_get)
		cost_end(r, COST_RING);
	else
		cost_forget(r);
}

/* All bytes up to `at` are in the memory of r or in its bounce buffer. */
static void received_to(struct request *r, uint64_t at)
{
	r->at = at;
	if (at < request_total(r))
		return;
	r->peer->bytes_in += at;
	received_timed(r);
	complete_request(r->peer->ep, r, 0);
}

static int cts_emit(struct request *r)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	void *base[2];
	struct transport_slot slot;
	int rkey_bytes = 0;
	int rc = ops->reserve(p->transport, p->rank, r->scheme == RNDV_PUT ? WIRE_RMA_MAX : 0, &slot);

	if (rc < 0)
		return rc;
	if (r->scheme == RNDV_PUT && buffer_rma_target(&r->buffer, base))
		rkey_bytes = ops->pack_rkey(p->transport, p->rank, request_handle(r), TRANSPORT_PUT, (const void **)base, r->buffer.bytes,
					    slot.payload);
	r->rkey_packed = rkey_bytes > 0 || rkey_bytes == -EAGAIN;
	if (rkey_bytes == -EAGAIN) {
		ops->discard(p->transport, p->rank, &slot);
		return -EAGAIN;
	}
	if (r->scheme == RNDV_PUT && !r->rkey_packed)
		r->scheme = RNDV_PIPELINE;
	p->pipelines_in += r->scheme == RNDV_PIPELINE;
	p->puts_in += r->scheme == RNDV_PUT;
	slot.hdr->kind = WIRE_CTS;
	slot.hdr->flags = (uint8_t)((r->rkey_packed ? WIRE_RMA : 0) | (r->scheme == RNDV_LEASED_GET ? WIRE_LEASE : 0));
	slot.hdr->len = r->rkey_packed ? (uint32_t)rkey_bytes : 0;
	slot.hdr->ctl = (struct wire_ctl){.id = r->remote, .from = request_wire_id(r)};
	ops->commit(p->transport, p->rank, &slot);
	return 0;
}

/* Asks the sender to transfer r by the scheme that r names. */
static int cts_send(struct request *r)
{
	request_set_state(r, REQ_FILLING);
	r->emit = cts_emit;
	peer_queue_control(r, WIRE_CTS);
	return 0;
}

/* --- get --- */

static bool get_possible(const struct request *r, const struct rndv_offer *offer)
{
	const struct peer *p = r->peer;

	return offer->rkey_bytes > 0 && !p->no_get && p->transport->ops->prefers_get(p->transport, p->rank, request_total(r));
}

static int get_start(struct request *r, const struct rndv_offer *offer)
{
	struct peer *p = r->peer;
	struct transport_rma get;
	void *base[2];
	int rc;

	if (!buffer_rma_target(&r->buffer, base))
		return -ENOTSUP;
	get = (struct transport_rma){
		.cookie = request_handle(r),
		.desc = offer->rest,
		.desc_bytes = offer->rkey_bytes,
		.local = {{base[0], r->buffer.bytes[0]}, {base[1], r->buffer.bytes[1]}},
	};
	request_set_state(r, REQ_GETTING);
	rc = p->transport->ops->get(p->transport, p->rank, &get);
	p->gets += rc == 0;
	return rc;
}

/* Also of a send, and of a put's receiver. */
static int rma_abort(struct request *r)
{
	if (!r->rkey_packed && r->state != REQ_GETTING && r->state != REQ_PUTTING)
		return 0;
	return r->peer->transport->ops->cancel(r->peer->transport, r->peer->rank, request_handle(r));
}

/* --- pipeline --- */

static bool pipeline_possible(const struct request *r, const struct rndv_offer *offer)
{
	(void)r;
	(void)offer;
	return true;
}

static int pipeline_start(struct request *r, const struct rndv_offer *offer)
{
	cts_send(r); /* while the sender acts on it: */
	if (offer->first_bytes)
		packet_deliver(r, 0, offer->rest, offer->first_bytes);
	return 0;
}

static int pipeline_progress(struct request *r, const struct wire_hdr *hdr, const void *payload)
{
	if (hdr->kind != WIRE_DATA || hdr->ctl.offset != r->at || hdr->len > request_total(r) - r->at)
		return -EPROTO;
	packet_deliver(r, r->at, payload, hdr->len);
	received_to(r, r->at + hdr->len);
	return 0;
}

/* --- leased get --- */

static bool leased_possible(const struct request *r, const struct rndv_offer *offer)
{
	return offer->leasable && lease_possible(r);
}

/* The sender leases segments, or sends DATA where it cannot. */
static int leased_progress(struct request *r, const struct wire_hdr *hdr, const void *payload)
{
	if (hdr->kind == WIRE_DATA) {
		lease_forget(r);
		return pipeline_progress(r, hdr, payload);
	}
	if (hdr->kind != WIRE_SEGMENT || r->pending_control || hdr->len != WIRE_LEASE_BYTES || hdr->ctl.offset != r->at ||
	    hdr->ctl.value == 0 || hdr->ctl.value > LEASE_BYTES || hdr->ctl.value > request_total(r) - r->at)
		return -EPROTO;
	lease_note(r, payload, (size_t)hdr->ctl.value);
	return 0;
}

bool rendezvous_pull(struct ibvx *ep, struct request *r, char *at)
{
	int64_t rc = lease_pull(ep, r, at);

	if (rc > 0) {
		buffer_written(&r->buffer, r->at + (uint64_t)rc);
		received_to(r, r->at + (uint64_t)rc);
	} else if (rc < 0 && r->state == REQ_FILLING) { /* again, as a pipeline */
		r->scheme = RNDV_PIPELINE;
		cts_send(r);
	}
	return rc != 0;
}

/* --- put --- */

static bool put_possible(const struct request *r, const struct rndv_offer *offer)
{
	const struct transport_ops *ops = r->peer->transport->ops;

	return offer->first_bytes == 0 && ops->prefers_put && ops->prefers_put(r->peer->transport, r->peer->rank, request_total(r));
}

static int put_start(struct request *r, const struct rndv_offer *offer)
{
	void *base[2];

	(void)offer;
	return buffer_rma_target(&r->buffer, base) ? cts_send(r) : -ENOTSUP;
}

/* DONE, or DATA if the sender could not put. */
static int put_progress(struct request *r, const struct wire_hdr *hdr, const void *payload)
{
	if (hdr->kind == WIRE_DATA)
		return pipeline_progress(r, hdr, payload);
	if (hdr->kind != WIRE_DONE || !r->rkey_packed || r->at != 0)
		return -EPROTO;
	buffer_filled(&r->buffer);
	received_to(r, request_total(r));
	return 0;
}

const struct rndv_row rndv_table[RNDV_SCHEME_COUNT] = {
	[RNDV_GET] = {"get", get_possible, get_start, NULL, rma_abort},
	[RNDV_LEASED_GET] = {"leased get", leased_possible, pipeline_start, leased_progress, NULL},
	[RNDV_PUT] = {"put", put_possible, put_start, put_progress, rma_abort},
	[RNDV_PIPELINE] = {"pipeline", pipeline_possible, pipeline_start, pipeline_progress, NULL},
};

/* Starts the first possible scheme from `first` on.  The pipeline never fails. */
static void rendezvous_start(struct request *r, enum rndv_scheme first, const struct rndv_offer *offer)
{
	for (enum rndv_scheme s = first; s < RNDV_SCHEME_COUNT; s++) {
		if (!rndv_table[s].possible(r, offer))
			continue;
		r->scheme = (uint8_t)s;
		if (rndv_table[s].start(r, offer) == 0)
			return;
	}
}

void rendezvous_receive(struct ibvx *ep, struct request *r, int error, const struct rndv_offer *offer)
{
	r->peer->rndv_in++;
	r->at = offer->first_bytes;
	r->offered_get = offer->rkey_bytes > 0 || offer->leasable;
	if (error || request_total(r) == 0) {
		cost_forget(r);
		peer_queue_control(r, WIRE_FIN);
		complete_request(ep, r, error);
		return;
	}
	rendezvous_start(r, RNDV_GET, offer);
}

int rendezvous_abort(struct request *r)
{
	if (r->kind == REQ_SEND)
		return rma_abort(r);
	if ((r->state == REQ_GETTING || r->state == REQ_FILLING) && rndv_table[r->scheme].abort)
		return rndv_table[r->scheme].abort(r);
	return 0;
}

void rendezvous_on_cancelled(void *core, int rank, uint64_t cookie)
{
	struct ibvx *ep = core;
	struct request *r = request_at(&ep->requests, (uint32_t)cookie - 1u);

	(void)rank; /* of a receive in r->peer stands the rank that is to blame */
	if (r && request_handle(r) == cookie && r->state == REQ_ENDING)
		complete_request(ep, r, r->error);
}

void rendezvous_rts_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = p->ep;
	struct rndv_offer offer = {.rest = (const char *)payload + sizeof(struct wire_long), .leasable = hdr->flags & WIRE_LEASE};
	struct envelope e;
	struct request *r;
	struct umsg *u;
	size_t rest;

	if (!packet_read_long(p, hdr, payload, &e))
		return;
	rest = hdr->len - sizeof(struct wire_long);
	if (hdr->flags & WIRE_RMA)
		offer.rkey_bytes = rest;
	else
		offer.first_bytes = rest;
	if (offer.rkey_bytes > WIRE_RMA_MAX || (offer.first_bytes > 0 && offer.first_bytes >= e.head + e.body)) {
		peer_broken(p, "an announcement of %u bytes", hdr->len);
		return;
	}
	r = match_arrival(ep, p, hdr->msg.context, e.tag);
	if (r) {
		flow_release(p, flow_cost(offer.first_bytes));
		r->peer = p;
		if (hdr->flags & WIRE_TIMED)
			cost_begin(r, hdr->msg.start_ns);
		rendezvous_receive(ep, r, envelope_accept(r, p, &e), &offer);
		return;
	}
	u = umsg_new(p, hdr, &e, rest);
	if (!u)
		return;
	if (!u->lost)
		memcpy(u->payload, offer.rest, rest);
	u->rts = true;
	u->leasable = offer.leasable;
	u->rkey_bytes = u->lost ? 0 : (uint8_t)offer.rkey_bytes;
	u->at = offer.first_bytes;
	u->cost = flow_cost(offer.first_bytes);
	match_store(ep, u);
}

void rendezvous_piece_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct request *r = request_find_wire(&p->ep->requests, hdr->ctl.id);
	const char *kind = hdr->kind == WIRE_DATA ? "DATA" : hdr->kind == WIRE_DONE ? "DONE" : "SEGMENT";

	if (!r || r->kind != REQ_RECV || r->peer != p || (r->state != REQ_FILLING && r->state != REQ_GETTING)) {
		if (p->ep->failed_rank < 0)
			peer_broken(p, "%s for the unknown request %#x", kind, hdr->ctl.id);
	} else if (!rndv_table[r->scheme].progress || r->state != REQ_FILLING || rndv_table[r->scheme].progress(r, hdr, payload) < 0) {
		peer_broken(p, "%s of %u bytes at %llu of %zu (value %llu) for a %s", kind, hdr->len, (unsigned long long)hdr->ctl.offset,
			    request_total(r), (unsigned long long)hdr->ctl.value, rndv_table[r->scheme].name);
	}
}

void rendezvous_on_get(void *core, int rank, uint64_t cookie, int err)
{
	struct ibvx *ep = core;
	struct peer *p = &ep->peers[rank];
	struct request *r = request_at(&ep->requests, (uint32_t)cookie - 1u);

	if (!r || request_handle(r) != cookie || r->state != REQ_GETTING)
		return;
	if (err == 0) {
		p->bytes_in += request_total(r);
		buffer_filled(&r->buffer);
		received_timed(r);
		peer_queue_control(r, WIRE_FIN);
		complete_request(ep, r, 0);
		return;
	}
	log_info(&ep->log, "a get from rank %d failed (%s): the message uses another scheme", rank, strerror(-err));
	if (err == -EPERM || err == -ENOSYS)
		p->no_get = true;
	rendezvous_start(r, RNDV_PUT, &(struct rndv_offer){.rest = NULL});
}
