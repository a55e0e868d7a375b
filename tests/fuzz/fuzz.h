/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TESTS_FUZZ_H
#define IBVX_TESTS_FUZZ_H
/*
 * fuzz: what the targets share.  A target is one file with LLVMFuzzerTestOneInput(): libFuzzer calls it where the build has
 * the option fuzz, replay.c elsewhere.  What must not be ends the program by fuzz_check(), and the input is kept.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(condition)                                                           \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* An input from its start; behind its end come zeros. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

static inline size_t fuzz_take(struct fuzz_input *in, void *out, size_t len)
{
	size_t n = len < in->left ? len : in->left;

	memset(out, 0, len);
	if (n)
		memcpy(out, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}

/* A number below limit, which is at most 256; of one byte. */
static inline int fuzz_below(struct fuzz_input *in, int limit)
{
	uint8_t byte;

	fuzz_take(in, &byte, 1);
	return byte % limit;
}

/* A copy of exactly that size, so that a read beyond its end is seen. */
static inline void *fuzz_copy(const void *from, size_t size)
{
	void *copy = malloc(size ? size : 1);

	fuzz_check(copy);
	if (size)
		memcpy(copy, from, size);
	return copy;
}

/* The same as a text, up to the first null byte. */
static inline char *fuzz_text(const uint8_t *from, size_t size)
{
	char *text = strndup((const char *)from, size);

	fuzz_check(text);
	return text;
}

#endif
