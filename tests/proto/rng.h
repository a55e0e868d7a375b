/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_RNG_H
#define TESTS_PROTO_RNG_H
/*
 * rng: splitmix64.  Small, seedable, the same on every machine; one state per owner,
 * so that a run replays from its seed.
 */
#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline struct rng rng_seed(uint64_t seed, uint64_t stream)
{
	return (struct rng){rng_mix(seed * 0x9e3779b97f4a7c15u + rng_mix(stream + 1))};
}

static inline uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return rng_mix(r->state);
}

/* 0 .. below - 1; 0 for below == 0 */
static inline uint64_t rng_below(struct rng *r, uint64_t below)
{
	return below ? rng_next(r) % below : 0;
}

/* low .. high, both included */
static inline uint64_t rng_range(struct rng *r, uint64_t low, uint64_t high)
{
	return low + rng_below(r, high - low + 1);
}

static inline bool rng_percent(struct rng *r, unsigned percent)
{
	return percent && rng_below(r, 100) < percent;
}

#endif
