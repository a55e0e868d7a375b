/* SPDX-License-Identifier: MIT */
/* Layouts against a reference: a list of the address of every byte of the message, in order. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "core/layout.h"

#define BYTES_MAX 3000   /* of one random layout */
#define MEMORY (1 << 20) /* layouts lie in the middle of so many bytes */
#define MIDDLE (MEMORY / 2)
#define SEEDS 800

/* --- random layouts with their reference --- */

struct reference {
	ptrdiff_t *byte; /* its offset in memory */
	size_t bytes;
	ptrdiff_t extent, end; /* end: behind the furthest byte; bytes of callbacks lie before their extent */
	struct ibvx_layout *layout;
};

static uint64_t rng_state;

static uint64_t draw(uint64_t below)
{
	rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
	return (rng_state >> 33) % below;
}

static void reference_add(struct reference *r, ptrdiff_t offset)
{
	r->byte = realloc(r->byte, (r->bytes + 1) * sizeof(*r->byte));
	assert_non_null(r->byte);
	r->byte[r->bytes++] = offset;
}

static void reference_add_all(struct reference *r, ptrdiff_t offset, const struct reference *inner)
{
	if (r->bytes == 0)
		r->end = PTRDIFF_MIN / 2;
	if (inner->bytes && offset + inner->end > r->end)
		r->end = offset + inner->end;
	for (size_t i = 0; i < inner->bytes; i++)
		reference_add(r, offset + inner->byte[i]);
}

static void reference_free(struct reference *r)
{
	ibvx_layout_free(r->layout);
	free(r->byte);
}

static void reference_end(struct reference *r)
{
	r->end = PTRDIFF_MIN / 2;
	for (size_t i = 0; i < r->bytes; i++)
		r->end = r->byte[i] + 1 > r->end ? r->byte[i] + 1 : r->end;
}

static size_t draw_block(void)
{
	static const size_t common[] = {0, 1, 4, 8, 16, 24};

	return draw(3) ? common[draw(6)] : (size_t)draw(40);
}

static struct reference random_vector(void)
{
	size_t count = (size_t)draw(9), block = draw_block();
	ptrdiff_t stride = draw(4) ? (ptrdiff_t)(block + draw(20)) : (ptrdiff_t)draw(120) - 60;
	struct reference r = {0};

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < block; k++)
			reference_add(&r, (ptrdiff_t)i * stride + (ptrdiff_t)k);
	r.extent = count ? (ptrdiff_t)(count - 1) * stride + (ptrdiff_t)block : 0;
	reference_end(&r);
	assert_int_equal(ibvx_layout_vector(&r.layout, count, block, stride), 0);
	return r;
}

static struct reference random_indexed(void)
{
	struct ibvx_block blocks[10];
	size_t count = (size_t)draw(10);
	struct reference r = {0};

	for (size_t i = 0; i < count; i++) {
		blocks[i].bytes = draw_block();
		blocks[i].offset = i && !draw(3) ? blocks[i - 1].offset + (ptrdiff_t)blocks[i - 1].bytes : (ptrdiff_t)draw(900) - 300;
		for (size_t k = 0; k < blocks[i].bytes; k++)
			reference_add(&r, blocks[i].offset + (ptrdiff_t)k);
	}
	reference_end(&r);
	r.extent = r.end > 0 ? r.end : 0;
	assert_int_equal(ibvx_layout_indexed(&r.layout, count, blocks), 0);
	return r;
}

/* Callbacks that do what the layout behind them does. */
static void pack_inner(void *arg, const void *base, size_t offset, void *to, size_t bytes)
{
	layout_pack(arg, base, offset, to, bytes);
}

static void unpack_inner(void *arg, void *base, size_t offset, const void *from, size_t bytes)
{
	layout_unpack(arg, base, offset, from, bytes);
}

static struct ibvx_layout *kept[SEEDS * 8];
static size_t kept_count;

static struct reference random_callbacks(void)
{
	struct reference r = random_indexed();
	struct ibvx_layout *inner = r.layout;

