/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
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
		if (i % 3 == 0) {
			while (!lock_try(&s->lock))
				sched_yield();
		} else {
			lock_acquire(&s->lock);
		}
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

static void test_try(void **state)
{
	struct lock lock = LOCK_INIT;

	(void)state;
	assert_true(lock_try(&lock));
	assert_false(lock_try(&lock));
	lock_release(&lock);
	assert_true(lock_try(&lock));
	lock_release(&lock);
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

/* Store buffering: each side writes its word, releases a lock of its own, reads the other's
 * word.  If release is a full fence, not both can read the old value. */
#define BATCHES 300
#define BATCH 1000

struct word {
	_Alignas(64) _Atomic int value;
};

struct side {
	struct lock lock;
	struct word *mine, *others; /* BATCH of each */
	struct word at;             /* how many batches this side has begun */
	struct side *other;
	bool seen[BATCHES][BATCH];
};

static void *store_then_load(void *arg)
{
	struct side *side = arg;

	for (int batch = 1; batch <= BATCHES; batch++) {
		atomic_store(&side->at.value, batch);
		/* Both begin in the same instant where there are two processors. */
		for (int spins = 0; atomic_load(&side->other->at.value) < batch; spins++) {
			if (spins > 1000)
				sched_yield();
		}
		for (int i = 0; i < BATCH; i++) {
			lock_acquire(&side->lock);
			atomic_store_explicit(&side->mine[i].value, batch, memory_order_relaxed);
			lock_release(&side->lock);
			side->seen[batch - 1][i] =
				atomic_load_explicit(&side->others[i].value, memory_order_relaxed) >= batch;
		}
	}
	return NULL;
}

static void test_release_is_a_full_fence(void **state)
{
	static struct word words[2][BATCH];
	static struct side sides[2];
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		sides[i].mine = words[i];
		sides[i].others = words[!i];
		sides[i].other = &sides[!i];
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, store_then_load, &sides[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int batch = 0; batch < BATCHES; batch++) {
		for (int i = 0; i < BATCH; i++)
			assert_true(sides[0].seen[batch][i] || sides[1].seen[batch][i]);
	}
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
		cmocka_unit_test(test_try),
		cmocka_unit_test(test_excludes_when_short),
		cmocka_unit_test(test_excludes_when_the_holder_loses_its_core),
		cmocka_unit_test(test_release_wakes_all_sleepers_in_turn),
		cmocka_unit_test(test_release_is_a_full_fence),
		cmocka_unit_test(test_futex_answers),
		cmocka_unit_test(test_clock_runs_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
