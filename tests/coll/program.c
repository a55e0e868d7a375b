/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <sched.h>
#include <stdio.h>

#include "case.h"

#define UNDER_WAY 4
#define PERSISTENT_TURNS 3
#define FIRST_CONTEXT 100

struct under_way {
	struct coll_case c;
	ibvx_coll_req req;
};

static int failed(struct ibvx_comm *comm, const char *call, const struct coll_case *c)
{
	fprintf(stderr, "member %d: %s of %s: %s\n", ibvx_comm_rank(comm), call, c->text, ibvx_error());
	return 1;
}

static void make(struct coll_case *c, const struct program *p, struct rng *rng, struct ibvx_comm *comm)
{
	/* most are short: many rounds, all of them eager; some go by rendezvous */
	size_t largest = rng_percent(rng, 75) ? 200 : p->largest;

	case_make(c, rng, p->kind, ibvx_comm_size(comm), ibvx_comm_rank(comm), largest);
}

static int run_blocking(const struct program *p, struct rng *rng, struct ibvx_comm *comm)
{
	struct coll_case c;
	int bad;

	make(&c, p, rng, comm);
	case_fill(&c);
	bad = ibvx_coll_run(comm, &c.coll) ? failed(comm, "run", &c) : case_check(&c);
	case_free(&c);
	return bad;
}

/* Waits for it, or tests it until it is complete. */
static int finish(struct ibvx_comm *comm, struct under_way *u, bool tests)
{
	int rc = 0;

	while (tests && (rc = ibvx_coll_test(comm, &u->req)) == 0)
		sched_yield();
	if (!tests)
		rc = ibvx_coll_wait(comm, &u->req);
	return rc < 0 ? failed(comm, tests ? "test" : "wait", &u->c) : case_check(&u->c);
}

/* Each member completes them in an order of its own. */
static int run_several(const struct program *p, struct rng *rng, struct rng *own, struct ibvx_comm *comm)
{
	struct under_way u[UNDER_WAY];
	int count = (int)rng_range(rng, 1, UNDER_WAY), first = (int)rng_below(own, UNDER_WAY), bad = 0;

	for (int i = 0; i < count; i++) {
		make(&u[i].c, p, rng, comm);
		case_fill(&u[i].c);
		if (ibvx_coll_start(comm, &u[i].c.coll, &u[i].req))
			return failed(comm, "start", &u[i].c);
	}
	for (int k = 0; k < count && !bad; k++) {
		int i = (first + k) % count;

		bad = finish(comm, &u[i], rng_percent(own, 50));
		if (!bad && u[i].req) {
			fprintf(stderr, "the handle of %s was not consumed\n", u[i].c.text);
			bad = 1;
		}
	}
	for (int i = 0; i < count; i++)
		case_free(&u[i].c);
	return bad;
}

static int run_persistent(const struct program *p, struct rng *rng, struct rng *own, struct ibvx_comm *comm)
{
	struct under_way u;
	int bad = 0;

	make(&u.c, p, rng, comm);
	if (ibvx_coll_init(comm, &u.c.coll, &u.req))
		return failed(comm, "init", &u.c);
	for (int turn = 0; turn < PERSISTENT_TURNS && !bad; turn++) {
		case_fill(&u.c);
		bad = ibvx_coll_begin(comm, u.req) ? failed(comm, "begin", &u.c) : finish(comm, &u, rng_percent(own, 50));
	}
	if (ibvx_coll_free(comm, &u.req) && !bad)
		bad = failed(comm, "free", &u.c);
	case_free(&u.c);
	return bad;
}

static int run_operations(const struct program *p, struct rng *rng, struct rng *own, struct ibvx_comm *comm, int count)
{
	int bad = 0;

	for (int i = 0; i < count && !bad; i++) {
		uint64_t form = rng_below(rng, 10);

		if (form < 5)
			bad = run_blocking(p, rng, comm);
		else
			bad = form < 8 ? run_several(p, rng, own, comm) : run_persistent(p, rng, own, comm);
	}
	return bad;
}

/* A communicator made of `comm`, the same kind on all members; NULL: this member is in none. */
static int derive(struct ibvx_comm *comm, struct rng *rng, struct ibvx_comm **out)
{
	int size = ibvx_comm_size(comm), count = (int)rng_range(rng, 1, (uint64_t)size), shift = (int)rng_below(rng, (uint64_t)size);
	int ranks[64];

	switch (rng_below(rng, 3)) {
	case 0: return ibvx_comm_dup(comm, out);
	case 1: /* two halves and perhaps some without, in reverse order */
		return ibvx_comm_split(comm, (ibvx_comm_rank(comm) + shift) % 3 ? (ibvx_comm_rank(comm) + shift) % 2 : IBVX_UNDEFINED,
				       -ibvx_comm_rank(comm), out);
	default:
		for (int i = 0; i < count; i++)
			ranks[i] = (i + shift) % size;
		return ibvx_comm_create(comm, count, ranks, out);
	}
}

int program_run(const struct program *p, struct ibvx *ep)
{
	struct rng rng = rng_seed(p->seed, 0), own = rng_seed(p->seed, 1 + (uint64_t)ibvx_rank(ep));
	struct ibvx_comm *world, *other;
	int bad;

	if (ibvx_comm_world(&world, ep, FIRST_CONTEXT)) {
		fprintf(stderr, "comm_world: %s\n", ibvx_error());
		return 1;
	}
	bad = run_operations(p, &rng, &own, world, p->operations);
	if (!bad && derive(world, &rng, &other)) {
		fprintf(stderr, "a new communicator: %s\n", ibvx_error());
		bad = 1;
	}
	if (!bad && other) { /* parts of the world have different random numbers from here on */
		bad = run_operations(p, &rng, &own, other, p->operations / 2);
		ibvx_comm_free(other);
	}
	rng = rng_seed(p->seed, 1000);
	bad = bad || run_operations(p, &rng, &own, world, 2);
	ibvx_comm_free(world);
	return bad;
}
