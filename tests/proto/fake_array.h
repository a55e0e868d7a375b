/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_FAKE_ARRAY_H
#define TESTS_PROTO_FAKE_ARRAY_H
/*
 * moving: memory as a collector sees it.  While no region is open it may lie anywhere: opening and closing one moves it, and
 * the place where it was is filled with rubbish and freed, so that ASan or a check of the bytes catches whoever kept
 * an address.  One thread at a time, of lent memory whichever.
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
	bool open;             /* a region is open */
	unsigned regions;
	unsigned refuse;       /* so many times there is no region just now */
	void (*on_enter)(struct fake_array *m, void *arg); /* or NULL */
	void *arg;
	atomic_uint *dropped;
};

/* Takes `at` (from malloc) over. */
void fake_array_init(struct fake_array *m, char *at, size_t bytes, uint64_t seed);

/* The same to be lent (ibvx_pin_isend): who drops it frees it, and counts one in *dropped. */
struct ibvx_pin *fake_array_lend(char *at, size_t bytes, uint64_t seed, atomic_uint *dropped);

/* After a receive: brings what was staged to its place. */
void fake_array_bring(struct fake_array *m);

#endif
