/* SPDX-License-Identifier: MIT */
#include "core/send.h"

#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "core/complete.h"
#include "core/flow_control.h"
#include "core/pin.h"
#include "core/peer.h"
#include "core/lease.h"

static void send_header(struct wire_hdr *hdr, enum wire_kind kind, size_t len, const struct request *r)
{
	hdr->kind = (uint8_t)kind;
	hdr->flags = r->sync && kind != WIRE_RTS ? WIRE_SYNC : 0;
	hdr->len = (uint32_t)len;
	hdr->msg = (struct wire_msg){
		.context = r->context,
		.tag = r->tag,
		.user = r->user,
		.body_bytes = kind == WIRE_EAGER ? (uint32_t)r->bytes[1] : 0,
		.id = request_wire_id(r),
	};
}

/* Messages up to this size are one packet. Longer ones go in pieces, of about a quarter of the message, so that
 * the receiver copies one while the sender fills the next (measured: ARCHITECTURE.md). */
#define SEND_PIECE_MIN (16u << 10)
#define SEND_PIECES 4u

static size_t send_piece_bytes(const struct peer *p, size_t total)
{
	size_t piece = (total / SEND_PIECES + 4095u) & ~(size_t)4095u;

	if (piece < SEND_PIECE_MIN)
		piece = SEND_PIECE_MIN;
	return piece < p->payload_max ? piece : p->payload_max;
}

/* Where the transport has no post(). */
static int send_post(struct transport *t, int rank, const struct wire_hdr *hdr, const void *head, size_t head_bytes,
		     const void *body, size_t body_bytes)
{
	struct transport_slot slot;
	int rc = t->ops->reserve(t, rank, head_bytes + body_bytes, &slot);

	if (rc < 0)
		return rc;
	slot.hdr->kind = hdr->kind;
	slot.hdr->flags = hdr->flags;
	slot.hdr->len = hdr->len;
	slot.hdr->msg = hdr->msg;
	copy_small(slot.payload, head, head_bytes);
	copy_small((char *)slot.payload + head_bytes, body, body_bytes);
	t->ops->commit(t, rank, &slot);
	return 0;
}

void send_attach(struct peer *p)
{
	p->once_max = send_piece_bytes(p, 0);
	if (p->once_max > p->eager_max)
		p->once_max = p->eager_max;
	p->post = p->transport->ops->post ? p->transport->ops->post : send_post;
}

int send_at_once(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context)
{
	size_t total = buf->head_bytes + buf->body_bytes;
	struct wire_hdr hdr = {
		.kind = WIRE_EAGER,
		.len = (uint32_t)total,
		.msg = {.context = context, .tag = tag, .user = buf->user, .body_bytes = (uint32_t)buf->body_bytes},
	};
	int rc;

	if (total > p->once_max || !list_empty(&p->sends) || !flow_allows_eager(p, total))
		return 0;
	rc = p->post(p->transport, p->rank, &hdr, buf->head, buf->head_bytes, buf->body, buf->body_bytes);
	if (rc < 0) {
		if (rc != -EAGAIN)
			peer_set_error(p, rc);
		return 0; /* the general way waits for room, or for the end of the peer */
	}
	p->talked = true;
	p->credit -= (int64_t)flow_cost(total);
	p->eager_out++;
	p->bytes_out += total;
	return 1;
}

void send_start(struct request *r)
{
	list_append(&r->peer->sends, &r->link);
	/* behind others there is nothing to try: the busy list or credit brings their turn */
	if (r->peer->sends.next == &r->link || !r->peer->stalled_sent)
		peer_flush(r->peer);
}

/* Room for a piece of r. Without its memory (heap.h) there is nothing to put there: its owner is called. */
static int send_room(struct request *r, size_t len, struct transport_slot *slot)
{
	struct peer *p = r->peer;
	int rc = p->transport->ops->reserve(p->transport, p->rank, len, slot);

	if (rc < 0 || !r->pinnable || pin_address(r))
		return rc;
	p->transport->ops->discard(p->transport, p->rank, slot);
	return pin_want(r);
}

/* The last packet of an eager message is out. */
static void send_eager_out(struct request *r)
{
	struct peer *p = r->peer;

	list_remove(&r->link);
	p->eager_out++;
	p->bytes_out += request_total(r);
	if (r->sync && !r->acked)
		request_set_state(r, REQ_WAIT_ACK);
	else
		complete_request(p->ep, r, 0);
}

