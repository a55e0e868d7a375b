/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* Turns for which poll() waits for a thread that looks into the completion queue without the lock. */
#define COMPLETE_SPINS 1000
#define COMPLETE_SETTLE_NS (2 * CLOCK_NS_PER_MS)

/* Up to max completions: those that ready() took, then fresh ones. -EBUSY: somebody else is looking. */
static int complete_take(struct verbs_device *d, struct ibv_wc *wc, int max)
{
	int n = 0;

	for (int i = 0; atomic_flag_test_and_set_explicit(&d->stash_busy, memory_order_acquire); i++) {
		if (i == COMPLETE_SPINS)
			return -EBUSY;
		cpu_relax();
	}
	while (n < max && d->stash_at < d->stash_count)
		wc[n++] = d->stash[d->stash_at++];
	if (n == 0)
		n = d->verbs->api->poll_cq(d->cq, max, wc);
	atomic_flag_clear_explicit(&d->stash_busy, memory_order_release);
	return n;
}

/* A look without the lock: what it finds stays in the stash. */
static bool complete_peek(struct verbs_device *d)
{
	bool found;

	if (atomic_flag_test_and_set_explicit(&d->stash_busy, memory_order_acquire))
		return true;
	if (d->stash_at == d->stash_count) {
		int n = d->verbs->api->poll_cq(d->cq, VERBS_STASH, d->stash);

		d->stash_at = 0;
		d->stash_count = n > 0 ? n : 0;
	}
	found = d->stash_at < d->stash_count;
	atomic_flag_clear_explicit(&d->stash_busy, memory_order_release);
	return found;
}

static void complete_own(struct verbs_link *l, const struct wire_hdr *hdr)
{
	switch (hdr->ctl.id) {
	case VERBS_OWN_CREDIT: /* the stamp said it */
	case VERBS_OWN_HELLO:
		return;
	case VERBS_OWN_LEAVE:
		l->left = true;
		return;
	default:
		peer_end(l->peer, -EPROTO, "rank %d sent an unknown packet: do all ranks run the same ibvdev?", l->peer->rank);
		return;
	}
}

static void complete_packet(struct verbs_link *l, const struct wire_hdr *hdr, uint32_t bytes)
{
	struct verbs_peer *p = l->peer;
	const struct transport_sink *sink = &l->verbs->env.sink;

	if (bytes < sizeof(*hdr) || hdr->len > bytes - sizeof(*hdr) || hdr->stamp > l->credits_max - l->credits) {
		peer_end(p, -EPROTO, "rank %d sent a malformed packet of %u bytes: do all ranks run the same ibvdev?", p->rank,
			 bytes);
		return;
	}
	l->credits += hdr->stamp;
	if (l->behind_waits)
		move_pump(l);
	p->packets_in++;
	if (!l->greeted) {
		l->greeted = true;
		connect_maybe_up(l);
	}
	if (hdr->kind == WIRE_NONE)
		complete_own(l, hdr);
	else
		sink->on_packet(sink->core, p->rank, hdr, hdr + 1);
}

