/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* Connections that the completion queue has room for, unless the device or the job is smaller. */
#define DEVICE_LINKS_MAX 1024
#define DEVICE_READS_MAX 16
/* What one RDMA read or write moves at most: bounds the time that a link's sends wait behind it. */
#define DEVICE_MOVE_BYTES (64u << 20)

/* Runs while a port is down, as long as the adapter would try to send. */
static void device_start_port_timer(struct verbs_device *d)
{
	int64_t ms = d->port_down ? settings_int(d->verbs->env.settings, SETTING_VERBS_TIMEOUT_MS) : 0;
	struct itimerspec t = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * CLOCK_NS_PER_MS}};

	if (timerfd_settime(d->port_fd, 0, &t, NULL) < 0)
		log_warn(d->verbs->env.log, "verbs: timerfd_settime: %s", strerror(errno));
}

/* Who only receives would never learn from the adapter that nothing can come any more. */
static void device_on_port_timer(void *arg)
{
	struct verbs_device *d = arg;
	struct verbs *v = d->verbs;
	uint64_t n;

	if (read(d->port_fd, &n, sizeof(n)) < 0 || !d->port_down)
		return;
	for (uint32_t i = 0; i < v->link_count; i++) {
		struct verbs_link *l = v->links[i];

		if (l && l->peer && l->device == d && v->locals[l->peer->local].port == d->port_down)
			peer_end(l->peer, -ENETDOWN, "rank %d cannot be reached: %s port %u is down: is the link up (ibv_devinfo, ip link)?",
				 l->peer->rank, d->context->device->name, d->port_down);
	}
}

