/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fence.h"
#include "base/futex.h"

#define SPINS_MAX 48u
#define SPINS_MIN 8u

/* The first bias comes after so many takings in a row; each that ended doubles it, so often. */
#define BIAS_STREAK 256u
#define BIAS_DOUBLINGS 12u

_Thread_local uintptr_t lock_self;

static bool spin(struct lock *lock)
{
	uint32_t hint = atomic_load_explicit(&lock->spins, memory_order_relaxed);
	uint32_t limit = 2 * hint + SPINS_MIN;

	if (limit > SPINS_MAX)
		limit = SPINS_MAX;
	for (uint32_t n = 0; n < limit; n++) {
		uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);

		if (state == LOCK_FREE && lock_try_mutex(lock)) {
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
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	if (!spin(lock)) {
		/* A thread that has slept cannot know whether others still do, so it takes the lock as
		 * contended: at worst one wake for nobody. */
		while (atomic_exchange_explicit(&lock->state, LOCK_CONTENDED, memory_order_acquire) != LOCK_FREE)
			futex_wait(&lock->state, LOCK_CONTENDED, -1, false);
	}
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

void lock_wake(struct lock *lock)
{
	futex_wake(&lock->state, 1, false);
}

/* The biased owner may be off its core, or in the midst of a long copy. */
static void seat_wait(const _Atomic uint8_t *inside)
{
	static const struct timespec moment = {.tv_nsec = 50 * CLOCK_NS_PER_US};

	for (int n = 0; atomic_load_explicit(inside, memory_order_acquire); n++) {
		if (n < 64)
			cpu_relax();
		else if (n < 128)
			sched_yield();
		else
			nanosleep(&moment, NULL);
	}
}

static void bias_end(struct lock *lock, uintptr_t bias)
{
	atomic_store_explicit(&lock->bias, 0, memory_order_relaxed);
	fence_others();
	seat_wait(&lock->inside[bias % LOCK_SEATS]);
	if (lock->ended < BIAS_DOUBLINGS)
		lock->ended++;
}

static bool is_dead(int tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

/* This thread's seat: the one that it has, a free one, or that of a dead thread. -1: there is none. */
static int seat_take(struct lock *lock)
{
	int seat = -1;

	for (int i = 0; i < (int)LOCK_SEATS; i++) {
		if (lock->owner[i].thread == lock_self)
			return i;
		if (seat < 0 && !lock->owner[i].thread)
			seat = i;
	}
	for (int i = 0; seat < 0 && i < (int)LOCK_SEATS; i++) {
		if (is_dead(lock->owner[i].tid))
			seat = i;
	}
	if (seat >= 0) {
		lock->owner[seat].thread = lock_self;
		lock->owner[seat].tid = (int)syscall(SYS_gettid);
	}
	return seat;
}

void lock_settle(struct lock *lock)
{
	static _Atomic uintptr_t last_self;
	uintptr_t bias = atomic_load_explicit(&lock->bias, memory_order_relaxed);

	if (!lock_self)
		lock_self = atomic_fetch_add_explicit(&last_self, LOCK_SEATS, memory_order_relaxed) + LOCK_SEATS;
	if (bias)
		bias_end(lock, bias);
	if (lock->last != lock_self) {
		lock->last = lock_self;
		lock->streak = 0;
	} else if (++lock->streak >= BIAS_STREAK << lock->ended) {
		int seat = fence_possible() ? seat_take(lock) : -1;

		lock->streak = 0;
		if (seat >= 0)
			atomic_store_explicit(&lock->bias, lock_self | (uintptr_t)seat, memory_order_relaxed);
	}
}
