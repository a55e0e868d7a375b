/* SPDX-License-Identifier: MIT */
#include "transport/verbs/connection.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/status.h"

/* Fewer buffers than this and credit could not flow back. */
#define CONNECTION_SLOTS_MIN 4u

/* --- states --- */

static const char *const state_names[PEER_STATE_COUNT] = {"idle",      "resolving", "connecting", "awaiting",
							  "accepting", "up",        "ending",     "down"};

#define TO(s) (1u << (s))
#define TO_END (TO(PEER_ENDING) | TO(PEER_DOWN))
static const unsigned legal[PEER_STATE_COUNT] = {
	[PEER_IDLE] = TO(PEER_RESOLVING) | TO(PEER_ACCEPTING) | TO_END,
	[PEER_RESOLVING] = TO(PEER_CONNECTING) | TO(PEER_ACCEPTING) | TO_END,
	[PEER_CONNECTING] = TO(PEER_RESOLVING) | TO(PEER_UP) | TO(PEER_AWAITING) | TO(PEER_ACCEPTING) | TO_END,
	[PEER_AWAITING] = TO(PEER_ACCEPTING) | TO_END,
	[PEER_ACCEPTING] = TO(PEER_IDLE) | TO(PEER_UP) | TO_END,
	[PEER_UP] = TO_END,
	[PEER_ENDING] = TO(PEER_DOWN),
	[PEER_DOWN] = 0,
};

bool peer_set_state(struct verbs_peer *p, enum peer_state to)
{
	struct verbs *v = p->verbs;

	if (!(legal[p->state] & TO(to))) {
		log_error(v->env.log, "verbs: rank %d cannot go from %s to %s", p->rank, state_names[p->state], state_names[to]);
		return false;
	}
	log_debug(v->env.log, "verbs: rank %d: %s -> %s", p->rank, state_names[p->state], state_names[to]);
	if (to == PEER_ENDING)
		atomic_fetch_add(&v->chores, 1);
	else if (p->state == PEER_ENDING)
		atomic_fetch_sub(&v->chores, 1);
	p->state = to;
	return true;
}

static void connection_condemn(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;

	if (!c->condemned) {
		c->condemned = true;
		c->next_condemned = v->condemned;
		v->condemned = c;
	}
	work_signal(&v->work);
}

