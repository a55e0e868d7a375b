/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fence.h"
#include "base/futex.h"
#include "base/lock.h"

#define THREADS 6
#define ROUNDS 30000

/* The counters are plain on purpose: TSan and the sums both see a lock that does not lock. */
struct shared {
	struct lock lock;
	uint64_t count, mirror;
	uint64_t torn;
	int rounds;
	int yield_every;
};

static void *hammer(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < s->rounds; i++) {
		lock_acquire(&s->lock);
		if (s->count != s->mirror)
			s->torn++;
		s->count++;
		/* Losing the core inside makes the others sleep. */
		if (s->yield_every && i % s->yield_every == 0)
			sched_yield();
		s->mirror++;
		lock_release(&s->lock);
	}
	return NULL;
}

static void run_hammer(int rounds, int yield_every)
{
	struct shared s = {.lock = LOCK_INIT, .rounds = rounds, .yield_every = yield_every};
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, &s), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(s.torn, 0);
	assert_int_equal(s.count, (uint64_t)THREADS * (uint64_t)rounds);
	assert_int_equal(s.mirror, s.count);
	assert_int_equal(atomic_load(&s.lock.state), LOCK_FREE);
}

static void test_excludes_when_short(void **state)
{
	(void)state;
	run_hammer(ROUNDS, 0);
}

static void test_excludes_when_the_holder_loses_its_core(void **state)
{
	(void)state;
	run_hammer(ROUNDS / 10, 2);
}

struct sleeper {
	struct lock lock;
	_Atomic int got;
};

static void *take(void *arg)
{
	struct sleeper *s = arg;

	lock_acquire(&s->lock);
	atomic_fetch_add(&s->got, 1);
	lock_release(&s->lock);
	return NULL;
}

/* All of them sleep, one release wakes them one after the other. */
static void test_release_wakes_all_sleepers_in_turn(void **state)
{
	struct sleeper s = {.lock = LOCK_INIT};
	pthread_t threads[THREADS];

	(void)state;
	lock_acquire(&s.lock);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take, &s), 0);
	while (atomic_load(&s.lock.state) != LOCK_CONTENDED)
		sched_yield();
	assert_int_equal(atomic_load(&s.got), 0);
	lock_release(&s.lock);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&s.got), THREADS);
}

static void take_often(struct lock *lock, int times)
{
	for (int i = 0; i < times; i++) {
		lock_acquire(lock);
		lock_release(lock);
	}
}

static void *take_once(void *arg)
{
	take_often(arg, 1);
	return NULL;
}

static void test_bias_comes_and_goes(void **state)
{
	struct lock lock = LOCK_INIT;
	pthread_t other;

	(void)state;
	if (!fence_possible())
		skip();
	take_often(&lock, 10);
	assert_int_equal(lock.bias, 0);
	take_often(&lock, 1000);
	assert_true(lock_bias_of(&lock));
	lock_acquire(&lock);
	assert_int_equal(lock.state, LOCK_FREE);
	assert_int_equal(lock.inside[lock.by_bias - 1], 1);
	lock_release(&lock);
	assert_int_equal(pthread_create(&other, NULL, take_once, &lock), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(lock.bias, 0);
	assert_int_equal(lock.ended, 1);
	/* and later than the first time */
	take_often(&lock, 300);
	assert_int_equal(lock.bias, 0);
	take_often(&lock, 1000);
	assert_true(lock_bias_of(&lock));
}

/* Another thread waits until the biased owner has left. */
static void test_biased_owner_excludes(void **state)
{
	struct sleeper s = {.lock = LOCK_INIT};
	pthread_t other;

	(void)state;
	if (!fence_possible())
		skip();
	take_often(&s.lock, 1000);
	lock_acquire(&s.lock);
	assert_true(s.lock.by_bias);
	assert_int_equal(pthread_create(&other, NULL, take, &s), 0);
	while (atomic_load(&s.lock.bias))
		sched_yield();
	usleep(20000);
	assert_int_equal(atomic_load(&s.got), 0);
	lock_release(&s.lock);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(atomic_load(&s.got), 1);
}

/* As a thread that lost its core between the biased owner's two looks: others have been the biased owner since. */
struct late {
	struct sleeper s;
	pthread_barrier_t step;
	bool entered;
};

static void *look_late(void *arg)
{
	struct late *l = arg;
	uintptr_t bias;

	take_often(&l->s.lock, 1000);
	bias = lock_bias_of(&l->s.lock);
	assert_true(bias);
	pthread_barrier_wait(&l->step); /* the other becomes the biased owner, and holds it */
	pthread_barrier_wait(&l->step);
	l->entered = lock_enter_bias(&l->s.lock, bias);
	pthread_barrier_wait(&l->step);
	return NULL;
}

static void test_a_late_look_does_not_let_others_in(void **state)
{
	struct late l = {.s.lock = LOCK_INIT};
	pthread_t late, third;

	(void)state;
	if (!fence_possible())
		skip();
	pthread_barrier_init(&l.step, NULL, 2);
	assert_int_equal(pthread_create(&late, NULL, look_late, &l), 0);
	pthread_barrier_wait(&l.step);
	take_often(&l.s.lock, 5000);
	lock_acquire(&l.s.lock);
	assert_true(l.s.lock.by_bias);
	pthread_barrier_wait(&l.step);
	pthread_barrier_wait(&l.step);
	assert_false(l.entered);
	assert_int_equal(pthread_create(&third, NULL, take, &l.s), 0);
	while (atomic_load(&l.s.lock.bias))
		sched_yield();
	usleep(20000);
	assert_int_equal(atomic_load(&l.s.got), 0);
	lock_release(&l.s.lock);
	assert_int_equal(pthread_join(third, NULL), 0);
	assert_int_equal(atomic_load(&l.s.got), 1);
	assert_int_equal(pthread_join(late, NULL), 0);
	pthread_barrier_destroy(&l.step);
}

struct guests {
	struct lock lock;
	pthread_barrier_t turn, end;
};

static bool becomes_biased_owner(struct lock *lock)
{
	lock->ended = 0; /* one at a time */
	take_often(lock, 1000);
	return lock_bias_of(lock) != 0;
}

static void *sit_for_a_moment(void *arg)
{
	struct guests *g = arg;

	return becomes_biased_owner(&g->lock) ? g : NULL;
}

static void *sit_down(void *arg)
{
	struct guests *g = arg;
	bool biased = becomes_biased_owner(&g->lock);

	pthread_barrier_wait(&g->turn);
	pthread_barrier_wait(&g->end);
	return biased ? g : NULL;
}

/* A living thread keeps its seat; dead ones leave theirs. */
static void test_seats(void **state)
{
	struct guests g = {.lock = LOCK_INIT};
	pthread_t threads[LOCK_SEATS];
	void *biased;

	(void)state;
	if (!fence_possible())
		skip();
	pthread_barrier_init(&g.turn, NULL, 2);
	pthread_barrier_init(&g.end, NULL, LOCK_SEATS + 1);
	/* it leaves the bias behind, and its place in memory to the first that stays */
	assert_int_equal(pthread_create(&threads[0], NULL, sit_for_a_moment, &g), 0);
	assert_int_equal(pthread_join(threads[0], &biased), 0);
	assert_non_null(biased);
	for (unsigned i = 0; i < LOCK_SEATS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, sit_down, &g), 0);
		pthread_barrier_wait(&g.turn);
	}
	assert_false(becomes_biased_owner(&g.lock));
	pthread_barrier_wait(&g.end);
	for (unsigned i = 0; i < LOCK_SEATS; i++) {
		assert_int_equal(pthread_join(threads[i], &biased), 0);
		assert_non_null(biased);
	}
	while (!becomes_biased_owner(&g.lock)) /* the system may call a joined thread alive for a moment */
		sched_yield();
	pthread_barrier_destroy(&g.turn);
	pthread_barrier_destroy(&g.end);
}

