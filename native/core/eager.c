/* SPDX-License-Identifier: MIT */
#include "core/eager.h"

#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "core/complete.h"
#include "core/cost.h"
#include "core/flow_control.h"
#include "core/match.h"
#include "core/packet.h"
#include "core/peer.h"
#include "core/pin.h"

/* Where the transport has no post(). */
static int eager_post(struct transport *t, int rank, const struct wire_hdr *hdr, const void *head, size_t head_bytes, const void *body,
		      size_t body_bytes)
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

void eager_attach(struct peer *p)
{
	p->once_max = packet_piece_bytes(p, 0);
	if (p->once_max > p->eager_max)
		p->once_max = p->eager_max;
	p->post = p->transport->ops->post ? p->transport->ops->post : eager_post;
}

int eager_try(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context)
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
		return 0; /* the general function waits for room, or for the end of the peer */
	}
	p->talked = true;
	p->credit -= (int64_t)flow_cost(total);
	p->eager_out++;
	p->bytes_out += total;
	return 1;
}

/* The last packet of an eager message is out. */
static void eager_sent(struct request *r)
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

int eager_emit(struct request *r)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);
	struct transport_slot slot;
	int rc = packet_reserve(r, total, &slot);

	if (rc < 0)
		return rc;
	packet_msg_header(slot.hdr, WIRE_EAGER, total, r);
	buffer_read(&r->buffer, 0, slot.payload, total, slot.copy);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	p->credit -= (int64_t)flow_cost(total);
	eager_sent(r);
	return 0;
}

int eager_emit_first(struct request *r)
{
	struct peer *p = r->peer;
	struct wire_long lng = {r->buffer.bytes[0], r->buffer.bytes[1]};
	size_t room = packet_piece_bytes(p, request_total(r));
	size_t len = room - sizeof(lng);
	struct transport_slot slot;
	int rc = packet_reserve(r, room, &slot);

	if (rc < 0)
		return rc;
	packet_msg_header(slot.hdr, WIRE_EAGER_FIRST, sizeof(lng) + len, r);
	memcpy(slot.payload, &lng, sizeof(lng));
	buffer_read(&r->buffer, 0, (char *)slot.payload + sizeof(lng), len, slot.copy);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	p->credit -= (int64_t)flow_cost(request_total(r));
	r->at = len;
	request_set_state(r, REQ_PUSHING);
	return 0;
}

int eager_emit_more(struct request *r)
{
	int rc = packet_send_piece(r, WIRE_EAGER_MORE);

	if (rc == 0 && r->at == request_total(r))
		eager_sent(r);
	return rc;
}

void eager_on_ack(struct peer *p, const struct wire_hdr *hdr)
{
	struct request *r = packet_find_send(p, hdr, "ACK");

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

/* Straight to the memory of the receive whose thread polls. */
static void direct_recv_deliver(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct direct_recv *l = p->ep->direct;

	copy_small(l->args.buf->base, payload, hdr->len);
	l->status = (struct ibvx_status){.source = p->rank,
					 .tag = hdr->msg.tag,
					 .context = hdr->msg.context,
					 .head_bytes = hdr->len - hdr->msg.body_bytes,
					 .body_bytes = hdr->msg.body_bytes,
					 .user = hdr->msg.user};
	l->done = true;
	p->ep->direct = NULL;
	flow_release(p, flow_cost(hdr->len));
}

void eager_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = p->ep;
	struct envelope e = {.tag = hdr->msg.tag,
			     .user = hdr->msg.user,
			     .head = hdr->len - hdr->msg.body_bytes,
			     .body = hdr->msg.body_bytes,
			     .id = hdr->msg.id};
	struct request *r;
	struct umsg *u;
	int error;

	if (hdr->msg.body_bytes > hdr->len) {
		peer_broken(p, "a body of %u bytes in a message of %u", hdr->msg.body_bytes, hdr->len);
		return;
	}
	p->eager_in++;
	p->bytes_in += hdr->len;
	if (ep->direct && direct_recv_fits(&ep->direct->args, p->rank, hdr)) {
		direct_recv_deliver(p, hdr, payload);
		return;
	}
	r = match_arrival(ep, p, hdr->msg.context, e.tag);
	if (r) {
		error = envelope_accept(r, p, &e);
		if (!error)
			packet_deliver_short(r, payload, hdr->len);
		if (hdr->flags & WIRE_SYNC)
			peer_queue_control(r, WIRE_ACK);
		complete_request(ep, r, error);
		flow_release(p, flow_cost(hdr->len));
		return;
	}
	u = umsg_new(p, hdr, &e, hdr->len);
	if (!u)
		return;
	if (!u->lost)
		memcpy(u->payload, payload, hdr->len);
	u->at = hdr->len;
	u->cost = flow_cost(hdr->len);
	match_store(ep, u);
}

