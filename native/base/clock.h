/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_CLOCK_H
#define IBVX_BASE_CLOCK_H
/*
 * clock: the one clock of the library, and the pause for spin loops.
 *
 * CLOCK_MONOTONIC is read in user space (vdso) and is the same for every process of a
 * node, so that times of two local ranks can be compared.
 */
#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_US INT64_C(1000)
#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

static inline int64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * CLOCK_NS_PER_S + ts.tv_nsec;
}

/* One turn of a spin loop: lets the other hyper-thread and the memory system breathe. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif
