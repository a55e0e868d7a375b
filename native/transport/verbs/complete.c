/* SPDX-License-Identifier: MIT */
#include "transport/verbs/complete.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/handshake.h"
#include "transport/verbs/rma.h"
#include "transport/verbs/status.h"

/* Turns for which poll() waits for a thread that looks into the completion queue without the lock. */
#define COMPLETE_SPINS 1000
#define COMPLETE_SETTLE_NS (2 * CLOCK_NS_PER_MS)

/* Up to max completions: those that ready() took, then fresh ones. -EBUSY: another thread is looking. */
static int complete_take(const struct verbs *v, struct verbs_cq *q, struct ibv_wc *wc, int max)
{
	int n = 0;

	for (int i = 0; atomic_flag_test_and_set_explicit(&q->busy, memory_order_acquire); i++) {
		if (i == COMPLETE_SPINS)
			return -EBUSY;
		cpu_relax();
	}
	while (n < max && q->stash_at < q->stash_count)
		wc[n++] = q->stash[q->stash_at++];
	if (n == 0)
		n = v->api->poll_cq(q->cq, max, wc);
	atomic_flag_clear_explicit(&q->busy, memory_order_release);
	return n;
}

/* A look without the lock: what it finds stays in the stash. */
static bool complete_peek(const struct verbs *v, struct verbs_cq *q)
{
	bool found;

	if (atomic_flag_test_and_set_explicit(&q->busy, memory_order_acquire))
		return true;
	if (q->stash_at == q->stash_count) {
		int n = v->api->poll_cq(q->cq, DEVICE_STASH, q->stash);

		q->stash_at = 0;
		q->stash_count = n > 0 ? n : 0;
	}
	found = q->stash_at < q->stash_count;
	atomic_flag_clear_explicit(&q->busy, memory_order_release);
	return found;
}

static void complete_own(struct verbs_conn *c, const struct wire_hdr *hdr)
{
	switch (hdr->ctl.id) {
	case OWN_CREDIT: /* its stamp has been counted */
	case OWN_HELLO: return;
	case OWN_LEAVE: c->left = true; return;
	default: peer_end(c->peer, -EPROTO, "rank %d sent an unknown packet: do all ranks run the same ibvdev?", c->peer->rank); return;
	}
}

static void complete_packet(struct verbs_conn *c, const struct wire_hdr *hdr, uint32_t bytes)
{
	struct verbs_peer *p = c->peer;
	const struct transport_sink *sink = &c->verbs->env.sink;

	if (bytes < sizeof(*hdr) || hdr->len > bytes - sizeof(*hdr) || hdr->stamp > c->credit_max - c->credit) {
		peer_end(p, -EPROTO, "rank %d sent a malformed packet of %u bytes: do all ranks run the same ibvdev?", p->rank, bytes);
		return;
	}
	c->credit += hdr->stamp;
	if (c->behind_waits)
		rma_progress(c);
	p->packets_in++;
	if (!c->hello_received)
		handshake_first_packet(c);
	if (hdr->kind == WIRE_NONE)
		complete_own(c, hdr);
	else
		sink->on_packet(sink->core, p->rank, hdr, hdr + 1);
}

