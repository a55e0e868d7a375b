/* SPDX-License-Identifier: MIT */
#include "coll/build.h"

enum { ALLREDUCE_AUTO, ALLREDUCE_DOUBLING, ALLREDUCE_RABENSEIFNER, ALLREDUCE_RING, ALLREDUCE_LINEAR };

/* Rabenseifner from here on. */
#define ALLREDUCE_LONG_BYTES (16u << 10)

/* The longest linear one. */
#define ALLREDUCE_LINEAR_BYTES (8u << 10)

/* The sum so far and room for what arrives; they change roles. */
struct allreduce_buffers {
	void *sum, *spare;
};

/* spare holds the sum of members that come before, or after, those of sum: both in one. The same operands in the same order
 * on both sides, so that all members have the same bits. */
static void allreduce_join(struct schedule *s, struct allreduce_buffers *b, size_t count, bool before)
{
	void *sum = b->sum;

	if (before) {
		schedule_reduce(s, b->spare, b->sum, count);
		return;
	}
	schedule_reduce(s, b->sum, b->spare, count);
	b->sum = b->spare;
	b->spare = sum;
}

/* The members that leave (struct build_fold) get the result at the end.  True: this member is one of them. */
static bool allreduce_leaves(struct schedule *s, const struct build_fold *f, const struct ibvx_coll *a)
{
	int r = s->comm->rank;
	size_t bytes = a->count * s->op.bytes;

	if (f->number >= 0)
		return false;
	schedule_send(s, r + 1, a->source, bytes, NULL);
	schedule_await_all(s); /* the target may be the source */
	schedule_recv(s, r + 1, a->target, bytes, NULL);
	return true;
}

/* The values of the member that has left this one its own. */
static void allreduce_adopt(struct schedule *s, const struct build_fold *f, void *sum, void *spare, size_t count)
{
	int r = s->comm->rank;

	if (r >= 2 * f->rest)
		return;
	schedule_await(s, schedule_recv(s, r - 1, spare, count * s->op.bytes, NULL));
	schedule_reduce(s, spare, sum, count);
}

static void allreduce_return(struct schedule *s, const struct build_fold *f, const void *sum, size_t count)
{
	int r = s->comm->rank;

	if (r < 2 * f->rest)
		schedule_send(s, r - 1, sum, count * s->op.bytes, NULL);
}

/* Recursive doubling, in rank order. */
static void allreduce_doubling(struct schedule *s, const struct ibvx_coll *a)
{
	struct build_fold f = build_fold(s->comm);
	size_t bytes = a->count * s->op.bytes;
	struct allreduce_buffers b = {.sum = a->target};

	if (allreduce_leaves(s, &f, a))
		return;
	schedule_copy(s, a->source, a->target, bytes);
	if (s->comm->size > 1)
		b.spare = schedule_scratch(s, bytes);
	allreduce_adopt(s, &f, b.sum, b.spare, a->count);
	for (int mask = 1; mask < f.power; mask *= 2) {
		int other = f.number ^ mask, member = build_fold_member(&f, other);

		schedule_send(s, member, b.sum, bytes, NULL);
		schedule_recv(s, member, b.spare, bytes, NULL);
		schedule_await_all(s);
		allreduce_join(s, &b, a->count, other < f.number);
	}
	allreduce_return(s, &f, b.sum, a->count);
	schedule_copy(s, b.sum, a->target, bytes);
}

/* Rabenseifner: recursive halving, then recursive doubling of the blocks.  For commutative operations: the values of a block meet
 * in an order of their own, but one member computes it for all. */
