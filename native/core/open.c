/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/pool.h"
#include "core/agree.h"
#include "core/background.h"
#include "core/core.h"
#include "core/dispatch.h"
#include "core/eager.h"
#include "core/flow_control.h"
#include "core/lease.h"
#include "core/monitor.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/receive.h"
#include "core/rendezvous.h"
#include "core/send.h"
#include "core/wait.h"

#define OPEN_ADDRESS_MAX 4096u
#define OPEN_PROCESSORS_MAX 1024

/* What every rank publishes about itself; the transports' blobs follow, each with its name. */
struct open_address {
	uint32_t wire_version;
	uint32_t byte_order; /* 0x01020304 as this host writes it */
	uint64_t credit_window;
	uint32_t transport_count;
	uint32_t left_out;                             /* 1: this rank left its last transport out, a universal one is open */
	uint64_t processors[OPEN_PROCESSORS_MAX / 64]; /* those that this rank may run on */
};

struct open_blob {
	char name[TRANSPORT_NAME_BYTES];
	uint32_t bytes;
};

static int open_tables(struct ibvx *ep)
{
	int rc = request_table_init(&ep->requests);

	for (int c = 0; c < MATCH_CLASSES && rc == 0; c++) {
		rc = match_table_init(&ep->posted[c]);
		if (rc == 0)
			rc = match_table_init(&ep->unexpected[c]);
	}
	ep->unexpected_used[MATCH_EXACT] = true;
	return rc;
}

/* The next transport of those in `from` that the setting names, best first; *at is where the setting has been read to. NULL: no more. */
static const struct transport_ops *open_next(const char **at, const struct transport_ops *const *from)
{
	while (**at) {
		size_t n = strcspn(*at, ", ");
		const char *name = *at;

		*at += n;
		*at += strspn(*at, ", ");
		for (int i = 0; from[i]; i++) {
			if (n == strlen(from[i]->name) && strncmp(name, from[i]->name, n) == 0)
				return from[i];
		}
	}
	return NULL;
}

/* Is it open already, or not worth opening? */
static bool open_left_out(const struct ibvx *ep, const struct core_config *cfg, const struct transport_ops *ops)
{
	bool covered = cfg->size == 1;

	for (int i = 0; i < ep->transport_count; i++) {
		if (ep->transports[i]->ops == ops)
			return true;
		covered = covered || ep->transports[i]->ops->covers_node;
	}
	return ops->costly && cfg->one_node && covered;
}

int core_check_transports(const struct settings *s)
{
	char names[128] = "", have[128] = "";
	char *rest = NULL;

	for (int i = 0; transport_all[i]; i++) {
		size_t at = strlen(have);

		snprintf(have + at, sizeof(have) - at, "%s%s", at ? ", " : "", transport_all[i]->name);
	}
	snprintf(names, sizeof(names), "%s", settings_text(s, SETTING_TRANSPORTS));
	for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
		if (!transport_find(name))
			return error_set(-EINVAL, "transports=\"%s\" (%s): there is no transport \"%s\", there are: %s",
					 settings_text(s, SETTING_TRANSPORTS), settings_origin(s, SETTING_TRANSPORTS), name, have);
	}
	return 0;
}

static int open_transport(struct ibvx *ep, const struct core_config *cfg, const struct transport_ops *ops)
{
	const struct transport_env env = {
		.rank = ep->rank,
		.size = ep->size,
		.job_id = ep->job_id,
		.settings = ep->settings,
		.log = &ep->log,
		.sink = {ep, dispatch_packet, rendezvous_on_get, rendezvous_on_put, rendezvous_on_cancelled, dispatch_down},
		.watch = {ep->monitor, monitor_add, monitor_remove, monitor_unlock, monitor_lock},
		.wakeups = &ep->wakeups,
		.test = cfg->test,
	};
	struct transport *t = NULL;
	int rc;

	if (ep->transport_count == (int)(sizeof(ep->transports) / sizeof(ep->transports[0])))
		return error_set(-EINVAL, "more than %d transports", ep->transport_count);
	rc = ops->open(&t, &env);
	if (rc < 0)
		return error_prefix(rc, "transport %s", ops->name);
	ep->transports[ep->transport_count++] = t;
	return 0;
}

