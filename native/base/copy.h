/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_COPY_H
#define IBVX_BASE_COPY_H
/*
 * copy: memcpy for lengths that are known at run time only and mostly small, without a call for the smallest; and
 * memcpy past the caches.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* memcpy(to, from, n), and any addresses, also NULL, if n is 0. */
static inline void copy_small(void *to, const void *from, size_t n)
{
	uint64_t first, last;

	if (n - 8 > 8) { /* and not 8 to 16 */
		if (n)
			memcpy(to, from, n);
		return;
	}
	/* two words that may overlap */
	memcpy(&first, from, 8);
	memcpy(&last, (const char *)from + n - 8, 8);
	memcpy(to, &first, 8);
	memcpy((char *)to + n - 8, &last, 8);
}

/* memcpy, copy_streaming. */
typedef void *copy_fn(void *to, const void *from, size_t n);

/* As memcpy, but by stores that go to memory instead of into this processor's caches (x86: non-temporal stores, and a
 * fence behind them): the processor that reads the copy next need not fetch each line out of our cache.
 * On other processors it is memcpy; copy_can_stream() is false there. */
copy_fn copy_streaming;
bool copy_can_stream(void);

#endif
