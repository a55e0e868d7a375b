/* SPDX-License-Identifier: MIT */
#include "transport/verbs/report.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "transport/verbs/connection.h"

void verbs_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
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
		add(arg, "verbs_reads", p->ops[RMA_READ]);
		add(arg, "verbs_read_bytes", p->op_bytes[RMA_READ]);
		add(arg, "verbs_writes", p->ops[RMA_WRITE]);
		add(arg, "verbs_write_bytes", p->op_bytes[RMA_WRITE]);
		return;
	}
	for (uint32_t i = 0; i < v->conn_count; i++) {
		if (v->conns[i] && v->conns[i]->qp) {
			qps++;
			bytes += v->conns[i]->headers.bytes + v->conns[i]->rx.bytes;
		}
	}
	for (struct verbs_device *d = atomic_load(&v->devices); d; d = atomic_load(&d->next)) {
		bytes += (uint64_t)(d->receive.count + d->send.count) * v->slot_bytes;
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
	add(arg, "verbs_buffers_registered", v->ranges.count);
}

/* What the settings come to on this machine, and why. */
static void verbs_describe_choices(const struct settings *settings, const char *no_cm, char *out, size_t size)
{
	static const char *const movers[] = {"the receiver reads, or the sender writes where that is refused", "the receiver reads",
					     "the sender writes"};
	bool tcp = settings_int(settings, SETTING_VERBS_CONNECT) == 2;

	snprintf(out, size, "  connections: %s%s\n  long messages: %s\n  registered buffers: %lld, %s bytes\n",
		 tcp     ? "by TCP wire-up, set by verbs_connect"
		 : no_cm ? "by TCP wire-up, because: "
			 : "by RDMA CM",
		 !tcp && no_cm ? no_cm : "", movers[settings_int(settings, SETTING_VERBS_RENDEZVOUS)],
		 (long long)settings_int(settings, SETTING_VERBS_CACHE_ENTRIES), settings_text(settings, SETTING_VERBS_CACHE_BYTES));
}

int verbs_describe(const struct settings *settings, char *out, size_t size)
{
	int cm = verbs_provider_real->available(true), rc;
	char no_cm[256];
	size_t used;

	snprintf(no_cm, sizeof(no_cm), "%s", error_text());
	rc = cm == 0 || settings_int(settings, SETTING_VERBS_CONNECT) == 1 ? cm : verbs_provider_real->available(false);
	if (rc < 0)
		return rc;
	used = device_describe(verbs_provider_real, out, size);
	if (used == 0)
		return error_set(-ENODEV, "libibverbs finds no device: is its driver library (ibverbs-providers) installed?");
	verbs_describe_choices(settings, cm < 0 ? no_cm : NULL, out + used, size - used);
	return 0;
}
