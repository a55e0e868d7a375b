/* SPDX-License-Identifier: MIT */
#include "transport/verbs/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/status.h"

/* Connections that the first completion queue has room for. */
#define DEVICE_FIRST_CONNS 16
#define DEVICE_READS_MAX 16
/* What one RDMA read or write transfers at most: bounds the time that a connection's sends wait behind it. */
#define DEVICE_RMA_BYTES (64u << 20)
/* Buffers of the send pool at first, and the fewest there may be. */
#define DEVICE_SEND_FIRST 32u
#define DEVICE_SEND_LEAST 4u

void device_warn_memory(struct verbs *v, size_t bytes)
{
	struct rlimit limit = {0, 0};

	if (v->warned_memory)
		return;
	v->warned_memory = true;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	log_warn(v->env.log,
		 "verbs: %zu bytes cannot be registered for lack of locked memory: smaller buffers and copies are used, which is slower. "
		 "\"ulimit -l\" reports %llu KB here: raise it (limits.conf: \"* - memlock unlimited\"; containers: --ulimit memlock=-1)",
		 bytes, (unsigned long long)limit.rlim_cur / 1024);
}

/* --- events --- */

/* Runs while a port is down, as long as the adapter would try to send. */
static void device_start_port_timer(struct verbs_device *d)
{
	int64_t ms = d->ports_down ? settings_int(d->verbs->env.settings, SETTING_VERBS_TIMEOUT_MS) : 0;
	struct itimerspec t = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * CLOCK_NS_PER_MS}};

	if (timerfd_settime(d->port_fd, 0, &t, NULL) < 0)
		log_warn(d->verbs->env.log, "verbs: timerfd_settime: %s", strerror(errno));
}

/* A rank that only receives would never learn from the adapter that nothing can come any more. */
static void device_on_port_timer(void *arg)
{
	struct verbs_device *d = arg;
	uint64_t n;

	if (read(d->port_fd, &n, sizeof(n)) > 0 && d->ports_down)
		d->on_port_timer(d);
}

static void device_on_event(struct verbs_device *d, const struct ibv_async_event *e)
{
	const char *name = d->context->device->name, *text = event_text(e->event_type);
	int port = e->element.port_num;

	switch ((int)e->event_type) {
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		d->ports_down &= ~device_port_bit((unsigned)port);
		if (e->event_type == IBV_EVENT_PORT_ERR)
			d->ports_down |= device_port_bit((unsigned)port);
		device_start_port_timer(d);
		log_warn(d->verbs->env.log, "verbs: %s port %d: %s", name, port, text);
		return;
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE: log_warn(d->verbs->env.log, "verbs: %s port %d: %s", name, port, text); return;
	case IBV_EVENT_GID_CHANGE: log_info(d->verbs->env.log, "verbs: %s port %d: %s", name, port, text); return;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR: d->broken = true; break;
	default: break;
	}
	d->on_event(d, e);
}

static void device_on_async(void *arg)
{
	struct verbs_device *d = arg;
	struct ibv_async_event e;

	while (d->verbs->api->get_async_event(d->context, &e) == 0) {
		device_on_event(d, &e);
		d->verbs->api->ack_async_event(&e);
	}
}

/* A thread slept: the monitor polls and wakes it after this. */
static void device_on_completion(void *arg)
{
	struct verbs_device *d = arg;
	struct ibv_cq *cq;
	void *context;

	while (d->verbs->api->get_cq_event(d->channel, &cq, &context) == 0)
		d->verbs->api->ack_cq_events(cq, 1);
	d->armed = false;
}

void device_arm(struct verbs_device *d)
{
	if (d->armed)
		return;
	d->armed = true;
	for (struct verbs_cq *q = atomic_load(&d->cqs); q; q = atomic_load(&q->next))
		d->armed = d->verbs->api->req_notify_cq(q->cq, 0) == 0 && d->armed;
}

static int device_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_sys(-errno, "cannot make a descriptor of the device non-blocking");
	return 0;
}

static int device_watch(struct verbs_device *d)
{
	const struct transport_watch *w = &d->verbs->env.watch;
	int rc = device_nonblocking(d->channel->fd);

	if (rc == 0)
		rc = device_nonblocking(d->context->async_fd);
	d->port_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (rc == 0 && d->port_fd < 0)
		rc = error_sys(-errno, "timerfd_create");
	if (rc == 0)
		rc = w->add(w->monitor, d->port_fd, device_on_port_timer, d);
	if (rc == 0)
		rc = w->add(w->monitor, d->channel->fd, device_on_completion, d);
	if (rc == 0)
		rc = w->add(w->monitor, d->context->async_fd, device_on_async, d);
	return rc;
}