static void allreduce_rabenseifner(struct schedule *s, const struct ibvx_coll *a)
{
	struct build_fold f = build_fold(s->comm);
	size_t bytes = s->op.bytes;
	char *sum = a->target, *spare;

	if (allreduce_leaves(s, &f, a))
		return;
	schedule_copy(s, a->source, sum, a->count * bytes);
	spare = schedule_scratch(s, a->count * bytes);
	allreduce_adopt(s, &f, sum, spare, a->count);
	build_halve(s, &f, sum, spare, a->count, NULL);
	schedule_await_all(s); /* what was sent is overwritten now */
	for (int mask = 1; mask < f.power; mask *= 2) {
		int other = f.number ^ mask, member = build_fold_member(&f, other);
		int mine = f.number & ~(mask - 1), theirs = other & ~(mask - 1);
		size_t first = build_block(&f, a->count, mine), end = build_block(&f, a->count, mine + mask);
		size_t their_first = build_block(&f, a->count, theirs), their_end = build_block(&f, a->count, theirs + mask);
		int step = schedule_recv(s, member, sum + their_first * bytes, (their_end - their_first) * bytes, NULL);

		schedule_send(s, member, sum + first * bytes, (end - first) * bytes, NULL);
		schedule_await(s, step);
	}
	allreduce_return(s, &f, sum, a->count);
}

/* A ring of p blocks: once around to reduce, once more to distribute.  For commutative operations. */
static void allreduce_ring(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank, left = build_around(r, -1, p), right = build_around(r, 1, p);
	const struct build_fold blocks = {.power = p};
	size_t bytes = s->op.bytes;
	char *sum = a->target, *spare;

	schedule_copy(s, a->source, sum, a->count * bytes);
	spare = schedule_scratch(s, (a->count / (size_t)p + 1) * bytes);
	for (int k = 0; k < 2 * (p - 1); k++) {
		int out = build_around(r, -k, p), in = build_around(r, -k - 1, p);
		bool reduces = k < p - 1;
		size_t first = build_block(&blocks, a->count, in), count = build_block(&blocks, a->count, in + 1) - first;
		size_t out_first = build_block(&blocks, a->count, out), out_count = build_block(&blocks, a->count, out + 1) - out_first;
		int step;

		if (k == p - 1)
			schedule_await_all(s); /* what was sent is overwritten now */
		step = schedule_recv(s, left, reduces ? spare : sum + first * bytes, count * bytes, NULL);
		schedule_send(s, right, sum + out_first * bytes, out_count * bytes, NULL);
		schedule_await(s, step);
		if (reduces)
			schedule_reduce(s, spare, sum + first * bytes, count);
	}
}

/* Member 0 reduces, in rank order, and answers. */
static void allreduce_linear(struct schedule *s, const struct ibvx_coll *a)
{
	const void *sum = build_reduce_linear(s, a->source, a->count, 0);
	size_t bytes = a->count * s->op.bytes;

	schedule_await_all(s); /* the target may be the source */
	if (s->comm->rank) {
		schedule_recv(s, 0, a->target, bytes, NULL);
		return;
	}
	for (int i = 1; i < s->comm->size; i++)
		schedule_send(s, i, sum, bytes, NULL);
	schedule_copy(s, sum, a->target, bytes);
}

void coll_build_allreduce(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, choice = build_choice(s, SETTING_COLL_ALLREDUCE);

	if (choice == ALLREDUCE_AUTO && build_prefers_linear(s, true) && a->count * s->op.bytes <= ALLREDUCE_LINEAR_BYTES)
		choice = ALLREDUCE_LINEAR;
	if (choice == ALLREDUCE_AUTO && p > 2 && a->count * s->op.bytes >= ALLREDUCE_LONG_BYTES)
		choice = ALLREDUCE_RABENSEIFNER;
	if (choice == ALLREDUCE_RABENSEIFNER && s->op.commutative && p > 1)
		allreduce_rabenseifner(s, a);
	else if (choice == ALLREDUCE_RING && s->op.commutative && p > 1)
		allreduce_ring(s, a);
	else if (choice == ALLREDUCE_LINEAR)
		allreduce_linear(s, a);
	else
		allreduce_doubling(s, a);
}
