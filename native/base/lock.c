/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/clock.h"
#include "base/futex.h"

/* About a microsecond: longer than the usual critical section, shorter than a sleep. */
#define SPINS_MAX 48u
#define SPINS_MIN 8u

/* Spins while the holder may be about to let go.  True: we hold it. */
static bool spin(struct lock *lock)
{
	uint32_t hint = atomic_load_explicit(&lock->spins, memory_order_relaxed);
	uint32_t limit = 2 * hint + SPINS_MIN;

	if (limit > SPINS_MAX)
		limit = SPINS_MAX;
	for (uint32_t n = 0; n < limit; n++) {
		uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);

		if (state == LOCK_FREE && lock_try(lock)) {
			atomic_store_explicit(&lock->spins, (hint + n) / 2, memory_order_relaxed);
			return true;
		}
		/* Somebody sleeps already: the holder is off its core or slow. */
		if (state == LOCK_CONTENDED)
			break;
		cpu_relax();
	}
	atomic_store_explicit(&lock->spins, hint / 2, memory_order_relaxed);
	return false;
}

void lock_acquire_slow(struct lock *lock)
{
	if (spin(lock))
		return;
	/* A thread that has slept cannot know whether others still do, so it takes the lock as
	 * contended: at worst one wake for nobody. */
	while (atomic_exchange_explicit(&lock->state, LOCK_CONTENDED, memory_order_acquire) != LOCK_FREE)
		futex_wait(&lock->state, LOCK_CONTENDED, -1, false);
}

void lock_wake(struct lock *lock)
{
	futex_wake(&lock->state, 1, false);
}
