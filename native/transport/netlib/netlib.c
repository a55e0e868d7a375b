/* SPDX-License-Identifier: MIT */
#include "transport/netlib/netlib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/netlib/netlib_packet.h"
#include "transport/netlib/netlib_peer.h"
#include "transport/netlib/netlib_receive.h"

/* Polls without an event after which a spinning thread polls at one look in so many only: a poll is a system call, and other
 * transports may be waited for. */
#define NETLIB_QUIET 2000u
#define NETLIB_QUIET_LOOKS 8u

/* Wake-ups in vain, one after the other, after which the next one is awaited with the gate closed: for so long at first, then twice as long
 * each time. */
#define NETLIB_VAIN 4u
#define NETLIB_PAUSE_NS (20 * CLOCK_NS_PER_US)
#define NETLIB_PAUSE_DOUBLINGS 6u

/* --- life --- */

/* The gate is open for one event. The next poll finds something, or the event was in vain. */
static void netlib_on_event(void *netlib)
{
	struct netlib *f = netlib;
	struct epoll_event ev[2];

	while (epoll_wait(f->gate, ev, 2, 0) < 0 && errno == EINTR)
		;
	f->armed = false;
	if (f->vain < NETLIB_VAIN + NETLIB_PAUSE_DOUBLINGS)
		f->vain++;
}

/* At the gate, one of the two descriptors is open for one event, or closed. */
static int netlib_gate_set(const struct netlib *f, int operation, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events | EPOLLONESHOT};

	return fd >= 0 && epoll_ctl(f->gate, operation, fd, &ev) < 0 ? -errno : 0;
}

static int netlib_open_gate(struct netlib *f)
{
	int rc;

	f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (f->timer < 0)
		return error_sys(-errno, "timerfd_create");
	f->gate = epoll_create1(EPOLL_CLOEXEC);
	rc = f->gate < 0 ? -errno : netlib_gate_set(f, EPOLL_CTL_ADD, f->fd, 0);
	if (rc == 0)
		rc = netlib_gate_set(f, EPOLL_CTL_ADD, f->timer, 0);
	if (rc < 0)
		return error_sys(rc, "epoll");
	return f->env.watch.add(f->env.watch.monitor, f->gate, netlib_on_event, f);
}

static int netlib_start(struct netlib *f)
{
	int rc = f->ops->open(f);

	if (rc == 0)
		rc = work_open(&f->work, &f->env.watch, netlib_peer_on_work, f);
	if (rc == 0)
		rc = heartbeat_open(&f->heartbeat, &f->env.watch, f->timeout_ms, netlib_receive_tick, f);
	if (rc == 0)
		rc = netlib_open_gate(f);
	return rc;
}

/* No connection is left. */
static void netlib_stop(struct netlib *f)
{
	if (f->gate >= 0) {
		f->env.watch.remove(f->env.watch.monitor, f->gate);
		close(f->gate);
	}
	if (f->timer >= 0)
		close(f->timer);
	f->gate = f->timer = -1;
	heartbeat_close(&f->heartbeat);
	work_close(&f->work);
	f->ops->close(f);
	netlib_packet_free_all(f);
	f->address = NULL;
}

void netlib_fit_packets(struct netlib *f, size_t payload_max)
{
	uint64_t peers = f->env.size > 1 ? (uint64_t)f->env.size - 1 : 1;

	f->payload_max = payload_max;
	while (f->payload_max / 2 >= NETLIB_PAYLOAD_MIN && NETLIB_LARGE_LEAST * f->payload_max * peers > NETLIB_LARGE_BYTES)
		f->payload_max /= 2;
	f->large_slots = NETLIB_LARGE_LEAST;
	while (2 * f->large_slots * f->payload_max <= NETLIB_PEER_BYTES &&
	       2 * f->large_slots * f->payload_max * peers <= NETLIB_LARGE_BYTES)
		f->large_slots *= 2;
}