static int send_eager(struct request *r)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);
	struct transport_slot slot;
	int rc = send_room(r, total, &slot);

	if (rc < 0)
		return rc;
	send_header(slot.hdr, WIRE_EAGER, total, r);
	request_read(r, 0, slot.payload, total);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	p->credit -= (int64_t)flow_cost(total);
	send_eager_out(r);
	return 0;
}

static int send_eager_first(struct request *r)
{
	struct peer *p = r->peer;
	struct wire_long lng = {r->bytes[0], r->bytes[1]};
	size_t room = send_piece_bytes(p, request_total(r));
	size_t len = room - sizeof(lng);
	struct transport_slot slot;
	int rc = send_room(r, room, &slot);

	if (rc < 0)
		return rc;
	send_header(slot.hdr, WIRE_EAGER_FIRST, sizeof(lng) + len, r);
	memcpy(slot.payload, &lng, sizeof(lng));
	request_read(r, 0, (char *)slot.payload + sizeof(lng), len);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	p->credit -= (int64_t)flow_cost(request_total(r));
	r->at = len;
	request_set_state(r, REQ_PUSHING);
	return 0;
}

/* The next piece of r, as DATA or EAGER_MORE. */
static int send_piece(struct request *r, enum wire_kind kind)
{
	struct peer *p = r->peer;
	uint64_t left = request_total(r) - r->at;
	size_t len = send_piece_bytes(p, request_total(r));
	struct transport_slot slot;
	int rc;

	len = left < len ? (size_t)left : len;
	rc = send_room(r, len, &slot);
	if (rc < 0)
		return rc;
	slot.hdr->kind = (uint8_t)kind;
	slot.hdr->flags = 0;
	slot.hdr->len = (uint32_t)len;
	slot.hdr->ctl = (struct wire_ctl){.id = r->remote, .from = request_wire_id(r), .offset = r->at};
	request_read(r, r->at, slot.payload, len);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	r->at += len;
	return 0;
}

static int send_eager_more(struct request *r)
{
	int rc = send_piece(r, WIRE_EAGER_MORE);

	if (rc == 0 && r->at == request_total(r))
		send_eager_out(r);
	return rc;
}

/* How many of the first bytes the announcement carries, so that the receiver has work until CTS has brought more: none
 * if they would be all, if credit is short, if the memory is out of everybody's reach or to be moved in one piece. */
static size_t send_first_bytes(const struct request *r)
{
	const struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	size_t total = request_total(r);
	size_t first = send_piece_bytes(p, total) - sizeof(struct wire_long);

	if (first >= total || (r->pinnable && (!r->pin || pin_zero_copy(r))) || lease_possible(r) || !flow_allows_eager(p, first) ||
	    (ops->prefers_put && ops->prefers_put(p->transport, p->rank, total)))
		return 0;
	return first;
}

static int send_announce(struct request *r)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	struct wire_long lng = {r->bytes[0], r->bytes[1]};
	const void *base[2] = {r->base[0], r->base[1]};
	size_t first = send_first_bytes(r);
	struct transport_slot slot;
	int desc_bytes = 0;
	char *rest;
	int rc;

	if (first > 0)
		rc = send_room(r, sizeof(lng) + (first > WIRE_RMA_MAX ? first : WIRE_RMA_MAX), &slot);
	else
		rc = ops->reserve(p->transport, p->rank, sizeof(lng) + WIRE_RMA_MAX, &slot);
	if (rc < 0)
		return rc;
	rest = (char *)slot.payload + sizeof(lng);
	if (ops->pack_rkey && request_total(r) > 0 && !r->pinnable)
		desc_bytes = ops->pack_rkey(p->transport, p->rank, request_handle(r), TRANSPORT_GET, base, r->bytes, rest);
	r->exposed = desc_bytes > 0;
	if (r->exposed)
		first = 0;
	else
		desc_bytes = 0; /* streaming needs no description */
	send_header(slot.hdr, WIRE_RTS, sizeof(lng) + (size_t)desc_bytes + first, r);
	if (r->exposed)
		slot.hdr->flags |= WIRE_RMA;
	if (lease_possible(r))
		slot.hdr->flags |= WIRE_LEASE;
	memcpy(slot.payload, &lng, sizeof(lng));
	if (first > 0)
		request_read(r, 0, rest, first);
	ops->commit(p->transport, p->rank, &slot);
	r->at = first;
	p->credit -= (int64_t)flow_cost(first);
	p->rndv_out++;
	list_remove(&r->link);
	request_set_state(r, REQ_WAIT_CTS);
	return 0;
}

