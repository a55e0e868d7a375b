/* SPDX-License-Identifier: MIT */
#ifndef TESTS_COLL_CASE_H
#define TESTS_COLL_CASE_H
/*
 * case: one collective operation with its memory, and the result that a trivial reference expects.
 *
 * Every member makes the same case from the same random numbers; what it reads is a function of the seed.
 */
#include "ibvx_coll.h"
#include "proto/rng.h"

struct coll_case {
	struct ibvx_coll coll;
	struct ibvx_user_op user;
	int p, r;
	uint64_t seed;
	size_t largest; /* bytes of a part, or elements */
	bool uneven;    /* v form */
	bool in_place;
	struct ibvx_layout *layout;
	unsigned char *in, *out;
	size_t in_bytes, out_bytes;
	size_t *sizes[2];
	ptrdiff_t *offsets[2];
	char text[160]; /* what it is */
};

/* kind < 0: any.  largest: about the largest part in bytes.  Member r of p. */
void case_make(struct coll_case *c, struct rng *rng, int kind, int p, int r, size_t largest);
/* Fills what is read, and marks what is written. */
void case_fill(struct coll_case *c);
/* 0, or a text on stderr and 1. */
int case_check(const struct coll_case *c);
void case_free(struct coll_case *c);

#endif