struct courtship {
	struct shared s;
	atomic_bool stop;
	uint64_t by_bias, intrusions;
};

/* In bursts long enough to become the biased owner; how often biases ended is forgotten, so that they go on coming. */
static void *biased_main(void *arg)
{
	struct courtship *c = arg;

	while (!atomic_load(&c->stop)) {
		lock_acquire(&c->s.lock);
		c->by_bias += c->s.lock.by_bias != 0;
		c->s.lock.ended = 0;
		if (c->s.count != c->s.mirror)
			c->s.torn++;
		c->s.count++;
		c->s.mirror++;
		lock_release(&c->s.lock);
	}
	return NULL;
}

static void *intruder(void *arg)
{
	struct courtship *c = arg;

	for (int i = 0; i < 400; i++) {
		usleep((useconds_t)(i * 7 % 50));
		lock_acquire(&c->s.lock);
		if (c->s.count != c->s.mirror)
			c->s.torn++;
		c->s.count++;
		c->intrusions++;
		if (i % 5 == 0)
			sched_yield();
		c->s.mirror++;
		lock_release(&c->s.lock);
	}
	return NULL;
}

static void test_excludes_while_biases_come_and_go(void **state)
{
	struct courtship c = {.s = {.lock = LOCK_INIT}};
	pthread_t biased, others[2];

	(void)state;
	assert_int_equal(pthread_create(&biased, NULL, biased_main, &c), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&others[i], NULL, intruder, &c), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(others[i], NULL), 0);
	atomic_store(&c.stop, true);
	assert_int_equal(pthread_join(biased, NULL), 0);
	assert_int_equal(c.s.torn, 0);
	assert_int_equal(c.s.count, c.s.mirror);
	assert_int_equal(c.intrusions, 800);
	if (fence_possible())
		assert_true(c.by_bias > 0);
}

static void test_futex_answers(void **state)
{
	uint32_t word = 5;

	(void)state;
	assert_int_equal(futex_wait(&word, 4, -1, false), -EAGAIN);
	assert_int_equal(futex_wait(&word, 4, 0, true), -EAGAIN);
	assert_int_equal(futex_wait(&word, 5, 0, false), -ETIMEDOUT);
	assert_int_equal(futex_wait(&word, 5, 2 * CLOCK_NS_PER_MS, true), -ETIMEDOUT);
	assert_int_equal(futex_wake(&word, INT_MAX, false), 0);
}

static void test_clock_runs_forward(void **state)
{
	int64_t before = clock_now_ns();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_now_ns();

		cpu_relax();
		assert_true(now >= before);
		before = now;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_excludes_when_short),
		cmocka_unit_test(test_excludes_when_the_holder_loses_its_core),
		cmocka_unit_test(test_release_wakes_all_sleepers_in_turn),
		cmocka_unit_test(test_bias_comes_and_goes),
		cmocka_unit_test(test_biased_owner_excludes),
		cmocka_unit_test(test_a_late_look_does_not_let_others_in),
		cmocka_unit_test(test_seats),
		cmocka_unit_test(test_excludes_while_biases_come_and_go),
		cmocka_unit_test(test_futex_answers),
		cmocka_unit_test(test_clock_runs_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
