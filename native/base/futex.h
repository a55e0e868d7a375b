/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_FUTEX_H
#define IBVX_BASE_FUTEX_H
/*
 * futex: sleeping on a 32-bit word.  addr is any aligned 32-bit word, atomic or plain;
 * the kernel reads it.  shared: the word lies in memory that several processes map (both sides
 * must report it).
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Sleeps while *addr == expected, at most timeout_ns (-1: no limit).  0: woken (perhaps for
 * nothing), -EAGAIN: *addr differs, -ETIMEDOUT, -EINTR.  Whatever it is: look at *addr again. */
static inline int futex_wait(const void *addr, uint32_t expected, int64_t timeout_ns, bool shared)
{
	struct timespec ts = {0};

	if (timeout_ns > 0) {
		ts.tv_sec = (time_t)(timeout_ns / CLOCK_NS_PER_S);
		ts.tv_nsec = (long)(timeout_ns % CLOCK_NS_PER_S);
	}
	if (syscall(SYS_futex, addr, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? NULL : &ts, NULL, 0) == 0)
		return 0;
	return -errno;
}

/* Wakes at most n sleepers (INT_MAX: all); returns how many woke, or -errno. */
static inline int futex_wake(const void *addr, int n, bool shared)
{
	long woken = syscall(SYS_futex, addr, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);

	return woken < 0 ? -errno : (int)woken;
}

#endif
