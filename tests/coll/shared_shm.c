/* SPDX-License-Identifier: MIT */
/*
 * shared_shm: short blocking operations through the area of a communicator (native/coll/area.h), a process for each rank:
 * thousands of random ones, on several communicators that come and go, with members that fall behind, so that
 * others look, yield and sleep; and lengths that do not agree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/area.h"
#include "ibvx_coll.h"
#include "proto/rng.h"
#include "shm/job.h"

#define LIMIT_S 300
#define ELEMENTS 200
#define MEMBERS_MAX 8
/* More than a rank has areas. */
#define GENERATIONS 40

struct plan {
	uint64_t seed;
	int operations;
};

static int64_t value(uint64_t operation, int member, int index)
{
	return (int64_t)(operation * 1000003u + (uint64_t)member * 1009u + (uint64_t)index);
}

/* Affine maps x -> a x + b as pairs: associative, not commutative. */
static int compose(void *arg, const void *in, void *inout, size_t count)
{
	const uint64_t *first = in;
	uint64_t *second = inout;

	(void)arg;
	for (size_t i = 0; i < 2 * count; i += 2) {
		second[i + 1] += second[i] * first[i + 1];
		second[i] *= first[i];
	}
	return 0;
}

struct step {
	struct ibvx_comm *comm;
	int rank, size, count;
	uint64_t number;
	int64_t in[MEMBERS_MAX * ELEMENTS], out[MEMBERS_MAX * ELEMENTS];
};

static int check(const struct step *s, const char *what, int index, int64_t expected)
{
	if (s->out[index] == expected)
		return 0;
	fprintf(stderr, "operation %llu (%s, %d elements): member %d of %d has %lld at %d, not %lld\n", (unsigned long long)s->number, what,
		s->count, s->rank, s->size, (long long)s->out[index], index, (long long)expected);
	return 1;
}

static struct ibvx_parts parts(int64_t *base, int count)
{
	return (struct ibvx_parts){.base = base, .bytes = (size_t)count * 8, .stride_bytes = count * 8};
}

static int run(const struct step *s, const struct ibvx_coll *a)
{
	int rc = ibvx_coll_run(s->comm, a);

	if (rc)
		fprintf(stderr, "operation %llu of member %d: %s\n", (unsigned long long)s->number, s->rank, ibvx_error());
	return rc;
}

static void fill(struct step *s)
{
	for (int i = 0; i < s->size * s->count; i++)
		s->in[i] = value(s->number, s->rank, i);
	memset(s->out, 0x5a, sizeof(s->out));
}

static int moving(struct step *s, enum ibvx_coll_kind kind, int root, bool in_place)
{
	struct ibvx_coll a = {.kind = kind, .root = root, .in = parts(s->in, s->count), .out = parts(s->out, s->count)};
	int bad = 0;

	fill(s);
	if (kind == IBVX_BCAST) {
		a.in.base = s->out;
		if (s->rank == root)
			memcpy(s->out, s->in, (size_t)s->count * 8);
	} else if (in_place && kind == IBVX_ALLGATHER) {
		memcpy(s->out + s->rank * s->count, s->in, (size_t)s->count * 8);
		a.in.base = s->out + s->rank * s->count;
	}
	if (run(s, &a))
		return 1;
	for (int i = 0; i < s->count && !bad; i++) {
		if (kind == IBVX_BCAST)
			bad = check(s, "bcast", i, value(s->number, root, i));
		else if (kind == IBVX_SCATTER)
			bad = check(s, "scatter", i, value(s->number, root, s->rank * s->count + i));
		for (int m = 0; m < s->size && !bad; m++) {
			if (kind == IBVX_ALLGATHER || (kind == IBVX_GATHER && s->rank == root))
				bad = check(s, "gather", m * s->count + i, value(s->number, m, i));
			else if (kind == IBVX_ALLTOALL)
				bad = check(s, "alltoall", m * s->count + i, value(s->number, m, s->rank * s->count + i));
		}
	}
	return bad;
}

