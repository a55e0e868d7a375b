/* SPDX-License-Identifier: MIT */
#ifndef TESTS_COLL_REFERENCE_H
#define TESTS_COLL_REFERENCE_H
/*
 * reference: reductions, one element after the other.  Values are small whole numbers, so that sums and products of
 * floating-point numbers are exact in whatever order.
 */
#include <stdbool.h>

#include "ibvx_coll.h"

/* A user operation that is not commutative: the composition of functions x -> ax + b modulo 2^64. */
extern const struct ibvx_user_op reference_user;

bool reference_has(enum ibvx_op op, enum ibvx_type type);
size_t reference_bytes(enum ibvx_op op, enum ibvx_type type);
/* Element k of a member. */
void reference_value(enum ibvx_op op, enum ibvx_type type, uint64_t seed, int member, size_t k, void *out);
/* Element k of members begin to end - 1 (at least one), in this order. */
void reference_fold(enum ibvx_op op, enum ibvx_type type, uint64_t seed, int begin, int end, size_t k, void *out);
/* out = a op b, of one element. */
void reference_apply(enum ibvx_op op, enum ibvx_type type, const void *a, const void *b, void *out);

#endif
