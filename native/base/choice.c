/* SPDX-License-Identifier: MIT */
#include "base/choice.h"

/* One time in so many is measured; all that explore are. */
#define CHOICE_TIMED 4u
/* Times between two explorations: the first ones, and the least. */
#define CHOICE_INTERVAL_FIRST 6u
#define CHOICE_INTERVAL_MIN 16u
/* Exploration may cost one part in so many. */
#define CHOICE_SHARE 100u
/* The other method must be this much faster, in percent, in so many consecutive samples. */
#define CHOICE_HYSTERESIS 94u
#define CHOICE_CONFIRM 2u
/* A change of the cost by this much, in percent, asks for an exploration. */
#define CHOICE_CHANGED 130u

void choice_init(struct choice *c)
{
	*c = (struct choice){.interval = CHOICE_INTERVAL_FIRST, .countdown = CHOICE_INTERVAL_FIRST};
}

unsigned choice_make(struct choice *c, bool *timed)
{
	*timed = ++c->made % CHOICE_TIMED == 0;
	if (--c->countdown > 0)
		return c->best;
	*timed = true;
	c->countdown = c->interval;
	/* where nothing is learned exploration becomes rarer and rarer */
	if (c->interval < CHOICE_INTERVAL_MAX)
		c->interval = (uint16_t)(c->interval * 2);
	return !c->best;
}

void choice_hint(struct choice *c, unsigned method, unsigned interval)
{
	c->best = (uint8_t)method;
	c->interval = (uint16_t)interval;
	if (c->countdown > interval || interval > CHOICE_INTERVAL_MIN)
		c->countdown = (uint16_t)interval;
}

/* How many times the best method is taken before the slower one is tried again. */
static unsigned choice_interval(const struct choice *c, unsigned other)
{
	uint64_t best = c->cost_ns[c->in_best], slow = c->cost_ns[other];
	uint64_t interval = slow <= best ? 0 : (slow - best) * CHOICE_SHARE / (best ? best : 1);

	return interval < CHOICE_INTERVAL_MIN   ? CHOICE_INTERVAL_MIN
	       : interval > CHOICE_INTERVAL_MAX ? CHOICE_INTERVAL_MAX
						: (unsigned)interval;
}

static void choice_suggest(struct choice *c, unsigned interval)
{
	c->in_interval = (uint16_t)interval;
	c->hint_pending = true;
}

/* Both methods have been measured: is the other one better, and how soon is it to be tried again? */
static void choice_compare(struct choice *c, unsigned sampled)
{
	unsigned other = !c->in_best;
	uint64_t best_ns = c->cost_ns[c->in_best];
	unsigned interval;

	if (sampled == other) {
		c->explored_ns = (uint32_t)best_ns;
		if ((uint64_t)c->cost_ns[other] * 100 >= best_ns * CHOICE_HYSTERESIS) {
			c->confirmed = 0;
		} else if (++c->confirmed < CHOICE_CONFIRM) {
			choice_suggest(c, 1);
			return;
		} else {
			c->in_best = (uint8_t)other;
			c->explored_ns = c->cost_ns[other];
			c->confirmed = 0;
			choice_suggest(c, CHOICE_INTERVAL_MIN);
			return;
		}
		interval = choice_interval(c, other);
		if (interval > CHOICE_INTERVAL_MIN << c->tries)
			interval = CHOICE_INTERVAL_MIN << c->tries++; /* one sample proves little */
		if (c->in_interval != interval)
			choice_suggest(c, interval);
	} else if (c->explored_ns && (best_ns * 100 > (uint64_t)c->explored_ns * CHOICE_CHANGED ||
				      best_ns * CHOICE_CHANGED < (uint64_t)c->explored_ns * 100)) {
		c->explored_ns = (uint32_t)best_ns;
		choice_suggest(c, 1); /* the machine has changed: try the other method at once */
	}
}

void choice_learn(struct choice *c, unsigned method, uint64_t sample)
{
	uint64_t old = c->cost_ns[method];

	if (old == 0 || old > 2 * sample) /* the first one may have been preempted, too */
		old = sample;
	else if (sample > 2 * old) /* preempted, perhaps */
		sample = 2 * old;
	old = method == c->in_best ? (7 * old + sample) / 8 : (old + sample) / 2;
	c->cost_ns[method] = (uint32_t)(old ? old : 1);
	if (c->cost_ns[0] && c->cost_ns[1])
		choice_compare(c, method);
}
