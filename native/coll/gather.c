/* SPDX-License-Identifier: MIT */
/*
 * Gather and scatter.  v is the number of a member counted from the root.  In the binomial trees the sub-tree of v has the
 * members v to v + low - 1, low being the lowest set bit of v, and their parts lie one after the other in scratch memory.
 */
#include "coll/build.h"

#include <errno.h>

enum { GATHER_AUTO, GATHER_LINEAR, GATHER_BINOMIAL };

/* Parts up to this size go by the tree, if there are more than GATHER_FEW members. */
#define GATHER_TREE_BYTES 1024
#define GATHER_FEW 4

void build_copy_part(struct schedule *s, struct ibvx_parts from, struct ibvx_parts to)
{
	int r = s->comm->rank;

	if (from.bytes != to.bytes)
		schedule_refuse(s, -EMSGSIZE, "member %d passes on %zu bytes to itself and expects %zu: both must be equal", r, from.bytes,
				to.bytes);
	if (from.base == to.base && from.layout == to.layout)
		return;
	if (!from.layout && !to.layout) {
		schedule_copy(s, from.base, to.base, to.bytes);
		return;
	}
	schedule_recv(s, r, to.base, to.bytes, to.layout);
	schedule_send(s, r, from.base, from.bytes, from.layout);
}

static void gather_linear(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;

	if (r != a->root) {
		schedule_send(s, a->root, a->in.base, a->in.bytes, a->in.layout);
		return;
	}
	for (int k = 1; k < p; k++)
		build_recv_part(s, build_around(r, k, p), &a->out, build_around(r, k, p));
	build_copy_part(s, build_one(&a->in, 0), build_one(&a->out, r));
}

static void scatter_linear(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;

	if (r != a->root) {
		schedule_recv(s, a->root, a->out.base, a->out.bytes, a->out.layout);
		return;
	}
	for (int k = 1; k < p; k++)
		build_send_part(s, build_around(r, k, p), &a->in, build_around(r, k, p));
	build_copy_part(s, build_one(&a->in, r), build_one(&a->out, 0));
}

/* The sub-tree of v: its lowest set bit (of 0: a power of two that is not below p), and how many members it has. */
static int64_t tree_low(int v, int p, int *members)
{
	int64_t low = 1;

	while (low < p && !(v & low))
		low *= 2;
	*members = (int)(v + low < p ? low : p - v);
	return low;
}

/* Number of the members of the sub-tree of the child v + mask. */
static size_t tree_child(int v, int64_t mask, int p)
{
	return (size_t)(v + 2 * mask < p ? mask : p - v - mask);
}

static void gather_binomial(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank, v = build_around(r, -a->root, p), members;
	int64_t low = tree_low(v, p, &members);
	size_t each = v ? a->in.bytes : a->out.bytes;
	char *all = members > 1 ? schedule_scratch(s, each * (size_t)members) : NULL;

	for (int64_t mask = 1; mask < low && v + mask < p; mask *= 2)
		schedule_recv(s, build_around((int)(v + mask), a->root, p), all + (size_t)mask * each, tree_child(v, mask, p) * each, NULL);
	if (v && members > 1)
		build_copy_part(s, a->in, build_flat(all, each));
	schedule_await_all(s);
	if (v) {
		int parent = build_around((int)(v - low), a->root, p);

		schedule_send(s, parent, all ? all : a->in.base, each * (size_t)members, all ? NULL : a->in.layout);
		return;
	}
	for (int k = 1; k < p; k++)
		build_copy_part(s, build_flat(all + (size_t)k * each, each), build_one(&a->out, build_around(k, a->root, p)));
	build_copy_part(s, a->in, build_one(&a->out, r));
}

static void scatter_binomial(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank, v = build_around(r, -a->root, p), members;
	int64_t low = tree_low(v, p, &members);
	size_t each = v ? a->out.bytes : a->in.bytes;
	char *all = members > 1 ? schedule_scratch(s, each * (size_t)members) : NULL;

	for (int k = 1; v == 0 && k < p; k++)
		build_copy_part(s, build_one(&a->in, build_around(k, a->root, p)), build_flat(all + (size_t)k * each, each));
	if (v) {
		int parent = build_around((int)(v - low), a->root, p);

		schedule_recv(s, parent, all ? all : a->out.base, each * (size_t)members, all ? NULL : a->out.layout);
	}
	schedule_await_all(s);
	for (int64_t mask = low / 2; mask > 0; mask /= 2) {
		if (v + mask < p)
			schedule_send(s, build_around((int)(v + mask), a->root, p), all + (size_t)mask * each,
				      tree_child(v, mask, p) * each, NULL);
	}
	if (v == 0)
		build_copy_part(s, build_one(&a->in, r), a->out);
	else if (all)
		build_copy_part(s, build_flat(all, each), a->out);
}

/* The tree? All members must come to the same answer: where the sizes differ, only the root knows them. */
static bool gather_by_tree(const struct schedule *s, const struct ibvx_coll *a, enum setting setting, size_t bytes)
{
	int choice = build_choice(s, setting), p = s->comm->size;

	if (a->uneven || p == 1)
		return false;
	return choice == GATHER_BINOMIAL || (choice == GATHER_AUTO && p > GATHER_FEW && bytes <= GATHER_TREE_BYTES);
}

void coll_build_gather(struct schedule *s, const struct ibvx_coll *a)
{
	if (gather_by_tree(s, a, SETTING_COLL_GATHER, s->comm->rank == a->root ? a->out.bytes : a->in.bytes))
		gather_binomial(s, a);
	else
		gather_linear(s, a);
}

void coll_build_scatter(struct schedule *s, const struct ibvx_coll *a)
{
	if (gather_by_tree(s, a, SETTING_COLL_SCATTER, s->comm->rank == a->root ? a->in.bytes : a->out.bytes))
		scatter_binomial(s, a);
	else
		scatter_linear(s, a);
}
