/* SPDX-License-Identifier: MIT */
#include "base/fence.h"

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

bool fence_possible(void)
{
	static _Atomic int answer; /* 0: not asked yet, 1: yes, 2: no */
	int known = atomic_load_explicit(&answer, memory_order_acquire);

	if (!known) {
		known = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 1 : 2;
		atomic_store_explicit(&answer, known, memory_order_release);
	}
	return known == 1;
}

void fence_others(void)
{
	static const struct timespec tick = {.tv_nsec = 20 * CLOCK_NS_PER_MS};

	/* it cannot fail for a process that has registered, unless a filter of system calls came since: then
	 * the others' next interrupt has to do */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
		nanosleep(&tick, NULL);
}
