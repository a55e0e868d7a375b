/* SPDX-License-Identifier: MIT */
#include "coll/op.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

static const char *const op_names[IBVX_OP_COUNT] = {
	[IBVX_SUM] = "sum",       [IBVX_PROD] = "prod",     [IBVX_MIN] = "min",   [IBVX_MAX] = "max", [IBVX_LAND] = "LAND",
	[IBVX_LOR] = "LOR",       [IBVX_LXOR] = "LXOR",     [IBVX_BAND] = "BAND", [IBVX_BOR] = "BOR", [IBVX_BXOR] = "BXOR",
	[IBVX_MINLOC] = "minloc", [IBVX_MAXLOC] = "maxloc", [IBVX_USER] = "user",
};

static const char *const type_names[IBVX_TYPE_COUNT] = {
	[IBVX_INT8] = "int8",   [IBVX_UINT16] = "uint16", [IBVX_INT16] = "int16",   [IBVX_INT32] = "int32",
	[IBVX_INT64] = "int64", [IBVX_FLOAT] = "float",   [IBVX_DOUBLE] = "double", [IBVX_BOOLEAN] = "boolean",
};

static const unsigned char type_bytes[IBVX_TYPE_COUNT] = {
	[IBVX_INT8] = 1,  [IBVX_UINT16] = 2, [IBVX_INT16] = 2,  [IBVX_INT32] = 4,
	[IBVX_INT64] = 8, [IBVX_FLOAT] = 4,  [IBVX_DOUBLE] = 8, [IBVX_BOOLEAN] = 1,
};

static const coll_kernel_table *op_choose(void)
{
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		return &coll_kernels_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &coll_kernels_avx2;
#endif
	return &coll_kernels_base;
}

/* Two threads may choose at once: they choose the same. */
static const coll_kernel_table *op_table(void)
{
	static const coll_kernel_table *_Atomic table;
	const coll_kernel_table *t = atomic_load_explicit(&table, memory_order_relaxed);

	if (!t) {
		t = op_choose();
		atomic_store_explicit(&table, t, memory_order_relaxed);
	}
	return t;
}

static int op_find_user(struct coll_op *out, const struct ibvx_user_op *user)
{
	if (!user || !user->apply || user->element_bytes == 0)
		return error_set(-EINVAL, "a user operation needs a function and a number of bytes for an element");
	*out = (struct coll_op){.user = user, .bytes = user->element_bytes, .commutative = user->commutative != 0};
	return 0;
}

int coll_op_find(struct coll_op *out, enum ibvx_op op, enum ibvx_type type, const struct ibvx_user_op *user)
{
	if (op == IBVX_USER)
		return op_find_user(out, user);
	if ((unsigned)op >= IBVX_OP_COUNT)
		return error_set(-EINVAL, "%d is not an operation of enum ibvx_op", (int)op);
	if ((unsigned)type >= IBVX_TYPE_COUNT)
		return error_set(-EINVAL, "%d is not a type of enum ibvx_type", (int)type);
	*out = (struct coll_op){.kernel = (*op_table())[op][type], .bytes = type_bytes[type], .commutative = true};
	if (op == IBVX_MINLOC || op == IBVX_MAXLOC)
		out->bytes *= 2;
	if (!out->kernel)
		return error_set(-EINVAL, "the operation %s does not exist for %s: see enum ibvx_op", op_names[op], type_names[type]);
	return 0;
}

size_t ibvx_type_bytes(enum ibvx_type type)
{
	return (unsigned)type < IBVX_TYPE_COUNT ? type_bytes[type] : 0;
}

int ibvx_op_apply(enum ibvx_op op, enum ibvx_type type, const void *in, void *inout, size_t count)
{
	struct coll_op found = {0};
	int rc = op == IBVX_USER ? error_set(-EINVAL, "a user operation is applied by its own function")
				 : coll_op_find(&found, op, type, NULL);

	if (rc || !found.kernel)
		return rc;
	found.kernel(in, inout, count);
	return 0;
}
