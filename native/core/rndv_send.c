/* SPDX-License-Identifier: MIT */
/* The sender's side of rendezvous.h. */
#include <errno.h>
#include <string.h>

#include "core/complete.h"
#include "core/flow_control.h"
#include "core/lease.h"
#include "core/packet.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/rendezvous.h"

/* Is a leased get to be offered? */
static bool announce_leases(const struct request *r)
{
	return r->method != COST_RING && lease_possible(r);
}

/* How many of the first bytes the RTS carries, so that the receiver has work until its CTS has
 * brought more: none if they would be all, if credit is short, if the memory has no address now, or
 * if the message is to go by another scheme than the pipeline. */
static size_t announce_first_bytes(const struct request *r)
{
	const struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	size_t total = request_total(r);
	size_t first = packet_piece_bytes(p, total) - sizeof(struct wire_long);

	if (first >= total || (buffer_is_pinnable(&r->buffer) && !pin_is_attended(r)) || announce_leases(r) || r->method == COST_GET ||
	    !flow_allows_eager(p, first) || (ops->prefers_put && ops->prefers_put(p->transport, p->rank, total)))
		return 0;
	return first;
}

/* Packs the rkey of r, if a get is to be offered. Its length or 0; -EAGAIN: its memory is being registered. */
static int announce_rkey(struct request *r, void *rkey)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	void *base[2];
	int bytes = 0;

	if (ops->pack_rkey && request_total(r) > 0 && r->method != COST_RING && buffer_rma_source(&r->buffer, base))
		bytes = ops->pack_rkey(p->transport, p->rank, request_handle(r), TRANSPORT_GET, (const void **)base, r->buffer.bytes, rkey);
	r->rkey_packed = bytes > 0 || bytes == -EAGAIN;
	return r->rkey_packed ? bytes : 0; /* without one it is a pipeline */
}

int rendezvous_announce(struct request *r)
{
	struct peer *p = r->peer;
	struct wire_long lng = {r->buffer.bytes[0], r->buffer.bytes[1]};
	size_t first = announce_first_bytes(r);
	struct transport_slot slot;
	int rc, rkey_bytes;
	char *rest;

	if (first > 0)
		rc = packet_reserve(r, sizeof(lng) + (first > WIRE_RMA_MAX ? first : WIRE_RMA_MAX), &slot);
	else
		rc = p->transport->ops->reserve(p->transport, p->rank, sizeof(lng) + WIRE_RMA_MAX, &slot);
	if (rc < 0)
		return rc;
	rest = (char *)slot.payload + sizeof(lng);
	rkey_bytes = announce_rkey(r, rest);
	if (rkey_bytes == -EAGAIN) {
		p->transport->ops->discard(p->transport, p->rank, &slot);
		return -EAGAIN;
	}
	if (rkey_bytes > 0)
		first = 0;
	packet_msg_header(slot.hdr, WIRE_RTS, sizeof(lng) + (size_t)rkey_bytes + first, r);
	slot.hdr->flags |= (uint8_t)((rkey_bytes ? WIRE_RMA : 0) | (announce_leases(r) ? WIRE_LEASE : 0));
	memcpy(slot.payload, &lng, sizeof(lng));
	if (first > 0)
		buffer_read(&r->buffer, 0, rest, first, slot.copy);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	r->at = first;
	p->credit -= (int64_t)flow_cost(first);
	p->rndv_out++;
	list_remove(&r->link);
	request_set_state(r, REQ_WAIT_CTS);
	return 0;
}

/* All of r as far as r->at has left: that may have been everything. */
static void stream_advanced(struct request *r)
{
	if (r->at < request_total(r))
		return;
	r->peer->bytes_out += r->at;
	list_remove(&r->link);
	complete_request(r->peer->ep, r, 0);
}

int rendezvous_stream(struct request *r)
{
	int rc = packet_send_piece(r, WIRE_DATA);

	if (rc == 0)
		stream_advanced(r);
	return rc;
}

