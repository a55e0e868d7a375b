/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TESTS_FUZZ_H
#define IBVX_TESTS_FUZZ_H
/*
 * fuzz: valid inputs, damaged at random, thrown at a parser; no tool needed.  Without a seed each run takes another one.
 *
 *   fuzz-conf [ITERATIONS [SEED]]
 *
 * Iteration i of seed s is iteration 0 of seed s + i.  FUZZ_VERBOSE=1 prints each before it runs, so the last line
 * before a crash shows how to run just that one.  Build with -Db_sanitize=address,undefined to see more than crashes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fuzz_rng {
	uint64_t state;
};

static inline uint64_t fuzz_next(struct fuzz_rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15u); /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline size_t fuzz_below(struct fuzz_rng *rng, size_t limit)
{
	return limit ? (size_t)(fuzz_next(rng) % limit) : 0;
}

/* Damages bytes[*len] (room for `room`) in one place. */
static inline void fuzz_damage(struct fuzz_rng *rng, uint8_t *bytes, size_t *len, size_t room)
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, ';', '@', '#', '\n', '-', '0', '9', ' '};
	size_t at = fuzz_below(rng, *len + 1), count = 1 + fuzz_below(rng, 16);

	switch (fuzz_below(rng, 6)) {
	case 0: /* flip */
		if (at < *len)
			bytes[at] ^= (uint8_t)(1u << fuzz_below(rng, 8));
		break;
	case 1: /* an edge value */
		if (at < *len)
			bytes[at] = edges[fuzz_below(rng, sizeof(edges))];
		break;
	case 2: /* cut off */ *len = at; break;
	case 3: /* cut out */
		count = count < *len - at ? count : *len - at;
		memmove(bytes + at, bytes + at + count, *len - at - count);
		*len -= count;
		break;
	case 4: /* repeat a piece */
		count = count < *len - at ? count : *len - at;
		if (*len + count > room)
			break;
		memmove(bytes + at + count, bytes + at, *len - at);
		*len += count;
		break;
	default: /* overwrite with noise */
		for (size_t i = at; i < *len && i < at + count; i++)
			bytes[i] = (uint8_t)fuzz_next(rng);
		break;
	}
}

/* Another one each run; it is printed. */
static inline unsigned long fuzz_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return ((unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000) % 1000000000ul;
}

/* Runs one damaged input; returns 0, or prints what is wrong and returns 1. */
typedef int fuzz_target(struct fuzz_rng *rng);

static inline int fuzz_main(int argc, char **argv, unsigned long iterations, fuzz_target *target)
{
	unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : fuzz_seed();
	int verbose = getenv("FUZZ_VERBOSE") != NULL;

	if (argc > 1)
		iterations = strtoul(argv[1], NULL, 10);
	fprintf(stderr, "%lu iterations from seed %lu\n", iterations, seed);
	for (unsigned long i = 0; i < iterations; i++) {
		struct fuzz_rng rng = {.state = seed + i};

		if (verbose)
			fprintf(stderr, "seed %lu\n", seed + i);
		fuzz_next(&rng);
		if (target(&rng)) {
			fprintf(stderr, "failed: run again with arguments 1 %lu\n", seed + i);
			return 1;
		}
	}
	return 0;
}

#endif