static void complete_error(struct verbs_link *l, const struct ibv_wc *wc, const char *what)
{
	struct verbs_peer *p = l->peer;

	if (!p || l->dead)
		return;
	/* A call that is refused, perhaps since the other side's stands, may lose its receives before the event says why. */
	if (p->state == VERBS_CALLING && wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	log_debug(l->verbs->env.log, "verbs: rank %d: %s: status %d, vendor error %#x", p->rank, what, wc->status,
		  wc->vendor_err);
	if (l->left)
		peer_end(p, -EPIPE, "left");
	else
		peer_end(p, wc->status == IBV_WC_WR_FLUSH_ERR ? -ECONNRESET : -EIO, "rank %d cannot be reached (%s): %s", p->rank,
			 what, l->device->port_down ? event_text(IBV_EVENT_PORT_ERR) : status_text(wc->status));
}

static void complete_receive(struct verbs_device *d, const struct ibv_wc *wc, uint32_t link, uint32_t index)
{
	struct verbs_link *l = d->srq ? link_of_qpn(d, wc->qp_num) : link_at(d->verbs, link);
	const char *mem = pool_receive(d, l, index);

	if (wc->status != IBV_WC_SUCCESS) {
		if (l)
			complete_error(l, wc, "receiving");
		else if (!d->srq)
			return;
	} else if (l && l->peer && l->peer->state != VERBS_DOWN && mem) {
		complete_packet(l, (const struct wire_hdr *)(const void *)mem, wc->byte_len);
	}
	if (!mem || (!d->srq && (l->dead || wc->status != IBV_WC_SUCCESS)))
		return;
	if (pool_post_receive(d, l, index) < 0) {
		if (l && l->peer)
			peer_end(l->peer, -EIO, "rank %d: %s", l->peer->rank, error_text());
		return;
	}
	if (l && l->peer && wc->status == IBV_WC_SUCCESS) {
		l->owed++;
		post_credit(l);
	}
}

static void complete_send(struct verbs_link *l, const struct ibv_wc *wc, uint32_t seq)
{
	if (wc->status != IBV_WC_SUCCESS) {
		complete_error(l, wc, "sending");
		return;
	}
	if ((int32_t)(seq + 1 - l->tx_done) > 0)
		l->tx_done = seq + 1;
	if (l->peer)
		post_credit(l);
	if (l->behind_waits)
		move_pump(l);
}

static void complete_one(struct verbs_device *d, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)(wc->wr_id >> 32) & 0xfffffff, value = (uint32_t)wc->wr_id;
	struct verbs_link *l = link_at(d->verbs, number);

	switch ((enum verbs_work)(wc->wr_id >> 60)) {
	case VERBS_WORK_RECV:
		complete_receive(d, wc, number, value);
		return;
	case VERBS_WORK_SEND:
		if (l)
			complete_send(l, wc, value);
		return;
	case VERBS_WORK_MOVE:
		if (!l)
			return;
		if (wc->status != IBV_WC_SUCCESS)
			complete_error(l, wc, "moving a message");
		move_on_completion(l, value, wc->status == IBV_WC_SUCCESS);
		return;
	}
}

/* The rest of what ended peers had sent is delivered, as far as an empty queue can tell a while after the queue
 * pair went to its error state (with an SRQ nothing marks the last receive): tell the core. */
static int complete_ended(struct verbs *v)
{
	const struct transport_sink *sink = &v->env.sink;
	int events = 0;

	for (int r = 0; r < v->env.size; r++) {
		struct verbs_peer *p = &v->peers[r];

		if (p->state != VERBS_ENDING || clock_now_ns() - p->end_ns < COMPLETE_SETTLE_NS)
			continue;
		/* its last packet may have been the farewell */
		if (p->link && p->link->left)
			p->end_code = -EPIPE;
		peer_set_state(p, VERBS_DOWN);
		sink->on_down(sink->core, r, p->end_code, p->end_text ? p->end_text : "the connection ended");
		events++;
	}
	return events;
}

int verbs_poll(struct transport *t, int budget)
{
	struct verbs *v = (struct verbs *)t;
	struct ibv_wc wc[VERBS_STASH];
	int events = 0;
	/* looked at first: what ends during this poll has its turn in the next, with the queue empty again */
	bool ending = atomic_load_explicit(&v->chores, memory_order_relaxed) > 0, empty = true;

	for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		int seen = 0, n = 0;

		while (seen < budget) {
			n = complete_take(d, wc, budget - seen < VERBS_STASH ? budget - seen : VERBS_STASH);
			if (n <= 0)
				break;
			for (int i = 0; i < n; i++)
				complete_one(d, &wc[i]);
			seen += n;
		}
		empty = empty && n == 0;
		events += seen;
	}
	if (ending && empty)
		events += complete_ended(v);
	return events;
}

bool verbs_ready(const struct transport *t)
{
	struct verbs *v = (struct verbs *)(uintptr_t)t;

	if (atomic_load_explicit(&v->chores, memory_order_relaxed) > 0)
		return true;
	for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		if (complete_peek(d))
			return true;
	}
	return false;
}