static bool open_has_universal(struct ibvx *ep)
{
	unsigned char blob[OPEN_ADDRESS_MAX];
	bool found = false;

	core_lock(ep);
	for (int i = 0; i < ep->transport_count && !found; i++)
		found = ep->transports[i]->ops->universal && ep->transports[i]->ops->address(ep->transports[i], blob, sizeof(blob)) > 0;
	core_unlock(ep);
	return found;
}

static int open_transports(struct ibvx *ep, const struct core_config *cfg)
{
	int rc = cfg->test ? 0 : core_check_transports(ep->settings);
	const char *at = settings_text(ep->settings, SETTING_TRANSPORTS);

	if (rc < 0)
		return rc;
	for (int i = 0;; i++) { /* a test's transports are all opened, as they come */
		const struct transport_ops *ops = cfg->test ? cfg->transports[i] : open_next(&at, cfg->transports);
		const char *rest = at;

		if (!ops)
			break;
		if (open_left_out(ep, cfg, ops))
			continue;
		if (ops->last_resort && !(cfg->test ? cfg->transports[i + 1] : open_next(&rest, cfg->transports)) && open_has_universal(ep))
			ep->left_out = ops;
		else
			rc = open_transport(ep, cfg, ops);
		if (rc < 0)
			return rc;
	}
	return ep->transport_count ? 0
				   : error_set(-EINVAL, "the setting transports=\"%s\" names no transport",
					       settings_text(ep->settings, SETTING_TRANSPORTS));
}

int core_open(struct ibvx **out, const struct core_config *cfg)
{
	struct ibvx *ep = calloc(1, sizeof(*ep));
	int rc;

	*out = NULL;
	if (!ep)
		return error_set(-ENOMEM, "no memory for an endpoint");
	ep->rank = cfg->rank;
	ep->size = cfg->size;
	ep->settings = (struct settings *)(uintptr_t)cfg->settings;
	ep->failed_rank = -1;
	ep->open_peers = cfg->size - 1;
	ep->psl = (size_t)settings_int(ep->settings, SETTING_PSL);
	ep->credit_window = (size_t)settings_int(ep->settings, SETTING_EAGER_WINDOW);
	ep->lease_offer_ns = LEASE_OFFER_NS;
	ep->lease_claim_ns = settings_int(ep->settings, SETTING_LEASE_US) * CLOCK_NS_PER_US;
	ep->fault_job = strcmp(settings_text(ep->settings, SETTING_FAULT_SCOPE), "job") == 0;
	memcpy(ep->job_id, cfg->job_id, strnlen(cfg->job_id, sizeof(ep->job_id) - 1));
	list_init(&ep->busy);
	list_init(&ep->arrivals);
	list_init(&ep->run);
	list_init(&ep->finished);
	list_init(&ep->watched);
	list_init(&ep->waiters);
	list_init(&ep->wanting);
	rc = log_open(&ep->log, (enum log_level)settings_int(ep->settings, SETTING_LOG), settings_text(ep->settings, SETTING_LOG_FILE),
		      ep->rank);
	ep->peers = calloc((size_t)ep->size, sizeof(*ep->peers));
	if (rc == 0 && !ep->peers)
		rc = error_set(-ENOMEM, "no memory for %d peers", ep->size);
	for (int r = 0; rc == 0 && r < ep->size; r++)
		peer_init(&ep->peers[r], ep, r);
	if (rc == 0)
		rc = open_tables(ep);
	if (rc == 0 && cfg->monitor)
		rc = monitor_open(&ep->monitor, ep);
	if (rc == 0)
		rc = open_transports(ep, cfg);
	if (rc < 0) {
		core_free(ep);
		return rc;
	}
	*out = ep;
	return 0;
}