void peer_end(struct verbs_peer *p, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (p->state == PEER_ENDING || p->state == PEER_DOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* these mean something else of a message */
	p->end_code = code == -ENOMEM || code == -EMSGSIZE || code == -ECANCELED ? -EIO : code;
	p->end_ns = p->conn ? 0 : clock_now_ns();
	free(p->end_text);
	p->end_text = strdup(text);
	peer_set_state(p, PEER_ENDING);
	if (p->conn)
		connection_condemn(p->conn);
}

void peer_forget(struct verbs_peer *p)
{
	if (p->state != PEER_DOWN)
		peer_set_state(p, PEER_DOWN);
	if (p->conn)
		connection_condemn(p->conn);
}

void peer_request(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;

	if (p->state != PEER_RESOLVING)
		peer_set_state(p, PEER_RESOLVING);
	p->retry_ns = 0;
	if (!p->requested) {
		p->requested = true;
		p->next_requested = v->requested;
		v->requested = p;
	}
	work_signal(&v->work);
}

/* --- making one --- */

struct verbs_conn *connection_open(struct verbs_peer *p, bool active)
{
	struct verbs *v = p->verbs;
	struct verbs_conn *c = NULL, **conns = v->conns;

	if (v->conn_count == v->conn_room) {
		uint32_t room = v->conn_room ? 2 * v->conn_room : 16;

		conns = realloc(v->conns, room * sizeof(*conns));
		if (conns) {
			v->conns = conns;
			v->conn_room = room;
		}
	}
	if (conns)
		c = calloc(1, sizeof(*c));
	if (!c) {
		error_set(-ENOMEM, "no memory for a connection");
		return NULL;
	}
	c->verbs = v;
	c->peer = p;
	c->active = active;
	c->number = v->conn_count;
	c->spare = BUFFERS_NONE;
	for (int i = 0; i < RMA_DIRECTIONS; i++)
		c->queue[i].tail = &c->queue[i].head;
	v->conns[v->conn_count++] = c;
	p->conn = c;
	return c;
}

struct verbs_conn *connection_at(const struct verbs *v, uint32_t number)
{
	return number < v->conn_count ? v->conns[number] : NULL;
}

struct verbs_conn *connection_of_qpn(const struct verbs_device *d, uint32_t qpn)
{
	struct verbs_conn *c = d->by_qpn[qpn % DEVICE_QPN_BUCKETS];

	while (c && c->qp->qp_num != qpn)
		c = c->next_qpn;
	return c;
}

bool connection_in(const struct verbs_conn *c, enum peer_state state)
{
	return c->peer->conn == c && c->peer->state == state;
}

/* From the time after which the peer is given up: a packet is sent once and CONNECTION_RETRIES times more. In steps of 4.096 us times
 * powers of two. iWARP and old kernels have their own times. */
uint8_t connection_timeout_exponent(const struct verbs *v)
{
	int64_t us = settings_int(v->env.settings, SETTING_VERBS_TIMEOUT_MS) * 1000 / (CONNECTION_RETRIES + 1);
	uint8_t exponent = 8;

	while (exponent < 22 && (INT64_C(4096) << (exponent + 1)) / 1000 <= us)
		exponent++;
	return exponent;
}

bool connection_take_credit(struct verbs_conn *c, const struct private_data *d)
{
	if (d->credit < 2 || d->credit_max < d->credit)
		return false;
	c->credit = c->credit_first = d->credit;
	c->credit_max = d->credit_max;
	if (d->reads < c->queue[RMA_READ].max)
		c->queue[RMA_READ].max = d->reads;
	return true;
}

int connection_post_receive(struct verbs_conn *c, uint32_t index)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_RECV, c->number, index), .sg_list = &sge, .num_sge = 1}, *bad;
	int err;

	if (index >= c->rx.count)
		return error_set(-EINVAL, "there is no receive buffer %u", index);
	sge = (struct ibv_sge){(uint64_t)(uintptr_t)slab_piece(&c->rx, index), (uint32_t)c->rx.piece_bytes, c->rx.mr->lkey};
	err = c->verbs->api->post_recv(c->qp, &wr, &bad);
	return err ? error_sys(-err, "posting a receive") : 0;
}

/* Inline data: the largest that the adapter allows, found by trying downwards once for each device.  Lock released. */
static struct ibv_qp *connection_make_qp(struct verbs_conn *c, struct ibv_qp_init_attr *attr,
					 struct ibv_qp *(*make_qp)(struct verbs_conn *c, struct ibv_qp_init_attr *attr))
{
	static const uint32_t tries[] = {512, 256, 220, 128, 92, 64, 32, 0};
	struct verbs_device *d = c->device;
	int64_t set = settings_int(c->verbs->env.settings, SETTING_VERBS_INLINE);
	uint32_t first = d->inline_known ? d->max_inline : set >= 0 ? (uint32_t)set : tries[0];

	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		uint32_t bytes = i == 0 ? first : tries[i];
		struct ibv_qp_init_attr trial = *attr;
		struct ibv_qp *qp;

		if (bytes > first || (i > 0 && bytes == first))
			continue;
		trial.cap.max_inline_data = bytes;
		qp = make_qp(c, &trial);
		if (!qp)
			continue;
		d->inline_known = true;
		d->max_inline = bytes;
		c->max_inline = bytes;
		return qp;
	}
	error_sys(-errno, "no queue pair on %s", d->context->device->name);
	return NULL;
}