static void device_on_event(struct verbs_device *d, struct ibv_async_event *e)
{
	struct verbs *v = d->verbs;
	const char *name = d->context->device->name;
	struct verbs_link *l;

	switch ((int)e->event_type) {
	case IBV_EVENT_COMM_EST:
		l = link_of_qpn(d, e->element.qp->qp_num);
		if (l && l->id)
			v->api->notify(l->id, e->event_type);
		return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		l = link_of_qpn(d, e->element.qp->qp_num);
		if (l && l->peer)
			peer_end(l->peer, -EIO, "%s: %s", name, event_text(e->event_type));
		return;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
		d->broken = true;
		for (uint32_t i = 0; i < v->link_count; i++) {
			l = v->links[i];
			if (l && l->peer && l->device == d)
				peer_end(l->peer, -EIO, "%s: %s", name, event_text(e->event_type));
		}
		return;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		if (e->event_type == IBV_EVENT_PORT_ERR)
			d->port_down = (uint8_t)e->element.port_num;
		else if (d->port_down == e->element.port_num)
			d->port_down = 0;
		device_start_port_timer(d);
		log_warn(v->env.log, "verbs: %s port %d: %s", name, e->element.port_num, event_text(e->event_type));
		return;
	default: /* path migration, limits: of no meaning here; the list grows with the library */
		log_debug(v->env.log, "verbs: %s: event %d: %s", name, e->event_type, event_text(e->event_type));
		return;
	}
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

/* Somebody slept: the monitor polls and rings the core's bell after this. */
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
	d->armed = d->verbs->api->req_notify_cq(d->cq, 0) == 0;
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

static uint32_t device_min(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static int device_make_queues(struct verbs_device *d, const struct ibv_device_attr *attr)
{
	struct verbs *v = d->verbs;
	uint64_t links = device_min((uint64_t)v->env.size, DEVICE_LINKS_MAX);
	struct ibv_srq_init_attr srq = {.attr = {.max_sge = 1}};

	d->cq_room = (int)device_min((2 * v->slots + d->reads_out + VERBS_WRITES_MAX + 1) * links, (uint64_t)attr->max_cqe);
	d->channel = v->api->create_comp_channel(d->context);
	if (!d->channel)
		return error_sys(-errno, "no completion channel");
	d->cq = v->api->create_cq(d->context, d->cq_room, d, d->channel, 0);
	if (!d->cq)
		return error_sys(-errno, "no completion queue of %d entries", d->cq_room);
	if (!settings_int(v->env.settings, SETTING_VERBS_SRQ) || attr->max_srq <= 0)
		return 0;
	srq.attr.max_wr = device_min(v->slots * links, (uint64_t)attr->max_srq_wr);
	d->srq = v->api->create_srq(d->pd, &srq);
	if (!d->srq) {
		log_info(v->env.log, "verbs: %s: no shared receive queue (%s): receives are posted per connection",
			 d->context->device->name, strerror(errno));
		return 0;
	}
	d->srq_room = device_min(v->slots * links, srq.attr.max_wr);
	d->srq_slab_room = 8 * (uint32_t)links;
	d->srq_slabs = calloc(d->srq_slab_room, sizeof(*d->srq_slabs));
	return d->srq_slabs ? 0 : error_set(-ENOMEM, "no memory for a device");
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
	d->max_move = DEVICE_MOVE_BYTES;
	if (v->api->query_port(d->context, 1, &port) == 0 && port.max_msg_sz && port.max_msg_sz < d->max_move)
		d->max_move = port.max_msg_sz;
	d->pd = v->api->alloc_pd(d->context);
	if (!d->pd)
		return error_sys(-errno, "no protection domain");
	d->regs.pd = d->pd;
	d->regs.len_max = attr.max_mr_size;
	d->regs.always = IBV_ACCESS_RELAXED_ORDERING; /* the kernel drops it where the adapter has it not */
	device_choose_paging(d);
	rc = device_make_queues(d, &attr);
	if (rc == 0)
		rc = device_watch(d);
	return rc;
}

struct verbs_device *device_get(struct verbs *v, struct ibv_context *context)
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
	d->regs.api = v->api;
	d->regs.bytes_max = v->register_max;
	d->regs.ranges = &v->ranges;
	atomic_flag_clear(&d->stash_busy);
	rc = device_init(d);
	if (rc < 0) {
		error_prefix(rc, "RDMA device %s", context->device->name);
		device_close(d);
		return NULL;
	}
	atomic_store(&d->next, atomic_load(&v->devices));
	atomic_store(&v->devices, d);
	log_info(v->env.log, "verbs: %s opened: %s, %s, %u reads at a time", context->device->name,
		 d->iwarp ? "iWARP" : "InfiniBand or RoCE", d->srq ? "shared receive queue" : "receives per connection",
		 d->reads_out);
	return d;
}

void device_close(struct verbs_device *d)
{
	const struct verbs_provider *api = d->verbs->api;
	const struct transport_watch *w = &d->verbs->env.watch;

	regcache_close(&d->regs);
	w->remove(w->monitor, d->context->async_fd);
	if (d->port_fd >= 0) {
		w->remove(w->monitor, d->port_fd);
		close(d->port_fd);
	}
	if (d->srq)
		api->destroy_srq(d->srq);
	for (uint32_t i = 0; i < d->srq_slab_count; i++)
		slab_close(&d->srq_slabs[i], api);
	free(d->srq_slabs);
	if (d->cq)
		api->destroy_cq(d->cq);
	if (d->channel) {
		w->remove(w->monitor, d->channel->fd);
		api->destroy_comp_channel(d->channel);
	}
	if (d->pd)
		api->dealloc_pd(d->pd);
	free(d);
}

/* One more slab of receives in the SRQ. */
static int device_grow_srq(struct verbs_device *d, uint32_t count)
{
	struct verbs_slab *s = &d->srq_slabs[d->srq_slab_count];
	int rc;

	if (d->srq_slab_count == d->srq_slab_room)
		return error_set(-ENOSPC, "too many connections came and went on %s", d->context->device->name);
	rc = slab_open(s, d, count, d->verbs->slot_bytes);
	if (rc < 0)
		return rc;
	d->srq_slab_count++;
	for (uint32_t i = 0; i < count; i++) {
		rc = pool_post_receive(d, NULL, (d->srq_slab_count - 1) << 16 | i);
		if (rc < 0)
			return rc;
		d->srq_posted++;
	}
	return 0;
}

int device_take_room(struct verbs_device *d, uint32_t entries, uint32_t *receives)
{
	uint32_t want = *receives, spare = d->srq_posted - d->srq_promised;

	if (d->broken)
		return error_set(-EIO, "the RDMA device %s has failed", d->context->device->name);
	if (d->cq_used + (int)entries > d->cq_room)
		return error_set(-ENOSPC, "the completion queue of %s has no room for another connection: lower verbs_slots",
				 d->context->device->name);
	if (d->srq) {
		int rc = 0;

		if (want > spare && d->srq_posted + want - spare > d->srq_room)
			want = spare + (d->srq_room - d->srq_posted);
		if (want < 4)
			return error_set(-ENOSPC, "the shared receive queue of %s is full: set verbs_srq=0", d->context->device->name);
		if (want > spare)
			rc = device_grow_srq(d, want - spare);
		if (rc < 0)
			return rc;
		*receives = want;
		d->srq_promised += want;
	}
	d->cq_used += (int)entries;
	return 0;
}

void device_give_room(struct verbs_device *d, uint32_t entries, uint32_t receives)
{
	d->cq_used -= (int)entries;
	if (d->srq)
		d->srq_promised -= receives;
}

static const char *device_link_layer(const struct ibv_context *c, const struct ibv_port_attr *p)
{
	if (c->device->transport_type == IBV_TRANSPORT_IWARP)
		return "iWARP";
	return p->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

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
		at += (size_t)snprintf(out + at, size - at, "  %s:%u: %s, %s\n", dev->name, i, device_link_layer(c, &p),
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
