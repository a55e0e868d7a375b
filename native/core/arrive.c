/* SPDX-License-Identifier: MIT */
#include "core/arrive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "core/complete.h"
#include "core/flow_control.h"
#include "core/pin.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/send.h"
#include "core/progress.h"
#include "core/lease.h"

/* An unexpected message with room for `room` bytes of payload. Without memory for the payload the
 * envelope is kept alone, so that its receive fails and order holds. */
static struct umsg *arrive_umsg(struct peer *p, const struct wire_hdr *hdr, const struct recv_envelope *e,
				size_t room)
{
	struct umsg *u = malloc(sizeof(*u) + room);
	bool lost = false;

	if (!u) {
		lost = true;
		u = malloc(sizeof(*u));
	}
	if (!u) {
		peer_broken(p, "no memory for the envelope of a message of %zu bytes", e->head + e->body);
		return NULL;
	}
	u->peer = p;
	u->context = hdr->msg.context;
	u->tag = e->tag;
	u->user = e->user;
	u->bytes[0] = e->head;
	u->bytes[1] = e->body;
	u->at = 0;
	u->cost = 0;
	u->id = e->id;
	u->sync = hdr->flags & WIRE_SYNC;
	u->rts = false;
	u->pinnable = false;
	u->lost = lost;
	u->desc_bytes = 0;
	return u;
}

