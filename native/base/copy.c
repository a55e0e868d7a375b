/* SPDX-License-Identifier: MIT */
#include "base/copy.h"

#ifdef __SSE2__
#include <emmintrin.h>

#define COPY_LINE 64u

static void copy_line(void *to, const void *from)
{
	const __m128i *f = from;
	__m128i *t = to;
	__m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1), c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);

	_mm_stream_si128(t, a);
	_mm_stream_si128(t + 1, b);
	_mm_stream_si128(t + 2, c);
	_mm_stream_si128(t + 3, d);
}

void *copy_streaming(void *to, const void *from, size_t n)
{
	const char *f = from;
	char *t = to;
	size_t first = -(uintptr_t)t % COPY_LINE; /* whole lines alone leave the processor in one piece */

	if (first > n)
		first = n;
	memcpy(t, f, first);
	for (n -= first, t += first, f += first; n >= COPY_LINE; n -= COPY_LINE, t += COPY_LINE, f += COPY_LINE)
		copy_line(t, f);
	memcpy(t, f, n);
	_mm_sfence(); /* such stores are not ordered before the store that announces them */
	return to;
}

bool copy_can_stream(void)
{
	return true;
}
#else
void *copy_streaming(void *to, const void *from, size_t n)
{
	return memcpy(to, from, n);
}

bool copy_can_stream(void)
{
	return false;
}
#endif
