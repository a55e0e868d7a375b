/* SPDX-License-Identifier: MIT */
/*
 * Windows (struct transport_window) over a queue pair of their own: a window is taken back by resetting that pair, and the
 * connection does not notice.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/proof.h"
#include "transport/verbs/verbs_state.h"

/* A pair that breaks so often without a window taken in between is not made again. */
#define LANE_BREAKS_MAX 16u
/* Looks at the completion queue between two looks at the clock. */
#define LANE_LOOKS 16

/* What open() writes. */
struct lane_desc {
	uint64_t addr;
	uint32_t rkey;
	uint32_t number; /* of the sender's pair */
};
static_assert(sizeof(struct lane_desc) == WIRE_WINDOW_BYTES, "as the wire has it");

static struct verbs_peer *lane_peer(struct transport *t, int peer)
{
	return &((struct verbs *)t)->peers[peer];
}

static bool lane_broken(const struct verbs_lane *w)
{
	return atomic_load_explicit(&w->broken, memory_order_acquire);
}

/* When this returns the adapter neither reads nor writes memory through the pair any more. Any thread. */
static void lane_break(struct verbs *v, struct verbs_lane *w)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	pthread_mutex_lock(&w->gate);
	if (w->qp && !lane_broken(w)) {
		if (v->api->modify_qp(w->qp, &attr, IBV_QP_STATE)) { /* then it is not to be at all */
			int rc = v->api->unmake_qp(w->qp);

			if (rc)
				log_error(v->env.log, "verbs: a queue pair of windows can be neither reset nor destroyed: %s", strerror(rc));
			w->qp = NULL;
		}
		atomic_store_explicit(&w->broken, true, memory_order_release);
	}
	pthread_mutex_unlock(&w->gate);
}

static void lane_unmake(struct verbs *v, struct verbs_lane *w)
{
	if (w->qp)
		v->api->unmake_qp(w->qp);
	if (w->cq)
		v->api->destroy_cq(w->cq);
	w->qp = NULL;
	w->cq = NULL;
}

/* There is something to do for lane_work(). */
static void lane_mark(struct verbs_peer *p)
{
	p->verbs->lane_chores += !p->lane.chore;
	p->lane.chore = true;
}

static void lane_owe(struct verbs_peer *p)
{
	p->lane.owes_call = true;
	lane_mark(p);
}

/* No windows with this peer from now on; it is told. */
static void lane_off(struct verbs_peer *p, const char *why)
{
	struct verbs_lane *w = &p->lane;

	log_info(p->verbs->env.log, "verbs: no windows with rank %d any more: %s", p->rank, why);
	lane_unmake(p->verbs, w);
	w->state = VERBS_LANE_OFF;
	w->called = false;
	lane_owe(p);
}

static int lane_modify(struct verbs *v, struct verbs_lane *w, struct ibv_qp_attr *attr, int mask)
{
	int rc = v->api->modify_qp(w->qp, attr, mask);

	return rc ? error_sys(rc > 0 ? -rc : -errno, "the queue pair of windows cannot go to state %d", attr->qp_state) : 0;
}

/* As the connection's own pair: the same port, the same way to the peer. */
static int lane_ask(const struct verbs_peer *p, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;
	int rc = p->verbs->api->query_qp(p->link->qp, attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PORT | IBV_QP_PKEY_INDEX, &init);

	return rc ? error_sys(rc > 0 ? -rc : -errno, "the connection's queue pair cannot be asked") : 0;
}

/* A fresh pair, which is announced. 0 or -errno with text. */
static int lane_make(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;
	struct verbs_lane *w = &p->lane;
	struct verbs_device *d = p->link->device;
	struct ibv_qp_attr attr = {0}, init;
	struct ibv_qp_init_attr make = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	int rc = lane_ask(p, &attr);

	if (rc < 0 || proof_random(&w->psn, sizeof(w->psn)) < 0)
		return -EIO;
	w->psn &= 0xffffff;
	w->regs = &d->regs;
	w->cq = v->api->create_cq(d->context, 2, NULL, NULL, 0);
	if (!w->cq)
		return error_sys(-errno, "no completion queue for windows");
	make.send_cq = w->cq;
	make.recv_cq = w->cq;
	w->qp = v->api->make_qp(d->pd, &make);
	if (!w->qp)
		return error_sys(-errno, "no queue pair for windows");
	init = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = attr.port_num,
				    .pkey_index = attr.pkey_index,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	rc = lane_modify(v, w, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc < 0)
		return rc;
	w->number++;
	atomic_store(&w->broken, false);
	w->state = VERBS_LANE_CALLED;
	lane_owe(p);
	return 0;
}

static void lane_start(struct verbs_peer *p)
{
	if (lane_make(p) < 0)
		lane_off(p, error_text());
}