int netlib_open(struct netlib *f, const struct transport_env *env, int64_t timeout_ms, struct transport **out)
{
	char digits[17] = "";
	int rc;

	f->env = *env;
	f->gate = f->fd = f->timer = f->work.fd = f->heartbeat.fd = -1;
	f->timeout_ms = timeout_ms;
	memcpy(digits, env->job_id, strnlen(env->job_id, sizeof(digits) - 1));
	f->job = strtoull(digits, NULL, 16);
	rc = netlib_start(f);
	if (rc == -ENOMEM) {
		netlib_stop(f);
		free(f);
		return rc;
	}
	if (rc < 0) { /* open all the same, and it reaches no peer */
		log_info(env->log, "%s: not used: %s", f->base.ops->name, error_text());
		netlib_stop(f);
	}
	*out = &f->base;
	return 0;
}

int netlib_address(struct transport *t, void *out, size_t size)
{
	const struct netlib *f = netlib_of(t);

	if (!f->address)
		return 0;
	if (NETLIB_MAGIC_BYTES + f->address_bytes > size)
		return error_set(-ENOBUFS, "%s's address has %zu bytes, room is for %zu: let it use fewer devices (ibvdev.conf(5))",
				 f->ops->product, f->address_bytes, size);
	memcpy(out, f->ops->magic, NETLIB_MAGIC_BYTES);
	memcpy((char *)out + NETLIB_MAGIC_BYTES, f->address, f->address_bytes);
	return (int)(NETLIB_MAGIC_BYTES + f->address_bytes);
}

int netlib_attach(struct transport *t, const struct transport_peer_info *peers)
{
	struct netlib *f = netlib_of(t);

	f->peers = calloc((size_t)f->env.size, sizeof(*f->peers));
	if (!f->peers)
		return error_set(-ENOMEM, "no memory for %d ranks", f->env.size);
	for (int r = 0; r < f->env.size; r++) {
		struct netlib_peer *p = &f->peers[r];
		const char *address = peers[r].address;

		p->netlib = f;
		p->rank = r;
		if (!f->address || r == f->env.rank || peers[r].address_bytes <= NETLIB_MAGIC_BYTES ||
		    memcmp(address, f->ops->magic, NETLIB_MAGIC_BYTES) != 0)
			continue;
		address += NETLIB_MAGIC_BYTES;
		p->address_bytes = peers[r].address_bytes - NETLIB_MAGIC_BYTES;
		if (f->ops->matches && !f->ops->matches(f, address, p->address_bytes))
			continue;
		p->address = malloc(p->address_bytes);
		if (!p->address)
			return error_set(-ENOMEM, "no memory for the address of rank %d", r);
		memcpy(p->address, address, p->address_bytes);
	}
	f->work.single = false; /* other threads come */
	return 0;
}

/* Connections with nothing under way close in order, so that what was sent last (LEAVE) arrives. */
static void netlib_close_connections(struct netlib *f)
{
	int64_t until = clock_now_ns() + NETLIB_CLOSE_MS * CLOCK_NS_PER_MS;
	struct timespec pause = {0, 100 * CLOCK_NS_PER_US};

	for (int r = 0; f->peers && r < f->env.size; r++) {
		struct netlib_peer *p = &f->peers[r];
		bool busy = p->in_flight[0] || p->in_flight[1] || (int32_t)(p->acked - p->number_core) < 0;

		p->lingers = !p->failed && p->state == NETLIB_UP;
		p->state = NETLIB_DOWN;
		if (p->connected)
			netlib_peer_disconnect(p, busy || !p->lingers);
	}
	while (f->address && f->ops->closing(f) && clock_now_ns() < until) {
		netlib_packet_push(f);
		if (!f->ops->progress(f, TRANSPORT_BUDGET))
			nanosleep(&pause, NULL);
	}
}

void netlib_close(struct transport *t)
{
	struct netlib *f = netlib_of(t);

	if (!f)
		return;
	f->work.single = true;
	netlib_close_connections(f);
	netlib_stop(f);
	for (int r = 0; f->peers && r < f->env.size; r++) {
		order_free(&f->peers[r].order);
		free(f->peers[r].address);
		free(f->peers[r].end_text);
	}
	free(f->peers);
	free(f);
}

