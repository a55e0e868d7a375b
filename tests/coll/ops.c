/* SPDX-License-Identifier: MIT */
/* ops: every loop of the reductions, of each instruction set that this processor has, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/kernels.h"
#include "reference.h"

#define MOST 133 /* more than twice the longest vector, and odd */

static void check_kernel(coll_kernel *kernel, enum ibvx_op op, enum ibvx_type type, size_t count)
{
	size_t bytes = reference_bytes(op, type);
	unsigned char *left = malloc(count * bytes + 1), *right = malloc(count * bytes + 1), *expected = malloc(count * bytes + 1);
	uint64_t a[2], b[2], c[2];

	for (size_t k = 0; k < count; k++) {
		reference_value(op, type, 5, 0, k, a);
		reference_value(op, type, 5, 1, k, b);
		reference_apply(op, type, a, b, c);
		memcpy(left + k * bytes, a, bytes);
		memcpy(right + k * bytes, b, bytes);
		memcpy(expected + k * bytes, c, bytes);
	}
	left[count * bytes] = right[count * bytes] = expected[count * bytes] = 0x5a; /* stays */
	kernel(left, right, count);
	if (memcmp(right, expected, count * bytes + 1))
		fail_msg("op %d of type %d, %zu elements", op, type, count);
	free(left);
	free(right);
	free(expected);
}

static void check_table(const coll_kernel_table *table)
{
	for (int op = 0; op < IBVX_USER; op++)
		for (int type = 0; type < IBVX_TYPE_COUNT; type++) {
			coll_kernel *kernel = (*table)[op][type];

			assert_int_equal(kernel != NULL, reference_has((enum ibvx_op)op, (enum ibvx_type)type));
			for (size_t count = 0; kernel && count < MOST; count++)
				check_kernel(kernel, (enum ibvx_op)op, (enum ibvx_type)type, count);
		}
}

static void base(void **state)
{
	(void)state;
	check_table(&coll_kernels_base);
}

#ifdef __x86_64__
static void avx2(void **state)
{
	(void)state;
	if (!__builtin_cpu_supports("avx2"))
		skip();
	check_table(&coll_kernels_avx2);
}

static void avx512(void **state)
{
	(void)state;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
	    !__builtin_cpu_supports("avx512vl"))
		skip();
	check_table(&coll_kernels_avx512);
}
#endif

/* Of a NaN and a number the number, on either side. */
static void nan_and_a_number(void **state)
{
	double nan = __builtin_nan(""), in[2] = {nan, 3}, inout[2] = {3, nan};
	float narrow_in[2] = {__builtin_nanf(""), 3}, narrow[2] = {3, __builtin_nanf("")};

	(void)state;
	for (int op = IBVX_MIN; op <= IBVX_MAX; op++) {
		assert_int_equal(ibvx_op_apply((enum ibvx_op)op, IBVX_DOUBLE, in, inout, 2), 0);
		assert_true(inout[0] == 3 && inout[1] == 3);
		assert_int_equal(ibvx_op_apply((enum ibvx_op)op, IBVX_FLOAT, narrow_in, narrow, 2), 0);
		assert_true(narrow[0] == 3 && narrow[1] == 3);
		inout[1] = nan;
		narrow[1] = __builtin_nanf("");
	}
}

/* Pairs: the one with the number, on either side; of two NaN that with the lower index. */
static void pairs_with_nan(void **state)
{
	const double nan = __builtin_nan("");
	const float narrow_nan = __builtin_nanf("");

	(void)state;
	for (int op = IBVX_MINLOC; op <= IBVX_MAXLOC; op++) {
		const double in[] = {nan, 1, 3, 2, nan, 3, nan, 4};
		double inout[] = {3, 5, nan, 6, nan, 7, nan, 2};
		const float narrow_in[] = {narrow_nan, 1, 3, 2, narrow_nan, 3, narrow_nan, 4};
		float narrow[] = {3, 5, narrow_nan, 6, narrow_nan, 7, narrow_nan, 2};

		assert_int_equal(ibvx_op_apply((enum ibvx_op)op, IBVX_DOUBLE, in, inout, 4), 0);
		assert_true(inout[0] == 3 && inout[1] == 5 && inout[2] == 3 && inout[3] == 2);
		assert_true(inout[4] != inout[4] && inout[5] == 3 && inout[6] != inout[6] && inout[7] == 2);
		assert_int_equal(ibvx_op_apply((enum ibvx_op)op, IBVX_FLOAT, narrow_in, narrow, 4), 0);
		assert_true(narrow[0] == 3 && narrow[1] == 5 && narrow[2] == 3 && narrow[3] == 2);
		assert_true(narrow[4] != narrow[4] && narrow[5] == 3 && narrow[6] != narrow[6] && narrow[7] == 2);
	}
}

static void sizes_and_refusals(void **state)
{
	char a = 1, b = 1;

	(void)state;
	for (int type = 0; type < IBVX_TYPE_COUNT; type++)
		assert_int_equal(ibvx_type_bytes((enum ibvx_type)type), reference_bytes(IBVX_SUM, (enum ibvx_type)type));
	assert_int_equal(ibvx_type_bytes((enum ibvx_type)99), 0);
	assert_int_equal(ibvx_op_apply(IBVX_SUM, IBVX_BOOLEAN, &a, &b, 1), -22);
	assert_non_null(strstr(ibvx_error(), "sum"));
	assert_non_null(strstr(ibvx_error(), "boolean"));
	assert_int_equal(ibvx_op_apply(IBVX_USER, IBVX_INT8, &a, &b, 1), -22);
	assert_int_equal(ibvx_op_apply((enum ibvx_op)99, IBVX_INT8, &a, &b, 1), -22);
	assert_int_equal(ibvx_op_apply(IBVX_SUM, (enum ibvx_type)99, &a, &b, 1), -22);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(base),
#ifdef __x86_64__
	cmocka_unit_test(avx2),
	cmocka_unit_test(avx512),
#endif
	cmocka_unit_test(nan_and_a_number),
	cmocka_unit_test(pairs_with_nan),
	cmocka_unit_test(sizes_and_refusals),
};

int main(void)
{
	return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
