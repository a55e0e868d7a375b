/* SPDX-License-Identifier: MIT */
/* A learned choice: one side chooses, the other learns; without messages and clocks. */
#include "unit.h"

#include <stdlib.h>

#include "base/choice.h"

static uint64_t state;

/* 0 to below n, the same in every run of a seed. */
static uint64_t draw(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

struct pair {
	struct choice sender, receiver;
	uint64_t cost_ns[2]; /* of the machine, by method */
	unsigned noise_percent;
	unsigned late_percent; /* receives that are posted late: no sample */
	bool preempted;        /* the next sample of the second method is */
	uint64_t total_ns, best_ns, seconds;
};

static void pair_init(struct pair *p, uint64_t first_ns, uint64_t second_ns)
{
	*p = (struct pair){.cost_ns = {first_ns, second_ns}};
	choice_init(&p->sender);
	choice_init(&p->receiver);
}

static void message(struct pair *p)
{
	bool timed;
	unsigned method = choice_make(&p->sender, &timed);
	uint64_t ns = p->cost_ns[method];

	p->total_ns += ns;
	p->best_ns += p->cost_ns[0] < p->cost_ns[1] ? p->cost_ns[0] : p->cost_ns[1];
	p->seconds += method == 1;
	ns += ns * draw(p->noise_percent + 1) / 100;
	if (draw(200) == 0 || (p->preempted && method == 1))
		ns += 4000000; /* preempted */
	if (!timed || draw(100) < p->late_percent)
		return;
	p->preempted = p->preempted && method == 0;
	choice_learn(&p->receiver, method, ns);
	if (p->receiver.hint_pending) {
		p->receiver.hint_pending = false;
		choice_hint(&p->sender, p->receiver.in_best, p->receiver.in_interval);
	}
}

static void messages(struct pair *p, int count)
{
	p->total_ns = 0;
	p->best_ns = 0;
	p->seconds = 0;
	for (int i = 0; i < count; i++)
		message(p);
}

static const struct {
	uint64_t first_ns, second_ns;
} machines[] = {{1400, 5700}, {8600, 5400}, {28900, 15200}, {22000, 85000}, {123000, 95000}, {2400000, 4200000}, {9000, 8000}};

/* From the first message on the faster method is found; afterwards exploration costs about 1 %. */
static void finds_the_faster_method(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++)
		for (state = 1; state <= 20; state++) {
			uint64_t seed = state;
			struct pair p;

			pair_init(&p, machines[m].first_ns, machines[m].second_ns);
			p.noise_percent = 20;
			messages(&p, 2000);
			messages(&p, 20000);
			if (p.total_ns * 100 > p.best_ns * 103)
				fail_msg("machine %zu, seed %llu: %llu ns instead of %llu", m, (unsigned long long)seed,
					 (unsigned long long)p.total_ns, (unsigned long long)p.best_ns);
			state = seed;
		}
}

/* The machine changes between two states: the choice follows within some hundred messages. */
static void follows_the_machine(void **unused)
{
	(void)unused;
	for (state = 1; state <= 20; state++) {
		uint64_t seed = state;
		struct pair p;

		pair_init(&p, 1400, 5700);
		p.noise_percent = 20;
		messages(&p, 3000);
		for (int flip = 0; flip < 6; flip++) {
			p.cost_ns[0] = flip % 2 ? 1400 : 8600;
			p.cost_ns[1] = flip % 2 ? 5700 : 5400;
			messages(&p, 1500);
			messages(&p, 4000);
			if (p.total_ns * 100 > p.best_ns * 105)
				fail_msg("flip %d, seed %llu: %llu ns instead of %llu", flip, (unsigned long long)seed,
					 (unsigned long long)p.total_ns, (unsigned long long)p.best_ns);
		}
		state = seed;
	}
}

/* Two methods that cost the same: no back and forth beyond the hysteresis. */
static void equal_methods_do_not_alternate(void **unused)
{
	uint64_t changes = 0;
	struct pair p;

	(void)unused;
	state = 7;
	pair_init(&p, 10000, 10000);
	p.noise_percent = 5;
	for (int i = 0; i < 20000; i++) {
		uint8_t before = p.sender.best;

		message(&p);
		changes += before != p.sender.best;
	}
	assert_in_range(changes, 0, 20000 / 100);
}

/* A receiver that never measures is explored less and less. */
static void unmeasured(void **unused)
{
	struct pair p;

	(void)unused;
	state = 7;
	pair_init(&p, 1000, 4000);
	p.late_percent = 100;
	messages(&p, 10000);
	assert_in_range(p.seconds, 1, 30);
}

/* The first sample of the faster method was disturbed: the choice finds out soon. */
static void first_sample_preempted(void **unused)
{
	(void)unused;
	for (state = 1; state <= 20; state++) {
		uint64_t seed = state;
		struct pair p;

		pair_init(&p, 8600, 5400);
		p.noise_percent = 20;
		p.preempted = true;
		messages(&p, 300);
		messages(&p, 1000);
		assert_in_range(p.seconds, 900, 1000);
		state = seed;
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_faster_method),        cmocka_unit_test(follows_the_machine),
		cmocka_unit_test(equal_methods_do_not_alternate), cmocka_unit_test(unmeasured),
		cmocka_unit_test(first_sample_preempted),
	};

	return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
