/* SPDX-License-Identifier: MIT */
#include "core/packet.h"

#include <string.h>

#include "core/cost.h"
#include "core/peer.h"
#include "core/pin.h"

void packet_msg_header(struct wire_hdr *hdr, enum wire_kind kind, size_t len, const struct request *r)
{
	hdr->kind = (uint8_t)kind;
	hdr->flags = r->sync && kind != WIRE_RTS ? WIRE_SYNC : 0;
	hdr->len = (uint32_t)len;
	hdr->msg = (struct wire_msg){
		.context = r->context,
		.tag = r->tag,
		.user = r->user,
		.body_bytes = kind == WIRE_EAGER ? (uint32_t)r->buffer.bytes[1] : 0,
		.id = request_wire_id(r),
	};
	if (r->timed && kind != WIRE_EAGER) {
		hdr->flags |= WIRE_TIMED;
		hdr->msg.start_ns = cost_clock();
	}
}

/* Messages up to this size are one packet. Longer ones go in pieces, of about a quarter of the message, so that
 * the receiver copies one while the sender fills the next (measured: ARCHITECTURE.md). */
#define PACKET_PIECE_MIN (16u << 10)
#define PACKET_PIECES 4u

size_t packet_piece_bytes(const struct peer *p, size_t total)
{
	size_t piece = (total / PACKET_PIECES + 4095u) & ~(size_t)4095u;

	if (piece < PACKET_PIECE_MIN)
		piece = PACKET_PIECE_MIN;
	if (piece < p->transport->ops->piece_min)
		piece = p->transport->ops->piece_min;
	return piece < p->payload_max ? piece : p->payload_max;
}

int packet_reserve(struct request *r, size_t len, struct transport_slot *slot)
{
	struct peer *p = r->peer;
	int rc;

	slot->copy = memcpy;
	rc = p->transport->ops->reserve(p->transport, p->rank, len, slot);
	if (rc < 0 || buffer_is_readable(&r->buffer))
		return rc;
	p->transport->ops->discard(p->transport, p->rank, slot);
	return pin_want(r);
}

/* The next piece of r, as DATA or EAGER_MORE. */
int packet_send_piece(struct request *r, enum wire_kind kind)
{
	struct peer *p = r->peer;
	uint64_t left = request_total(r) - r->at;
	size_t len = packet_piece_bytes(p, request_total(r));
	struct transport_slot slot;
	int rc;

	len = left < len ? (size_t)left : len;
	rc = packet_reserve(r, len, &slot);
	if (rc < 0)
		return rc;
	slot.hdr->kind = (uint8_t)kind;
	slot.hdr->flags = 0;
	slot.hdr->len = (uint32_t)len;
	slot.hdr->ctl = (struct wire_ctl){.id = r->remote, .from = request_wire_id(r), .offset = r->at};
	buffer_read(&r->buffer, r->at, slot.payload, len, slot.copy);
	p->transport->ops->commit(p->transport, p->rank, &slot);
	r->at += len;
	return 0;
}

void packet_deliver(struct request *r, uint64_t at, const void *from, size_t len)
{
	buffer_write(&r->buffer, at, from, len);
	if (buffer_has_bounced(&r->buffer)) {
		r->peer->ep->bounced_bytes += len;
		pin_call_owner(r);
	}
}

/* Reads struct wire_long; false: the peer was broken. */
bool packet_read_long(struct peer *p, const struct wire_hdr *hdr, const void *payload, struct envelope *e)
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
	*e = (struct envelope){
		.tag = hdr->msg.tag, .user = hdr->msg.user, .head = lng.head_bytes, .body = lng.body_bytes, .id = hdr->msg.id};
	return true;
}

struct request *packet_find_send(struct peer *p, const struct wire_hdr *hdr, const char *what)
{
	struct request *r = request_find_wire(&p->ep->requests, hdr->ctl.id);

	if (r && r->kind == REQ_SEND && r->peer == p && r->state != REQ_DONE && r->state != REQ_QUEUED)
		return r;
	/* after a failure, answers to requests that were failed are still in flight */
	if (p->ep->failed_rank < 0)
		peer_broken(p, "%s for the unknown request %#x", what, hdr->ctl.id);
	return NULL;
}