void netlib_leave(struct transport *t)
{
	struct netlib *f = netlib_of(t);

	for (int r = 0; f->peers && !f->outside && r < f->env.size; r++) {
		if (f->peers[r].state == NETLIB_UP && !f->peers[r].failed)
			netlib_packet_own(&f->peers[r], NETLIB_OWN_LEAVE);
	}
}

/* Closing a socket with unread bytes in it resets the connection and may destroy what is still on its way to the peer. So the peer
 * acknowledges what it has. */
bool netlib_drained(struct transport *t)
{
	struct netlib *f = netlib_of(t);
	bool all = !f->outside && !f->notes;

	for (int r = 0; all && f->peers && r < f->env.size; r++) {
		struct netlib_peer *p = &f->peers[r];

		if (p->state != NETLIB_UP || p->failed || p->left || (int32_t)(p->acked - p->number_core) >= 0)
			continue;
		all = false;
		if (p->number_flushed != p->number_core && netlib_packet_own(p, NETLIB_OWN_FLUSH))
			p->number_flushed = p->number_core;
	}
	return all;
}

bool netlib_awaits(const struct transport *t, int peer)
{
	const struct netlib *f = (const struct netlib *)t;

	return f->peers && (f->peers[peer].state == NETLIB_UP || f->peers[peer].state == NETLIB_ENDING);
}

bool netlib_reaches(const struct transport *t, int peer)
{
	const struct netlib *f = (const struct netlib *)t;

	return f->peers && f->peers[peer].address;
}

void netlib_use(struct transport *t, int peer)
{
	struct netlib *f = netlib_of(t);

	(void)peer;
	if (f->used++ == 0 && heartbeat_start(&f->heartbeat, f->timeout_ms) < 0)
		log_warn(f->env.log, "%s: silent peers are not noticed: %s", f->base.ops->name, error_text());
}

void netlib_forget(struct transport *t, int peer)
{
	struct netlib *f = netlib_of(t);

	if (f->peers)
		netlib_peer_forget(&f->peers[peer]);
}

/* --- packets --- */

size_t netlib_payload_max(const struct transport *t, int peer)
{
	(void)peer;
	return ((const struct netlib *)t)->payload_max;
}

int netlib_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot)
{
	struct netlib *f = netlib_of(t);
	struct netlib_peer *p = &f->peers[peer];
	struct netlib_slot *s;
	int rc;

	if (p->state == NETLIB_DOWN)
		return error_set(-ECONNRESET, "%s", p->end_text ? p->end_text : "the connection was closed");
	if (p->state == NETLIB_IDLE)
		netlib_peer_connect(p);
	if (f->outside || p->state != NETLIB_UP || p->failed)
		return -EAGAIN;
	rc = netlib_packet_reserve(p, len, &s);
	if (rc < 0)
		return rc;
	slot->hdr = &s->head.hdr;
	slot->payload = s->payload;
	slot->private = (uint64_t)(uintptr_t)s;
	return 0;
}

void netlib_commit(struct transport *t, int peer, struct transport_slot *slot)
{
	struct netlib *f = netlib_of(t);

	netlib_packet_send(&f->peers[peer], (struct netlib_slot *)(uintptr_t)slot->private, true);
}

void netlib_discard(struct transport *t, int peer, struct transport_slot *slot)
{
	(void)peer;
	netlib_packet_discard(netlib_of(t), (struct netlib_slot *)(uintptr_t)slot->private);
}

int netlib_poll(struct transport *t, int budget)
{
	struct netlib *f = netlib_of(t);
	int events;

	if (f->used == 0 || f->outside)
		return 0;
	atomic_store_explicit(&f->news, false, memory_order_relaxed);
	events = netlib_receive_poll(f, budget);
	if (events > 0)
		atomic_store_explicit(&f->quiet, 0, memory_order_relaxed);
	else if (atomic_load_explicit(&f->quiet, memory_order_relaxed) < NETLIB_QUIET)
		atomic_fetch_add_explicit(&f->quiet, 1, memory_order_relaxed);
	return events;
}