static void complete_error(struct verbs_conn *c, const struct ibv_wc *wc, const char *what)
{
	struct verbs_peer *p = c->peer;

	if (c->dead || p->conn != c)
		return;
	/* A request that is refused, perhaps since the other side's stands, may lose its receives before the event with the reason. */
	if (p->state == PEER_CONNECTING && wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	log_debug(c->verbs->env.log, "verbs: rank %d: %s: status %d, vendor error %#x", p->rank, what, wc->status, wc->vendor_err);
	if (c->left)
		peer_end(p, -EPIPE, "left");
	else
		peer_end(p, wc->status == IBV_WC_WR_FLUSH_ERR ? -ECONNRESET : -EIO, "rank %d cannot be reached (%s): %s", p->rank, what,
			 c->device->ports_down ? event_text(IBV_EVENT_PORT_ERR) : status_text(wc->status));
}

/* Into the receive queue again. */
static void complete_repost(struct verbs_device *d, struct verbs_conn *c, const struct ibv_wc *wc, uint32_t index)
{
	int rc = d->srq ? device_post_receive(d, index) : connection_post_receive(c, index);

	if (rc < 0 && c)
		peer_end(c->peer, -EIO, "rank %d: %s", c->peer->rank, error_text());
	else if (rc == 0 && c && wc->status == IBV_WC_SUCCESS)
		post_consumed(c);
}

static void complete_receive(struct verbs_device *d, const struct ibv_wc *wc, uint32_t number, uint32_t index)
{
	struct verbs_conn *c = d->srq ? connection_of_qpn(d, wc->qp_num) : connection_at(d->verbs, number);
	const struct slab *s = d->srq ? buffers_slab(&d->receive, index) : c && index < c->rx.count ? &c->rx : NULL;

	if (!s)
		return;
	if (c && wc->status != IBV_WC_SUCCESS)
		complete_error(c, wc, "receiving");
	else if (c && c->peer->conn == c && c->peer->state != PEER_DOWN)
		complete_packet(c, (const struct wire_hdr *)(const void *)slab_piece(s, index & 0xffff), wc->byte_len);
	if (d->srq || (!c->dead && wc->status == IBV_WC_SUCCESS))
		complete_repost(d, c, wc, index);
}

static void complete_send(struct verbs_conn *c, const struct ibv_wc *wc, uint32_t seq)
{
	if (wc->status != IBV_WC_SUCCESS) {
		complete_error(c, wc, "sending");
		return;
	}
	post_done(c, seq + 1);
	post_credit(c);
	if (c->behind_waits)
		rma_progress(c);
}

static void complete_one(struct verbs_device *d, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)(wc->wr_id >> 32) & 0xfffffff, value = (uint32_t)wc->wr_id;
	struct verbs_conn *c = connection_at(d->verbs, number);

	switch ((enum verbs_work_kind)(wc->wr_id >> 60)) {
	case VERBS_WORK_RECV: complete_receive(d, wc, number, value); return;
	case VERBS_WORK_SEND:
		if (c)
			complete_send(c, wc, value);
		return;
	case VERBS_WORK_RMA:
		if (!c)
			return;
		if (wc->status != IBV_WC_SUCCESS)
			complete_error(c, wc, "RDMA read or write");
		rma_on_completion(c, value, wc->status == IBV_WC_SUCCESS);
		return;
	}
}

/* The rest of what ended peers had sent is delivered, as far as an empty queue can show it a while after the queue
 * pair went to its error state (a shared receive queue marks no last receive): notify the core. */
static int complete_ended(struct verbs *v)
{
	const struct transport_sink *sink = &v->env.sink;
	int events = 0;

	for (int r = 0; r < v->env.size; r++) {
		struct verbs_peer *p = &v->peers[r];

		if (p->state != PEER_ENDING || p->end_ns == 0 || clock_now_ns() - p->end_ns < COMPLETE_SETTLE_NS)
			continue;
		/* its last packet may have been LEAVE */
		if (p->conn && p->conn->left)
			p->end_code = -EPIPE;
		peer_forget(p);
		sink->on_down(sink->core, r, p->end_code, p->end_text ? p->end_text : "the connection ended");
		events++;
	}
	return events;
}

/* Sets *empty to whether nothing was left. */
static int complete_queue(struct verbs_device *d, struct verbs_cq *q, int budget, bool *empty)
{
	struct ibv_wc wc[DEVICE_STASH];
	int seen = 0, n = 0;

	while (seen < budget) {
		n = complete_take(d->verbs, q, wc, budget - seen < DEVICE_STASH ? budget - seen : DEVICE_STASH);
		if (n <= 0)
			break;
		for (int i = 0; i < n; i++)
			complete_one(d, &wc[i]);
		seen += n;
	}
	*empty = *empty && n == 0;
	return seen;
}

int complete_poll(struct verbs *v, int budget)
{
	int events = 0;
	/* looked at first: what ends during this poll has its turn in the next, with the queue empty again */
	bool chores = atomic_load_explicit(&v->chores, memory_order_relaxed) > 0, empty = true;

	for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		for (struct verbs_cq *q = atomic_load(&d->cqs); q; q = atomic_load(&q->next))
			events += complete_queue(d, q, budget, &empty);
	}
	if (chores)
		events += rma_poll(v);
	if (chores && empty)
		events += complete_ended(v);
	return events;
}

bool complete_ready(const struct verbs *v)
{
	if (atomic_load_explicit(&v->chores, memory_order_relaxed) > 0)
		return true;
	for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		for (struct verbs_cq *q = atomic_load(&d->cqs); q; q = atomic_load(&q->next)) {
			if (complete_peek(v, q))
				return true;
		}
	}
	return false;
}
