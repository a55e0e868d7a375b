/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_LOCK_H
#define IBVX_BASE_LOCK_H
/*
 * lock: a mutex of one word (U. Drepper, "Futexes Are Tricky", mutex 2) for the threads of
 * one process.  Zeroed memory is a free lock; there is nothing to destroy.
 *
 * Not recursive, not fair, no owner kept: whoever waits spins for a moment (less if spinning
 * did not pay lately), then sleeps.
 *
 * lock_release() is a full fence: what the holder wrote is visible to others before anything
 * that the caller reads afterwards (transport.ring relies on it).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_state { LOCK_FREE = 0, LOCK_HELD = 1, LOCK_CONTENDED = 2 };

struct lock {
	_Atomic uint32_t state; /* enum lock_state; the futex word */
	_Atomic uint32_t spins; /* how long spinning took when it last paid; a hint */
};
#define LOCK_INIT {LOCK_FREE, 0}

void lock_acquire_slow(struct lock *lock);
void lock_wake(struct lock *lock);

static inline bool lock_try(struct lock *lock)
{
	uint32_t expected = LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &expected, LOCK_HELD,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void lock_acquire(struct lock *lock)
{
	if (!lock_try(lock))
		lock_acquire_slow(lock);
}

static inline void lock_release(struct lock *lock)
{
	uint32_t before = atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_seq_cst);

#if !defined(__x86_64__) && !defined(__i386__)
	atomic_thread_fence(memory_order_seq_cst);
#endif
	if (before == LOCK_CONTENDED)
		lock_wake(lock);
}

#endif
