/* SPDX-License-Identifier: MIT */
#include "traffic.h"

/*
 * Which call may block.  A deadlock of the generator's own making must be impossible, so an actor blocks only when
 * it has started all its sends (or has nothing to receive), and only if something that it waits for is bound to happen:
 *   - a receive from anybody with any tag takes whatever comes.  With R messages to come and P receives
 *     posted before it, it is sure to be matched if R > P;
 *   - any posted receive of that kind makes a waitany over all of them return while R > 0;
 *   - a send ends if its receivers keep receiving: always, if another actor does so.
 * Receives that name a source or a tag may never match.  They are cancelled in the end, and after some fruitless steps a
 * receive from anybody is posted.
 */

static unsigned remaining(const struct actor *a)
{
	return a->receives ? atomic_load(&a->inbox->remaining) : 0;
}

static unsigned posted_count(const struct actor *a, int *open_to_all)
{
	unsigned count = 0;

	*open_to_all = -1;
	for (unsigned i = 0; i < a->op_count; i++) {
		const struct operation *op = a->ops[i];

		if (op->send)
			continue;
		count++;
		if (op->source == IBVX_ANY_SOURCE && op->tag == IBVX_ANY_TAG)
			*open_to_all = (int)i;
	}
	return count;
}

static bool sending_left(const struct actor *a)
{
	return a->sends && a->seq < a->cfg->messages;
}

static bool blocking_allowed(const struct actor *a)
{
	return a->cfg->blocking && !a->cfg->shared && !(a->receives && sending_left(a));
}

static int draw_source(struct actor *a)
{
	return rng_percent(&a->rng, 40) ? IBVX_ANY_SOURCE : (int)rng_below(&a->rng, (uint64_t)a->cfg->ranks);
}

static int draw_tag(struct actor *a)
{
	return rng_percent(&a->rng, 40) ? IBVX_ANY_TAG : (int)rng_below(&a->rng, (uint64_t)a->cfg->tags);
}

/* Waits for one operation in particular if that is safe, else tests it. */
static bool complete_one(struct actor *a)
{
	unsigned i = (unsigned)rng_below(&a->rng, a->op_count);
	const struct operation *op = a->ops[i];
	int open_to_all;
	unsigned posted = posted_count(a, &open_to_all), left = remaining(a);
	bool may_block = blocking_allowed(a) && rng_percent(&a->rng, 30);
	bool safe = op->send ? !a->receives || left == 0 : (int)i == open_to_all && left >= posted;

	if (may_block && safe) {
		op_wait(a, i);
		return true;
	}
	return op_test(a, i);
}

static bool complete_some(struct actor *a)
{
	int open_to_all;
	unsigned left = remaining(a);
	bool safe;

	posted_count(a, &open_to_all);
	safe = a->receives ? left == 0 || open_to_all >= 0 : true;
	if (blocking_allowed(a) && safe && rng_percent(&a->rng, 40)) {
		if (a->alone && rng_percent(&a->rng, 40))
			op_peek(a);
		else
			op_waitany(a);
		return true;
	}
	return complete_one(a);
}

static bool receive_step(struct actor *a)
{
	int open_to_all, source = draw_source(a), tag = draw_tag(a);
	unsigned posted = posted_count(a, &open_to_all), left = remaining(a);
	bool may_block = blocking_allowed(a) && left > posted;

	switch (rng_below(&a->rng, 10)) {
	case 0:
		if (!may_block)
			break;
		op_blocking_receive(a, IBVX_ANY_SOURCE, IBVX_ANY_TAG);
		return true;
	case 1:
		if (!may_block)
			break;
		return op_probe(a, IBVX_ANY_SOURCE, IBVX_ANY_TAG, true);
	case 2: return op_probe(a, source, tag, false);
	case 3: op_matched(a, source, tag, may_block); return true;
	default: break;
	}
	op_start_receive(a, source, tag, NULL);
	return true;
}

/* The last message is here: what is still posted can never match. */
static void cancel_rest(struct actor *a)
{
	for (unsigned i = a->op_count; i-- > 0;)
		if (!a->ops[i]->send)
			op_cancel(a, i, true);
}

static bool choose(struct actor *a)
{
	bool room = a->op_count < a->cfg->ops;
	uint64_t draw = rng_below(&a->rng, 100);

	if (sending_left(a) && room && draw < 45) {
		if (a->cfg->blocking && !a->receives && rng_percent(&a->rng, 40))
			op_blocking_send(a);
		else
			op_start_send(a);
		return true;
	}
	if (remaining(a) && room && draw < 75)
		return receive_step(a);
	if (a->op_count && draw > 96) {
		op_cancel(a, (unsigned)rng_below(&a->rng, a->op_count), false);
		return false;
	}
	return a->op_count ? complete_some(a) : false;
}

bool actor_step(struct actor *a)
{
	int open_to_all;

	atomic_store(&a->doing, "step");
	atomic_fetch_add(&a->steps, 1);
	if (a->receives && remaining(a) == 0)
		cancel_rest(a);
	if (!sending_left(a) && remaining(a) == 0 && a->op_count == 0) {
		atomic_store(&a->doing, "round done");
		return true;
	}
	a->idle = choose(a) ? 0 : a->idle + 1;
	if (a->idle > 25 && remaining(a)) {
		posted_count(a, &open_to_all);
		if (open_to_all < 0)
			op_start_receive(a, IBVX_ANY_SOURCE, IBVX_ANY_TAG, NULL);
		a->idle = 0;
	}
	return false;
}