	kept[kept_count++] = inner;
	r.extent = (ptrdiff_t)draw(500);
	r.end = r.extent;
	assert_int_equal(ibvx_layout_callbacks(&r.layout, r.bytes, r.extent, pack_inner, unpack_inner, inner), 0);
	return r;
}

static struct reference random_layout(int depth);

static struct reference random_nested(int depth)
{
	struct reference inner = random_layout(depth - 1), r = {0};
	size_t count = inner.bytes * 5 > BYTES_MAX ? 1 : (size_t)draw(6);
	ptrdiff_t extent = draw(2) ? inner.extent : (ptrdiff_t)draw(700) - 100;

	for (size_t i = 0; i < count; i++)
		reference_add_all(&r, (ptrdiff_t)i * extent, &inner);
	r.extent = (ptrdiff_t)count * extent;
	assert_int_equal(ibvx_layout_nested(&r.layout, count, extent, inner.layout), 0);
	reference_free(&inner); /* r keeps what it needs */
	return r;
}

static struct reference random_struct(int depth)
{
	size_t count = 1 + (size_t)draw(3);
	struct reference inner[3], r = {0};
	struct ibvx_field fields[3];

	for (size_t i = 0; i < count; i++) {
		inner[i] = random_layout(depth - 1);
		if (r.bytes + inner[i].bytes > BYTES_MAX) {
			reference_free(&inner[i]);
			count = i;
			break;
		}
		fields[i] = (struct ibvx_field){(ptrdiff_t)draw(1000) - 200, inner[i].layout};
		reference_add_all(&r, fields[i].offset, &inner[i]);
	}
	r.extent = r.end > 0 ? r.end : 0;
	assert_int_equal(ibvx_layout_struct(&r.layout, count, fields), 0);
	for (size_t i = 0; i < count; i++)
		reference_free(&inner[i]);
	return r;
}

static struct reference random_layout(int depth)
{
	switch (draw(depth > 0 ? 6 : 3)) {
	case 0: return random_vector();
	case 1: return random_indexed();
	case 2: return random_callbacks();
	case 3: return random_struct(depth);
	default: return random_nested(depth);
	}
}

/* --- tests --- */

static char *memory, *copy;

/* Where byte `at` of a message of several elements lies. */
static char *address_of(char *base, const struct reference *r, size_t at)
{
	return base + (ptrdiff_t)(at / r->bytes) * r->extent + r->byte[at % r->bytes];
}

static void check_range(const struct reference *r, size_t at, size_t len)
{
	char flat[2 * BYTES_MAX * 3];

	layout_pack(r->layout, memory + MIDDLE, at, flat, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(flat[i], *address_of(memory + MIDDLE, r, at + i));
	memcpy(copy, memory, MEMORY);
	for (size_t i = 0; i < len; i++) {
		flat[i] = (char)draw(256);
		*address_of(copy + MIDDLE, r, at + i) = flat[i];
	}
	layout_unpack(r->layout, memory + MIDDLE, at, flat, len);
	assert_memory_equal(memory, copy, MEMORY);
}

/* Random trees of layouts, random ranges of one and of several elements; nothing else is written. */
static void random_trees(void **state)
{
	(void)state;
	memory = malloc(MEMORY);
	copy = malloc(MEMORY);
	assert_true(memory && copy);
	for (size_t i = 0; i < MEMORY; i++)
		memory[i] = (char)draw(256);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct reference r;
		size_t total;

		rng_state = seed;
		r = random_layout(3);
		assert_int_equal(ibvx_layout_bytes(r.layout), r.bytes);
		assert_int_equal(ibvx_layout_extent(r.layout), r.extent);
		total = r.bytes * (draw(2) ? 1 : 1 + (size_t)draw(4));
		assert_int_equal(layout_check(r.layout, total), 0);
		if (r.bytes && layout_is_contiguous(r.layout, total))
			for (size_t i = 0; i < total; i++)
				assert_ptr_equal(address_of(memory, &r, i), memory + i);
		for (int i = 0; r.bytes && i < 3; i++) {
			size_t at = (size_t)draw(total), len = 1 + (size_t)draw(total - at);

			check_range(&r, at, len);
		}
		layout_pack(r.layout, NULL, total, NULL, 0);
		reference_free(&r);
		while (kept_count)
			ibvx_layout_free(kept[--kept_count]);
	}
	free(memory);
	free(copy);
}

