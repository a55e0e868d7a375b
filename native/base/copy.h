/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_COPY_H
#define IBVX_BASE_COPY_H
/*
 * copy: memcpy for lengths that are known at run time only and mostly small, without a call for the smallest.
 */
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

#endif
