/* SPDX-License-Identifier: MIT */
#include "transport/verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/verbs/verbs_state.h"

#define VERBS_SLOT_MIN 512u

static struct verbs *verbs_of(struct transport *t)
{
	return (struct verbs *)t;
}

/* 32 hex digits to 16 bytes; anything else, as tests have it, is cut to fit. */
static void verbs_read_job(struct verbs *v)
{
	const char *id = v->env.job_id;

	for (int i = 0; i < 16 && id[0] && id[1]; i++, id += 2) {
		const char pair[3] = {id[0], id[1], '\0'};

		v->job[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
}

/* Where few pages may be locked: half of them for buffers, shared by all peers to come, half for messages. */
static void verbs_fit_memory(struct verbs *v)
{
	uint64_t links = v->env.size > 1 ? (uint64_t)v->env.size - 1 : 1;
	struct rlimit limit;

	v->slots = (uint32_t)settings_int(v->env.settings, SETTING_VERBS_SLOTS);
	v->slot_bytes = (uint32_t)settings_int(v->env.settings, SETTING_VERBS_CHUNK) & ~63u;
	if (geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return;
	v->register_max = limit.rlim_cur / 2;
	while (v->slot_bytes / 2 >= VERBS_SLOT_MIN && 8 * v->slot_bytes * links > v->register_max)
		v->slot_bytes = v->slot_bytes / 2 & ~63u;
	while (v->slots > 4 && 2 * (uint64_t)v->slots * v->slot_bytes * links > v->register_max)
		v->slots /= 2;
	if (v->slots < (uint32_t)settings_int(v->env.settings, SETTING_VERBS_SLOTS))
		pool_warn_memory(v, 2 * (size_t)links * (size_t)settings_int(v->env.settings, SETTING_VERBS_SLOTS) *
				    (size_t)settings_int(v->env.settings, SETTING_VERBS_CHUNK));
}

/* How connections are to be made here. 0 or -errno with text. */
static int verbs_choose_way(struct verbs *v)
{
	enum { AUTO, CM, TCP } want = (unsigned)settings_int(v->env.settings, SETTING_VERBS_CONNECT);
	int rc = want == TCP ? 0 : v->api->available(true);

	if (want == TCP || (want == AUTO && rc < 0)) {
		char *why = strdup(error_text());

		rc = v->api->available(false);
		v->tcp = rc == 0;
		if (v->tcp && want == AUTO)
			log_warn(v->env.log, "verbs: connections are made by TCP exchange, because: %s", why ? why : "no memory");
		free(why);
	}
	return rc;
}

static int verbs_start_cm(struct verbs *v)
{
	int flags;

	v->events = v->api->create_event_channel();
	if (!v->events)
		return error_sys(-errno, "rdma_create_event_channel");
	flags = fcntl(v->events->fd, F_GETFL);
	if (flags < 0 || fcntl(v->events->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_sys(-errno, "cannot make the event channel non-blocking");
	return v->env.watch.add(v->env.watch.monitor, v->events->fd, connect_on_events, v);
}

/* Without a usable device the transport is open all the same and reaches nobody. */
static int verbs_start(struct verbs *v)
{
	int rc = verbs_choose_way(v);

	if (rc == 0 && v->tcp)
		rc = gid_open_devices(v);
	if (rc == 0)
		rc = v->tcp ? exchange_open_door(v) : verbs_start_cm(v);
	if (rc < 0)
		return rc;
	v->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (v->timer_fd < 0)
		return error_sys(-errno, "timerfd_create");
	rc = route_scan(v);
	if (rc == 0)
		verbs_fit_memory(v);
	if (rc == 0)
		rc = v->env.watch.add(v->env.watch.monitor, v->timer_fd, connect_on_timer, v);
	return rc;
}

static void verbs_stop(struct verbs *v)
{
	route_close(v);
	exchange_close_door(v);
	if (v->events) {
		v->env.watch.remove(v->env.watch.monitor, v->events->fd);
		v->api->destroy_event_channel(v->events);
	}
	v->events = NULL;
	if (v->timer_fd >= 0) {
		v->env.watch.remove(v->env.watch.monitor, v->timer_fd);
		close(v->timer_fd);
	}
	v->timer_fd = -1;
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
	v->timer_fd = -1;
	v->api = env->test ? env->test : &verbs_provider_real;
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
	return 0;
}

static void verbs_attached(struct transport *t)
{
	(void)t; /* the listeners have no names to take away */
}

static void verbs_close(struct transport *t)
{
	struct verbs *v = verbs_of(t);
	struct verbs_device *d;

	if (!v)
		return;
	move_close(v);
	expose_close(v);
	for (uint32_t i = 0; i < v->link_count; i++) {
		struct verbs_link *l = v->links[i];

		if (!l)
			continue;
		if (l->id && l->established && !l->dead)
			v->api->disconnect(l->id);
		link_close(l);
	}
	free(v->links);
	verbs_stop(v);
	d = atomic_load(&v->devices);
	while (d) {
		struct verbs_device *next = atomic_load(&d->next);

		device_close(d);
		d = next;
	}
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
		if (v->peers[r].state == VERBS_UP)
			post_own(v->peers[r].link, &(struct wire_ctl){.id = VERBS_OWN_LEAVE}, true);
	}
}

/* Over iWARP a completed send has left this host's memory, not more; everywhere the star may be faster than the fabric. */
static bool verbs_awaits(const struct transport *t, int peer)
{
	const struct verbs *v = (const struct verbs *)t;
	enum peer_link_state s = v->peers[peer].state;

	return s == VERBS_ANSWERING || s == VERBS_UP || s == VERBS_ENDING;
}

static bool verbs_reaches(const struct transport *t, int peer)
{
	const struct verbs *v = (const struct verbs *)t;

	return v->peers && v->peers[peer].local >= 0;
}

static size_t verbs_payload_max(const struct transport *t, int peer)
{
	return ((const struct verbs *)t)->peers[peer].slot_bytes - sizeof(struct wire_hdr);
}

static void verbs_arm(struct transport *t)
{
	for (struct verbs_device *d = atomic_load(&verbs_of(t)->devices); d; d = atomic_load(&d->next))
		device_arm(d);
}

static void verbs_disarm(struct transport *t)
{
	(void)t; /* a request for an event cannot be taken back; the monitor swallows one too many */
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

static void verbs_forget(struct transport *t, int peer)
{
	struct verbs *v = verbs_of(t);
	struct verbs_peer *p = &v->peers[peer];

	if (p->state == VERBS_DOWN)
		return;
	if (p->link)
		link_kill(p->link);
	peer_set_state(p, VERBS_DOWN);
}

static void verbs_counters(const struct transport *t, int peer,
			   void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct verbs *v = (const struct verbs *)t;
	const struct verbs_peer *p;
	uint64_t qps = 0, bytes = 0, peak = 0, registered = 0, shared = 0, evicted = 0, refused = 0;

	if (!v->peers)
		return;
	if (peer >= 0) {
		p = &v->peers[peer];
		add(arg, "verbs_packets_out", p->packets_out);
		add(arg, "verbs_packets_in", p->packets_in);
		add(arg, "verbs_inline", p->inlined);
		add(arg, "verbs_full", p->full_count);
		add(arg, "verbs_credit_packets", p->credit_packets);
		add(arg, "verbs_reads", p->moves[VERBS_READ]);
		add(arg, "verbs_read_bytes", p->move_bytes[VERBS_READ]);
		add(arg, "verbs_writes", p->moves[VERBS_WRITE]);
		add(arg, "verbs_write_bytes", p->move_bytes[VERBS_WRITE]);
		return;
	}
	for (uint32_t i = 0; i < v->link_count; i++) {
		if (v->links[i] && v->links[i]->qp) {
			qps++;
			bytes += v->links[i]->tx.bytes + v->links[i]->rx.bytes;
		}
	}
	for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		for (uint32_t i = 0; i < d->srq_slab_count; i++)
			bytes += d->srq_slabs[i].bytes;
		peak += d->regs.bytes_peak;
		registered += d->regs.registered_count;
		shared += d->regs.shared_count;
		evicted += d->regs.evicted_count;
		refused += d->regs.refused_count;
	}
	add(arg, "verbs_queue_pairs", qps);
	add(arg, "verbs_buffer_bytes", bytes);
	add(arg, "verbs_registrations", registered);
	add(arg, "verbs_registrations_shared", shared);
	add(arg, "verbs_registrations_evicted", evicted);
	add(arg, "verbs_registrations_refused", refused);
	add(arg, "verbs_registered_peak", peak);
	add(arg, "verbs_buffers_kept", v->ranges.count);
}

/* What the settings come to on this machine, and why. */
static void verbs_describe_choices(const struct settings *settings, const char *no_cm, char *out, size_t size)
{
	static const char *const movers[] = {"the receiver reads, or the sender writes where that is refused", "the receiver reads",
					     "the sender writes"};
	bool tcp = settings_int(settings, SETTING_VERBS_CONNECT) == 2;

	snprintf(out, size, "  connections: %s%s\n  long messages: %s\n  buffers kept registered: %lld, %s bytes\n",
		 tcp	 ? "by TCP exchange, as verbs_connect says"
		 : no_cm ? "by TCP exchange, because: "
			 : "by RDMA CM",
		 !tcp && no_cm ? no_cm : "", movers[settings_int(settings, SETTING_VERBS_RENDEZVOUS)],
		 (long long)settings_int(settings, SETTING_VERBS_CACHE_ENTRIES), settings_text(settings, SETTING_VERBS_CACHE_BYTES));
}

static int verbs_describe(const struct settings *settings, char *out, size_t size)
{
	int cm = verbs_provider_real.available(true), rc;
	char no_cm[256];
	size_t used;

	snprintf(no_cm, sizeof(no_cm), "%s", error_text());
	rc = cm == 0 || settings_int(settings, SETTING_VERBS_CONNECT) == 1 ? cm : verbs_provider_real.available(false);
	if (rc < 0)
		return rc;
	used = device_describe(&verbs_provider_real, out, size);
	if (used == 0)
		return error_set(-ENODEV, "libibverbs finds no device: is its driver library (ibverbs-providers) installed?");
	verbs_describe_choices(settings, cm < 0 ? no_cm : NULL, out + used, size - used);
	return 0;
}

const struct transport_ops transport_verbs_ops = {
	.name = "verbs",
	.describe = verbs_describe,
	.open = verbs_open,
	.address = verbs_address,
	.attach = verbs_attach,
	.attached = verbs_attached,
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