/* What is contiguous is known to be, whatever it was made of. */
static void contiguous(void **state)
{
	struct ibvx_layout *a, *b, *c;
	const struct ibvx_block blocks[] = {{0, 3}, {3, 0}, {900, 0}, {3, 5}};

	(void)state;
	assert_int_equal(ibvx_layout_contiguous(&a, 24), 0);
	assert_true(layout_is_contiguous(a, 24 * 1000));
	assert_int_equal(ibvx_layout_nested(&b, 5, 24, a), 0);
	assert_true(layout_is_contiguous(b, 24 * 10));
	assert_int_equal(ibvx_layout_nested(&c, 1, 32, b), 0);
	assert_true(layout_is_contiguous(c, 24 * 5));
	assert_false(layout_is_contiguous(c, 24 * 5 + 1));
	ibvx_layout_free(a);
	ibvx_layout_free(b);
	ibvx_layout_free(c);
	assert_int_equal(ibvx_layout_vector(&a, 4, 8, 8), 0);
	assert_true(layout_is_contiguous(a, 64));
	assert_int_equal(ibvx_layout_indexed(&b, 4, blocks), 0);
	assert_true(layout_is_contiguous(b, 80));
	assert_int_equal(ibvx_layout_struct(&c, 2, (struct ibvx_field[]){{0, b}, {8, a}}), 0);
	assert_true(layout_is_contiguous(c, 40));
	ibvx_layout_free(a);
	ibvx_layout_free(b);
	ibvx_layout_free(c);
	assert_int_equal(ibvx_layout_vector(&a, 4, 8, 9), 0);
	assert_false(layout_is_contiguous(a, 9));
	ibvx_layout_free(a);
	ibvx_layout_free(NULL);
}

/* A column of a matrix, with the extent of one element: the next element of a message is the next column. */
static void columns(void **state)
{
	struct ibvx_layout *column, *columns;
	double matrix[5][7], flat[10];

	(void)state;
	for (int i = 0; i < 35; i++)
		matrix[i / 7][i % 7] = i;
	assert_int_equal(ibvx_layout_vector(&column, 5, sizeof(double), sizeof(matrix[0])), 0);
	assert_int_equal(ibvx_layout_nested(&columns, 1, sizeof(double), column), 0);
	layout_pack(columns, &matrix[0][2], 0, flat, sizeof(flat));
	for (int i = 0; i < 10; i++)
		assert_true(flat[i] == matrix[i % 5][2 + i / 5]);
	ibvx_layout_free(column);
	ibvx_layout_free(columns);
}

static void segments(void **state)
{
	char a[] = "abc", b[] = "defg", flat[8] = "";
	struct ibvx_layout *l;

	(void)state;
	assert_int_equal(ibvx_layout_segments(&l, 3, (struct ibvx_segment[]){{b, 2}, {NULL, 0}, {a, 3}}), 0);
	assert_int_equal(ibvx_layout_bytes(l), 5);
	layout_pack(l, NULL, 0, flat, 5);
	assert_string_equal(flat, "deabc");
	layout_unpack(l, NULL, 1, "XY", 2);
	assert_string_equal(a, "Ybc");
	assert_string_equal(b, "dXfg");
	ibvx_layout_free(l);
	assert_int_equal(ibvx_layout_segments(&l, 1, (struct ibvx_segment[]){{NULL, 2}}), -EINVAL);
	assert_null(l);
	assert_error_contains("segment 0", "NULL");
}

