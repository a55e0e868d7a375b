/* SPDX-License-Identifier: MIT */
#include "coll/build.h"

#include <errno.h>
#include <stdlib.h>

enum { REDUCE_SCATTER_AUTO, REDUCE_SCATTER_PAIRWISE, REDUCE_SCATTER_HALVING };

/* Halving up to this size of the source: fewer rounds, but a copy of it all. */
#define REDUCE_SCATTER_SHORT_BYTES (64u << 10)

static size_t block_count(const struct ibvx_coll *a, int i)
{
	return a->counts ? a->counts[i] : a->count;
}

/* Elements in front of block i. */
static size_t block_start(const struct ibvx_coll *a, int i)
{
	size_t at = 0;

	if (!a->counts)
		return (size_t)i * a->count;
	for (int k = 0; k < i; k++)
		at += a->counts[k];
	return at;
}

/* Each member gets its block from every other one, one after the other, and the next one while it reduces. */
static void reduce_scatter_pairwise(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	size_t count = block_count(a, r), bytes = count * s->op.bytes;
	const char *source = a->source;
	void *sum = a->source == a->target ? schedule_scratch(s, bytes) : a->target;
	char *room = schedule_scratch(s, 2 * bytes);
	int next = -1;

	schedule_copy(s, source + block_start(a, r) * s->op.bytes, sum, bytes);
	for (int k = 1; k < p; k++) {
		int to = build_around(r, k, p), step = next;

		if (step < 0)
			step = schedule_recv(s, build_around(r, -k, p), room + (size_t)(k % 2) * bytes, bytes, NULL);
		next = k + 1 < p ? schedule_recv(s, build_around(r, -k - 1, p), room + (size_t)((k + 1) % 2) * bytes, bytes, NULL) : -1;
		schedule_send(s, to, source + block_start(a, to) * s->op.bytes, block_count(a, to) * s->op.bytes, NULL);
		schedule_await(s, step);
		schedule_reduce(s, room + (size_t)(k % 2) * bytes, sum, count);
	}
	schedule_await_all(s); /* the target may be the source of what is sent */
	schedule_copy(s, sum, a->target, bytes);
}

/* Reduced in rank order by member 0, which then scatters the blocks. */
static void reduce_scatter_ordered(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	size_t total = block_start(a, p);
	char *all = r == 0 ? schedule_scratch(s, total * s->op.bytes) : NULL;

	build_reduce_tree(s, a->source, all, total, 0);
	schedule_await_all(s);
	if (r) {
		schedule_recv(s, 0, a->target, block_count(a, r) * s->op.bytes, NULL);
		return;
	}
	for (int i = 1; i < p; i++)
		schedule_send(s, i, all + block_start(a, i) * s->op.bytes, block_count(a, i) * s->op.bytes, NULL);
	schedule_copy(s, all, a->target, block_count(a, 0) * s->op.bytes);
}

/* Recursive halving of a copy of the source; p is a power of two. */
static void reduce_scatter_halving(struct schedule *s, const struct ibvx_coll *a)
{
	struct build_fold f = build_fold(s->comm);
	int p = s->comm->size, r = s->comm->rank;
	size_t bytes = s->op.bytes, total = block_start(a, p);
	char *sum = schedule_scratch(s, total * bytes), *spare = schedule_scratch(s, total * bytes);
	size_t *starts = malloc(((size_t)p + 1) * sizeof(*starts));

	if (!starts) {
		schedule_refuse(s, -ENOMEM, "no memory for the blocks of %d members", p);
		return;
	}
	for (int i = 0; i <= p; i++)
		starts[i] = block_start(a, i);
	schedule_copy(s, a->source, sum, total * bytes);
	build_halve(s, &f, sum, spare, total, starts);
	schedule_copy(s, sum + starts[r] * bytes, a->target, block_count(a, r) * bytes);
	free(starts);
}

void coll_build_reduce_scatter(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, choice = build_choice(s, SETTING_COLL_REDUCE_SCATTER);

	if (!s->op.commutative)
		reduce_scatter_ordered(s, a);
	else if (choice != REDUCE_SCATTER_PAIRWISE && build_power(p) == p &&
		 (choice == REDUCE_SCATTER_HALVING || block_start(a, p) * s->op.bytes <= REDUCE_SCATTER_SHORT_BYTES))
		reduce_scatter_halving(s, a);
	else
		reduce_scatter_pairwise(s, a);
}
