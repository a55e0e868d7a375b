/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_LOCK_H
#define IBVX_BASE_LOCK_H
/*
 * lock: a mutex for the threads of one process.  Zeroed memory is a free lock; there is nothing to destroy.
 * Not recursive, not fair: a thread that waits spins for a moment (less if spinning did not help lately), then sleeps.
 *
 * It is a mutex of one word (U. Drepper, "Futexes Are Tricky", mutex 2) with a bias: a thread that has taken it
 * many times in a row, and nobody else, becomes its biased owner and then takes and gives it with plain stores.  Anybody
 * else takes the mutex first and then ends the bias:
 *
 *   biased owner:  bias mine?  inside[seat] = 1; (compiler barrier); bias still mine?   yes: holds it   no: inside[seat] = 0, mutex
 *   other:      mutex; bias = 0; membarrier(2); wait until inside[seat] == 0                       : holds it
 *
 * Either the biased owner sees the end of the bias, or the other sees it inside: the system call is the full fence that
 * the biased owner saves.  Each ended bias makes the next one come later.  Without the system call there is no bias.
 *
 * A thread that was the biased owner may have lost its core between its two looks, for so long that others have been it
 * since; what it then writes must not be read as theirs.  So every biased owner has a seat of its own, kept while it
 * lives.  If all seats are taken by living threads, others do without a bias.
 *
 * lock_release() is a release, not a full fence.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_state { LOCK_FREE = 0, LOCK_HELD = 1, LOCK_CONTENDED = 2 };

/* Fits into the low bits of lock_self. */
#define LOCK_SEATS 8u

struct lock {
	_Atomic uint32_t state;   /* enum lock_state; the futex word */
	_Atomic uint32_t spins;   /* how long spinning took when it last helped; a hint */
	_Atomic uint32_t waiting; /* threads in lock_acquire_slow() */
	/* lock_self of the biased owner, and its seat, or 0; changed by holders of the mutex */
	_Atomic uintptr_t bias;
	/* of a seat: its owner holds the lock, or is about to look whether it may */
	_Atomic uint8_t inside[LOCK_SEATS];
	/* the holder's: */
	uint8_t by_bias; /* how it was taken: 0, or 1 + the biased owner's seat */
	uint8_t ended;   /* how many biases have ended, up to a limit */
	uint32_t streak; /* how often `last` has taken the mutex in a row */
	uintptr_t last;
	struct {
		uintptr_t thread; /* lock_self, or 0: free */
		int tid;
	} owner[LOCK_SEATS];
};
#define LOCK_INIT \
	{         \
		0 \
	}

void lock_acquire_slow(struct lock *lock);
/* The mutex is ours: ends a bias of another thread, and may be biased towards this one from now on. */
void lock_settle(struct lock *lock);
void lock_wake(struct lock *lock);

/* The calling thread: a multiple of LOCK_SEATS that no other thread has had, or 0 before its first lock_settle(). */
extern _Thread_local uintptr_t lock_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The biased owner's two looks.  The first: the bias, if it is this thread's, else 0. */
static inline uintptr_t lock_bias_of(const struct lock *lock)
{
	uintptr_t bias = atomic_load_explicit(&lock->bias, memory_order_relaxed);

	return (bias & ~(uintptr_t)(LOCK_SEATS - 1)) == lock_self ? bias : 0;
}

/* The second, however long after the first. */
static inline bool lock_enter_bias(struct lock *lock, uintptr_t bias)
{
	unsigned seat = (unsigned)bias % LOCK_SEATS;

	atomic_store_explicit(&lock->inside[seat], 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&lock->bias, memory_order_relaxed) == bias) {
		lock->by_bias = (uint8_t)(seat + 1);
		return true;
	}
	atomic_store_explicit(&lock->inside[seat], 0, memory_order_release);
	return false;
}

static inline bool lock_try_mutex(struct lock *lock)
{
	uint32_t expected = LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &expected, LOCK_HELD, memory_order_acquire, memory_order_relaxed);
}

static inline void lock_acquire(struct lock *lock)
{
	uintptr_t bias = lock_bias_of(lock);

	if (bias && lock_enter_bias(lock, bias))
		return;
	if (!lock_try_mutex(lock))
		lock_acquire_slow(lock);
	lock_settle(lock);
}

/* The caller holds the lock: does another thread wait for it? One that has come this very moment may not be seen. */
static inline bool lock_is_awaited(const struct lock *lock)
{
	return atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0 ||
	       (lock->by_bias && atomic_load_explicit(&lock->state, memory_order_relaxed) != LOCK_FREE);
}

static inline void lock_release(struct lock *lock)
{
	unsigned by_bias = lock->by_bias;

	if (by_bias) {
		lock->by_bias = 0;
		atomic_store_explicit(&lock->inside[by_bias - 1], 0, memory_order_release);
		return;
	}
	if (atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_release) == LOCK_CONTENDED)
		lock_wake(lock);
}

#endif
