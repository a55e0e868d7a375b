/* SPDX-License-Identifier: MIT */
/* Compiled with COLL_KERNELS, the name of its table, and the options of its instruction set. */
#include "coll/kernels.h"

#include <stdint.h>

/* Sums and products of integers wrap around: they are made of unsigned numbers of at least the size of an int. */
#define LOOP(name, type, expression)                                                  \
	static void name(const void *restrict in, void *restrict inout, size_t count) \
	{                                                                             \
		const type *restrict left = in;                                       \
		type *restrict right = inout;                                         \
		for (size_t i = 0; i < count; i++) {                                  \
			type a = left[i], b = right[i];                               \
			right[i] = (type)(expression);                                \
		}                                                                     \
	}

#define ARITHMETIC(name, type, wide)              \
	LOOP(name##_sum, type, (wide)a + (wide)b) \
	LOOP(name##_prod, type, ((wide)a) * ((wide)b))

#define ORDER(name, type)                     \
	LOOP(name##_min, type, a < b ? a : b) \
	LOOP(name##_max, type, a > b ? a : b)

/* Of a NaN and a number: the number. */
#define ORDER_FLOATING(name, type)                           \
	LOOP(name##_min, type, ((a < b) | (b != b)) ? a : b) \
	LOOP(name##_max, type, ((a > b) | (b != b)) ? a : b)

#define BITS(name, type)                               \
	LOOP(name##_both, type, (a != 0) & (b != 0))   \
	LOOP(name##_either, type, (a != 0) | (b != 0)) \
	LOOP(name##_one, type, (a != 0) ^ (b != 0))    \
	LOOP(name##_and, type, (a) & (b))              \
	LOOP(name##_or, type, (a) | (b))               \
	LOOP(name##_xor, type, (a) ^ (b))

/* Pairs (value, index). */
#define LOCATE(name, type, better, equal)                                             \
	static void name(const void *restrict in, void *restrict inout, size_t count) \
	{                                                                             \
		const type *restrict left = in;                                       \
		type *restrict right = inout;                                         \
		for (size_t i = 0; i < 2 * count; i += 2) {                           \
			type a = left[i], b = right[i];                               \
			int take = better || (equal && left[i + 1] < right[i + 1]);   \
			right[i] = take ? a : b;                                      \
			right[i + 1] = take ? left[i + 1] : right[i + 1];             \
		}                                                                     \
	}

#define LOCATIONS(name, type)                      \
	LOCATE(name##_minloc, type, a < b, a == b) \
	LOCATE(name##_maxloc, type, a > b, a == b)

/* Of a NaN and a number the pair with the number; two NaN are equal. */
#define LOCATIONS_FLOATING(name, type)                                                                     \
	LOCATE(name##_minloc, type, ((a < b) | ((a == a) & (b != b))), ((a == b) | ((a != a) & (b != b)))) \
	LOCATE(name##_maxloc, type, ((a > b) | ((a == a) & (b != b))), ((a == b) | ((a != a) & (b != b))))

#define INTEGER(name, type, wide)    \
	ARITHMETIC(name, type, wide) \
	ORDER(name, type)            \
	BITS(name, type)             \
	LOCATIONS(name, type)

#define FLOATING(name, type)         \
	ARITHMETIC(name, type, type) \
	ORDER_FLOATING(name, type)   \
	LOCATIONS_FLOATING(name, type)

INTEGER(int8, int8_t, unsigned)
INTEGER(uint16, uint16_t, unsigned)
INTEGER(int16, int16_t, unsigned)
INTEGER(int32, int32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
FLOATING(float, float)
FLOATING(double, double)
BITS(boolean, uint8_t)

#define INTEGERS(suffix)                                                                                                            \
	[IBVX_INT8] = int8_##suffix, [IBVX_UINT16] = uint16_##suffix, [IBVX_INT16] = int16_##suffix, [IBVX_INT32] = int32_##suffix, \
	[IBVX_INT64] = int64_##suffix
#define NUMBERS(suffix) INTEGERS(suffix), [IBVX_FLOAT] = float_##suffix, [IBVX_DOUBLE] = double_##suffix
#define BIT_TYPES(suffix) INTEGERS(suffix), [IBVX_BOOLEAN] = boolean_##suffix

const coll_kernel_table COLL_KERNELS = {
	[IBVX_SUM] = {NUMBERS(sum)},    [IBVX_PROD] = {NUMBERS(prod)},     [IBVX_MIN] = {NUMBERS(min)},
	[IBVX_MAX] = {NUMBERS(max)},    [IBVX_LAND] = {BIT_TYPES(both)},   [IBVX_LOR] = {BIT_TYPES(either)},
	[IBVX_LXOR] = {BIT_TYPES(one)}, [IBVX_BAND] = {BIT_TYPES(and)},    [IBVX_BOR] = {BIT_TYPES(or)},
	[IBVX_BXOR] = {BIT_TYPES(xor)}, [IBVX_MINLOC] = {NUMBERS(minloc)}, [IBVX_MAXLOC] = {NUMBERS(maxloc)},
};