/* Memory of the connection's own, less where locked memory is short.  Releases the lock. */
static int connection_make_buffers(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;
	struct verbs_device *d = c->device;
	int rc = -ENOMEM;

	for (uint32_t count = v->slots; count >= CONNECTION_SLOTS_MIN && rc == -ENOMEM; count /= 2) {
		work_unlock(&v->work);
		rc = slab_open(&c->headers, v->api, d->pd, count, sizeof(struct wire_hdr));
		if (rc == 0 && !d->srq)
			rc = slab_open(&c->rx, v->api, d->pd, count, v->slot_bytes);
		if (rc < 0)
			slab_close(&c->headers, v->api);
		work_lock(&v->work);
		if (rc == -ENOMEM)
			device_warn_memory(v, (size_t)count * v->slot_bytes);
		c->tx_count = count;
	}
	if (rc < 0)
		return rc;
	c->piece = malloc(c->tx_count * sizeof(*c->piece));
	if (!c->piece)
		return error_set(-ENOMEM, "no memory for a connection");
	memset(c->piece, 0xff, c->tx_count * sizeof(*c->piece));
	rc = d->srq ? device_promise_first(d, v->first_credit, CONNECTION_SLOTS_MIN) : (int)c->rx.count;
	if (rc < 0)
		return rc;
	c->quota = (uint32_t)rc;
	v->conn_promised++;
	if (d->send.count == 0) {
		d->send.wanted = true;
		device_work(d);
	}
	return d->send.count > 0 ? 0 : error_prefix(-ENOMEM, "no send buffers");
}

static int connection_make_queues(struct verbs_conn *c, struct ibv_qp *(*make_qp)(struct verbs_conn *c, struct ibv_qp_init_attr *attr))
{
	struct verbs *v = c->verbs;
	struct verbs_device *d = c->device;
	uint32_t sends = c->tx_count + c->queue[RMA_READ].max + c->queue[RMA_WRITE].max + 1;
	struct ibv_qp_init_attr attr = {
		.srq = d->srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = sends, .max_recv_wr = c->rx.count, .max_send_sge = 1, .max_recv_sge = d->srq ? 0 : 1},
	};
	struct ibv_qp *qp;

	c->cq_entries = sends + (d->srq ? v->slots : c->rx.count);
	c->cq = device_take_cq(d, c->cq_entries);
	if (!c->cq)
		return -ENOSPC;
	attr.send_cq = attr.recv_cq = c->cq->cq;
	work_unlock(&v->work);
	qp = connection_make_qp(c, &attr, make_qp);
	work_lock(&v->work);
	if (!qp)
		return -EIO;
	c->qp = qp;
	c->next_qpn = d->by_qpn[qp->qp_num % DEVICE_QPN_BUCKETS];
	d->by_qpn[qp->qp_num % DEVICE_QPN_BUCKETS] = c;
	return 0;
}

/* --- events of its device --- */

static void connection_on_port_timer(struct verbs_device *d)
{
	struct verbs *v = d->verbs;

	for (uint32_t i = 0; i < v->conn_count; i++) {
		struct verbs_conn *c = v->conns[i];

		unsigned port = c ? v->locals[c->peer->local].port : 0;

		if (c && c->device == d && (d->ports_down & device_port_bit(port)))
			peer_end(c->peer, -ENETDOWN,
				 "rank %d cannot be reached: %s port %u is down: is the link up (ibv_devinfo, ip link)?", c->peer->rank,
				 d->context->device->name, port);
	}
}

static void connection_on_event(struct verbs_device *d, const struct ibv_async_event *e)
{
	struct verbs *v = d->verbs;
	const char *name = d->context->device->name;
	struct verbs_conn *c;
	bool of_qp = false;
	uint32_t qpn = 0;

	switch ((int)e->event_type) {
	case IBV_EVENT_COMM_EST: /* RDMA CM's own last message was lost */
		c = connection_of_qpn(d, e->element.qp->qp_num);
		if (!c || !c->id)
			return;
		work_unlock(&v->work);
		v->api->notify(c->id, e->event_type);
		work_lock(&v->work);
		return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		of_qp = true;
		qpn = e->element.qp->qp_num;
		break;
	default:
		if (!d->broken) { /* path migration, limits: of no meaning here; the list grows with the library */
			log_debug(v->env.log, "verbs: %s: event %d: %s", name, e->event_type, event_text(e->event_type));
			return;
		}
		break;
	}
	for (uint32_t i = 0; i < v->conn_count; i++) {
		c = v->conns[i];
		if (c && c->device == d && (!of_qp || (c->qp && c->qp->qp_num == qpn)) && c->peer->conn == c)
			peer_end(c->peer, -EIO, "%s: %s", name, event_text(e->event_type));
	}
}

