/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* Fewer buffers than this and credit could not flow back. */
#define LINK_SLOTS_MIN 4u

static const char *const state_names[VERBS_STATE_COUNT] = {"idle",	"resolving", "calling", "awaited",
							   "answering", "up",	     "ending",	"down"};

#define TO(s) (1u << (s))
static const unsigned legal[VERBS_STATE_COUNT] = {
	[VERBS_IDLE] = TO(VERBS_RESOLVING) | TO(VERBS_ANSWERING) | TO(VERBS_ENDING) | TO(VERBS_DOWN),
	[VERBS_RESOLVING] = TO(VERBS_CALLING) | TO(VERBS_ANSWERING) | TO(VERBS_ENDING) | TO(VERBS_DOWN),
	[VERBS_CALLING] = TO(VERBS_RESOLVING) | TO(VERBS_UP) | TO(VERBS_AWAITED) | TO(VERBS_ANSWERING) | TO(VERBS_ENDING) | TO(VERBS_DOWN),
	[VERBS_AWAITED] = TO(VERBS_ANSWERING) | TO(VERBS_ENDING) | TO(VERBS_DOWN),
	[VERBS_ANSWERING] = TO(VERBS_UP) | TO(VERBS_ENDING) | TO(VERBS_DOWN),
	[VERBS_UP] = TO(VERBS_ENDING) | TO(VERBS_DOWN),
	[VERBS_ENDING] = TO(VERBS_DOWN),
	[VERBS_DOWN] = 0,
};

const char *peer_state_name(enum peer_link_state s)
{
	return state_names[s];
}

bool peer_set_state(struct verbs_peer *p, enum peer_link_state to)
{
	struct verbs *v = p->verbs;

	if (!(legal[p->state] & TO(to))) {
		log_error(v->env.log, "verbs: rank %d cannot go from %s to %s", p->rank, peer_state_name(p->state),
			  peer_state_name(to));
		return false;
	}
	log_debug(v->env.log, "verbs: rank %d: %s -> %s", p->rank, peer_state_name(p->state), peer_state_name(to));
	if (to == VERBS_ENDING)
		atomic_fetch_add(&v->chores, 1);
	else if (p->state == VERBS_ENDING)
		atomic_fetch_sub(&v->chores, 1);
	p->state = to;
	return true;
}

/* The time after which a packet is sent again, from the time after which the peer is given up: it is sent
 * once and VERBS_RETRIES times more. In steps of 4.096 us times powers of two. iWARP and old kernels go by their own times. */
uint8_t link_timeout_exponent(const struct verbs *v)
{
	int64_t us = settings_int(v->env.settings, SETTING_VERBS_TIMEOUT_MS) * 1000 / (VERBS_RETRIES + 1);
	uint8_t exponent = 8;

	while (exponent < 22 && (INT64_C(4096) << (exponent + 1)) / 1000 <= us)
		exponent++;
	return exponent;
}

static void link_set_timeout(struct verbs_link *l)
{
	uint8_t exponent = link_timeout_exponent(l->verbs);

	if (l->verbs->api->set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof(exponent)))
		log_debug(l->verbs->env.log, "verbs: the retry time cannot be set: %s", strerror(errno));
}

bool link_take_grant(struct verbs_link *l, const struct verbs_greeting *g)
{
	if (g->receives < 2)
		return false;
	l->credits = l->credits_max = g->receives;
	if (g->reads < l->queue[VERBS_READ].max)
		l->queue[VERBS_READ].max = g->reads;
	return true;
}

struct verbs_link *link_open(struct verbs *v, struct verbs_peer *p, struct rdma_cm_id *id, bool caller)
{
	struct verbs_link *l;

	if (v->link_count == v->link_room) {
		uint32_t room = v->link_room ? 2 * v->link_room : 16;
		struct verbs_link **links = realloc(v->links, room * sizeof(*links));

		if (!links) {
			error_set(-ENOMEM, "no memory for a connection");
			return NULL;
		}
		v->links = links;
		v->link_room = room;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		error_set(-ENOMEM, "no memory for a connection");
		return NULL;
	}
	l->verbs = v;
	l->peer = p;
	l->id = id;
	l->caller = caller;
	l->number = v->link_count;
	for (int i = 0; i < VERBS_DIRECTIONS; i++)
		l->queue[i].tail = &l->queue[i].head;
	if (id) {
		id->context = l;
		link_set_timeout(l);
	}
	v->links[v->link_count++] = l;
	p->link = l;
	return l;
}

struct verbs_link *link_at(const struct verbs *v, uint32_t number)
{
	return number < v->link_count ? v->links[number] : NULL;
}

struct verbs_link *link_of_qpn(const struct verbs_device *d, uint32_t qpn)
{
	struct verbs_link *l = d->by_qpn[qpn % VERBS_QPN_BUCKETS];

	while (l && l->qp->qp_num != qpn)
		l = l->next_qpn;
	return l;
}