/* Straight to the memory of the receive whose thread polls. */
static void direct_recv_deliver(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct direct_recv *l = p->ep->direct;

	copy_small(l->buf->base, payload, hdr->len);
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

static void arrive_eager(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = p->ep;
	struct recv_envelope e = {.tag = hdr->msg.tag,
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
	if (ep->direct && direct_recv_fits(ep->direct, p->rank, hdr)) {
		direct_recv_deliver(p, hdr, payload);
		return;
	}
	r = recv_match(ep, p, hdr->msg.context, e.tag);
	if (r) {
		error = recv_accept(r, p, &e);
		if (!error && (r->pinnable || r->split))
			request_write(r, 0, payload, hdr->len);
		else if (!error)
			copy_small(r->base[0], payload, hdr->len);
		if (hdr->flags & WIRE_SYNC)
			peer_queue_control(r, WIRE_ACK);
		complete_request(ep, r, error);
		flow_release(p, flow_cost(hdr->len));
		return;
	}
	u = arrive_umsg(p, hdr, &e, hdr->len);
	if (!u)
		return;
	if (!u->lost)
		memcpy(u->payload, payload, hdr->len);
	u->at = hdr->len;
	u->cost = flow_cost(hdr->len);
	recv_store(ep, u);
}

/* Reads struct wire_long; false: the peer was broken. */
static bool arrive_long(struct peer *p, const struct wire_hdr *hdr, const void *payload,
			struct recv_envelope *e)
{
	struct wire_long lng;

	if (hdr->len < sizeof(lng)) {
		peer_broken(p, "an envelope of %u bytes", hdr->len);
		return false;
	}
	memcpy(&lng, payload, sizeof(lng));
	if (lng.head_bytes > PTRDIFF_MAX / 2 || lng.body_bytes > PTRDIFF_MAX / 2) {
		peer_broken(p, "a message of %llu bytes", (unsigned long long)(lng.head_bytes + lng.body_bytes));
		return false;
	}
	*e = (struct recv_envelope){.tag = hdr->msg.tag,
				    .user = hdr->msg.user,
				    .head = lng.head_bytes,
				    .body = lng.body_bytes,
				    .id = hdr->msg.id};
	return true;
}

static void arrive_first(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = p->ep;
	struct recv_envelope e;
	const char *data = (const char *)payload + sizeof(struct wire_long);
	size_t len = hdr->len - sizeof(struct wire_long), total;
	struct request *r;
	struct umsg *u = NULL;
	int error = 0;

	if (!arrive_long(p, hdr, payload, &e))
		return;
	total = e.head + e.body;
	if (p->inflow != INFLOW_NONE || total <= len || flow_cost(total) > ep->credit_window) {
		peer_broken(p, "a fragmented message of %zu bytes begins with %zu", total, len);
		return;
	}
	p->eager_in++;
	r = recv_match(ep, p, hdr->msg.context, e.tag);
	if (r) {
		error = recv_accept(r, p, &e);
		if (!error)
			request_write(r, 0, data, len);
		r->at = len;
		if (hdr->flags & WIRE_SYNC)
			peer_queue_control(r, WIRE_ACK);
		if (error)
			complete_request(ep, r, error);
		else
			request_set_state(r, REQ_FILLING);
	} else {
		u = arrive_umsg(p, hdr, &e, total);
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
		recv_store(ep, u);
}

/* The last byte of the open fragmented message is here. */
static void arrive_last(struct peer *p)
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
	if (was == INFLOW_REQUEST)
		complete_request(p->ep, r, 0);
	flow_release(p, p->inflow_cost);
}

static void arrive_more(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	if (p->inflow == INFLOW_NONE || hdr->ctl.offset != p->inflow_at ||
	    hdr->len > p->inflow_total - p->inflow_at) {
		peer_broken(p, "a fragment of %u bytes at %llu", hdr->len, (unsigned long long)hdr->ctl.offset);
		return;
	}
	switch (p->inflow) {
	case INFLOW_REQUEST:
		request_write(p->inflow_request, p->inflow_at, payload, hdr->len);
		p->inflow_request->at += hdr->len;
		break;
	case INFLOW_UNEXPECTED:
		if (!p->inflow_umsg->lost)
			memcpy((char *)p->inflow_umsg->payload + p->inflow_at, payload, hdr->len);
		p->inflow_umsg->at += hdr->len;
		break;
	case INFLOW_DROP:
	case INFLOW_NONE:
		break;
	}
	p->inflow_at += hdr->len;
	if (p->inflow_at == p->inflow_total)
		arrive_last(p);
}

static void arrive_rts(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = p->ep;
	struct recv_rts rts = {.rest = (const char *)payload + sizeof(struct wire_long), .pinnable = hdr->flags & WIRE_LEASE};
	struct recv_envelope e;
	struct request *r;
	struct umsg *u;
	size_t rest;

	if (!arrive_long(p, hdr, payload, &e))
		return;
	rest = hdr->len - sizeof(struct wire_long);
	if (hdr->flags & WIRE_RMA)
		rts.desc_bytes = rest;
	else
		rts.first_bytes = rest;
	if (rts.desc_bytes > WIRE_RMA_MAX || (rts.first_bytes > 0 && rts.first_bytes >= e.head + e.body)) {
		peer_broken(p, "an announcement of %u bytes", hdr->len);
		return;
	}
	r = recv_match(ep, p, hdr->msg.context, e.tag);
	if (r) {
		flow_release(p, flow_cost(rts.first_bytes));
		recv_rendezvous(ep, r, recv_accept(r, p, &e), &rts);
		return;
	}
	u = arrive_umsg(p, hdr, &e, rest);
	if (!u)
		return;
	if (!u->lost)
		memcpy(u->payload, rts.rest, rest);
	u->rts = true;
	u->pinnable = rts.pinnable;
	u->desc_bytes = u->lost ? 0 : (uint8_t)rts.desc_bytes;
	u->at = rts.first_bytes;
	u->cost = flow_cost(rts.first_bytes);
	recv_store(ep, u);
}

/* The receive that a packet or a get names; NULL after a failure or for nonsense. */
static struct request *arrive_recv(struct peer *p, struct request *r, const char *what)
{
	if (r && r->kind == REQ_RECV && r->peer == p && (r->state == REQ_FILLING || r->state == REQ_GETTING))
		return r;
	if (p->ep->failed_rank < 0)
		peer_broken(p, "%s for an unknown request", what);
	return NULL;
}

static void arrive_data(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct request *r = arrive_recv(p, request_find_wire(&p->ep->requests, hdr->ctl.id), "DATA");

	if (!r)
		return;
	if (r->state != REQ_FILLING || hdr->ctl.offset != r->at || hdr->len > request_total(r) - r->at) {
		peer_broken(p, "DATA of %u bytes at %llu of %zu", hdr->len,
			    (unsigned long long)hdr->ctl.offset, request_total(r));
		return;
	}
	lease_forget(r);
	request_write(r, r->at, payload, hdr->len);
	r->at += hdr->len;
	if (r->at == request_total(r)) {
		p->bytes_in += r->at;
		complete_request(p->ep, r, 0);
	}
}

static void arrive_segment(struct peer *p, const struct wire_hdr *hdr, const void *payload)
{
	struct request *r = arrive_recv(p, request_find_wire(&p->ep->requests, hdr->ctl.id), "WINDOW");

	if (!r)
		return;
	if (r->state != REQ_FILLING || !r->leased || r->pending_control || hdr->len != WIRE_LEASE_BYTES || hdr->ctl.offset != r->at ||
	    hdr->ctl.value == 0 || hdr->ctl.value > LEASE_BYTES || hdr->ctl.value > request_total(r) - r->at) {
		peer_broken(p, "a window of %llu bytes at %llu of %zu", (unsigned long long)hdr->ctl.value,
			    (unsigned long long)hdr->ctl.offset, request_total(r));
		return;
	}
	lease_note(r, payload, (size_t)hdr->ctl.value);
}

static void arrive_done(struct peer *p, const struct wire_hdr *hdr)
{
	struct request *r = arrive_recv(p, request_find_wire(&p->ep->requests, hdr->ctl.id), "DONE");

	if (!r)
		return;
	if (r->state != REQ_FILLING || !r->exposed || r->at != 0) {
		peer_broken(p, "DONE for a receive that offered nothing");
		return;
	}
	p->bytes_in += request_total(r);
	pin_filled(r);
	complete_request(p->ep, r, 0);
}

void recv_on_get(void *core, int rank, uint64_t cookie, int err)
{
	struct ibvx *ep = core;
	struct peer *p = &ep->peers[rank];
	struct request *r = request_at(&ep->requests, (uint32_t)cookie - 1u);

	if (!r || request_handle(r) != cookie || r->state != REQ_GETTING)
		return;
	if (err == 0) {
		p->bytes_in += request_total(r);
		pin_filled(r);
		peer_queue_control(r, WIRE_FIN);
		complete_request(ep, r, 0);
		return;
	}
	log_info(&ep->log, "a get from rank %d failed (%s): the message goes another way", rank, strerror(-err));
	if (err == -EPERM || err == -ENOSYS)
		p->no_get = true;
	recv_ask(r);
}

void recv_on_down(void *core, int rank, int err, const char *why)
{
	struct ibvx *ep = core;
	char named[512];

	if (err == -EPIPE || ep->peers[rank].left) {
		peer_on_bye(&ep->peers[rank]); /* left in good order without a BYE for us */
		return;
	}
	snprintf(named, sizeof(named), "rank %d: %s", rank, why);
	peer_fail(&ep->peers[rank], err, strstr(why, "rank ") ? why : named);
}

void recv_on_packet(void *core, int rank, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = core;
	struct peer *p = &ep->peers[rank];

	if (p->state != PEER_OPEN)
		return;
	if (!payload)
		payload = ""; /* there is none, and memcpy wants an address all the same */
	p->talked = true;
	switch ((enum wire_kind)hdr->kind) {
	case WIRE_EAGER:
		arrive_eager(p, hdr, payload);
		return;
	case WIRE_EAGER_FIRST:
		arrive_first(p, hdr, payload);
		return;
	case WIRE_EAGER_MORE:
		arrive_more(p, hdr, payload);
		return;
	case WIRE_RTS:
		arrive_rts(p, hdr, payload);
		return;
	case WIRE_CTS:
		send_on_cts(p, hdr, payload);
		return;
	case WIRE_DATA:
		arrive_data(p, hdr, payload);
		return;
	case WIRE_SEGMENT:
		arrive_segment(p, hdr, payload);
		return;
	case WIRE_FIN:
		send_on_fin(p, hdr);
		return;
	case WIRE_DONE:
		arrive_done(p, hdr);
		return;
	case WIRE_ACK:
		send_on_ack(p, hdr);
		return;
	case WIRE_CREDIT:
		if (!flow_on_credit(p, hdr->ctl.value, hdr->ctl.offset))
			peer_broken(p, "a credit of %llu bytes", (unsigned long long)hdr->ctl.value);
		return;
	case WIRE_STALLED:
		flow_on_stalled(p, hdr->ctl.value);
		return;
	case WIRE_BYE:
		peer_on_bye(p);
		return;
	case WIRE_NONE:
	case WIRE_KIND_COUNT:
		break;
	}
	peer_broken(p, "a packet of kind %u", hdr->kind);
}
