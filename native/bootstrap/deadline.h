/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_DEADLINE_H
#define IBVX_BOOTSTRAP_DEADLINE_H
/*
 * deadline: a moment of the monotonic clock, in ns, by which something must have happened.
 */
#include <stdint.h>

#include "base/clock.h"

static inline int64_t deadline_after_ms(int64_t ms)
{
	return clock_now_ns() + ms * CLOCK_NS_PER_MS;
}

static inline int64_t deadline_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Rounded up; 0 when it has passed. */
static inline int deadline_left_ms(int64_t deadline)
{
	int64_t left = deadline - clock_now_ns();

	if (left <= 0)
		return 0;
	left = (left + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
	return left > INT32_MAX ? INT32_MAX : (int)left;
}

#endif
