/* SPDX-License-Identifier: MIT */
#include "coll/build.h"

enum { REDUCE_AUTO, REDUCE_BINOMIAL, REDUCE_RABENSEIFNER, REDUCE_LINEAR };

/* Rabenseifner from here on. */
#define REDUCE_LONG_BYTES (32u << 10)

/* The longest linear one. */
#define REDUCE_LINEAR_BYTES (16u << 10)

/* What a member has reduced so far, and where the next values go. */
struct reduce_buffers {
	const void *sum;
	void *last, *other; /* the last of `left` children goes to `last` */
};

static int reduce_children(int v, int p)
{
	int children = 0;

	for (int64_t mask = 1; mask < p && !(v & mask); mask *= 2)
		children += v + mask < p;
	return children;
}

/* The sub-tree of v holds the members v to v + mask - 1, so the values meet in order: the sum of v comes from lower members
 * than what a child sends. */
static void reduce_binomial(struct schedule *s, struct reduce_buffers *b, size_t count, int v, int first)
{
	int p = s->comm->size, children = reduce_children(v, p);
	size_t bytes = count * s->op.bytes;

	for (int64_t mask = 1; mask < p; mask *= 2) {
		void *to;

		if (v & mask) {
			schedule_send(s, build_around((int)(v - mask), first, p), b->sum, bytes, NULL);
			return;
		}
		if (v + mask >= p)
			continue;
		to = --children % 2 ? b->other : b->last;
		schedule_await(s, schedule_recv(s, build_around((int)(v + mask), first, p), to, bytes, NULL));
		schedule_reduce(s, b->sum, to, count);
		b->sum = to;
	}
}

void build_reduce_tree(struct schedule *s, const void *source, void *target, size_t count, int root)
{
	int p = s->comm->size, r = s->comm->rank, first = s->op.commutative ? root : 0;
	int v = build_around(r, -first, p), children = reduce_children(v, p);
	size_t bytes = count * s->op.bytes;
	struct reduce_buffers b = {.sum = source};

	b.last = r == root && target != source && first == root ? target : NULL;
	if (children > 0 && !b.last)
		b.last = schedule_scratch(s, bytes);
	if (children > 1)
		b.other = schedule_scratch(s, bytes);
	reduce_binomial(s, &b, count, v, first);
	if (first != root && r == first)
		schedule_send(s, root, b.sum, bytes, NULL);
	if (first != root && r == root) {
		schedule_await_all(s); /* target may be the source of what was just sent */
		schedule_recv(s, first, target, bytes, NULL);
	} else if (r == root) {
		schedule_copy(s, b.sum, target, bytes);
	}
}

const void *build_reduce_linear(struct schedule *s, const void *source, size_t count, int root)
{
	int p = s->comm->size, steps = s->count;
	size_t bytes = count * s->op.bytes;
	char *slots;

	if (s->comm->rank != root) {
		schedule_send(s, root, source, bytes, NULL);
		return NULL;
	}
	slots = schedule_scratch(s, bytes <= SIZE_MAX / (size_t)p ? (size_t)p * bytes : SIZE_MAX);
	if (!slots)
		return NULL;
	for (int i = 0; i < p; i++) {
		if (i != root)
			schedule_recv(s, i, slots + (size_t)i * bytes, bytes, NULL);
	}
	schedule_copy(s, source, slots + (size_t)root * bytes, bytes);
	for (int i = 0; i < p; i++) {
		if (i != root)
			schedule_await(s, steps++);
		if (i > 0)
			schedule_reduce(s, slots + (size_t)(i - 1) * bytes, slots + (size_t)i * bytes, count);
	}
	return slots + (size_t)(p - 1) * bytes;
}

static void reduce_linear(struct schedule *s, const struct ibvx_coll *a)
{
	const void *sum = build_reduce_linear(s, a->source, a->count, a->root);

	if (sum)
		schedule_copy(s, sum, a->target, a->count * s->op.bytes);
}

/* What a member that leaves gives to the next one, and what that one does with it. `sum` has the values already. */
static void reduce_fold(struct schedule *s, const struct build_fold *f, char *sum, char *spare, size_t count)
{
	int r = s->comm->rank;
	size_t bytes = count * s->op.bytes;

	if (f->number < 0) {
		schedule_send(s, r + 1, sum, bytes, NULL);
	} else if (r < 2 * f->rest) {
		schedule_await(s, schedule_recv(s, r - 1, spare, bytes, NULL));
		schedule_reduce(s, spare, sum, count);
	}
}

/* Rabenseifner: each member reduces one block, and the root collects the blocks.  For commutative operations. */
static void reduce_rabenseifner(struct schedule *s, const struct ibvx_coll *a)
{
	struct build_fold f = build_fold(s->comm);
	int r = s->comm->rank;
	size_t bytes = s->op.bytes, all = a->count * bytes;
	char *sum = r == a->root ? a->target : schedule_scratch(s, all), *spare = schedule_scratch(s, all);

	schedule_copy(s, a->source, sum, all);
	reduce_fold(s, &f, sum, spare, a->count);
	if (f.number >= 0)
		build_halve(s, &f, sum, spare, a->count, NULL);
	schedule_await_all(s); /* the root's target is what it has sent */
	for (int i = 0; i < f.power; i++) {
		int member = build_fold_member(&f, i);
		size_t first = build_block(&f, a->count, i), end = build_block(&f, a->count, i + 1);

		if (r == a->root && member != r)
			schedule_recv(s, member, sum + first * bytes, (end - first) * bytes, NULL);
		else if (member == r && r != a->root)
			schedule_send(s, a->root, sum + first * bytes, (end - first) * bytes, NULL);
	}
}

void coll_build_reduce(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, choice = build_choice(s, SETTING_COLL_REDUCE);

	if (choice == REDUCE_AUTO && build_prefers_linear(s, false) && a->count * s->op.bytes <= REDUCE_LINEAR_BYTES)
		choice = REDUCE_LINEAR;
	if (choice == REDUCE_AUTO && p > 2 && a->count * s->op.bytes >= REDUCE_LONG_BYTES)
		choice = REDUCE_RABENSEIFNER;
	if (choice == REDUCE_RABENSEIFNER && s->op.commutative && p > 1)
		reduce_rabenseifner(s, a);
	else if (choice == REDUCE_LINEAR)
		reduce_linear(s, a);
	else
		build_reduce_tree(s, a->source, a->target, a->count, a->root);
}
