/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_FAKE_ARRAY_H
#define TESTS_PROTO_FAKE_ARRAY_H
/*
 * fake_array: memory as a collector sees it.  While it is not pinned it may lie anywhere: pinning and unpinning relocates it, and
 * the place where it was is filled with rubbish and freed, so that ASan or a check of the bytes catches code that kept
 * an address.  One thread at a time, any thread for zero-copy sends.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "ibvx_pin.h"
#include "rng.h"

struct fake_array {
	struct ibvx_pin pinnable; /* first */
	char *at;
	size_t bytes;
	struct rng rng;
	bool open; /* pinned */
	unsigned pins;
	unsigned refuse;                                   /* so many times it cannot be pinned */
	void (*on_enter)(struct fake_array *m, void *arg); /* or NULL */
	void *arg;
	atomic_uint *dropped;
};

/* Takes `at` (from malloc) over. */
void fake_array_init(struct fake_array *m, char *at, size_t bytes, uint64_t seed);

/* The same for a zero-copy send (ibvx_pin_isend): drop() frees it and counts one in *dropped. */
struct ibvx_pin *fake_array_donate(char *at, size_t bytes, uint64_t seed, atomic_uint *dropped);

/* After a receive: copies what was bounced to its destination. */
void fake_array_bring(struct fake_array *m);

#endif