static int reducing(struct step *s, enum ibvx_coll_kind kind, int root, bool user, bool in_place)
{
	static const struct ibvx_user_op op = {.apply = compose, .element_bytes = 16};
	struct ibvx_coll a = {.kind = kind,
			      .root = root,
			      .source = s->in,
			      .target = s->out,
			      .count = (size_t)s->count,
			      .type = IBVX_INT64,
			      .op = user ? IBVX_USER : IBVX_SUM,
			      .user = user ? &op : NULL};
	int first = 0, last = s->size - 1, bad = 0, words = user ? 2 : 1;

	fill(s);
	if (user)
		a.count = (size_t)(s->count /= 2);
	if (in_place) {
		memcpy(s->out, s->in, (size_t)(s->count * words) * 8);
		a.source = s->out;
	}
	if (run(s, &a))
		return 1;
	if (kind == IBVX_SCAN || kind == IBVX_EXSCAN)
		last = s->rank - (kind == IBVX_EXSCAN);
	if ((kind == IBVX_REDUCE && s->rank != root) || last < 0)
		return 0;
	for (int i = 0; i < s->count && !bad; i++) {
		uint64_t sum[2] = {(uint64_t)value(s->number, last, words * i), (uint64_t)value(s->number, last, words * i + 1)};

		for (int m = last - 1; m >= first; m--) {
			uint64_t v[2] = {(uint64_t)value(s->number, m, words * i), (uint64_t)value(s->number, m, words * i + 1)};

			if (user)
				compose(NULL, v, sum, 1);
			else
				sum[0] += v[0];
		}
		bad = check(s, "reduction", words * i, (int64_t)sum[0]) || (user && check(s, "reduction", words * i + 1, (int64_t)sum[1]));
	}
	return bad;
}

/* One member counts differently: a member that sees it gets an error, and the next operation finds all members in step. */
static int disagree(struct step *s, struct rng *rng)
{
	int odd = (int)rng_below(rng, (uint64_t)s->size), rc;
	struct ibvx_coll a = {.kind = IBVX_ALLREDUCE,
			      .source = s->in,
			      .target = s->out,
			      .count = s->rank == odd ? 3 : 4,
			      .type = IBVX_INT64,
			      .op = IBVX_SUM};

	fill(s);
	rc = ibvx_coll_run(s->comm, &a);
	if (rc == -EMSGSIZE && strstr(ibvx_error(), "counts of a collective operation must agree"))
		return 0;
	fprintf(stderr, "operation %llu with lengths that differ: %d (%s)\n", (unsigned long long)s->number, rc, ibvx_error());
	return 1;
}

static void fall_behind(struct rng *mine)
{
	const struct timespec while_others_sleep = {0, 1000000}, while_they_yield = {0, 30000};

	if (rng_below(mine, 400) == 0)
		nanosleep(&while_others_sleep, NULL);
	else if (rng_below(mine, 40) == 0)
		nanosleep(&while_they_yield, NULL);
}

static int any_operation(struct step *s, struct rng *rng)
{
	static const enum ibvx_coll_kind kinds[] = {IBVX_BARRIER,  IBVX_BCAST,  IBVX_GATHER,    IBVX_SCATTER, IBVX_ALLGATHER,
						    IBVX_ALLTOALL, IBVX_REDUCE, IBVX_ALLREDUCE, IBVX_SCAN,    IBVX_EXSCAN};
	enum ibvx_coll_kind kind = kinds[rng_below(rng, sizeof(kinds) / sizeof(kinds[0]))];
	int root = (int)rng_below(rng, (uint64_t)s->size);
	bool user = rng_below(rng, 4) == 0, in_place = rng_below(rng, 4) == 0;

	s->count = (int)rng_below(rng, rng_below(rng, 4) ? 8 : ELEMENTS);
	if (kind == IBVX_BARRIER && rng_below(rng, 5) == 0 && s->comm->area)
		return disagree(s, rng);
	return kind < IBVX_REDUCE ? (kind == IBVX_BARRIER ? run(s, &(struct ibvx_coll){.kind = kind}) : moving(s, kind, root, in_place))
				  : reducing(s, kind, root, user, in_place);
}

