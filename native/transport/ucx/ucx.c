/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/ucx/ucx_library.h"
#include "transport/ucx/ucx_packet.h"
#include "transport/ucx/ucx_peer.h"
#include "transport/ucx/ucx_receive.h"
#include "transport/ucx/ucx_worker.h"

/* Polls without an event after which a spinning thread polls at one look in so many only: a poll is a system call, and other
 * transports may be waited for. */
#define UCX_QUIET 2000u
#define UCX_QUIET_LOOKS 8u

/* --- life --- */

/* The gate is open for one event. */
static void ucx_on_event(void *ucx)
{
	struct ucx *u = ucx;
	struct epoll_event ev;

	while (epoll_wait(u->gate, &ev, 1, 0) < 0 && errno == EINTR)
		;
	u->armed = false;
}

static int ucx_open_gate(struct ucx *u)
{
	struct epoll_event ev = {.events = EPOLLONESHOT};

	u->gate = epoll_create1(EPOLL_CLOEXEC);
	if (u->gate < 0 || epoll_ctl(u->gate, EPOLL_CTL_ADD, u->efd, &ev) < 0)
		return error_sys(-errno, "epoll");
	return u->env.watch.add(u->env.watch.monitor, u->gate, ucx_on_event, u);
}

static int ucx_start(struct ucx *u)
{
	int rc = ucx_worker_open(u);

	if (rc == 0)
		rc = work_open(&u->work, &u->env.watch, ucx_peer_on_work, u);
	if (rc == 0)
		rc = heartbeat_open(&u->heartbeat, &u->env.watch, u->timeout_ms, ucx_receive_tick, u);
	if (rc == 0)
		rc = ucx_open_gate(u);
	return rc;
}

/* No endpoint is left. */
static void ucx_stop(struct ucx *u)
{
	if (u->gate >= 0) {
		u->env.watch.remove(u->env.watch.monitor, u->gate);
		close(u->gate);
	}
	u->gate = -1;
	heartbeat_close(&u->heartbeat);
	work_close(&u->work);
	ucx_worker_close(u);
}

/* All packets that peers may have with the library fit into the memory for them. */
static void ucx_fit_packets(struct ucx *u)
{
	uint64_t peers = u->env.size > 1 ? (uint64_t)u->env.size - 1 : 1;

	u->payload_max = UCX_PAYLOAD_MAX;
	while (u->payload_max / 2 >= UCX_PAYLOAD_MIN && UCX_LARGE_LEAST * u->payload_max * peers > UCX_LARGE_BYTES)
		u->payload_max /= 2;
	u->large_slots = UCX_LARGE_SLOTS;
	while (u->large_slots > UCX_LARGE_LEAST && u->large_slots * u->payload_max * peers > UCX_LARGE_BYTES)
		u->large_slots /= 2;
}

static int ucx_open(struct transport **out, const struct transport_env *env)
{
	struct ucx *u = calloc(1, sizeof(*u));
	char digits[17] = "";
	int rc;

	if (!u)
		return error_set(-ENOMEM, "no memory for the transport ucx");
	u->base.ops = &transport_ucx_ops;
	u->env = *env;
	u->api = env->test ? env->test : &u->library;
	u->gate = u->efd = u->work.fd = u->heartbeat.fd = -1;
	u->timeout_ms = settings_int(env->settings, SETTING_UCX_TIMEOUT_MS);
	memcpy(digits, env->job_id, strnlen(env->job_id, sizeof(digits) - 1));
	u->job = strtoull(digits, NULL, 16);
	ucx_fit_packets(u);
	rc = ucx_start(u);
	if (rc == -ENOMEM) {
		ucx_stop(u);
		free(u);
		return rc;
	}
	if (rc < 0) { /* open all the same, and it reaches no peer */
		log_info(env->log, "ucx: not used: %s", error_text());
		u->unusable = strdup(error_text());
		ucx_stop(u);
	}
	*out = &u->base;
	return 0;
}

static int ucx_address(struct transport *t, void *out, size_t size)
{
	const struct ucx *u = ucx_of(t);

	if (!u->worker)
		return 0;
	if (UCX_ADDRESS_MAGIC_BYTES + u->address_bytes > size)
		return error_set(-ENOBUFS, "UCX's address has %zu bytes: let ucx_net_devices name fewer devices", u->address_bytes);
	memcpy(out, UCX_ADDRESS_MAGIC, UCX_ADDRESS_MAGIC_BYTES);
	memcpy((char *)out + UCX_ADDRESS_MAGIC_BYTES, u->address, u->address_bytes);
	return (int)(UCX_ADDRESS_MAGIC_BYTES + u->address_bytes);
}

