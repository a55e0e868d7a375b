/* SPDX-License-Identifier: MIT */
#include "core/cost.h"

#include <stdlib.h>

#include "base/clock.h"
#include "core/lease.h"
#include "core/peer.h"

/* One message in so many is measured; all that explore are. */
#define COST_TIMED 4u
/* Messages between two explorations: the first ones, and the limits of what a HINT asks for. */
#define COST_INTERVAL_FIRST 6u
#define COST_INTERVAL_MIN 16u
#define COST_INTERVAL_MAX 1024u
/* Exploration may cost one part in so many. */
#define COST_SHARE 100u
/* The other method must be this much faster, in percent, in so many consecutive samples. */
#define COST_HYSTERESIS 94u
#define COST_CONFIRM 2u
/* A change of the cost by this much, in percent, asks for an exploration. */
#define COST_CHANGED 130u
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

void cost_class_init(struct cost_class *c)
{
	*c = (struct cost_class){.interval = COST_INTERVAL_FIRST, .countdown = COST_INTERVAL_FIRST};
}

/* The costs of this peer, allocated with its first long message; NULL: no memory. */
static struct cost_class *cost_table(struct peer *p)
{
	if (!p->costs) {
		p->costs = malloc(COST_CLASSES * sizeof(*p->costs));
		for (unsigned c = 0; p->costs && c < COST_CLASSES; c++)
			cost_class_init(&p->costs[c]);
	}
	return p->costs;
}

enum cost_method cost_class_choose(struct cost_class *c, bool *timed)
{
	*timed = ++c->sent % COST_TIMED == 0;
	if (--c->countdown > 0)
		return (enum cost_method)c->best;
	*timed = true;
	c->countdown = c->interval;
	/* a receiver that never measures (its receives are late) is explored less and less */
	if (c->interval < COST_INTERVAL_MAX)
		c->interval = (uint16_t)(c->interval * 2);
	return c->best == COST_RING ? COST_GET : COST_RING;
}

enum cost_method cost_choose(struct request *r)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	size_t total = request_total(r);
	struct cost_class *c;

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
	return cost_class_choose(c + cost_class_of(r, total), &r->timed);
}

void cost_class_hint(struct cost_class *c, enum cost_method method, unsigned interval)
{
	c->best = (uint8_t)method;
	c->interval = (uint16_t)interval;
	if (c->countdown > interval || interval > COST_INTERVAL_MIN)
		c->countdown = (uint16_t)interval;
}

bool cost_on_hint(struct peer *p, uint32_t size_class, uint32_t method, uint64_t interval)
{
	struct cost_class *c = cost_table(p);

	if (size_class >= COST_CLASSES || (method != COST_RING && method != COST_GET) || interval == 0 || interval > COST_INTERVAL_MAX)
		return false;
	if (c)
		cost_class_hint(c + size_class, (enum cost_method)method, (unsigned)interval);
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

/* How many messages are to pass until the slower method is tried again. */
static unsigned cost_interval(const struct cost_class *c, enum cost_method other)
{
	uint64_t best = c->cost_ns[c->in_best], slow = c->cost_ns[other];
	uint64_t interval = slow <= best ? 0 : (slow - best) * COST_SHARE / (best ? best : 1);

	return interval < COST_INTERVAL_MIN   ? COST_INTERVAL_MIN
	       : interval > COST_INTERVAL_MAX ? COST_INTERVAL_MAX
					      : (unsigned)interval;
}

static void cost_hint(struct cost_class *c, unsigned interval)
{
	c->in_interval = (uint16_t)interval;
	c->hint_pending = true;
}

/* Both methods have been measured: is the other one better, and how soon is it to be tried again? */
static void cost_compare(struct cost_class *c, enum cost_method sampled)
{
	enum cost_method other = c->in_best == COST_RING ? COST_GET : COST_RING;
	uint64_t best_ns = c->cost_ns[c->in_best];
	unsigned interval;

	if (sampled == other) {
		c->explored_ns = (uint32_t)best_ns;
		if ((uint64_t)c->cost_ns[other] * 100 >= best_ns * COST_HYSTERESIS) {
			c->confirmed = 0;
		} else if (++c->confirmed < COST_CONFIRM) {
			cost_hint(c, 1);
			return;
		} else {
			c->in_best = (uint8_t)other;
			c->explored_ns = c->cost_ns[other];
			c->confirmed = 0;
			cost_hint(c, COST_INTERVAL_MIN);
			return;
		}
		interval = cost_interval(c, other);
		if (c->in_interval != interval)
			cost_hint(c, interval);
	} else if (c->explored_ns && (best_ns * 100 > (uint64_t)c->explored_ns * COST_CHANGED ||
				      best_ns * COST_CHANGED < (uint64_t)c->explored_ns * 100)) {
		c->explored_ns = (uint32_t)best_ns;
		cost_hint(c, 1); /* the machine has changed: try the other method at once */
	}
}

void cost_class_learn(struct cost_class *c, enum cost_method method, uint64_t sample)
{
	uint64_t old = c->cost_ns[method];

	if (old == 0)
		old = sample;
	else if (sample > 2 * old) /* preempted, perhaps */
		sample = 2 * old;
	old = method == c->in_best ? (7 * old + sample) / 8 : (old + sample) / 2;
	c->cost_ns[method] = (uint32_t)(old ? old : 1);
	if (c->cost_ns[COST_RING] && c->cost_ns[COST_GET])
		cost_compare(c, method);
}

static void cost_sample(struct request *r, enum cost_method method, int64_t ns)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);
	unsigned k = cost_class_of(r, total);
	struct cost_class *c = cost_table(p);

	if (!c || ns <= 0 || ns >= COST_SAMPLE_MAX_NS)
		return;
	c += k;
	/* as if it had the smallest size of its class */
	cost_class_learn(c, method, (uint64_t)ns * ((size_t)1 << (COST_SHIFT_MIN + k % COST_SIZES)) / total);
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
#define COST_NAMES(size) \
	{"learned_" size "_ring_ns", "learned_" size "_get_ns", "learned_" size "_gets_win"}
static const char *const cost_names[COST_CLASSES][3] = {
	COST_NAMES("16k"), COST_NAMES("32k"), COST_NAMES("64k"), COST_NAMES("128k"), COST_NAMES("256k"),
	COST_NAMES("512k"), COST_NAMES("1m"), COST_NAMES("2m"), COST_NAMES("4m"), COST_NAMES("8m"), COST_NAMES("16m"),
	COST_NAMES("arrays_16k"), COST_NAMES("arrays_32k"), COST_NAMES("arrays_64k"), COST_NAMES("arrays_128k"),
	COST_NAMES("arrays_256k"), COST_NAMES("arrays_512k"), COST_NAMES("arrays_1m"), COST_NAMES("arrays_2m"),
	COST_NAMES("arrays_4m"), COST_NAMES("arrays_8m"), COST_NAMES("arrays_16m"),
};

void cost_counters(const struct peer *p, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	for (unsigned k = 0; p->costs && k < COST_CLASSES; k++) {
		const struct cost_class *c = &p->costs[k];

		if (!c->cost_ns[COST_RING] && !c->cost_ns[COST_GET])
			continue;
		add(arg, cost_names[k][0], c->cost_ns[COST_RING]);
		add(arg, cost_names[k][1], c->cost_ns[COST_GET]);
		add(arg, cost_names[k][2], c->in_best == COST_GET);
	}
}