static void stream_start(struct request *r)
{
	request_set_state(r, REQ_STREAMING);
	r->emit = rendezvous_stream;
	list_append(&r->peer->streams, &r->link);
	peer_flush(r->peer);
}

bool rendezvous_push(struct ibvx *ep, struct request *r, const char *at)
{
	struct peer *p = r->peer;
	int64_t rc;

	if (r->state != REQ_STREAMING || r->scheme != RNDV_LEASED_GET || p->state != PEER_OPEN || p->error ||
	    !lease_is_worthwhile(p, request_total(r) - r->at))
		return false;
	rc = lease_push(ep, r, at);
	if (rc == 0)
		return false;
	if (r->state == REQ_STREAMING && rc > 0) {
		r->at += (uint64_t)rc;
		stream_advanced(r);
		return true;
	}
	/* else another thread has taken in the CTS that follows a refusal */
	if (r->state == REQ_STREAMING && rc == -EIO && r->scheme == RNDV_LEASED_GET) {
		list_remove(&r->link);
		request_set_state(r, REQ_WAIT_CTS);
	}
	r->scheme = RNDV_PIPELINE;
	return true;
}

/* The receiver offers its memory. */
static int put_start(struct request *r, const void *rkey, size_t rkey_bytes)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	struct wire_hdr done = {.kind = WIRE_DONE, .ctl = {.id = r->remote, .from = request_wire_id(r)}};
	struct transport_rma put;
	void *base[2];

	if (!buffer_rma_source(&r->buffer, base))
		return -ENOTSUP;
	put = (struct transport_rma){
		.cookie = request_handle(r),
		.desc = rkey,
		.desc_bytes = rkey_bytes,
		.local = {{base[0], r->buffer.bytes[0]}, {base[1], r->buffer.bytes[1]}},
	};
	return ops->put ? ops->put(p->transport, p->rank, &put, &done) : -ENOSYS;
}

void rendezvous_cts_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct request *r = packet_find_send(p, hdr, "CTS");

	if (!r)
		return;
	if (r->state == REQ_STREAMING && r->scheme == RNDV_LEASED_GET) { /* a lease was refused, its thread is about to see that */
		r->scheme = RNDV_PIPELINE;
		return;
	}
	if (r->state != REQ_WAIT_CTS) {
		peer_broken(p, "CTS for a request in state %s", request_state_name(r->state));
		return;
	}
	r->remote = hdr->ctl.from;
	r->scheme = hdr->flags & WIRE_LEASE && lease_possible(r) ? RNDV_LEASED_GET : RNDV_PIPELINE;
	if (hdr->flags & WIRE_RMA) {
		request_set_state(r, REQ_PUTTING);
		if (put_start(r, payload, hdr->len) == 0) {
			p->puts++;
			return;
		}
	}
	stream_start(r);
}

void rendezvous_on_put(void *core, int rank, uint64_t cookie, int err)
{
	struct ibvx *ep = core;
	struct peer *p = &ep->peers[rank];
	struct request *r = request_at(&ep->requests, (uint32_t)cookie - 1u);

	if (!r || request_handle(r) != cookie || r->state != REQ_PUTTING)
		return;
	if (err == 0) {
		p->bytes_out += request_total(r);
		complete_request(ep, r, 0);
		return;
	}
	log_info(&ep->log, "a put to rank %d failed (%s): the message goes through the pipeline instead", rank, strerror(-err));
	stream_start(r);
}

void rendezvous_fin_arrived(struct peer *p, const struct wire_hdr *hdr)
{
	struct request *r = packet_find_send(p, hdr, "FIN");

	if (!r)
		return;
	if (r->state != REQ_WAIT_CTS) {
		peer_broken(p, "FIN for a request in state %s", request_state_name(r->state));
		return;
	}
	p->bytes_out += request_total(r);
	complete_request(p->ep, r, 0);
}