int connection_build(struct verbs_conn *c, struct ibv_context *context,
		     struct ibv_qp *(*make_qp)(struct verbs_conn *c, struct ibv_qp_init_attr *attr))
{
	int rc;

	c->device = device_get(c->verbs, context, connection_on_event, connection_on_port_timer);
	if (!c->device)
		return -EIO;
	c->queue[RMA_READ].max = c->device->reads_out;
	c->queue[RMA_WRITE].max = VERBS_WRITES_MAX;
	rc = connection_make_buffers(c);
	if (rc == 0)
		rc = connection_make_queues(c, make_qp);
	for (uint32_t i = 0; i < c->rx.count && rc == 0; i++)
		rc = connection_post_receive(c, i);
	return rc;
}

/* --- ending one --- */

static void connection_forget_qpn(struct verbs_conn *c)
{
	struct verbs_conn **at = &c->device->by_qpn[c->qp->qp_num % DEVICE_QPN_BUCKETS];

	while (*at && *at != c)
		at = &(*at)->next_qpn;
	if (*at)
		*at = c->next_qpn;
}

/* What the adapter has given back with the queue pair. */
static void connection_give_buffers(struct verbs_conn *c)
{
	struct verbs_device *d = c->device;

	for (uint32_t i = 0; c->piece && i < c->tx_count; i++) {
		if (c->piece[i] != BUFFERS_NONE)
			buffers_give(&d->send, c->piece[i]);
	}
	if (c->spare != BUFFERS_NONE)
		buffers_give(&d->send, c->spare);
	if (c->quota > 0)
		c->verbs->conn_promised--;
	if (d && d->srq)
		d->promised -= c->quota;
	if (c->cq)
		device_give_cq(c->cq, c->cq_entries);
}

static void connection_uncondemn(struct verbs_conn *c)
{
	struct verbs_conn **at = &c->verbs->condemned;

	while (*at && *at != c)
		at = &(*at)->next_condemned;
	if (*at)
		*at = c->next_condemned;
	c->condemned = false;
}

void connection_close(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;

	if (c->qp)
		connection_forget_qpn(c);
	if (c->peer->conn == c)
		c->peer->conn = NULL;
	connection_uncondemn(c);
	v->conns[c->number] = NULL;
	work_unlock(&v->work);
	v->connector->close(c);
	slab_close(&c->headers, v->api);
	slab_close(&c->rx, v->api);
	work_lock(&v->work);
	connection_give_buffers(c);
	v->on_freed(c);
	free(c->piece);
	free(c);
}

/* No more traffic: the queue pair goes to its error state, the other side is notified. */
static void connection_kill(struct verbs_conn *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct verbs *v = c->verbs;

	if (!c->dead) {
		c->dead = true;
		work_unlock(&v->work);
		v->connector->disconnect(c);
		if (c->qp)
			v->api->modify_qp(c->qp, &attr, IBV_QP_STATE);
		work_lock(&v->work);
	}
	c->peer->end_ns = clock_now_ns();
}

bool connection_work(struct verbs *v)
{
	struct verbs_conn *c = v->condemned;

	if (!c)
		return false;
	connection_uncondemn(c);
	v->ending = true;
	if (c->peer->conn == c && (c->peer->state == PEER_ENDING || c->peer->state == PEER_DOWN))
		connection_kill(c); /* before a forgotten one is freed: notify the other side */
	if (c->peer->state == PEER_DOWN)
		connection_close(c);
	v->ending = false;
	return true;
}
