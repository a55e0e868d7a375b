/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* Kept back from packets of the core, so that credit can always be returned: one slot, one credit. */
#define POST_KEPT 1u

/* Sequence numbers wrap. */
static uint32_t post_outstanding(const struct verbs_link *l)
{
	return l->tx_head - l->tx_done;
}

static bool post_has_room(const struct verbs_link *l, uint32_t kept)
{
	return l->credits > kept && post_outstanding(l) + kept < l->tx.count;
}

/* A caller over iWARP that was not answered yet keeps back what it greets with: its first burst may be the very data that
 * soft-iWARP overlooks (connect.c). */
static uint32_t post_kept(const struct verbs_link *l)
{
	if (!l->caller || l->greeted || !l->device->iwarp)
		return POST_KEPT;
	return l->credits_max / 2 < VERBS_GREETINGS ? l->credits_max / 2 : VERBS_GREETINGS;
}

static struct wire_hdr *post_slot(struct verbs_link *l)
{
	return (struct wire_hdr *)(void *)slab_piece(&l->tx, l->tx_head % l->tx.count);
}

/* Posts the next slot. The last packet that credit allows is signalled in any case: else nothing might tell
 * that all before it are done. */
static void post_packet(struct verbs_link *l, struct wire_hdr *hdr, bool signal)
{
	struct verbs_peer *p = l->peer;
	uint32_t bytes = (uint32_t)sizeof(*hdr) + hdr->len;
	struct ibv_sge sge = {(uint64_t)(uintptr_t)hdr, bytes, l->tx.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_SEND, l->number, l->tx_head),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;
	int err;

	hdr->stamp = (uint16_t)(l->owed < UINT16_MAX ? l->owed : UINT16_MAX);
	l->credits--;
	if (signal || ++l->unsignalled >= l->tx.count / 4 || l->credits <= POST_KEPT) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		l->unsignalled = 0;
	}
	if (bytes <= l->max_inline) {
		wr.send_flags |= IBV_SEND_INLINE;
		p->inlined++;
	}
	err = l->verbs->api->post_send(l->qp, &wr, &bad);
	if (err) {
		peer_end(p, -err, "rank %d: the adapter takes no more sends: %s", p->rank, strerror(err));
		return;
	}
	l->owed -= hdr->stamp;
	l->tx_head++;
	p->packets_out++;
}

int verbs_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot)
{
	struct verbs_peer *p = &((struct verbs *)t)->peers[peer];

	(void)len;
	switch (p->state) {
	case VERBS_UP:
		break;
	case VERBS_IDLE: {
		int rc = connect_start(p);

		return rc < 0 ? rc : -EAGAIN;
	}
	case VERBS_RESOLVING:
	case VERBS_CALLING:
	case VERBS_AWAITED:
	case VERBS_ANSWERING:
	case VERBS_ENDING: /* the next poll tells */
		return -EAGAIN;
	case VERBS_DOWN:
	case VERBS_STATE_COUNT:
		return error_set(-ECONNRESET, "%s", p->end_text ? p->end_text : "the connection was closed");
	}
	if (p->link->behind_waits || !post_has_room(p->link, post_kept(p->link))) {
		p->full_count++;
		return -EAGAIN;
	}
	slot->hdr = post_slot(p->link);
	slot->payload = slot->hdr + 1;
	return 0;
}

void verbs_commit(struct transport *t, int peer, struct transport_slot *slot)
{
	struct verbs_peer *p = &((struct verbs *)t)->peers[peer];

	if (p->state == VERBS_UP)
		post_packet(p->link, slot->hdr, false);
}

void verbs_discard(struct transport *t, int peer, struct transport_slot *slot)
{
	(void)t; /* nothing was advanced */
	(void)peer;
	(void)slot;
}

bool post_own(struct verbs_link *l, const struct wire_ctl *ctl, bool last)
{
	struct wire_hdr *hdr;

	if (l->peer->state != VERBS_UP || !post_has_room(l, last ? 0 : POST_KEPT))
		return false;
	hdr = post_slot(l);
	*hdr = (struct wire_hdr){.kind = WIRE_NONE, .ctl = *ctl};
	post_packet(l, hdr, true);
	return true;
}

bool post_behind(struct verbs_link *l, const struct wire_hdr *hdr)
{
	struct wire_hdr *slot;

	if (!post_has_room(l, post_kept(l)))
		return false;
	slot = post_slot(l);
	*slot = *hdr;
	post_packet(l, slot, false);
	return true;
}

void post_credit(struct verbs_link *l)
{
	if (l->owed * 2 < l->rx_count || l->peer->state != VERBS_UP)
		return;
	if (post_own(l, &(struct wire_ctl){.id = VERBS_OWN_CREDIT}, true))
		l->peer->credit_packets++;
}

/* A tail that nothing signals is pushed by a packet that is. */
static bool post_drained(struct verbs_peer *p)
{
	struct verbs_link *l = p->link;

	if (p->state != VERBS_UP || post_outstanding(l) == 0)
		return true;
	if (l->unsignalled > 0)
		post_own(l, &(struct wire_ctl){.id = VERBS_OWN_CREDIT}, false);
	return false;
}

bool verbs_drained(struct transport *t)
{
	struct verbs *v = (struct verbs *)t;
	bool all = true;

	for (int r = 0; v->peers && r < v->env.size; r++)
		all = post_drained(&v->peers[r]) && all;
	return all;
}
