/* SPDX-License-Identifier: MIT */
#include "transport/verbs/post.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

/* Kept back from packets of the core, so that credit can always be returned: one slot, one credit. */
#define POST_RESERVED 1u

/* Sequence numbers wrap. */
static uint32_t post_outstanding(const struct verbs_conn *c)
{
	return c->tx_head - c->tx_done;
}

static bool post_has_room(const struct verbs_conn *c, uint32_t reserved)
{
	return c->credit > reserved && post_outstanding(c) + reserved < c->tx_count;
}

/* The connecting side over iWARP keeps back what it repeats HELLO with until it is answered: its first burst may be the very data that
 * soft-iWARP overlooks (handshake.h). */
static uint32_t post_reserved(const struct verbs_conn *c)
{
	if (!c->active || c->hello_received || !c->device->iwarp)
		return POST_RESERVED;
	return c->credit_first / 2 < POST_HELLOS ? c->credit_first / 2 : POST_HELLOS;
}

static struct wire_hdr *post_header(const struct verbs_conn *c)
{
	return (struct wire_hdr *)(void *)slab_piece(&c->headers, c->tx_head % c->tx_count);
}

/* More than half of the pool is in use: no connection may keep pieces that it does not know to be done. */
static bool post_pool_is_short(const struct buffers *b)
{
	return b->free_count < b->count / 2;
}

/* Posts the next packet, from its header slot or (piece) out of the pool.  The last one that credit allows is signalled in any case:
 * else nothing might report that all before it are done. */
static void post_packet(struct verbs_conn *c, struct wire_hdr *hdr, uint32_t lkey, uint32_t piece, bool signal)
{
	struct verbs_peer *p = c->peer;
	uint32_t bytes = (uint32_t)sizeof(*hdr) + hdr->len;
	struct ibv_sge sge = {(uint64_t)(uintptr_t)hdr, bytes, lkey};
	struct ibv_send_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_SEND, c->number, c->tx_head),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;
	int err;

	hdr->stamp = (uint16_t)(c->unreturned < UINT16_MAX ? c->unreturned : UINT16_MAX);
	c->credit--;
	if (signal || ++c->unsignalled >= c->tx_count / 4 || c->credit <= POST_RESERVED) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		c->unsignalled = 0;
	}
	if (bytes <= c->max_inline) {
		wr.send_flags |= IBV_SEND_INLINE;
		p->inlined++;
	}
	err = c->verbs->api->post_send(c->qp, &wr, &bad);
	if (piece != BUFFERS_NONE && (err || (wr.send_flags & IBV_SEND_INLINE))) {
		buffers_give(&c->device->send, piece); /* the adapter has the bytes, or wants none */
		piece = BUFFERS_NONE;
	}
	if (err) {
		peer_end(p, -err, "rank %d: the adapter takes no more sends: %s", p->rank, strerror(err));
		return;
	}
	c->piece[c->tx_head % c->tx_count] = piece;
	c->unreturned -= hdr->stamp;
	c->tx_head++;
	p->packets_out++;
}

/* A piece of the send pool for the connection's next packet. False: none is free now. */
static bool post_take_piece(struct verbs_conn *c)
{
	struct buffers *b = &c->device->send;

	if ((b->free_count == 0 || post_pool_is_short(b)) && b->count < b->max && !b->wanted) {
		b->wanted = true;
		work_signal(&c->verbs->work);
	}
	if (c->spare == BUFFERS_NONE)
		c->spare = buffers_take(b);
	return c->spare != BUFFERS_NONE;
}

int post_reserve(struct verbs_conn *c, size_t len, struct transport_slot *slot)
{
	if (c->behind_waits || !post_has_room(c, post_reserved(c)) || (len > 0 && !post_take_piece(c))) {
		c->peer->full_count++;
		return -EAGAIN;
	}
	slot->private = len > 0;
	slot->hdr = post_header(c);
	if (len > 0)
		slot->hdr = (struct wire_hdr *)(void *)slab_piece(buffers_slab(&c->device->send, c->spare), c->spare & 0xffff);
	slot->payload = slot->hdr + 1;
	return 0;
}

void post_commit(struct verbs_conn *c, struct transport_slot *slot)
{
	uint32_t piece = c->spare;

	if (!slot->private) {
		post_packet(c, slot->hdr, c->headers.mr->lkey, BUFFERS_NONE, false);
		return;
	}
	c->spare = BUFFERS_NONE;
	post_packet(c, slot->hdr, buffers_slab(&c->device->send, piece)->mr->lkey, piece, post_pool_is_short(&c->device->send));
}

bool post_own(struct verbs_conn *c, enum own_packet id, bool last)
{
	struct wire_hdr *hdr;

	if (c->peer->state != PEER_UP || !post_has_room(c, last ? 0 : POST_RESERVED))
		return false;
	hdr = post_header(c);
	*hdr = (struct wire_hdr){.kind = WIRE_NONE, .ctl = {.id = id}};
	post_packet(c, hdr, c->headers.mr->lkey, BUFFERS_NONE, true);
	return true;
}

bool post_behind(struct verbs_conn *c, const struct wire_hdr *hdr)
{
	struct wire_hdr *slot;

	if (!post_has_room(c, post_reserved(c)))
		return false;
	slot = post_header(c);
	*slot = *hdr;
	post_packet(c, slot, c->headers.mr->lkey, BUFFERS_NONE, false);
	return true;
}

/* The other side has used half of its quota since credit last went out: it gets more, out of the shared pool.
 * Where that is scarce, half of what exceeds the first quota is withdrawn. */
static void post_adjust_quota(struct verbs_conn *c)
{
	struct verbs_device *d = c->device;
	uint32_t slots = c->verbs->slots, first = c->verbs->first_credit, more = c->quota, less;

	if (!d->srq || c->quota == 0)
		return;
	if (more > slots - c->quota)
		more = slots - c->quota;
	more = more > 0 ? device_promise(d, more) : 0;
	c->quota += more;
	c->unreturned += more;
	if (more > 0 || !d->scarce || c->quota < 2 * first)
		return;
	less = c->unreturned < c->quota - first ? c->unreturned / 2 : (c->quota - first) / 2;
	c->quota -= less;
	c->unreturned -= less;
	d->promised -= less;
}

void post_consumed(struct verbs_conn *c)
{
	c->unreturned++;
	if (c->unreturned * 2 == c->quota || c->unreturned * 2 == c->quota + 1)
		post_adjust_quota(c);
	post_credit(c);
}

void post_credit(struct verbs_conn *c)
{
	if (c->unreturned == 0 || c->unreturned * 2 < c->quota || c->peer->state != PEER_UP)
		return;
	if (post_own(c, OWN_CREDIT, true))
		c->peer->credit_packets++;
}

void post_done(struct verbs_conn *c, uint32_t end)
{
	for (; (int32_t)(end - c->tx_done) > 0; c->tx_done++) {
		uint32_t *piece = &c->piece[c->tx_done % c->tx_count];

		if (*piece != BUFFERS_NONE)
			buffers_give(&c->device->send, *piece);
		*piece = BUFFERS_NONE;
	}
}

bool post_drained(struct verbs_conn *c)
{
	if (post_outstanding(c) == 0)
		return true;
	if (c->unsignalled > 0) /* a tail that nothing signals is pushed by a packet that is */
		post_own(c, OWN_CREDIT, false);
	return false;
}
