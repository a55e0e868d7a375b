/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/error.h"
#include "core/core.h"
#include "core/cost.h"

struct counters_out {
	struct ibvx_counter *out;
	int max, count;
};

static void counters_add(void *arg, const char *name, uint64_t value)
{
	struct counters_out *o = arg;

	if (o->count < o->max)
		o->out[o->count] = (struct ibvx_counter){name, value};
	o->count++;
}

static void counters_endpoint(const struct ibvx *ep, struct counters_out *o)
{
	uint64_t steps = 0;

	for (int c = 0; c < MATCH_CLASSES; c++)
		steps += ep->posted[c].step_count + ep->unexpected[c].step_count;
	counters_add(o, "polls", ep->polls);
	counters_add(o, "sleeps", ep->sleeps);
	counters_add(o, "wakes", ep->wakes);
	counters_add(o, "match_steps", steps);
	counters_add(o, "unexpected_now", ep->unexpected_count);
	counters_add(o, "requests_now", ep->requests.live_count);
	counters_add(o, "pins", ep->pins);
	counters_add(o, "pin_longest_ns", ep->pin_longest_ns);
	counters_add(o, "bounced_bytes", ep->bounced_bytes);
	counters_add(o, "open_peers", (uint64_t)ep->open_peers);
}

static void counters_peer(const struct peer *p, struct counters_out *o)
{
	counters_add(o, "eager_out", p->eager_out);
	counters_add(o, "eager_in", p->eager_in);
	counters_add(o, "rendezvous_out", p->rndv_out);
	counters_add(o, "rendezvous_in", p->rndv_in);
	counters_add(o, "bytes_out", p->bytes_out);
	counters_add(o, "bytes_in", p->bytes_in);
	counters_add(o, "unexpected_in", p->unexpected_in);
	counters_add(o, "gets", p->gets);
	counters_add(o, "puts", p->puts);
	counters_add(o, "puts_in", p->puts_in);
	counters_add(o, "pipelines_in", p->pipelines_in);
	counters_add(o, "leased_segments", p->leased);
	counters_add(o, "leases_revoked", p->leases_revoked);
	counters_add(o, "stalls", p->stalls);
	counters_add(o, "emergency_credits", p->emergencies);
	cost_counters(p, counters_add, o);
	counters_add(o, "credit", (uint64_t)(p->credit > 0 ? p->credit : 0));
}

int ibvx_counters(struct ibvx *ep, int peer, struct ibvx_counter *out, int max)
{
	struct counters_out o = {out, max, 0};

	if (peer < -1 || peer >= ep->size)
		return error_set(-EINVAL, "rank %d has no counters: 0 to %d have, and -1 for the endpoint", peer, ep->size - 1);
	core_lock(ep);
	if (peer < 0)
		counters_endpoint(ep, &o);
	else
		counters_peer(&ep->peers[peer], &o);
	for (int i = 0; i < ep->transport_count; i++) {
		const struct transport *t = ep->transports[i];

		if (t->ops->counters)
			t->ops->counters(t, peer, counters_add, &o);
	}
	core_unlock(ep);
	return o.count;
}
