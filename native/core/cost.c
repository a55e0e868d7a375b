/* SPDX-License-Identifier: MIT */
#include "core/cost.h"

#include <stdlib.h>

#include "base/clock.h"
#include "core/lease.h"
#include "core/peer.h"

/* A sample beyond this has another cause than the method. */
#define COST_SAMPLE_MAX_NS 1000000000u

uint32_t cost_clock(void)
{
	return (uint32_t)clock_now_ns();
}

static unsigned cost_class_of(const struct request *r, size_t bytes)
{
	unsigned shift = 63u - (unsigned)__builtin_clzll(bytes | 1u);
	unsigned c = shift < COST_SHIFT_MIN ? 0 : shift - COST_SHIFT_MIN;

	if (c >= COST_SIZES)
		c = COST_SIZES - 1;
	return buffer_is_pinnable(&r->buffer) ? c + COST_SIZES : c;
}

/* The costs of this peer, allocated with its first long message; NULL: no memory. */
static struct choice *cost_table(struct peer *p)
{
	if (!p->costs) {
		p->costs = malloc(COST_CLASSES * sizeof(*p->costs));
		for (unsigned c = 0; p->costs && c < COST_CLASSES; c++)
			choice_init(&p->costs[c]);
	}
	return p->costs;
}

enum cost_method cost_choose(struct request *r)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	size_t total = request_total(r);
	struct choice *c;

	if (total <= p->once_max || !ops->learns_get || !ops->learns_get(p->transport, p->rank, total))
		return COST_UNLEARNED;
	if (p->no_get || !buffer_can_rma(&r->buffer) || (buffer_is_pinnable(&r->buffer) && !lease_possible(r)))
		return COST_RING;
	/* up to the switch limit a standard send completes whether or not it is received: MPI programs rely on that */
	if (total <= p->eager_max)
		return COST_RING;
	c = cost_table(p);
	if (!c)
		return COST_RING;
	return (enum cost_method)choice_make(c + cost_class_of(r, total), &r->timed);
}

bool cost_on_hint(struct peer *p, uint32_t size_class, uint32_t method, uint64_t interval)
{
	struct choice *c = cost_table(p);

	if (size_class >= COST_CLASSES || (method != COST_RING && method != COST_GET) || interval == 0 || interval > CHOICE_INTERVAL_MAX)
		return false;
	if (c)
		choice_hint(c + size_class, method, (unsigned)interval);
	return true;
}

void cost_begin(struct request *r, uint32_t start_ns)
{
	if (!r->peer->same_node || !buffer_can_rma(&r->buffer))
		return;
	r->timed = true;
	r->start_ns = clock_now_ns();
	if ((uint32_t)r->start_ns - start_ns < COST_SAMPLE_MAX_NS)
		r->start_ns -= (int64_t)((uint32_t)r->start_ns - start_ns);
	r->peer->timed_count++;
}

void cost_forget(struct request *r)
{
	if (r->kind == REQ_RECV && r->timed && r->peer)
		r->peer->timed_count--;
	r->timed = false;
}

static void cost_sample(struct request *r, enum cost_method method, int64_t ns)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);
	unsigned k = cost_class_of(r, total);
	struct choice *c = cost_table(p);

	if (!c || ns <= 0 || ns >= COST_SAMPLE_MAX_NS)
		return;
	c += k;
	/* as if it had the smallest size of its class */
	choice_learn(c, method, (uint64_t)ns * ((size_t)1 << (COST_SHIFT_MIN + k % COST_SIZES)) / total);
	if (c->hint_pending) {
		p->hints_pending = true;
		peer_busy(p);
	}
}

void cost_end(struct request *r, enum cost_method method)
{
	struct peer *p = r->peer;
	int64_t now_ns, begin_ns;

	if (p->timed_count == 0)
		return;
	now_ns = clock_now_ns();
	if (r->timed) {
		/* not the time in which it waited for an earlier message of this peer */
		begin_ns = p->long_end_ns > r->start_ns ? p->long_end_ns : r->start_ns;
		cost_forget(r);
		cost_sample(r, method, now_ns - begin_ns);
	}
	p->long_end_ns = now_ns;
}

/* One row of names per size class: the counters of ibvx.h are constant strings. */
#define COST_NAMES(size)                                                                           \
	{                                                                                          \
		"learned_" size "_ring_ns", "learned_" size "_get_ns", "learned_" size "_gets_win" \
	}
static const char *const cost_names[COST_CLASSES][3] = {
	COST_NAMES("16k"),         COST_NAMES("32k"),         COST_NAMES("64k"),        COST_NAMES("128k"),       COST_NAMES("256k"),
	COST_NAMES("512k"),        COST_NAMES("1m"),          COST_NAMES("2m"),         COST_NAMES("4m"),         COST_NAMES("8m"),
	COST_NAMES("16m"),         COST_NAMES("arrays_16k"),  COST_NAMES("arrays_32k"), COST_NAMES("arrays_64k"), COST_NAMES("arrays_128k"),
	COST_NAMES("arrays_256k"), COST_NAMES("arrays_512k"), COST_NAMES("arrays_1m"),  COST_NAMES("arrays_2m"),  COST_NAMES("arrays_4m"),
	COST_NAMES("arrays_8m"),   COST_NAMES("arrays_16m"),
};

void cost_counters(const struct peer *p, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	for (unsigned k = 0; p->costs && k < COST_CLASSES; k++) {
		const struct choice *c = &p->costs[k];

		if (!c->cost_ns[COST_RING] && !c->cost_ns[COST_GET])
			continue;
		add(arg, cost_names[k][0], c->cost_ns[COST_RING]);
		add(arg, cost_names[k][1], c->cost_ns[COST_GET]);
		add(arg, cost_names[k][2], c->in_best == COST_GET);
	}
}