static void refused(void **state)
{
	const size_t huge = LAYOUT_BYTES_MAX;
	struct ibvx_layout *l, *one, *big, *nothing;

	(void)state;
	assert_int_equal(ibvx_layout_contiguous(&one, 1), 0);
	assert_int_equal(ibvx_layout_contiguous(&big, huge), 0);
	assert_int_equal(ibvx_layout_contiguous(&nothing, 0), 0);
	assert_int_equal(ibvx_layout_contiguous(&l, huge + 1), -EINVAL);
	assert_null(l);
	assert_error_contains("exceeds");
	assert_int_equal(ibvx_layout_vector(&l, SIZE_MAX, SIZE_MAX, 1), -EINVAL);
	assert_int_equal(ibvx_layout_vector(&l, SIZE_MAX, 1, 1), -EINVAL);
	assert_int_equal(ibvx_layout_vector(&l, 3, huge / 2, 1), -EINVAL);
	assert_int_equal(ibvx_layout_vector(&l, 3, 1, PTRDIFF_MIN), -EINVAL);
	assert_int_equal(ibvx_layout_vector(&l, 3, 1, PTRDIFF_MAX / 4), -EINVAL);
	assert_int_equal(ibvx_layout_nested(&l, 2, 1, big), -EINVAL);
	assert_int_equal(ibvx_layout_nested(&l, 2, PTRDIFF_MAX, one), -EINVAL);
	assert_int_equal(ibvx_layout_nested(&l, 1, 1, NULL), -EINVAL);
	assert_error_contains("needs a layout");
	assert_int_equal(ibvx_layout_indexed(&l, 1, NULL), -EINVAL);
	assert_int_equal(ibvx_layout_indexed(&l, 1, (struct ibvx_block[]){{PTRDIFF_MAX, 1}}), -EINVAL);
	assert_int_equal(ibvx_layout_indexed(&l, 2, (struct ibvx_block[]){{0, huge}, {0, 1}}), -EINVAL);
	assert_int_equal(ibvx_layout_indexed(&l, SIZE_MAX - 1, (struct ibvx_block[]){{0, 1}}), -ENOMEM);
	assert_int_equal(ibvx_layout_segments(&l, 1, NULL), -EINVAL);
	assert_int_equal(ibvx_layout_struct(&l, 1, NULL), -EINVAL);
	assert_int_equal(ibvx_layout_struct(&l, 2, (struct ibvx_field[]){{0, one}, {1, NULL}}), -EINVAL);
	assert_error_contains("field 1");
	assert_int_equal(ibvx_layout_callbacks(&l, 1, 1, pack_inner, NULL, NULL), -EINVAL);
	assert_int_equal(ibvx_layout_callbacks(&l, 1, PTRDIFF_MIN, pack_inner, unpack_inner, NULL), -EINVAL);
	assert_int_equal(layout_check(big, huge), 0);
	assert_int_equal(layout_check(nothing, 0), 0);
	assert_int_equal(layout_check(nothing, 1), -EINVAL);
	assert_error_contains("layout of no bytes");
	ibvx_layout_free(big);
	assert_int_equal(ibvx_layout_nested(&big, 1, 1 << 30, one), 0);
	assert_int_equal(layout_check(big, huge), -EINVAL);
	assert_error_contains("exceeds memory");
	ibvx_layout_free(one);
	ibvx_layout_free(big);
	ibvx_layout_free(nothing);
}

/* Each level holds the one below; the deepest legal one works, one more is refused. */
static void depth(void **state)
{
	const struct ibvx_block two[] = {{0, 1}, {2, 1}};
	struct ibvx_layout *l, *outer;
	char flat[3] = "";

	(void)state;
	assert_int_equal(ibvx_layout_indexed(&l, 2, two), 0);
	for (int i = 1; i < LAYOUT_DEPTH_MAX; i++) {
		if (i % 2)
			assert_int_equal(ibvx_layout_nested(&outer, 1, 4, l), 0);
		else
			assert_int_equal(ibvx_layout_struct(&outer, 1, &(struct ibvx_field){0, l}), 0);
		ibvx_layout_free(l);
		l = outer;
	}
	layout_pack(l, "a-b", 0, flat, 2);
	assert_string_equal(flat, "ab");
	assert_int_equal(ibvx_layout_nested(&outer, 1, 4, l), -EINVAL);
	assert_error_contains("32 deep");
	assert_int_equal(ibvx_layout_struct(&outer, 1, &(struct ibvx_field){0, l}), -EINVAL);
	assert_error_contains("32 deep");
	ibvx_layout_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_trees), cmocka_unit_test(contiguous), cmocka_unit_test(columns),
		cmocka_unit_test(segments),     cmocka_unit_test(refused),    cmocka_unit_test(depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