int core_address(struct ibvx *ep, void *out, size_t size)
{
	struct open_address head = {.wire_version = WIRE_VERSION,
				    .byte_order = 0x01020304,
				    .credit_window = ep->credit_window,
				    .transport_count = (uint32_t)ep->transport_count,
				    .left_out = ep->left_out != NULL};
	unsigned char blob[OPEN_ADDRESS_MAX];
	size_t at = sizeof(head);
	cpu_set_t may;

	CPU_ZERO(&may);
	if (sched_getaffinity(0, sizeof(may), &may) == 0) {
		for (unsigned cpu = 0; cpu < OPEN_PROCESSORS_MAX; cpu++)
			head.processors[cpu / 64] |= (uint64_t) !!CPU_ISSET(cpu, &may) << cpu % 64;
	}
	if (size < sizeof(head))
		return error_set(-ENOBUFS, "an address needs more than %zu bytes", size);
	memcpy(out, &head, sizeof(head));
	for (int i = 0; i < ep->transport_count; i++) {
		const struct transport_ops *ops = ep->transports[i]->ops;
		struct open_blob b = {.bytes = 0};
		int n;

		core_lock(ep);
		n = ops->address(ep->transports[i], blob, sizeof(blob));
		core_unlock(ep);
		if (n < 0)
			return n;
		if (at + sizeof(b) + (size_t)n > size)
			return error_set(-ENOBUFS, "an address needs more than %zu bytes", size);
		strncpy(b.name, ops->name, sizeof(b.name) - 1);
		b.bytes = (uint32_t)n;
		memcpy((char *)out + at, &b, sizeof(b));
		memcpy((char *)out + at + sizeof(b), blob, (size_t)n);
		at += sizeof(b) + (size_t)n;
	}
	return (int)at;
}

bool core_incomplete(const struct ibvx *ep, const struct core_peer_info *peers)
{
	int without = 0;

	for (int r = 0; r < ep->size; r++) {
		struct open_address a = {.left_out = 0};

		if (peers[r].address_bytes >= sizeof(a))
			memcpy(&a, peers[r].address, sizeof(a));
		without += a.left_out != 0;
	}
	return without > 0 && without < ep->size;
}

int core_open_rest(struct ibvx *ep, const struct core_config *cfg)
{
	const struct transport_ops *ops = ep->left_out;

	ep->left_out = NULL;
	return ops ? open_transport(ep, cfg, ops) : 0;
}

/* The blob of the named transport in a peer's address; false: it has none. */
static bool open_blob_of(const struct core_peer_info *peer, const char *name, struct transport_peer_info *out)
{
	size_t at = sizeof(struct open_address);
	struct open_blob b;

	while (at + sizeof(b) <= peer->address_bytes) {
		memcpy(&b, (const char *)peer->address + at, sizeof(b));
		at += sizeof(b);
		if (b.bytes > peer->address_bytes - at)
			return false;
		if (strncmp(b.name, name, sizeof(b.name)) == 0) {
			*out = (struct transport_peer_info){peer->same_node, (const char *)peer->address + at, b.bytes};
			return true;
		}
		at += b.bytes;
	}
	return false;
}

static void open_note_order(struct peer *p, const struct core_peer_info *info)
{
	size_t at = sizeof(struct open_address);
	struct open_blob b;

	for (int i = 0; at + sizeof(b) <= info->address_bytes; i++) {
		memcpy(&b, (const char *)info->address + at, sizeof(b));
		at += sizeof(b);
		agree_note_order(p, i, b.name);
		if (b.bytes > info->address_bytes - at)
			return;
		at += b.bytes;
	}
}