int send_emit(struct request *r)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);

	p->talked = true;
	if (r->state == REQ_PUSHING)
		return send_eager_more(r);
	if (total <= p->eager_max && flow_allows_eager(p, total))
		return total <= send_piece_bytes(p, total) ? send_eager(r) : send_eager_first(r);
	if (!flow_allows_envelope(p))
		return -ENOBUFS;
	return send_announce(r);
}

void send_streamed(struct request *r)
{
	if (r->at < request_total(r))
		return;
	r->peer->bytes_out += r->at;
	list_remove(&r->link);
	complete_request(r->peer->ep, r, 0);
}

void send_await_cts(struct request *r)
{
	list_remove(&r->link);
	request_set_state(r, REQ_WAIT_CTS);
}

int send_stream(struct request *r)
{
	int rc = send_piece(r, WIRE_DATA);

	if (rc == 0)
		send_streamed(r);
	return rc;
}

/* The send that an answer names, if it waits for such an answer. */
static struct request *send_of(struct peer *p, const struct wire_hdr *hdr, const char *what)
{
	struct request *r = request_find_wire(&p->ep->requests, hdr->ctl.id);

	if (r && r->kind == REQ_SEND && r->peer == p && r->state != REQ_DONE && r->state != REQ_QUEUED)
		return r;
	/* after a failure, answers to requests that were failed are still under way */
	if (p->ep->failed_rank < 0)
		peer_broken(p, "%s for the unknown request %#x", what, hdr->ctl.id);
	return NULL;
}

void send_stream_start(struct request *r)
{
	request_set_state(r, REQ_STREAMING);
	list_append(&r->peer->streams, &r->link);
	peer_flush(r->peer);
}

/* The receiver offers its memory. */
static int send_start_put(struct request *r, const void *desc, size_t desc_bytes)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	struct wire_hdr done = {.kind = WIRE_DONE, .ctl = {.id = r->remote, .from = request_wire_id(r)}};
	struct transport_rma put = {
		.cookie = request_handle(r),
		.desc = desc,
		.desc_bytes = desc_bytes,
		.local = {{r->base[0], r->bytes[0]}, {r->base[1], r->bytes[1]}},
	};

	return ops->put ? ops->put(p->transport, p->rank, &put, &done) : -ENOSYS;
}

void send_on_cts(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct request *r = send_of(p, hdr, "CTS");

	if (!r)
		return;
	if (r->state == REQ_STREAMING && r->leased) { /* a window has failed, which its thread is about to see */
		r->leased = false;
		return;
	}
	if (r->state != REQ_WAIT_CTS) {
		peer_broken(p, "CTS for a request in state %s", request_state_name(r->state));
		return;
	}
	if (r->pin)
		r->pin->lease_bytes = 0;
	r->remote = hdr->ctl.from;
	r->leased = hdr->flags & WIRE_LEASE && lease_possible(r);
	if (hdr->flags & WIRE_RMA && !r->pinnable) {
		request_set_state(r, REQ_PUTTING);
		if (send_start_put(r, payload, hdr->len) == 0) {
			p->puts++;
			return;
		}
	}
	send_stream_start(r);
}

void send_on_put(void *core, int rank, uint64_t cookie, int err)
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
	log_info(&ep->log, "a put to rank %d failed (%s): the message is streamed instead", rank, strerror(-err));
	send_stream_start(r);
}

void send_on_fin(struct peer *p, const struct wire_hdr *hdr)
{
	struct request *r = send_of(p, hdr, "FIN");

	if (!r)
		return;
	if (r->state != REQ_WAIT_CTS) {
		peer_broken(p, "FIN for a request in state %s", request_state_name(r->state));
		return;
	}
	p->bytes_out += request_total(r);
	complete_request(p->ep, r, 0);
}

void send_on_ack(struct peer *p, const struct wire_hdr *hdr)
{
	struct request *r = send_of(p, hdr, "ACK");

	if (!r)
		return;
	if (r->state == REQ_PUSHING) {
		r->acked = true;
		return;
	}
	if (r->state != REQ_WAIT_ACK) {
		peer_broken(p, "ACK for a request in state %s", request_state_name(r->state));
		return;
	}
	complete_request(p->ep, r, 0);
}