void eager_first_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = p->ep;
	struct envelope e;
	const char *data = (const char *)payload + sizeof(struct wire_long);
	size_t len = hdr->len - sizeof(struct wire_long), total;
	struct request *r;
	struct umsg *u = NULL;
	int error = 0;

	if (!packet_read_long(p, hdr, payload, &e))
		return;
	total = e.head + e.body;
	if (p->inflow != INFLOW_NONE || total <= len || flow_cost(total) > ep->credit_window) {
		peer_broken(p, "a fragmented message of %zu bytes begins with %zu", total, len);
		return;
	}
	p->eager_in++;
	r = match_arrival(ep, p, hdr->msg.context, e.tag);
	if (r) {
		error = envelope_accept(r, p, &e);
		if (!error)
			packet_deliver(r, 0, data, len);
		r->at = len;
		if (hdr->flags & WIRE_SYNC)
			peer_queue_control(r, WIRE_ACK);
		if (!error && hdr->flags & WIRE_TIMED)
			cost_begin(r, hdr->msg.start_ns);
		if (error)
			complete_request(ep, r, error);
		else
			request_set_state(r, REQ_FILLING);
	} else {
		u = umsg_new(p, hdr, &e, total);
		if (!u)
			return;
		if (!u->lost)
			memcpy(u->payload, data, len);
		u->at = len;
	}
	p->inflow = u ? INFLOW_UNEXPECTED : error ? INFLOW_DROP : INFLOW_REQUEST;
	p->inflow_umsg = u;
	p->inflow_request = u || error ? NULL : r;
	p->inflow_at = len;
	p->inflow_total = total;
	p->inflow_cost = flow_cost(total);
	if (u)
		match_store(ep, u);
}

/* The last byte of the open fragmented message is here. */
static void eager_last_arrived(struct peer *p)
{
	enum inflow was = p->inflow;
	struct request *r = p->inflow_request;

	p->bytes_in += p->inflow_total;
	p->inflow = INFLOW_NONE;
	p->inflow_request = NULL;
	if (was == INFLOW_UNEXPECTED) {
		p->inflow_umsg->cost = p->inflow_cost;
		p->inflow_umsg = NULL;
		return;
	}
	if (was == INFLOW_REQUEST) {
		cost_end(r, COST_RING);
		complete_request(p->ep, r, 0);
	}
	flow_release(p, p->inflow_cost);
}

void eager_more_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	if (p->inflow == INFLOW_NONE || hdr->ctl.offset != p->inflow_at || hdr->len > p->inflow_total - p->inflow_at) {
		peer_broken(p, "a fragment of %u bytes at %llu", hdr->len, (unsigned long long)hdr->ctl.offset);
		return;
	}
	switch (p->inflow) {
	case INFLOW_REQUEST:
		packet_deliver(p->inflow_request, p->inflow_at, payload, hdr->len);
		p->inflow_request->at += hdr->len;
		break;
	case INFLOW_UNEXPECTED:
		if (!p->inflow_umsg->lost)
			memcpy((char *)p->inflow_umsg->payload + p->inflow_at, payload, hdr->len);
		p->inflow_umsg->at += hdr->len;
		break;
	case INFLOW_DROP:
	case INFLOW_NONE: break;
	}
	p->inflow_at += hdr->len;
	if (p->inflow_at == p->inflow_total)
		eager_last_arrived(p);
}

/* The tail of a fragmented message that was unexpected so far goes to r from now on. */
static void eager_redirect(struct request *r, struct umsg *u, int error)
{
	struct peer *p = u->peer;

	if (p->inflow_umsg != u)
		return;
	p->inflow_umsg = NULL;
	p->inflow = error ? INFLOW_DROP : INFLOW_REQUEST;
	p->inflow_request = error ? NULL : r;
}

void eager_receive(struct ibvx *ep, struct request *r, struct umsg *u, int error)
{
	struct peer *p = u->peer;
	bool whole = u->at == u->bytes[0] + u->bytes[1];

	if (u->lost && !error)
		error = -ENOMEM;
	if (!error && u->at)
		packet_deliver(r, 0, u->payload, u->at);
	r->at = u->at;
	if (!whole && p->state != PEER_OPEN) {
		error = error ? error : p->fail_code ? p->fail_code : -EPIPE;
	} else if (!whole) {
		eager_redirect(r, u, error);
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
