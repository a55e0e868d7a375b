/* SPDX-License-Identifier: MIT */
#ifndef TESTS_COLL_PROGRAM_H
#define TESTS_COLL_PROGRAM_H
/*
 * program: a random program of collective operations, the same on every rank of an endpoint: blocking, several under way at
 * once, persistent; on the world, on copies and on parts of it.  Each result is compared with the reference.
 */
#include "ibvx_coll.h"

struct program {
	uint64_t seed;
	int operations;
	size_t largest; /* bytes of a part */
	int kind;       /* -1: any */
};

/* 0, or 1 with a text on stderr. */
int program_run(const struct program *p, struct ibvx *ep);

#endif