/* --- opening --- */

static uint32_t device_min(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static uint32_t device_max(uint64_t a, uint64_t b)
{
	return (uint32_t)(a > b ? a : b);
}

static void device_make_srq(struct verbs_device *d, const struct ibv_device_attr *attr)
{
	struct verbs *v = d->verbs;
	struct ibv_srq_init_attr srq = {.attr = {.max_sge = 1}};

	if (!settings_int(v->env.settings, SETTING_VERBS_SRQ) || attr->max_srq <= 0 || attr->max_srq_wr <= 0)
		return;
	srq.attr.max_wr = device_min(v->buffer_bytes / 2 / v->slot_bytes, (uint64_t)attr->max_srq_wr);
	d->srq = v->api->create_srq(d->pd, &srq);
	if (!d->srq)
		log_info(v->env.log, "verbs: %s: no shared receive queue (%s): receives are posted for each connection",
			 d->context->device->name, strerror(errno));
	d->receive.max = d->srq ? srq.attr.max_wr : 0;
}

/* On-demand paging: nothing is pinned, the adapter takes page faults. */
static void device_choose_paging(struct verbs_device *d)
{
	if (!settings_int(d->verbs->env.settings, SETTING_VERBS_ODP))
		return;
	if (d->verbs->api->has_paging(d->context))
		d->regs.always |= IBV_ACCESS_ON_DEMAND;
	else
		log_warn(d->verbs->env.log, "verbs: %s has no on-demand paging: verbs_odp is ignored", d->context->device->name);
}

/* Lock released. */
static int device_init(struct verbs_device *d)
{
	struct verbs *v = d->verbs;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int rc = v->api->query_device(d->context, &attr);

	if (rc)
		return error_sys(-rc, "cannot ask for the device's limits");
	d->iwarp = d->context->device->transport_type == IBV_TRANSPORT_IWARP;
	d->reads_out = (uint16_t)device_min((uint64_t)attr.max_qp_init_rd_atom, DEVICE_READS_MAX);
	d->reads_in = (uint16_t)device_min((uint64_t)attr.max_qp_rd_atom, DEVICE_READS_MAX);
	d->cq_entries_max = attr.max_cqe;
	d->max_rma = DEVICE_RMA_BYTES;
	if (v->api->query_port(d->context, 1, &port) == 0 && port.max_msg_sz && port.max_msg_sz < d->max_rma)
		d->max_rma = port.max_msg_sz;
	d->pd = v->api->alloc_pd(d->context);
	if (!d->pd)
		return error_sys(-errno, "no protection domain");
	d->regs.pd = d->pd;
	d->regs.len_max = attr.max_mr_size;
	d->regs.always = IBV_ACCESS_RELAXED_ORDERING; /* the kernel drops it where the adapter does not have it */
	d->send.max = device_max(v->buffer_bytes / 8 / v->slot_bytes, DEVICE_SEND_LEAST);
	device_choose_paging(d);
	d->channel = v->api->create_comp_channel(d->context);
	if (!d->channel)
		return error_sys(-errno, "no completion channel");
	device_make_srq(d, &attr);
	return 0;
}

struct verbs_device *device_get(struct verbs *v, struct ibv_context *context,
				void (*on_event)(struct verbs_device *d, const struct ibv_async_event *e),
				void (*on_port_timer)(struct verbs_device *d))
{
	struct verbs_device *d;
	int rc;

	for (d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		if (d->context == context)
			return d;
	}
	d = calloc(1, sizeof(*d));
	if (!d) {
		error_set(-ENOMEM, "no memory for a device");
		return NULL;
	}
	d->verbs = v;
	d->port_fd = -1;
	d->context = context;
	d->on_event = on_event;
	d->on_port_timer = on_port_timer;
	d->regs = (struct regcache){.api = v->api, .work = &v->work, .bytes_max = v->register_max, .ranges = &v->ranges};
	work_unlock(&v->work);
	rc = device_init(d);
	work_lock(&v->work);
	if (rc == 0)
		rc = device_watch(d);
	if (rc < 0) {
		error_prefix(rc, "RDMA device %s", context->device->name);
		device_close(d);
		return NULL;
	}
	atomic_store(&d->next, atomic_load(&v->devices));
	atomic_store(&v->devices, d);
	log_info(v->env.log, "verbs: %s opened: %s, %s, %u reads at a time", context->device->name,
		 d->iwarp ? "iWARP" : "InfiniBand or RoCE", d->srq ? "shared receive queue" : "receives for each connection", d->reads_out);
	return d;
}

static void device_free(struct verbs_device *d)
{
	const struct verbs_provider *api = d->verbs->api;
	struct verbs_cq *q = atomic_load(&d->cqs);

	regcache_close(&d->regs);
	if (d->srq)
		api->destroy_srq(d->srq);
	buffers_close(&d->receive, api);
	buffers_close(&d->send, api);
	while (q) {
		struct verbs_cq *next = atomic_load(&q->next);

		api->destroy_cq(q->cq);
		free(q);
		q = next;
	}
	if (d->channel)
		api->destroy_comp_channel(d->channel);
	if (d->pd)
		api->dealloc_pd(d->pd);
	free(d);
}

void device_close(struct verbs_device *d)
{
	struct work *work = &d->verbs->work;
	const struct transport_watch *w = &d->verbs->env.watch;

	w->remove(w->monitor, d->context->async_fd);
	if (d->port_fd >= 0) {
		w->remove(w->monitor, d->port_fd);
		close(d->port_fd);
	}
	if (d->channel)
		w->remove(w->monitor, d->channel->fd);
	work_unlock(work);
	device_free(d);
	work_lock(work);
}

/* --- queues and buffers --- */

static struct verbs_cq *device_add_cq(struct verbs_device *d, int entries)
{
	struct verbs *v = d->verbs;
	struct verbs_cq *q = calloc(1, sizeof(*q));

	if (!q) {
		error_set(-ENOMEM, "no memory for a completion queue");
		return NULL;
	}
	atomic_flag_clear(&q->busy);
	q->room = entries;
	work_unlock(&v->work);
	q->cq = v->api->create_cq(d->context, entries, d, d->channel, 0);
	work_lock(&v->work);
	if (!q->cq) {
		error_sys(-errno, "no completion queue of %d entries on %s", entries, d->context->device->name);
		free(q);
		return NULL;
	}
	atomic_store(&q->next, atomic_load(&d->cqs));
	atomic_store(&d->cqs, q); /* the largest one first */
	d->armed = false;
	return q;
}

struct verbs_cq *device_take_cq(struct verbs_device *d, uint32_t entries)
{
	int conns = d->verbs->env.size - 1 < DEVICE_FIRST_CONNS ? d->verbs->env.size - 1 : DEVICE_FIRST_CONNS;
	struct verbs_cq *q = atomic_load(&d->cqs);
	int64_t room = q ? 2 * (int64_t)q->room : (int64_t)entries * conns;

	if (d->broken) {
		error_set(-EIO, "the RDMA device %s has failed", d->context->device->name);
		return NULL;
	}
	while (q && q->used + (int)entries > q->room)
		q = atomic_load(&q->next);
	if (!q && (int)entries > d->cq_entries_max) {
		error_set(-ENOSPC, "a completion queue of %s has %d entries, and a connection needs %u: lower verbs_slots",
			  d->context->device->name, d->cq_entries_max, entries);
		return NULL;
	}
	if (!q)
		q = device_add_cq(d, (int)(room < d->cq_entries_max ? room : d->cq_entries_max));
	if (q)
		q->used += (int)entries;
	return q;
}

void device_give_cq(struct verbs_cq *q, uint32_t entries)
{
	q->used -= (int)entries;
}

int device_post_receive(struct verbs_device *d, uint32_t number)
{
	const struct slab *s = buffers_slab(&d->receive, number);
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_RECV, 0, number), .sg_list = &sge, .num_sge = 1}, *bad;
	int err;

	if (!s)
		return error_set(-EINVAL, "there is no receive buffer %#x", number);
	sge = (struct ibv_sge){(uint64_t)(uintptr_t)slab_piece(s, number & 0xffff), (uint32_t)s->piece_bytes, s->mr->lkey};
	err = d->verbs->api->post_srq_recv(d->srq, &wr, &bad);
	return err ? error_sys(-err, "posting a receive") : 0;
}