static int ucx_attach(struct transport *t, const struct transport_peer_info *peers)
{
	struct ucx *u = ucx_of(t);

	u->peers = calloc((size_t)u->env.size, sizeof(*u->peers));
	if (!u->peers)
		return error_set(-ENOMEM, "no memory for %d ranks", u->env.size);
	for (int r = 0; r < u->env.size; r++) {
		struct ucx_peer *p = &u->peers[r];
		const char *address = peers[r].address;

		p->ucx = u;
		p->rank = r;
		if (!u->worker || r == u->env.rank || peers[r].address_bytes <= UCX_ADDRESS_MAGIC_BYTES ||
		    memcmp(address, UCX_ADDRESS_MAGIC, UCX_ADDRESS_MAGIC_BYTES) != 0)
			continue;
		p->address_bytes = peers[r].address_bytes - UCX_ADDRESS_MAGIC_BYTES;
		p->address = malloc(p->address_bytes);
		if (!p->address)
			return error_set(-ENOMEM, "no memory for the address of rank %d", r);
		memcpy(p->address, address + UCX_ADDRESS_MAGIC_BYTES, p->address_bytes);
	}
	u->work.single = false; /* other threads come */
	return 0;
}

/* Endpoints with nothing under way close in order, so that what was sent last (LEAVE) arrives. */
static void ucx_close_endpoints(struct ucx *u)
{
	int64_t until = clock_now_ns() + UCX_CLOSE_MS * CLOCK_NS_PER_MS;
	struct timespec pause = {0, 100 * CLOCK_NS_PER_US};

	for (int r = 0; u->peers && r < u->env.size; r++) {
		struct ucx_peer *p = &u->peers[r];
		bool busy = p->failed || p->state != UCX_UP || p->in_flight[0] || p->in_flight[1] ||
			    (int32_t)(p->acked - p->number_core) < 0;

		p->state = UCX_DOWN;
		if (p->ep)
			ucx_peer_close_endpoint(p, busy);
	}
	while (u->worker && u->closing_count > 0 && clock_now_ns() < until) {
		if (u->api->worker_progress(u->worker) == 0)
			nanosleep(&pause, NULL);
	}
}

static void ucx_close(struct transport *t)
{
	struct ucx *u = ucx_of(t);

	if (!u)
		return;
	u->work.single = true;
	ucx_close_endpoints(u);
	ucx_stop(u);
	ucx_packet_free_all(u);
	for (int r = 0; u->peers && r < u->env.size; r++) {
		order_free(&u->peers[r].order);
		free(u->peers[r].address);
		free(u->peers[r].end_text);
	}
	free(u->peers);
	free(u->unusable);
	free(u);
}

static void ucx_leave(struct transport *t)
{
	struct ucx *u = ucx_of(t);

	u->leaving = true;
	for (int r = 0; u->peers && !u->outside && r < u->env.size; r++) {
		if (u->peers[r].state == UCX_UP && !u->peers[r].failed)
			ucx_packet_own(&u->peers[r], UCX_OWN_LEAVE);
	}
}

/* Closing a socket with unread bytes in it resets the connection and may destroy what is still on its way to the peer. So the peer
 * acknowledges what it has. */
static bool ucx_drained(struct transport *t)
{
	struct ucx *u = ucx_of(t);
	bool all = !u->outside && !u->notes;

	for (int r = 0; all && u->peers && r < u->env.size; r++) {
		struct ucx_peer *p = &u->peers[r];

		if (p->state != UCX_UP || p->failed || p->left || (int32_t)(p->acked - p->number_core) >= 0)
			continue;
		all = false;
		if (p->number_flushed != p->number_core && ucx_packet_own(p, UCX_OWN_FLUSH))
			p->number_flushed = p->number_core;
	}
	return all;
}

static bool ucx_awaits(const struct transport *t, int peer)
{
	const struct ucx *u = (const struct ucx *)t;

	return u->peers && (u->peers[peer].state == UCX_UP || u->peers[peer].state == UCX_ENDING);
}

static bool ucx_reaches(const struct transport *t, int peer)
{
	const struct ucx *u = (const struct ucx *)t;

	return u->peers && u->peers[peer].address;
}

static void ucx_use(struct transport *t, int peer)
{
	struct ucx *u = ucx_of(t);

	(void)peer;
	if (u->used++ == 0 && heartbeat_start(&u->heartbeat, u->timeout_ms) < 0)
		log_warn(u->env.log, "ucx: silent peers are not noticed: %s", error_text());
}

static void ucx_forget(struct transport *t, int peer)
{
	struct ucx *u = ucx_of(t);

	if (u->peers)
		ucx_peer_forget(&u->peers[peer]);
}

/* --- packets --- */

static size_t ucx_payload_max(const struct transport *t, int peer)
{
	(void)peer;
	return ((const struct ucx *)t)->payload_max;
}

static int ucx_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot)
{
	struct ucx *u = ucx_of(t);
	struct ucx_peer *p = &u->peers[peer];
	struct ucx_slot *s;
	int rc;

	if (p->state == UCX_DOWN)
		return error_set(-ECONNRESET, "%s", p->end_text ? p->end_text : "the connection was closed");
	if (p->state == UCX_IDLE)
		ucx_peer_connect(p);
	if (u->outside || p->state != UCX_UP || p->failed)
		return -EAGAIN;
	rc = ucx_packet_reserve(p, len, &s);
	if (rc < 0)
		return rc;
	slot->hdr = &s->head.hdr;
	slot->payload = s->payload;
	slot->private = (uint64_t)(uintptr_t)s;
	return 0;
}