/* Inline data: the largest that the adapter grants, found by trying downwards once per device. */
static int link_create_qp(struct verbs_link *l)
{
	static const uint32_t tries[] = {512, 256, 220, 128, 92, 64, 32, 0};
	struct verbs_device *d = l->device;
	const struct verbs_provider *api = l->verbs->api;
	int64_t set = settings_int(l->verbs->env.settings, SETTING_VERBS_INLINE);
	uint32_t first = set >= 0 ? (uint32_t)set : tries[0];

	if (d->inline_known)
		first = d->max_inline;
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		uint32_t bytes = i == 0 ? first : tries[i];
		struct ibv_qp_init_attr attr = {
			.send_cq = d->cq,
			.recv_cq = d->cq,
			.srq = d->srq,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = l->tx.count + l->queue[VERBS_READ].max + l->queue[VERBS_WRITE].max + 1,
				.max_recv_wr = d->srq ? 0 : l->rx_count,
				.max_send_sge = 1,
				.max_recv_sge = d->srq ? 0 : 1,
				.max_inline_data = bytes},
		};

		if (bytes > first || (i > 0 && bytes == first))
			continue;
		if (l->id && api->create_qp(l->id, d->pd, &attr) == 0)
			l->qp = l->id->qp;
		else if (!l->id)
			l->qp = endpoint_make_qp(l, &attr);
		if (l->qp) {
			d->inline_known = true;
			d->max_inline = bytes;
			l->max_inline = bytes;
			return 0;
		}
	}
	return error_sys(-errno, "no queue pair on %s", d->context->device->name);
}

/* Both halves of the buffers, fewer of them where locked memory is short. */
static int link_make_buffers(struct verbs_link *l)
{
	struct verbs *v = l->verbs;
	struct verbs_device *d = l->device;
	int rc = -ENOMEM;

	for (uint32_t count = v->slots; count >= LINK_SLOTS_MIN && rc == -ENOMEM; count /= 2) {
		rc = slab_open(&l->tx, d, count, l->peer->slot_bytes);
		if (rc == 0 && !d->srq)
			rc = slab_open(&l->rx, d, count, v->slot_bytes);
		l->rx_count = count;
		l->entries = 2 * count + l->queue[VERBS_READ].max + l->queue[VERBS_WRITE].max + 1;
		if (rc == 0)
			rc = device_take_room(d, l->entries, &l->rx_count);
		if (rc == 0)
			return 0;
		slab_close(&l->tx, v->api);
		slab_close(&l->rx, v->api);
		if (rc == -ENOMEM)
			pool_warn_memory(v, (size_t)count * v->slot_bytes);
	}
	l->rx_count = 0;
	return rc;
}

int link_build(struct verbs_link *l)
{
	struct verbs *v = l->verbs;
	struct verbs_device *d = device_get(v, l->id ? l->id->verbs : v->locals[l->peer->local].context);
	int rc;

	if (!d)
		return -EIO;
	l->device = d;
	l->queue[VERBS_READ].max = d->reads_out;
	l->queue[VERBS_WRITE].max = VERBS_WRITES_MAX;
	rc = link_make_buffers(l);
	if (rc == 0)
		rc = link_create_qp(l);
	if (rc < 0)
		return rc;
	l->next_qpn = d->by_qpn[l->qp->qp_num % VERBS_QPN_BUCKETS];
	d->by_qpn[l->qp->qp_num % VERBS_QPN_BUCKETS] = l;
	for (uint32_t i = 0; i < l->rx.count && rc == 0; i++)
		rc = pool_post_receive(d, l, i);
	return rc;
}

static void link_forget_qpn(struct verbs_link *l)
{
	struct verbs_link **at = &l->device->by_qpn[l->qp->qp_num % VERBS_QPN_BUCKETS];

	while (*at && *at != l)
		at = &(*at)->next_qpn;
	if (*at)
		*at = l->next_qpn;
}

void link_close(struct verbs_link *l)
{
	struct verbs *v = l->verbs;

	if (l->qp) {
		link_forget_qpn(l);
		if (l->id)
			v->api->destroy_qp(l->id);
		else
			v->api->unmake_qp(l->qp);
	}
	exchange_close(l->exchange);
	if (l->id)
		v->api->destroy_id(l->id);
	if (l->rx_count)
		device_give_room(l->device, l->entries, l->rx_count);
	slab_close(&l->tx, v->api);
	slab_close(&l->rx, v->api);
	if (l->peer && l->peer->link == l)
		l->peer->link = NULL;
	v->links[l->number] = NULL;
	free(l);
}

void link_kill(struct verbs_link *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (l->exchange)
		exchange_shut(l->exchange);
	if (l->dead || !l->qp)
		return;
	l->dead = true;
	/* iWARP has no error state that can be asked for while connected: disconnect does it there */
	if (l->id && (l->established || l->caller))
		l->verbs->api->disconnect(l->id);
	l->verbs->api->modify_qp(l->qp, &attr, IBV_QP_STATE);
}

void peer_end(struct verbs_peer *p, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (p->state == VERBS_ENDING || p->state == VERBS_DOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->link)
		link_kill(p->link);
	/* these mean something else of a message */
	p->end_code = code == -ENOMEM || code == -EMSGSIZE || code == -ECANCELED ? -EIO : code;
	p->end_ns = clock_now_ns();
	free(p->end_text);
	p->end_text = strdup(text);
	peer_set_state(p, VERBS_ENDING);
}