/* There is no look without the lock: a thread that spins polls. */
bool netlib_ready(const struct transport *t)
{
	struct netlib *f = (struct netlib *)(uintptr_t)t;

	if (f->used == 0)
		return false;
	if (atomic_load_explicit(&f->news, memory_order_relaxed))
		return true;
	if (atomic_load_explicit(&f->sleeping, memory_order_relaxed))
		return false;
	if (atomic_load_explicit(&f->quiet, memory_order_relaxed) < NETLIB_QUIET)
		return true;
	return atomic_fetch_add_explicit(&f->looks, 1, memory_order_relaxed) % NETLIB_QUIET_LOOKS == 0;
}

/* A get over TCP would be made of packets; the core's pipeline of packets is faster. */
bool netlib_prefers_get(const struct transport *t, int peer, size_t bytes)
{
	(void)t;
	(void)peer;
	(void)bytes;
	return false;
}

/* --- sleeping --- */

/* ns 0: never. */
static int netlib_set_timer(struct netlib *f, int64_t ns)
{
	struct itimerspec once = {.it_value = {.tv_nsec = (long)ns}};

	if (ns == 0 && !f->timer_set)
		return 0;
	if (timerfd_settime(f->timer, 0, &once, NULL) < 0)
		return -errno;
	f->timer_set = ns > 0;
	return netlib_gate_set(f, EPOLL_CTL_MOD, f->timer, ns > 0 ? EPOLLIN : 0);
}

/* The library's descriptor may be readable for as long as a peer does not answer: UCX over TCP waits for room in a socket that has room. A thread
 * that is woken for it each time would keep the processor from that peer, if it runs on this machine. */
static bool netlib_pause(struct netlib *f)
{
	return netlib_gate_set(f, EPOLL_CTL_MOD, f->fd, 0) == 0 && netlib_set_timer(f, NETLIB_PAUSE_NS << (f->vain - NETLIB_VAIN)) == 0;
}

static bool netlib_open_for_event(struct netlib *f)
{
	int64_t timer_ns = 0;

	return f->ops->arm(f, &timer_ns) && netlib_set_timer(f, timer_ns) == 0 && netlib_gate_set(f, EPOLL_CTL_MOD, f->fd, EPOLLIN) == 0;
}

/* The library's descriptor stays readable for as long as it is not armed, so it stands behind a gate, which is open for one event.  While the
 * monitor thread is inside the library it is itself the one that wakes, when it comes back. */
void netlib_arm(struct transport *t)
{
	struct netlib *f = netlib_of(t);
	bool pauses = f->fd >= 0 && f->vain >= NETLIB_VAIN;

	if (f->used == 0)
		return;
	atomic_store(&f->sleeping, true);
	if ((f->armed && (pauses || !f->queued)) || f->outside)
		return;
	f->armed = pauses ? netlib_pause(f) : netlib_open_for_event(f);
	atomic_store(&f->news, !f->armed); /* then nobody may sleep */
}

void netlib_disarm(struct transport *t)
{
	atomic_store(&netlib_of(t)->sleeping, false);
}

void netlib_wake(struct transport *t, void *doorbell, void *flag, bool urgent)
{
	(void)t; /* the network wakes, not we */
	(void)doorbell;
	(void)flag;
	(void)urgent;
}

void netlib_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct netlib *f = (const struct netlib *)t;
	const struct netlib_peer *p;
	uint64_t connections = 0, early = 0;

	if (!f->peers)
		return;
	if (peer >= 0) {
		p = &f->peers[peer];
		add(arg, f->ops->packets_out, p->packets_out);
		add(arg, f->ops->packets_in, p->packets_in);
		add(arg, f->ops->full, p->full_count);
		add(arg, f->ops->heartbeats, p->beats);
		add(arg, f->ops->queued, p->queued_count);
		return;
	}
	for (int r = 0; r < f->env.size; r++) {
		connections += f->peers[r].connected;
		early += f->peers[r].order.early_count;
	}
	add(arg, f->ops->connections, connections);
	add(arg, f->ops->early, early);
	add(arg, f->ops->foreign, f->foreign_count);
	add(arg, f->ops->buffers, (uint64_t)f->slot_count[0] + f->slot_count[1]);
}