static int open_check_peer(struct ibvx *ep, int rank, const struct core_peer_info *info)
{
	struct peer *p = &ep->peers[rank];
	struct open_address a;

	if (info->address_bytes < sizeof(a))
		return error_set(-EPROTO, "rank %d sent an address of %zu bytes", rank, info->address_bytes);
	memcpy(&a, info->address, sizeof(a));
	if (a.wire_version != WIRE_VERSION || a.byte_order != 0x01020304)
		return error_set(-EPROTO,
				 "rank %d speaks protocol version %u (byte order %#x), this rank %u: "
				 "install the same ibvdev everywhere",
				 rank, a.wire_version, a.byte_order, WIRE_VERSION);
	if (a.credit_window < 4 * FLOW_ENVELOPE || a.credit_window > INT64_MAX / 4)
		return error_set(-EPROTO, "rank %d has an eager_window of %llu bytes", rank, (unsigned long long)a.credit_window);
	p->same_node = info->same_node || rank == ep->rank;
	open_note_order(p, info);
	for (int i = 0; p->same_node && i < OPEN_PROCESSORS_MAX / 64; i++)
		ep->processors[i] |= a.processors[i];
	p->credit_window = (int64_t)a.credit_window;
	p->credit = p->credit_window;
	p->eager_max = flow_eager_max((size_t)a.credit_window);
	if (p->eager_max > ep->psl)
		p->eager_max = ep->psl;
	else if (p->eager_max < ep->psl)
		log_info(&ep->log, "messages to rank %d above %zu bytes use rendezvous: half of its eager_window", rank, p->eager_max);
	return 0;
}

int core_attach(struct ibvx *ep, const struct core_peer_info *peers)
{
	struct transport_peer_info *infos = calloc((size_t)ep->size, sizeof(*infos));
	int rc = infos ? 0 : error_set(-ENOMEM, "no memory for %d addresses", ep->size);

	for (int r = 0; rc == 0 && r < ep->size; r++)
		rc = open_check_peer(ep, r, &peers[r]);
	core_lock(ep);
	for (int i = 0; rc == 0 && i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		for (int r = 0; r < ep->size; r++) {
			infos[r] = (struct transport_peer_info){0};
			open_blob_of(&peers[r], t->ops->name, &infos[r]);
		}
		rc = t->ops->attach(t, infos);
		if (rc < 0) {
			error_prefix(rc, "transport %s", t->ops->name);
			break;
		}
		if (t->ops->doorbell && t->ops->doorbell(t)) {
			ep->doorbell = t->ops->doorbell(t);
			ep->doorbell_owner = t;
		}
	}
	core_unlock(ep);
	if (!ep->doorbell)
		ep->doorbell = ep->own_doorbell;
	free(infos);
	return rc;
}

static void open_polled(struct ibvx *ep)
{
	ep->polled_count = 0;
	for (int i = 0; i < ep->transport_count; i++) {
		bool used = false;

		for (int r = 0; r < ep->size && !used; r++)
			used = ep->peers[r].transport == ep->transports[i];
		if (used)
			ep->polled[ep->polled_count++] = ep->transports[i];
	}
}

int core_attached(struct ibvx *ep)
{
	int local = 0;

	core_lock(ep);
	for (int r = 0; r < ep->size; r++) {
		struct peer *p = &ep->peers[r];

		p->transport = agree_choose(p);
		if (!p->transport) {
			core_unlock(ep);
			return -EHOSTUNREACH;
		}
		log_debug(&ep->log, "rank %d: by transport %s", r, p->transport->ops->name);
		if (p->transport->ops->use)
			p->transport->ops->use(p->transport, r);
		p->payload_max = p->transport->ops->payload_max(p->transport, r);
		eager_attach(p);
		local += p->same_node;
	}
	open_polled(ep);
	core_unlock(ep);
	if (ep->monitor) {
		int rc = monitor_start(ep->monitor);

		if (rc < 0)
			return rc;
	}
	wait_open(ep, local);
	return background_open(ep);
}

void core_free(struct ibvx *ep)
{
	if (!ep)
		return;
	background_close(ep);
	monitor_stop(ep->monitor);
	receive_free_all(ep);
	pin_close(ep);
	for (int i = ep->transport_count - 1; i >= 0; i--)
		ep->transports[i]->ops->close(ep->transports[i]);
	monitor_close(ep->monitor); /* transports take their descriptors back */
	for (int r = 0; ep->peers && r < ep->size; r++)
		peer_fini(&ep->peers[r]);
	free(ep->peers);
	for (int c = 0; c < MATCH_CLASSES; c++) {
		match_table_fini(&ep->posted[c]);
		match_table_fini(&ep->unexpected[c]);
	}
	request_table_fini(&ep->requests);
	log_close(&ep->log);
	free(ep);
	pool_drain();
}
