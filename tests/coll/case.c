/* SPDX-License-Identifier: MIT */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

#define UNTOUCHED 0xee
/* The layout: of every five bytes of memory three belong to the message. */
#define BLOCK 3
#define STRIDE 5

static const char *const kind_names[] = {"barrier", "bcast",     "gather",         "scatter", "allgather", "alltoall",
					 "reduce",  "allreduce", "reduce_scatter", "scan",    "exscan"};

static bool reduces(const struct coll_case *c)
{
	return c->coll.kind >= IBVX_REDUCE;
}

/* --- moved bytes --- */

/* Bytes that member i has for member j. */
static size_t part_size(const struct coll_case *c, int i, int j)
{
	size_t bytes = c->largest;

	if (c->uneven)
		bytes = rng_mix(c->seed + (uint64_t)(i * 64 + j) * 977) % (c->largest + 1);
	return c->layout ? bytes - bytes % BLOCK : bytes;
}

static unsigned char part_byte(const struct coll_case *c, int i, int j, size_t k)
{
	return (unsigned char)(rng_mix(c->seed + (uint64_t)(i * 64 + j)) + k * 7 + (k >> 8) * 3);
}

static size_t physical(const struct coll_case *c, size_t k)
{
	return c->layout ? k / BLOCK * STRIDE + k % BLOCK : k;
}

static size_t span(const struct coll_case *c)
{
	return physical(c, c->largest) + STRIDE;
}

/* Does `which` (0 in, 1 out) have a part i here?  It goes from *from to *to. */
static bool part_ends(const struct coll_case *c, int which, int i, int *from, int *to)
{
	bool root = c->r == c->coll.root, many = true, present = true;

	*from = c->r;
	*to = 0;
	if (c->coll.kind == IBVX_BCAST) {
		*from = c->coll.root;
		return which == 0 && i == 0;
	}
	if (c->coll.kind == IBVX_GATHER || c->coll.kind == IBVX_ALLGATHER) {
		many = which == 1;
		present = which == 0 || c->coll.kind == IBVX_ALLGATHER || root;
		*from = many ? i : c->r;
	} else if (c->coll.kind == IBVX_SCATTER) {
		many = which == 0;
		present = which == 1 || root;
		*from = c->coll.root;
		*to = many ? i : c->r;
	} else {
		*from = which ? i : c->r;
		*to = which ? c->r : i;
	}
	return present && (many || i == 0);
}

/* The parts lie in reverse order. */
static ptrdiff_t part_offset(const struct coll_case *c, int i)
{
	return (ptrdiff_t)((size_t)(c->uneven ? c->p - 1 - i : i) * span(c));
}

static void make_parts(struct coll_case *c, int which, struct ibvx_parts *parts, unsigned char *memory)
{
	int from, to;
	bool many = part_ends(c, which, 1, &from, &to);

	if (!part_ends(c, which, 0, &from, &to))
		return; /* not significant here */
	parts->layout = c->layout;
	parts->base = memory + (many ? 0 : part_offset(c, 0));
	parts->bytes = part_size(c, from, to);
	parts->stride_bytes = (ptrdiff_t)span(c);
	if (!many || !c->uneven)
		return;
	c->sizes[which] = malloc((size_t)c->p * sizeof(size_t));
	c->offsets[which] = malloc((size_t)c->p * sizeof(ptrdiff_t));
	for (int i = 0; i < c->p; i++) {
		part_ends(c, which, i, &from, &to);
		c->sizes[which][i] = part_size(c, from, to);
		c->offsets[which][i] = part_offset(c, i);
	}
	parts->sizes = c->sizes[which];
	parts->offsets = c->offsets[which];
}