/* The same program on all members but for their delays.  With runs of one root, so that others may run ahead of slow readers. */
static int operations(struct ibvx_comm *comm, struct rng *rng, struct rng *mine, int count)
{
	struct step *s = calloc(1, sizeof(*s));
	int bad = !s;

	for (int i = 0; i < count && !bad; i++) {
		int same = rng_below(rng, 10) == 0 ? 12 : 1, root;

		s->comm = comm;
		s->rank = ibvx_comm_rank(comm);
		s->size = ibvx_comm_size(comm);
		s->number = (uint64_t)i * 100;
		fall_behind(mine);
		bad = any_operation(s, rng);
		root = (int)rng_below(rng, (uint64_t)s->size);
		for (int k = 1; k < same && !bad; k++) {
			s->number++;
			s->count = 5;
			fall_behind(mine);
			bad = root % 2 ? moving(s, IBVX_BCAST, root, false) : reducing(s, IBVX_REDUCE, root, false, false);
		}
	}
	if (!bad && ibvx_comm_size(comm) > 1 && !comm->area) {
		fprintf(stderr, "a communicator of %d members got no area\n", ibvx_comm_size(comm));
		bad = 1;
	}
	free(s);
	return bad;
}

/* As if the communicator had done so many operations that their number wraps around soon. */
static int make_old(struct ibvx_comm *comm)
{
	const struct ibvx_coll barrier = {.kind = IBVX_BARRIER};
	const uint32_t base = UINT32_MAX - 30;
	ibvx_coll_req req;

	/* everybody is done with the slots, then all are changed, then they are used again */
	for (int round = 0; round < 2; round++) {
		for (uint32_t n = base - AREA_DEPTH; round == 1 && n != base; n++)
			atomic_store(&area_slot(comm->area, comm->rank, n)->stamp, n + 1);
		if (ibvx_coll_start(comm, &barrier, &req) || ibvx_coll_wait(comm, &req))
			return 1;
	}
	comm->area->operation = base;
	comm->area->all_published = base;
	return 0;
}

/* Two worlds of one endpoint do not get the same memory. */
static int two_worlds(struct ibvx *ep, struct ibvx_comm *first, struct rng *rng, struct rng *mine)
{
	struct ibvx_comm *second;
	int bad = ibvx_comm_world(&second, ep, 2 * IBVX_COMM_MAX);

	for (int i = 0; i < 20 && !bad; i++)
		bad = operations(i % 2 ? first : second, rng, mine, i == 0 ? 20 : 3);
	ibvx_comm_free(second);
	return bad;
}

static int rank_main(struct ibvx **ep, int rank, void *arg)
{
	const struct plan *plan = arg;
	struct rng rng = rng_seed(plan->seed, 1), mine = rng_seed(plan->seed, 100 + (uint64_t)rank);
	struct ibvx_comm *world, *part = NULL;
	int bad = ibvx_comm_world(&world, *ep, 0);

	bad = bad ? bad : operations(world, &rng, &mine, plan->operations);
	bad = bad ? bad : two_worlds(*ep, world, &rng, &mine);
	bad = bad ? bad : make_old(world);
	bad = bad ? bad : operations(world, &rng, &mine, plan->operations);
	for (int g = 0; g < GENERATIONS && !bad; g++) {
		int colors = 1 + (int)rng_below(&rng, 3);
		struct rng same = rng_seed(plan->seed, 1000 + (uint64_t)g);

		bad = ibvx_comm_split(world, rank % colors, -rank, &part);
		bad = bad || operations(part, &same, &mine, 40);
		ibvx_comm_free(part);
	}
	ibvx_comm_free(world);
	return bad;
}

int main(int argc, char **argv)
{
	static const int sizes[] = {2, 3, 4, 5, 8};
	static const char *const waits[][3] = {{NULL}, {"spin_us=0", "yield_us=0", NULL}, {"spin_us=50", "yield_us=0", NULL}};
	struct plan plan = {argc > 1 ? strtoull(argv[1], NULL, 0) : 1, argc > 2 ? atoi(argv[2]) : 600};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t k = 0; k < sizeof(waits) / sizeof(waits[0]); k++) {
			struct job job;

			if (job_start(&job, sizes[i], (const char **)(uintptr_t)waits[k], rank_main, &plan) || job_wait(&job, LIMIT_S)) {
				fprintf(stderr, "seed %llu with %d ranks, way %zu of waiting, failed\n", (unsigned long long)plan.seed,
					sizes[i], k);
				return 1;
			}
		}
	}
	return 0;
}
