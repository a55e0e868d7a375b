/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_OP_H
#define IBVX_COLL_OP_H
/*
 * op: what a reduction does with two values.
 */
#include <stdbool.h>

#include "coll/kernels.h"

struct coll_op {
	coll_kernel *kernel; /* NULL: user */
	const struct ibvx_user_op *user;
	size_t bytes; /* of an element, or a pair */
	bool commutative;
};

/* 0, or -EINVAL with text. */
int coll_op_find(struct coll_op *out, enum ibvx_op op, enum ibvx_type type, const struct ibvx_user_op *user);

/* inout[i] = in[i] op inout[i]: 0, or the negative errno of a user operation. */
static inline int coll_op_apply(const struct coll_op *op, const void *in, void *inout, size_t count)
{
	if (!op->kernel)
		return op->user->apply(op->user->arg, in, inout, count);
	op->kernel(in, inout, count);
	return 0;
}

#endif