static int device_post_free(struct verbs_device *d)
{
	int rc = 0;

	while (rc == 0 && d->receive.free_count > 0)
		rc = device_post_receive(d, buffers_take(&d->receive));
	return rc;
}

/* One more slab, smaller where lockable memory is short.  0 or -errno with text. */
static int device_grow(struct verbs_device *d, struct buffers *b, uint32_t want, uint32_t least)
{
	struct verbs *v = d->verbs;
	uint32_t count = buffers_step(b, want);
	struct slab s = {0};
	bool scarce = false;
	int rc = error_set(-ENOSPC, "all %u buffers of %s are in use: raise verbs_buffer_bytes", b->max, d->context->device->name);

	for (; count > 0 && count >= least; count /= 2) {
		work_unlock(&v->work);
		rc = slab_open(&s, v->api, d->pd, count, v->slot_bytes);
		work_lock(&v->work);
		if (rc != -ENOMEM)
			break;
		device_warn_memory(v, (size_t)count * v->slot_bytes);
		scarce = true;
	}
	if (rc == 0)
		rc = buffers_add(b, &s);
	if (scarce)
		b->max = b->count; /* not asked for again */
	if (rc == 0 || !s.mr)
		return rc;
	work_unlock(&v->work);
	slab_close(&s, v->api);
	work_lock(&v->work);
	return -ENOSPC;
}