static void case_make_moving(struct coll_case *c, struct rng *rng)
{
	struct ibvx_layout *block = NULL;

	c->uneven = rng_percent(rng, 40) && c->coll.kind != IBVX_BCAST;
	c->coll.uneven = c->uneven;
	if (rng_percent(rng, 25)) {
		ibvx_layout_contiguous(&block, BLOCK);
		ibvx_layout_nested(&c->layout, 1, STRIDE, block);
		ibvx_layout_free(block);
	}
	c->in_place = !c->layout && c->coll.kind == IBVX_ALLGATHER && rng_percent(rng, 30);
	c->largest -= c->layout ? c->largest % BLOCK : 0;
	c->in_bytes = c->out_bytes = (size_t)c->p * span(c);
	c->in = malloc(c->in_bytes);
	c->out = malloc(c->out_bytes);
	make_parts(c, 0, &c->coll.in, c->in);
	make_parts(c, 1, &c->coll.out, c->out);
	if (c->in_place)
		c->coll.in.base = c->out + part_offset(c, c->r);
}

static void fill_parts(const struct coll_case *c, int which, unsigned char *memory)
{
	for (int i = 0; i < c->p; i++) {
		int from, to;

		if (!part_ends(c, which, i, &from, &to))
			continue;
		for (size_t k = 0; k < part_size(c, from, to); k++)
			memory[(size_t)part_offset(c, i) + physical(c, k)] = part_byte(c, from, to, k);
	}
}

static int check_buffer(const struct coll_case *c, const char *what, const unsigned char *memory, const unsigned char *expected,
			size_t bytes)
{
	for (size_t k = 0; k < bytes; k++) {
		if (memory[k] == expected[k])
			continue;
		fprintf(stderr, "member %d of %d: %s: byte %zu of the %s is %#x and should be %#x\n", c->r, c->p, c->text, k, what,
			memory[k], expected[k]);
		return 1;
	}
	return 0;
}

static void fill_moving(struct coll_case *c)
{
	memset(c->in, UNTOUCHED, c->in_bytes);
	memset(c->out, UNTOUCHED, c->out_bytes);
	if (c->coll.kind == IBVX_BCAST && c->r != c->coll.root)
		return;
	fill_parts(c, 0, c->in);
	if (c->in_place)
		for (size_t k = 0; k < part_size(c, c->r, 0); k++)
			c->out[(size_t)part_offset(c, c->r) + k] = part_byte(c, c->r, 0, k);
}

static int check_moving(const struct coll_case *c)
{
	unsigned char *expected = malloc(c->in_bytes);
	int bad;

	memset(expected, UNTOUCHED, c->in_bytes);
	fill_parts(c, 0, expected);
	bad = check_buffer(c, "source", c->in, expected, c->in_bytes);
	memset(expected, UNTOUCHED, c->out_bytes);
	fill_parts(c, 1, expected);
	bad = bad || check_buffer(c, "target", c->out, expected, c->out_bytes);
	free(expected);
	return bad;
}

/* --- reductions --- */

static size_t element_bytes(const struct coll_case *c)
{
	return reference_bytes(c->coll.op, c->coll.type);
}

static size_t block_count(const struct coll_case *c, int i)
{
	return c->uneven ? rng_mix(c->seed + (uint64_t)i * 977) % (c->largest + 1) : c->largest;
}

/* Elements of the source, of the target, and the first of the target's in the source. */
static void extents(const struct coll_case *c, size_t *source, size_t *target, size_t *first)
{
	*source = *target = c->largest;
	*first = 0;
	if (c->coll.kind == IBVX_REDUCE_SCATTER) {
		*source = 0;
		for (int i = 0; i < c->p; i++) {
			*first = i == c->r ? *source : *first;
			*source += block_count(c, i);
		}
		*target = block_count(c, c->r);
	}
	if ((c->coll.kind == IBVX_REDUCE && c->r != c->coll.root) || (c->coll.kind == IBVX_EXSCAN && c->r == 0))
		*target = 0;
}

static void choose_op(struct coll_case *c, struct rng *rng)
{
	do {
		c->coll.op = (enum ibvx_op)rng_below(rng, IBVX_OP_COUNT);
		c->coll.type = (enum ibvx_type)rng_below(rng, IBVX_TYPE_COUNT);
	} while (!reference_has(c->coll.op, c->coll.type));
	c->user = reference_user;
	c->coll.user = &c->user;
}

