/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_BUILD_H
#define IBVX_COLL_BUILD_H
/*
 * build: from a struct ibvx_coll whose arguments have been checked to the steps of a schedule.  The algorithms of an
 * operation stand in one file; its build function chooses one.  p is the number of members, r is ours.
 *
 * Between two members and in one direction messages match in the order of the steps.
 */
#include "base/settings.h"
#include "coll/schedule.h"

typedef void coll_build(struct schedule *s, const struct ibvx_coll *a);

coll_build coll_build_barrier, coll_build_bcast, coll_build_gather, coll_build_scatter, coll_build_allgather, coll_build_alltoall,
	coll_build_reduce, coll_build_allreduce, coll_build_reduce_scatter, coll_build_scan;

static inline char *part_base(const struct ibvx_parts *p, int i)
{
	return (char *)p->base + (p->sizes ? p->offsets[i] : i * p->stride_bytes);
}

static inline size_t part_bytes(const struct ibvx_parts *p, int i)
{
	return p->sizes ? p->sizes[i] : p->bytes;
}

static inline void build_send_part(struct schedule *s, int member, const struct ibvx_parts *p, int i)
{
	schedule_send(s, member, part_base(p, i), part_bytes(p, i), p->layout);
}

static inline int build_recv_part(struct schedule *s, int member, const struct ibvx_parts *p, int i)
{
	return schedule_recv(s, member, part_base(p, i), part_bytes(p, i), p->layout);
}

/* One part as such, for build_copy_part(). */
static inline struct ibvx_parts build_one(const struct ibvx_parts *p, int i)
{
	return (struct ibvx_parts){.base = part_base(p, i), .bytes = part_bytes(p, i), .layout = p->layout};
}

/* More pieces than this one operation is not cut into. */
#define BUILD_ROUNDS_MAX 16384

/* The value of a setting coll_...: 0 is auto. */
static inline int build_choice(const struct schedule *s, enum setting id)
{
	return (int)settings_int(ibvx_settings(s->comm->engine->ep), id);
}

/* Is an algorithm cheaper in which one member exchanges messages with all others, in both directions if `answers`?
 * Where ranks share processors a member that waits is switched for another one: rounds between pairs do that in each
 * round, such an algorithm does it once.  The messages of that one member are handled one after the other, so it costs
 * more where there are many processors. */
static inline bool build_prefers_linear(const struct schedule *s, bool answers)
{
	int rounds = answers ? -1 : 0, processors = s->comm->shared_processors;

	for (int64_t d = 1; d < s->comm->size; d *= 2)
		rounds++;
	return processors > 0 && s->comm->size > 2 && 2 * rounds > processors;
}

/* Contiguous memory as a part. */
static inline struct ibvx_parts build_flat(void *base, size_t bytes)
{
	return (struct ibvx_parts){.base = base, .bytes = bytes};
}

/* From one part of ours to another one; nothing if they are the same. */
void build_copy_part(struct schedule *s, struct ibvx_parts from, struct ibvx_parts to);

/* Of the first 2 * (p - power) members each even one leaves its values to the next one; the other members, a power of two,
 * have new numbers, in the same order. */
struct build_fold {
	int power;
	int rest;   /* members that leave */
	int number; /* of this member; -1: it leaves */
};

static inline int build_fold_member(const struct build_fold *f, int number)
{
	return number < f->rest ? 2 * number + 1 : number + f->rest;
}

struct build_fold build_fold(const struct ibvx_comm *comm);

/* Of `count` elements in f->power blocks, the first one of block i. */
static inline size_t build_block(const struct build_fold *f, size_t count, int i)
{
	return count / (size_t)f->power * (size_t)i + count % (size_t)f->power * (size_t)i / (size_t)f->power;
}

/* Recursive halving: member `number` has the sum of its block of `sum` afterwards; the operation is commutative.  starts[0..f->power]
 * are the first elements of the blocks, NULL: build_block(). */
void build_halve(struct schedule *s, const struct build_fold *f, char *sum, char *spare, size_t count, const size_t *starts);

/* Reduces to a->target of member `root`, by a tree.  Others' target is not looked at. */
void build_reduce_tree(struct schedule *s, const void *source, void *target, size_t count, int root);

/* The same from every member to the root, which reduces in rank order.  The sum, in scratch memory; NULL at other members,
 * and after an error. */
const void *build_reduce_linear(struct schedule *s, const void *source, size_t count, int root);

/* The largest power of two that is not above n. */
static inline int build_power(int n)
{
	int power = 1;

	while (power <= n / 2)
		power *= 2;
	return power;
}

/* Member (r + by) of p, around the end. */
static inline int build_around(int r, int by, int p)
{
	return (int)(((int64_t)r + by % p + p) % p);
}

#endif