int device_promise_first(struct verbs_device *d, uint32_t count, uint32_t least)
{
	uint32_t spare = d->receive.count - d->promised;
	int rc = 0;

	if (spare < count)
		rc = device_grow(d, &d->receive, count - spare, spare < least ? least - spare : 1);
	if (rc == 0)
		rc = device_post_free(d);
	spare = d->receive.count - d->promised;   /* polls may have promised some meanwhile */
	if (d->receive.count == d->receive.max) { /* there will be no more: every peer gets its share */
		uint32_t share = d->receive.max / (uint32_t)(d->verbs->env.size > 1 ? d->verbs->env.size - 1 : 1);

		count = share < least ? least : device_min(count, share);
	}
	if (spare < least)
		return rc < 0 ? rc
			      : error_set(-ENOSPC, "the shared receive queue of %s is full: set verbs_srq=0", d->context->device->name);
	count = device_min(count, spare);
	d->promised += count;
	return (int)count;
}

uint32_t device_promise(struct verbs_device *d, uint32_t count)
{
	const struct verbs *v = d->verbs;
	uint64_t to_come = v->env.size - 1 > (int)v->conn_promised ? (uint64_t)v->env.size - 1 - v->conn_promised : 0;
	uint32_t spare = d->receive.count - d->promised;

	d->scarce = d->receive.count == d->receive.max || d->promised + count + to_come * v->first_credit > d->receive.max;
	if (d->scarce)
		return 0;
	if (spare < count && !d->receive.wanted) {
		d->receive.wanted = true;
		work_signal(&d->verbs->work);
	}
	count = device_min(count, spare);
	d->promised += count;
	return count;
}

bool device_work(struct verbs_device *d)
{
	bool receive = d->receive.wanted, send = d->send.wanted;
	int rc = 0;

	if (receive)
		rc = device_grow(d, &d->receive, d->verbs->slots, 1);
	if (receive && rc == 0)
		rc = device_post_free(d);
	if (send && rc == 0)
		rc = device_grow(d, &d->send, DEVICE_SEND_FIRST, 1);
	if (rc < 0)
		log_debug(d->verbs->env.log, "verbs: %s", error_text());
	d->receive.wanted = d->send.wanted = false;
	return receive || send;
}

/* --- what there is --- */

static size_t device_describe_one(const struct verbs_provider *api, struct ibv_device *dev, char *out, size_t size)
{
	struct ibv_context *c = api->open_device(dev);
	struct ibv_device_attr attr;
	size_t at = 0;

	if (!c)
		return (size_t)snprintf(out, size, "  %s: cannot be opened: %s\n", dev->name, strerror(errno));
	if (api->query_device(c, &attr))
		attr.phys_port_cnt = 0;
	for (uint8_t i = 1; i <= attr.phys_port_cnt && at < size; i++) {
		struct ibv_port_attr p;

		if (api->query_port(c, i, &p))
			continue;
		at += (size_t)snprintf(out + at, size - at, "  %s:%u: %s, %s\n", dev->name, i, status_link_layer(c, &p),
				       p.state == IBV_PORT_ACTIVE ? "active" : "not active");
	}
	api->close_device(c);
	return at < size ? at : size;
}

size_t device_describe(const struct verbs_provider *api, char *out, size_t size)
{
	int count = 0;
	struct ibv_device **list = api->get_device_list(&count);
	size_t at = 0;

	for (int i = 0; list && i < count && at < size; i++)
		at += device_describe_one(api, list[i], out + at, size - at);
	if (list)
		api->free_device_list(list);
	return at;
}
