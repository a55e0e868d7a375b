/* SPDX-License-Identifier: MIT */
#include "transport/verbs/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/complete.h"
#include "transport/verbs/gid.h"
#include "transport/verbs/report.h"
#include "transport/verbs/retry.h"
#include "transport/verbs/rkey.h"
#include "transport/verbs/rma.h"
#include "transport/verbs/route.h"
#include "transport/verbs/wireup.h"

#define VERBS_SLOT_MIN 512u
/* Quota of a new connection (receives), if that fits the memory for it, and the fewest with which credit can flow back. */
#define VERBS_FIRST_CREDIT 8u
#define VERBS_LEAST_CREDIT 4u

static struct verbs *verbs_of(struct transport *t)
{
	return (struct verbs *)t;
}

/* --- life --- */

/* 32 hex digits to 16 bytes; anything else, as tests have it, is cut to fit. */
static void verbs_read_job(struct verbs *v)
{
	const char *id = v->env.job_id;

	for (int i = 0; i < 16 && id[0] && id[1]; i++, id += 2) {
		const char pair[3] = {id[0], id[1], '\0'};

		v->job[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
}

/* Where few pages may be locked: half of them for packets, half for messages. */
static void verbs_limit_memory(struct verbs *v)
{
	struct rlimit limit;

	v->buffer_bytes = (uint64_t)settings_int(v->env.settings, SETTING_VERBS_BUFFER_BYTES);
	if (geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return;
	v->register_max = limit.rlim_cur / 2;
	if (v->buffer_bytes > v->register_max)
		v->buffer_bytes = v->register_max;
}

/* Buffers for connections to all peers fit into the memory for packets: half of it holds the receives that each gets at
 * first.  Without a shared receive queue each connection has all its receives from the start. */
static void verbs_fit_buffers(struct verbs *v)
{
	uint64_t peers = v->env.size > 1 ? (uint64_t)v->env.size - 1 : 1, half = v->buffer_bytes / 2;
	uint32_t slots = (uint32_t)settings_int(v->env.settings, SETTING_VERBS_SLOTS);
	uint32_t bytes = (uint32_t)settings_int(v->env.settings, SETTING_VERBS_CHUNK) & ~63u;
	bool shared = settings_int(v->env.settings, SETTING_VERBS_SRQ);

	v->slots = slots;
	v->slot_bytes = bytes;
	v->first_credit = slots < VERBS_FIRST_CREDIT ? slots : VERBS_FIRST_CREDIT;
	while (v->first_credit > VERBS_LEAST_CREDIT && v->first_credit * v->slot_bytes * peers > half)
		v->first_credit /= 2;
	while (v->slot_bytes / 2 >= VERBS_SLOT_MIN && v->first_credit * v->slot_bytes * peers > half)
		v->slot_bytes = v->slot_bytes / 2 & ~63u;
	while (!shared && v->slots > VERBS_LEAST_CREDIT && v->slots * v->slot_bytes * peers > half)
		v->slots /= 2;
	if (v->register_max && (v->slot_bytes < bytes || v->slots < slots))
		device_warn_memory(v, (size_t)(v->first_credit * bytes * peers));
}

/* Which connection method is used here. *tcp; 0 or -errno with text. */
static int verbs_choose_method(struct verbs *v, bool *tcp)
{
	enum { AUTO, CM, TCP } want = (unsigned)settings_int(v->env.settings, SETTING_VERBS_CONNECT);
	int rc = want == TCP ? 0 : v->api->available(true);

	*tcp = want == TCP;
	if (want == TCP || (want == AUTO && rc < 0)) {
		char *why = strdup(error_text());

		rc = v->api->available(false);
		*tcp = rc == 0;
		if (*tcp && want == AUTO)
			log_warn(v->env.log, "verbs: connections are made by TCP wire-up, because: %s", why ? why : "no memory");
		free(why);
	}
	return rc;
}

static void verbs_connect(struct verbs_peer *p)
{
	char text[64];
	int rc = p->verbs->connector->start(p);

	if (rc < 0) {
		error_prefix(rc, "connecting to rank %d at %s", p->rank, route_text(&p->remote, text, sizeof(text)));
		peer_end(p, rc, "%s", error_text());
	}
}

/* Slow work that notes were left for (work.h).  Ends first: they give memory back. */
static void verbs_on_work(void *verbs)
{
	struct verbs *v = verbs;
	bool more = true;

	work_begin(&v->work);
	while (more) {
		struct verbs_peer *p = v->requested;

		more = p || v->condemned;
		while (connection_work(v))
			;
		for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
			while (regcache_work(&d->regs))
				more = true;
			more = device_work(d) || more;
		}
		if (!p)
			continue;
		v->requested = p->next_requested;
		p->requested = false;
		if (p->state == PEER_RESOLVING && !p->conn && p->retry_ns == 0)
			verbs_connect(p);
	}
}

/* Without a usable device the transport is open all the same and reaches no peer. */
static int verbs_start(struct verbs *v)
{
	bool tcp = false;
	int rc = work_open(&v->work, &v->env.watch, verbs_on_work, v);

	if (rc == 0)
		rc = verbs_choose_method(v, &tcp);
	if (rc == 0 && tcp)
		rc = gid_open_devices(v);
	if (rc == 0)
		rc = tcp ? wireup_open(v) : cm_open(v);
	if (rc < 0)
		return rc;
	v->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (v->timer_fd < 0)
		return error_sys(-errno, "timerfd_create");
	rc = route_scan(v, tcp ? wireup_port(v) : 0);
	if (rc == 0 && !tcp)
		rc = retry_open(v);
	if (rc == 0)
		rc = v->env.watch.add(v->env.watch.monitor, v->timer_fd, handshake_on_timer, v);
	return rc;
}

static void verbs_stop(struct verbs *v)
{
	route_close(v);
	wireup_close(v);
	cm_close(v);
	retry_close(v);
	if (v->timer_fd >= 0) {
		v->env.watch.remove(v->env.watch.monitor, v->timer_fd);
		close(v->timer_fd);
	}
	v->timer_fd = -1;
	work_close(&v->work);
}

static int verbs_open(struct transport **out, const struct transport_env *env)
{
	struct verbs *v = calloc(1, sizeof(*v));
	int64_t get_min;
	int rc;

	if (!v)
		return error_set(-ENOMEM, "no memory");
	v->base.ops = &transport_verbs_ops;
	v->env = *env;
	v->timer_fd = v->retry_fd = v->work.fd = -1;
	v->on_freed = rma_on_freed;
	v->api = env->test ? env->test : verbs_provider_real;
	get_min = settings_int(env->settings, SETTING_VERBS_GET_MIN);
	v->get_min = get_min > 0 ? (size_t)get_min : 1;
	v->ranges.count_max = (uint32_t)settings_int(env->settings, SETTING_VERBS_CACHE_ENTRIES);
	v->ranges.bytes_max = (uint64_t)settings_int(env->settings, SETTING_VERBS_CACHE_BYTES);
	v->rendezvous = (enum verbs_rendezvous)settings_int(env->settings, SETTING_VERBS_RENDEZVOUS);
	verbs_read_job(v);
	rc = verbs_start(v);
	if (rc < 0) {
		log_info(env->log, "verbs: not used: %s", error_text());
		v->unusable = strdup(error_text());
		verbs_stop(v);
		gid_close_devices(v);
	} else {
		verbs_limit_memory(v);
		verbs_fit_buffers(v);
	}
	*out = &v->base;
	return 0;
}

static int verbs_address(struct transport *t, void *out, size_t size)
{
	return route_write(verbs_of(t), out, size);
}

static int verbs_attach(struct transport *t, const struct transport_peer_info *peers)
{
	struct verbs *v = verbs_of(t);
	char text[64];

	v->peers = calloc((size_t)v->env.size, sizeof(*v->peers));
	if (!v->peers)
		return error_set(-ENOMEM, "no memory for %d ranks", v->env.size);
	for (int r = 0; r < v->env.size; r++) {
		struct verbs_peer *p = &v->peers[r];

		p->verbs = v;
		p->rank = r;
		p->local = -1;
		if (r == v->env.rank || v->local_count == 0)
			continue;
		if (route_choose(v, p, peers[r].address, peers[r].address_bytes))
			log_debug(v->env.log, "verbs: rank %d at %s through %s", r, route_text(&p->remote, text, sizeof(text)),
				  v->locals[p->local].device);
		else if (peers[r].address_bytes)
			log_info(v->env.log, "verbs: no route from a device of ours to one of rank %d", r);
	}
	v->work.single = false; /* other threads come */
	return 0;
}

static void verbs_close_devices(struct verbs *v)
{
	struct verbs_device *d = atomic_load(&v->devices);

	while (d) {
		struct verbs_device *next = atomic_load(&d->next);

		device_close(d);
		d = next;
	}
}

static void verbs_close(struct transport *t)
{
	struct verbs *v = verbs_of(t);

	if (!v)
		return;
	v->work.single = true;
	rma_close(v);
	for (uint32_t i = 0; i < v->conn_count; i++) {
		if (v->conns[i])
			connection_close(v->conns[i]);
	}
	free(v->conns);
	verbs_stop(v);
	verbs_close_devices(v);
	gid_close_devices(v);
	for (int r = 0; v->peers && r < v->env.size; r++)
		free(v->peers[r].end_text);
	free(v->peers);
	free(v->ranges.range);
	free(v->unusable);
	free(v);
}

static void verbs_leave(struct transport *t)
{
	struct verbs *v = verbs_of(t);

	v->leaving = true;
	for (int r = 0; v->peers && r < v->env.size; r++) {
		if (v->peers[r].state == PEER_UP)
			post_own(v->peers[r].conn, OWN_LEAVE, true);
	}
}

static bool verbs_drained(struct transport *t)
{
	const struct verbs *v = verbs_of(t);
	bool all = !v->condemned && !v->ending;

	for (int r = 0; v->peers && r < v->env.size; r++) {
		if (v->peers[r].state == PEER_UP)
			all = post_drained(v->peers[r].conn) && all;
	}
	return all;
}

/* Over iWARP a completed send has left this host's memory, not more; everywhere the control tree may be faster than the fabric. */
static bool verbs_awaits(const struct transport *t, int peer)
{
	const struct verbs *v = (const struct verbs *)t;
	enum peer_state s = v->peers[peer].state;

	return s == PEER_ACCEPTING || s == PEER_UP || s == PEER_ENDING;
}

static bool verbs_reaches(const struct transport *t, int peer)
{
	const struct verbs *v = (const struct verbs *)t;

	return v->peers && v->peers[peer].local >= 0;
}

static void verbs_forget(struct transport *t, int peer)
{
	peer_forget(&verbs_of(t)->peers[peer]);
}

/* --- packets --- */

static size_t verbs_payload_max(const struct transport *t, int peer)
{
	return ((const struct verbs *)t)->peers[peer].slot_bytes - sizeof(struct wire_hdr);
}

static int verbs_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot)
{
	struct verbs_peer *p = &verbs_of(t)->peers[peer];

	switch (p->state) {
	case PEER_UP: return post_reserve(p->conn, len, slot);
	case PEER_IDLE: peer_request(p); return -EAGAIN;
	case PEER_RESOLVING:
	case PEER_CONNECTING:
	case PEER_AWAITING:
	case PEER_ACCEPTING:
	case PEER_ENDING: /* a later poll reports it */ return -EAGAIN;
	case PEER_DOWN:
	case PEER_STATE_COUNT: break;
	}
	return error_set(-ECONNRESET, "%s", p->end_text ? p->end_text : "the connection was closed");
}

static void verbs_commit(struct transport *t, int peer, struct transport_slot *slot)
{
	struct verbs_peer *p = &verbs_of(t)->peers[peer];

	if (p->state == PEER_UP)
		post_commit(p->conn, slot);
}

static void verbs_discard(struct transport *t, int peer, struct transport_slot *slot)
{
	(void)t; /* nothing was advanced */
	(void)peer;
	(void)slot;
}

static int verbs_poll(struct transport *t, int budget)
{
	return complete_poll(verbs_of(t), budget);
}

static bool verbs_ready(const struct transport *t)
{
	return complete_ready((const struct verbs *)t);
}

static void verbs_arm(struct transport *t)
{
	for (struct verbs_device *d = atomic_load(&verbs_of(t)->devices); d; d = atomic_load(&d->next))
		device_arm(d);
}

static void verbs_disarm(struct transport *t)
{
	(void)t; /* a request for an event cannot be taken back; the monitor discards one too many */
}

static void verbs_wake(struct transport *t, void *doorbell, void *flag, bool urgent)
{
	(void)t; /* adapters wake, not we */
	(void)doorbell;
	(void)flag;
	(void)urgent;
}

static uint32_t *verbs_doorbell(struct transport *t)
{
	(void)t;
	return NULL;
}

/* --- buffers that stay registered --- */

static int verbs_buffer_register(struct transport *t, void *base, size_t bytes)
{
	struct verbs *v = verbs_of(t);

	return v->local_count > 0 ? regcache_range_add(&v->ranges, base, bytes) : 0;
}

static int verbs_buffer_release(struct transport *t, const void *base, size_t bytes)
{
	struct verbs *v = verbs_of(t);
	int rc = regcache_range_remove(&v->ranges, base, bytes);

	for (struct verbs_device *d = atomic_load(&v->devices); rc > 0 && d; d = atomic_load(&d->next)) {
		regcache_drop(&d->regs, base, bytes);
		regcache_drain(&d->regs);
	}
	return rc < 0 ? rc : 0;
}

const struct transport_ops transport_verbs_ops = {
	.name = "verbs",
	.describe = verbs_describe,
	.open = verbs_open,
	.address = verbs_address,
	.attach = verbs_attach,
	.close = verbs_close,
	.drained = verbs_drained,
	.awaits = verbs_awaits,
	.leave = verbs_leave,
	.reaches = verbs_reaches,
	.payload_max = verbs_payload_max,
	.reserve = verbs_reserve,
	.commit = verbs_commit,
	.discard = verbs_discard,
	.poll = verbs_poll,
	.ready = verbs_ready,
	.arm = verbs_arm,
	.disarm = verbs_disarm,
	.wake = verbs_wake,
	.doorbell = verbs_doorbell,
	.pack_rkey = verbs_pack_rkey,
	.release_rkey = verbs_release_rkey,
	.prefers_get = verbs_prefers_get,
	.get = verbs_get,
	.prefers_put = verbs_prefers_put,
	.put = verbs_put,
	.cancel = verbs_cancel,
	.buffer_register = verbs_buffer_register,
	.buffer_release = verbs_buffer_release,
	.forget = verbs_forget,
	.counters = verbs_counters,
};