static void ucx_commit(struct transport *t, int peer, struct transport_slot *slot)
{
	struct ucx *u = ucx_of(t);

	ucx_packet_send(&u->peers[peer], (struct ucx_slot *)(uintptr_t)slot->private, true);
}

static void ucx_discard(struct transport *t, int peer, struct transport_slot *slot)
{
	(void)peer;
	ucx_packet_discard(ucx_of(t), (struct ucx_slot *)(uintptr_t)slot->private);
}

static int ucx_poll(struct transport *t, int budget)
{
	struct ucx *u = ucx_of(t);
	int events;

	if (u->used == 0 || u->outside)
		return 0;
	atomic_store_explicit(&u->news, false, memory_order_relaxed);
	events = ucx_receive_poll(u, budget);
	if (events > 0)
		atomic_store_explicit(&u->quiet, 0, memory_order_relaxed);
	else if (atomic_load_explicit(&u->quiet, memory_order_relaxed) < UCX_QUIET)
		atomic_fetch_add_explicit(&u->quiet, 1, memory_order_relaxed);
	return events;
}

/* There is no look without the lock: a thread that spins polls. */
static bool ucx_ready(const struct transport *t)
{
	struct ucx *u = (struct ucx *)(uintptr_t)t;

	if (u->used == 0)
		return false;
	if (atomic_load_explicit(&u->news, memory_order_relaxed))
		return true;
	if (atomic_load_explicit(&u->sleeping, memory_order_relaxed))
		return false;
	if (atomic_load_explicit(&u->quiet, memory_order_relaxed) < UCX_QUIET)
		return true;
	return atomic_fetch_add_explicit(&u->looks, 1, memory_order_relaxed) % UCX_QUIET_LOOKS == 0;
}

/* A get over TCP would be made of packets; the core's pipeline of packets is faster. */
static bool ucx_prefers_get(const struct transport *t, int peer, size_t bytes)
{
	(void)t;
	(void)peer;
	(void)bytes;
	return false;
}

/* --- sleeping --- */

/* UCX's descriptor stays readable for as long as it is not armed, so it stands behind a gate, which is open for one event.  While the
 * monitor thread is inside UCX it is itself the one that wakes, when it comes back. */
static void ucx_arm(struct transport *t)
{
	struct ucx *u = ucx_of(t);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};

	if (u->used == 0)
		return;
	atomic_store(&u->sleeping, true);
	if (u->armed || u->outside)
		return;
	u->armed = u->api->worker_arm(u->worker) == UCX_OK && epoll_ctl(u->gate, EPOLL_CTL_MOD, u->efd, &ev) == 0;
	atomic_store(&u->news, !u->armed); /* then nobody may sleep */
}

static void ucx_disarm(struct transport *t)
{
	atomic_store(&ucx_of(t)->sleeping, false);
}

static void ucx_wake(struct transport *t, void *doorbell, void *flag, bool urgent)
{
	(void)t; /* the network wakes, not we */
	(void)doorbell;
	(void)flag;
	(void)urgent;
}

static void ucx_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct ucx *u = (const struct ucx *)t;
	const struct ucx_peer *p;
	uint64_t endpoints = 0, early = 0;

	if (!u->peers)
		return;
	if (peer >= 0) {
		p = &u->peers[peer];
		add(arg, "ucx_packets_out", p->packets_out);
		add(arg, "ucx_packets_in", p->packets_in);
		add(arg, "ucx_full", p->full_count);
		add(arg, "ucx_heartbeats", p->beats);
		return;
	}
	for (int r = 0; r < u->env.size; r++) {
		endpoints += u->peers[r].ep != NULL;
		early += u->peers[r].order.early_count;
	}
	add(arg, "ucx_endpoints", endpoints);
	add(arg, "ucx_early_packets", early);
	add(arg, "ucx_foreign_packets", u->foreign_count);
	add(arg, "ucx_packet_buffers", (uint64_t)u->slot_count[0] + u->slot_count[1]);
}

const struct transport_ops transport_ucx_ops = {
	.name = "ucx",
	.piece_min = UCX_PAYLOAD_MAX, /* a packet is two system calls */
	.costly = true,
	.describe = ucx_library_describe,
	.open = ucx_open,
	.address = ucx_address,
	.attach = ucx_attach,
	.close = ucx_close,
	.drained = ucx_drained,
	.awaits = ucx_awaits,
	.leave = ucx_leave,
	.reaches = ucx_reaches,
	.use = ucx_use,
	.payload_max = ucx_payload_max,
	.reserve = ucx_reserve,
	.commit = ucx_commit,
	.discard = ucx_discard,
	.poll = ucx_poll,
	.ready = ucx_ready,
	.arm = ucx_arm,
	.disarm = ucx_disarm,
	.wake = ucx_wake,
	.prefers_get = ucx_prefers_get,
	.counters = ucx_counters,
	.forget = ucx_forget,
};
