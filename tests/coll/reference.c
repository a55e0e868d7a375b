/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include <string.h>

#include "proto/rng.h"

struct affine {
	uint64_t a, b;
};

static int compose(void *arg, const void *in, void *inout, size_t count)
{
	const struct affine *left = in;
	struct affine *right = inout;

	(void)arg;
	for (size_t i = 0; i < count; i++)
		right[i] = (struct affine){left[i].a * right[i].a, left[i].a * right[i].b + left[i].b};
	return 0;
}

const struct ibvx_user_op reference_user = {.apply = compose, .element_bytes = sizeof(struct affine)};

static bool is_floating(enum ibvx_type type)
{
	return type == IBVX_FLOAT || type == IBVX_DOUBLE;
}

bool reference_has(enum ibvx_op op, enum ibvx_type type)
{
	if (op == IBVX_USER)
		return true;
	if (op >= IBVX_LAND && op <= IBVX_BXOR)
		return !is_floating(type);
	return type != IBVX_BOOLEAN;
}

static bool is_pair(enum ibvx_op op)
{
	return op == IBVX_MINLOC || op == IBVX_MAXLOC;
}

size_t reference_bytes(enum ibvx_op op, enum ibvx_type type)
{
	static const size_t bytes[IBVX_TYPE_COUNT] = {1, 2, 2, 4, 8, 4, 8, 1};

	return op == IBVX_USER ? sizeof(struct affine) : bytes[type] * (is_pair(op) ? 2 : 1);
}

/* Number i at `at`: as a double if it is floating, else as an integer. */
static void get(enum ibvx_type type, const void *at, size_t i, int64_t *whole, double *real)
{
	switch (type) {
	case IBVX_INT8: *whole = ((const int8_t *)at)[i]; break;
	case IBVX_UINT16: *whole = ((const uint16_t *)at)[i]; break;
	case IBVX_INT16: *whole = ((const int16_t *)at)[i]; break;
	case IBVX_INT32: *whole = ((const int32_t *)at)[i]; break;
	case IBVX_INT64: *whole = ((const int64_t *)at)[i]; break;
	case IBVX_FLOAT: *real = (double)((const float *)at)[i]; break;
	case IBVX_DOUBLE: *real = ((const double *)at)[i]; break;
	case IBVX_BOOLEAN:
	case IBVX_TYPE_COUNT: *whole = ((const uint8_t *)at)[i]; break;
	}
}

static void put(enum ibvx_type type, void *at, size_t i, int64_t whole, double real)
{
	float narrow = (float)real;
	size_t bytes = reference_bytes(IBVX_SUM, type);

	if (type == IBVX_FLOAT)
		memcpy((char *)at + i * bytes, &narrow, bytes);
	else if (type == IBVX_DOUBLE)
		memcpy((char *)at + i * bytes, &real, bytes);
	else
		memcpy((char *)at + i * bytes, &whole, bytes); /* little-endian */
}

void reference_value(enum ibvx_op op, enum ibvx_type type, uint64_t seed, int member, size_t k, void *out)
{
	uint64_t random = rng_mix(seed + (uint64_t)member * 1000003u + k * 7919u);

	if (op == IBVX_USER) {
		memcpy(out, &(struct affine){random | 1, rng_mix(random)}, sizeof(struct affine));
		return;
	}
	for (size_t i = 0; i < (is_pair(op) ? 2u : 1u); i++, random >>= 8) {
		int64_t whole = (int64_t)(random % 4);

		if (type == IBVX_BOOLEAN)
			whole %= 2;
		else if (!is_floating(type) && !is_pair(op))
			whole = (int64_t)random;
		else if (op == IBVX_PROD)
			whole -= 2;
		put(type, out, i, whole, (double)whole);
	}
}

static int64_t whole_apply(enum ibvx_op op, int64_t a, int64_t b)
{
	const int64_t results[IBVX_MINLOC] = {
		[IBVX_SUM] = (int64_t)((uint64_t)a + (uint64_t)b),
		[IBVX_PROD] = (int64_t)((uint64_t)a * (uint64_t)b),
		[IBVX_MIN] = b < a ? b : a,
		[IBVX_MAX] = b > a ? b : a,
		[IBVX_LAND] = a && b,
		[IBVX_LOR] = a || b,
		[IBVX_LXOR] = !a != !b,
		[IBVX_BAND] = a & b,
		[IBVX_BOR] = a | b,
		[IBVX_BXOR] = a ^ b,
	};

	return results[op];
}

static double real_apply(enum ibvx_op op, double a, double b)
{
	if (op == IBVX_SUM)
		return a + b;
	if (op == IBVX_PROD)
		return a * b;
	if (op == IBVX_MIN)
		return a != a || b < a ? b : a;
	return a != a || b > a ? b : a;
}

static void pair_apply(enum ibvx_op op, enum ibvx_type type, const void *a, const void *b, void *out)
{
	int64_t whole[4] = {0};
	double real[4] = {0};
	bool take_b, equal;

	for (size_t i = 0; i < 2; i++) {
		get(type, a, i, &whole[i], &real[i]);
		get(type, b, i, &whole[2 + i], &real[2 + i]);
	}
	equal = whole[0] == whole[2] && real[0] == real[2];
	take_b = equal ? whole[3] < whole[1] || real[3] < real[1] : (whole[2] < whole[0] || real[2] < real[0]) == (op == IBVX_MINLOC);
	for (size_t i = 0; i < 2; i++)
		put(type, out, i, whole[i + (take_b ? 2 : 0)], real[i + (take_b ? 2 : 0)]);
}

void reference_apply(enum ibvx_op op, enum ibvx_type type, const void *a, const void *b, void *out)
{
	int64_t x = 0, y = 0;
	double u = 0, v = 0;

	if (op == IBVX_USER) {
		struct affine right;

		memcpy(&right, b, sizeof(right));
		compose(NULL, a, &right, 1);
		memcpy(out, &right, sizeof(right));
	} else if (is_pair(op)) {
		pair_apply(op, type, a, b, out);
	} else {
		get(type, a, 0, &x, &u);
		get(type, b, 0, &y, &v);
		put(type, out, 0, is_floating(type) ? 0 : whole_apply(op, x, y), is_floating(type) ? real_apply(op, u, v) : 0);
	}
}

void reference_fold(enum ibvx_op op, enum ibvx_type type, uint64_t seed, int begin, int end, size_t k, void *out)
{
	uint64_t next[2], sum[2]; /* the largest element, aligned */

	reference_value(op, type, seed, begin, k, sum);
	for (int i = begin + 1; i < end; i++) {
		reference_value(op, type, seed, i, k, next);
		reference_apply(op, type, sum, next, sum);
	}
	memcpy(out, sum, reference_bytes(op, type));
}