/* Joins our pair to theirs. */
static void lane_join(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;
	struct verbs_lane *w = &p->lane;
	struct ibv_qp_attr rtr = {0};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = link_timeout_exponent(v),
				  .retry_cnt = VERBS_RETRIES,
				  .rnr_retry = VERBS_RNR_RETRIES,
				  .sq_psn = w->psn,
				  .max_rd_atomic = (uint8_t)p->link->queue[VERBS_READ].max};
	int rc = lane_ask(p, &rtr);

	w->called = false;
	rtr.qp_state = IBV_QPS_RTR;
	rtr.dest_qp_num = w->theirs.qpn;
	rtr.rq_psn = w->theirs.psn;
	rtr.max_dest_rd_atomic = (uint8_t)p->link->device->reads_in;
	rtr.min_rnr_timer = 12;
	if (rc == 0)
		rc = lane_modify(v, w, &rtr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc == 0)
		rc = lane_modify(v, w, &rts,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc < 0)
		lane_off(p, error_text());
	else
		w->state = VERBS_LANE_UP;
}

/* What is due, once nobody is inside any more: a pair that is broken, or whose other end is gone, is followed by another. */
static void lane_renew(struct verbs_peer *p)
{
	struct verbs_lane *w = &p->lane;
	bool broken = lane_broken(w);

	if (w->inside > 0 || p->state != VERBS_UP || w->state == VERBS_LANE_OFF)
		return;
	if (w->gone) {
		lane_unmake(p->verbs, w);
		w->state = VERBS_LANE_OFF;
		return;
	}
	if (w->state == VERBS_LANE_JOINING) {
		lane_join(p);
		return;
	}
	if (!broken && !w->called && !(w->wanted && w->state == VERBS_LANE_NONE))
		return;
	if (broken && !w->called && ++w->breaks == LANE_BREAKS_MAX) {
		lane_off(p, "their windows were given up several times in turn");
		return;
	}
	lane_unmake(p->verbs, w);
	lane_start(p);
	if (w->called && w->state == VERBS_LANE_CALLED)
		lane_join(p);
}

void lane_on_call(struct verbs_peer *p, const struct wire_hdr *hdr)
{
	struct verbs_lane *w = &p->lane;

	w->theirs.qpn = hdr->ctl.from;
	w->theirs.psn = (uint32_t)hdr->ctl.value & 0xffffff;
	w->theirs.number = (uint32_t)(hdr->ctl.value >> 32);
	w->gone = w->theirs.qpn == 0;
	switch (w->state) {
	case VERBS_LANE_OFF: /* they have been told */
		return;
	case VERBS_LANE_CALLED:
		w->state = VERBS_LANE_JOINING;
		break;
	case VERBS_LANE_JOINING: /* theirs was joined to ours, and is gone again */
		w->state = VERBS_LANE_UP;
		w->called = true;
		break;
	case VERBS_LANE_NONE:
	case VERBS_LANE_UP:
		w->called = true;
		break;
	}
	if (w->called || w->gone)
		lane_break(p->verbs, w); /* whoever is inside comes out */
	lane_mark(p);
}

/* False: no room. */
static bool lane_say(struct verbs_peer *p)
{
	struct verbs_lane *w = &p->lane;
	struct wire_ctl call = {.id = VERBS_OWN_LANE};

	if (w->qp) {
		call.from = w->qp->qp_num;
		call.value = (uint64_t)w->number << 32 | w->psn;
	}
	if (p->state == VERBS_UP && !post_own(p->link, &call, false))
		return false;
	w->owes_call = false;
	return true;
}

int lane_work(struct verbs *v)
{
	int said = 0;

	for (int r = 0; v->lane_chores > 0 && r < v->env.size; r++) {
		struct verbs_peer *p = &v->peers[r];

		if (!p->lane.chore)
			continue;
		/* no pair is replaced before it was announced: the peer, which would hear of the next one alone, would join that to the pair that it has */
		if (p->lane.owes_call && !lane_say(p))
			continue;
		p->lane.chore = false;
		v->lane_chores--;
		said++;
		lane_renew(p); /* which may leave something to say */
	}
	return said;
}

static bool lane_pays(const struct transport *t, int peer, size_t bytes)
{
	const struct verbs *v = (const struct verbs *)t;
	const struct verbs_peer *p = &v->peers[peer];

	return v->windows && bytes >= v->get_min && p->state == VERBS_UP && !p->link->device->iwarp &&
	       p->link->queue[VERBS_READ].max > 0 && p->lane.state != VERBS_LANE_OFF;
}

static int lane_open(struct transport *t, int peer, const void *base, size_t bytes, void *desc)
{
	struct verbs_peer *p = lane_peer(t, peer);
	struct verbs_lane *w = &p->lane;
	struct lane_desc d = {.addr = (uint64_t)(uintptr_t)base, .number = w->number};

	if (p->state == VERBS_UP && w->state == VERBS_LANE_NONE) {
		w->wanted = true; /* a region is open: not now */
		lane_mark(p);
	}
	if (p->state != VERBS_UP || w->state != VERBS_LANE_UP || lane_broken(w) || w->called || w->gone || w->owes_call)
		return error_set(-EAGAIN, "the queue pair of windows with rank %d does not stand yet", peer);
	if (w->out)
		return -EBUSY;
	w->out = regcache_get(w->regs, (void *)(uintptr_t)base, bytes, IBV_ACCESS_REMOTE_READ);
	if (!w->out)
		return error_sys(-errno, "registering %zu bytes of a window", bytes);
	d.rkey = w->out->mr->rkey;
	memcpy(desc, &d, sizeof(d));
	w->inside++;
	return 0;
}