static void case_make_reduction(struct coll_case *c, struct rng *rng)
{
	size_t source, target, first;

	choose_op(c, rng);
	c->uneven = c->coll.kind == IBVX_REDUCE_SCATTER && rng_percent(rng, 50);
	c->in_place = rng_percent(rng, 30);
	c->largest /= element_bytes(c);
	if (c->uneven) {
		c->sizes[0] = malloc((size_t)c->p * sizeof(size_t));
		for (int i = 0; i < c->p; i++)
			c->sizes[0][i] = block_count(c, i);
		c->coll.counts = c->sizes[0];
	}
	extents(c, &source, &target, &first);
	c->coll.count = c->largest;
	c->in_bytes = source * element_bytes(c);
	c->out_bytes = target * element_bytes(c);
	c->in = malloc(c->in_bytes + 1);
	c->out = malloc(c->out_bytes + 1);
	c->coll.source = c->in;
	c->coll.target = c->in_place ? c->in : c->out_bytes ? c->out : NULL;
}

static void fill_reduction(struct coll_case *c)
{
	size_t source, target, first;

	extents(c, &source, &target, &first);
	for (size_t k = 0; k < source; k++)
		reference_value(c->coll.op, c->coll.type, c->seed, c->r, k, c->in + k * element_bytes(c));
	memset(c->out, UNTOUCHED, c->out_bytes + 1);
}

static int check_reduction(const struct coll_case *c)
{
	size_t source, target, first, bytes = element_bytes(c);
	int begin = 0, end = c->coll.kind == IBVX_SCAN ? c->r + 1 : c->coll.kind == IBVX_EXSCAN ? c->r : c->p;
	unsigned char *expected = malloc(c->in_bytes + 1);
	int bad;

	extents(c, &source, &target, &first);
	for (size_t k = 0; k < target; k++)
		reference_fold(c->coll.op, c->coll.type, c->seed, begin, end, first + k, expected + k * bytes);
	bad = check_buffer(c, "target", c->in_place ? c->in : c->out, expected, target * bytes);
	for (size_t k = 0; k < source && !c->in_place; k++)
		reference_value(c->coll.op, c->coll.type, c->seed, c->r, k, expected + k * bytes);
	bad = bad || (!c->in_place && check_buffer(c, "source", c->in, expected, source * bytes));
	free(expected);
	return bad;
}

/* --- both --- */

void case_make(struct coll_case *c, struct rng *rng, int kind, int p, int r, size_t largest)
{
	memset(c, 0, sizeof(*c));
	c->p = p;
	c->r = r;
	c->seed = rng_next(rng);
	c->largest = rng_percent(rng, 10) ? 0 : rng_below(rng, largest + 1);
	c->coll.kind = (enum ibvx_coll_kind)(kind < 0 ? rng_below(rng, IBVX_COLL_COUNT) : (uint64_t)kind);
	c->coll.root = (int)rng_below(rng, (uint64_t)p);
	if (reduces(c))
		case_make_reduction(c, rng);
	else if (c->coll.kind != IBVX_BARRIER)
		case_make_moving(c, rng);
	snprintf(c->text, sizeof(c->text), "%s, root %d, at most %zu, op %d, type %d%s%s%s", kind_names[c->coll.kind], c->coll.root,
		 c->largest, reduces(c) ? (int)c->coll.op : -1, reduces(c) ? (int)c->coll.type : -1, c->uneven ? ", uneven" : "",
		 c->in_place ? ", in place" : "", c->layout ? ", layout" : "");
}

void case_fill(struct coll_case *c)
{
	if (reduces(c))
		fill_reduction(c);
	else if (c->coll.kind != IBVX_BARRIER)
		fill_moving(c);
}

int case_check(const struct coll_case *c)
{
	if (reduces(c))
		return check_reduction(c);
	return c->coll.kind == IBVX_BARRIER ? 0 : check_moving(c);
}

void case_free(struct coll_case *c)
{
	free(c->in);
	free(c->out);
	for (int which = 0; which < 2; which++) {
		free(c->sizes[which]);
		free(c->offsets[which]);
	}
	ibvx_layout_free(c->layout);
}