/* One that was inside has come out.  A region may still be open: what takes time is left to the next poll. */
static void lane_left(struct verbs_peer *p)
{
	const struct verbs_lane *w = &p->lane;

	if (w->called || w->gone || lane_broken(w))
		lane_mark(p);
}

static int lane_end(struct transport *t, int peer, enum transport_window_end how)
{
	struct verbs_peer *p = lane_peer(t, peer);
	struct verbs_lane *w = &p->lane;

	if (how == TRANSPORT_TAKEN)
		w->breaks = 0;
	else
		lane_break(p->verbs, w);
	regcache_put(w->regs, w->out);
	w->out = NULL;
	w->inside--;
	lane_left(p);
	return how == TRANSPORT_TAKEN ? 0 : -EIO;
}

static int lane_claim(struct transport *t, int peer, const void *desc, void *to, size_t bytes)
{
	struct verbs_peer *p = lane_peer(t, peer);
	struct verbs_lane *w = &p->lane;
	struct lane_desc d;

	memcpy(&d, desc, sizeof(d));
	if (p->state != VERBS_UP || w->state != VERBS_LANE_UP || lane_broken(w) || w->called || w->gone || w->in ||
	    d.number != w->theirs.number)
		return error_set(-ECANCELED, "a window of rank %d that is closed", peer);
	w->in = regcache_get(w->regs, to, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!w->in)
		return error_sys(-errno, "registering %zu bytes for a window", bytes);
	w->in_bytes = bytes;
	w->inside++;
	return 0;
}

static int lane_post(struct verbs *v, struct verbs_lane *w, const struct lane_desc *d, void *to, size_t bytes)
{
	struct ibv_sge sge = {(uint64_t)(uintptr_t)to, (uint32_t)bytes, w->in->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = d->addr, .rkey = d->rkey}},
			   *bad;
	int rc = -ECANCELED;

	pthread_mutex_lock(&w->gate); /* nothing is posted to a pair that has been reset */
	if (!lane_broken(w))
		rc = -v->api->post_send(w->qp, &wr, &bad);
	pthread_mutex_unlock(&w->gate);
	return rc;
}

/* The read has ended, or was made to. 0 or -errno with text. */
static int lane_await(struct verbs *v, struct verbs_peer *p)
{
	struct verbs_lane *w = &p->lane;
	int64_t end_ns = clock_now_ns() + v->window_ns;
	struct ibv_wc wc;

	for (unsigned n = 1;; n++) {
		if (v->api->poll_cq(w->cq, 1, &wc) > 0)
			break;
		if (lane_broken(w))
			return error_set(-ECANCELED, "the queue pair of windows with rank %d was reset", p->rank);
		cpu_relax();
		if (n % LANE_LOOKS == 0 && clock_now_ns() >= end_ns) {
			lane_break(v, w);
			return error_set(-ETIMEDOUT, "a window of rank %d was not read in time", p->rank);
		}
	}
	if (wc.status == IBV_WC_SUCCESS)
		return 0;
	lane_break(v, w);
	return error_set(-EIO, "a window of rank %d: %s", p->rank, status_text(wc.status));
}

static int lane_copy(struct transport *t, int peer, const void *desc, void *to, size_t bytes)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_peer *p = &v->peers[peer];
	struct lane_desc d;
	int rc;

	memcpy(&d, desc, sizeof(d));
	rc = lane_post(v, &p->lane, &d, to, bytes);
	if (rc < 0)
		return error_set(-EIO, "a window of rank %d cannot be read: %s", peer, strerror(-rc));
	return lane_await(v, p);
}

static bool lane_settle(struct transport *t, int peer, const void *desc, bool taken)
{
	struct verbs_peer *p = lane_peer(t, peer);
	struct verbs_lane *w = &p->lane;

	(void)desc;
	if (taken) {
		w->breaks = 0;
		w->taken++;
		w->taken_bytes += w->in_bytes;
	}
	regcache_put(w->regs, w->in);
	w->in = NULL;
	w->inside--;
	lane_left(p);
	return taken;
}

void lane_forget(struct verbs_peer *p)
{
	lane_break(p->verbs, &p->lane);
}

void lane_close(struct verbs_peer *p)
{
	struct verbs_lane *w = &p->lane;

	lane_unmake(p->verbs, w);
	pthread_mutex_destroy(&w->gate);
}

const struct transport_window lane_window = {
	.pays = lane_pays,
	.open = lane_open,
	.end = lane_end,
	.claim = lane_claim,
	.copy = lane_copy,
	.settle = lane_settle,
};
