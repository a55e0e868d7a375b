/* SPDX-License-Identifier: MIT */
/* Single scenes: bad arguments, lengths that disagree, deaths, threads, communicators. A clock makes time pass in the network. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ibvx_coll.h"
#include "proto/directed.h"
#include "proto/rng.h"

#define WORLD_CONTEXT 50

struct rank {
	pthread_t thread;
	struct world *w;
	struct ibvx_comm *world;
	int rank;
	int (*play)(struct rank *r);
	void *arg;
	int result;
	char text[300];
};

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	r->result = r->play(r);
	snprintf(r->text, sizeof(r->text), "%s", ibvx_error());
	return NULL;
}

/* Every rank plays, on a thread of its own. */
static void play_start(struct rank ranks[], struct world *w, int (*play)(struct rank *r), void *arg)
{
	fabric_clock_start(w->fabric, 50);
	for (int i = 0; i < w->size; i++) {
		ranks[i] = (struct rank){.w = w, .rank = i, .play = play, .arg = arg};
		assert_int_equal(ibvx_comm_world(&ranks[i].world, w->ep[i], WORLD_CONTEXT), 0);
		assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
	}
}

static void play_end(struct rank ranks[], int count)
{
	for (int i = 0; i < count; i++) {
		pthread_join(ranks[i].thread, NULL);
		ibvx_comm_free(ranks[i].world);
	}
}

static void play_all(struct world *w, int (*play)(struct rank *r), void *arg)
{
	struct rank ranks[WORLD_RANKS_MAX];

	play_start(ranks, w, play, arg);
	play_end(ranks, w->size);
	for (int i = 0; i < w->size; i++)
		if (ranks[i].result)
			fail_msg("rank %d: %d (%s)", i, ranks[i].result, ranks[i].text);
}

static struct ibvx_coll sum_of(const void *source, void *target, size_t count)
{
	return (struct ibvx_coll){
		.kind = IBVX_ALLREDUCE, .source = source, .target = target, .count = count, .type = IBVX_INT64, .op = IBVX_SUM};
}

static void refused(struct ibvx_comm *comm, struct ibvx_coll coll, const char *names)
{
	ibvx_coll_req req = 7;

	assert_int_equal(ibvx_coll_run(comm, &coll), -EINVAL);
	if (!strstr(ibvx_error(), names))
		fail_msg("\"%s\" does not name %s", ibvx_error(), names);
	assert_int_equal(ibvx_coll_start(comm, &coll, &req), -EINVAL);
	assert_int_equal(req, 0);
	assert_int_equal(ibvx_coll_init(comm, &coll, &req), -EINVAL);
}

static void bad_arguments(void **state)
{
	const size_t sizes[2] = {1, 1};
	const size_t huge[2] = {1, (size_t)-4};
	const struct ibvx_user_op nothing = {0};
	int64_t a = 1, b = 0;
	struct ibvx_comm *comm, *bad;
	struct world w;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	assert_int_equal(ibvx_comm_world(&bad, w.ep[0], -1), -EINVAL);
	assert_null(bad);
	assert_int_equal(ibvx_comm_world(&comm, w.ep[0], WORLD_CONTEXT), 0);
	refused(NULL, sum_of(&a, &b, 1), "freed");
	refused(comm, (struct ibvx_coll){.kind = (enum ibvx_coll_kind)77}, "77");
	refused(comm, (struct ibvx_coll){.kind = IBVX_BCAST, .root = 2}, "root 2");
	refused(comm, (struct ibvx_coll){.kind = IBVX_REDUCE, .root = -1}, "root -1");
	refused(comm, (struct ibvx_coll){.kind = IBVX_BCAST, .in = {.bytes = 5}}, "NULL");
	refused(comm, (struct ibvx_coll){.kind = IBVX_BCAST, .in = {.base = &a, .bytes = (size_t)-5}}, "negative");
	refused(comm, sum_of(NULL, &b, 1), "source");
	refused(comm, sum_of(&a, NULL, 1), "target");
	refused(comm, sum_of(&a, &b, (size_t)-1), "negative");
	refused(comm, (struct ibvx_coll){.kind = IBVX_REDUCE_SCATTER, .source = &a, .target = &b, .counts = huge}, "member 1");
	refused(comm, (struct ibvx_coll){.kind = IBVX_GATHER, .uneven = 1, .out = {.base = &b, .sizes = sizes}}, "offsets");
	refused(comm, (struct ibvx_coll){.kind = IBVX_GATHER, .out = {.base = &b, .sizes = sizes}}, "uneven");
	refused(comm, (struct ibvx_coll){.kind = IBVX_SCAN, .source = &a, .target = &b, .op = IBVX_USER}, "function");
	refused(comm, (struct ibvx_coll){.kind = IBVX_SCAN, .source = &a, .target = &b, .op = IBVX_USER, .user = &nothing}, "function");
	refused(comm, (struct ibvx_coll){.kind = IBVX_SCAN, .op = IBVX_BAND, .type = IBVX_DOUBLE}, "double");
	assert_int_equal(ibvx_comm_peer(comm, 2), -EINVAL);
	assert_int_equal(ibvx_comm_create(comm, 2, (int[]){0, 0}, &bad), -EINVAL);
	assert_int_equal(ibvx_comm_create(comm, 1, (int[]){5}, &bad), -EINVAL);
	assert_int_equal(ibvx_comm_create(comm, 3, (int[]){0, 1, 2}, &bad), -EINVAL);
	ibvx_comm_free(comm);
	ibvx_comm_free(NULL);
	end(&w);
}

/* A handle that is not one, one that is used up, one that is busy. */
static int play_handles(struct rank *r)
{
	int64_t a = 1, b = 0, late = 0;
	struct ibvx_coll sum = sum_of(&a, &b, 1), given_up = sum_of(&a, &late, 1);
	ibvx_coll_req req, same, forged = 0xabcdef;
	int rc;

	if (ibvx_coll_wait(r->world, &forged) != -EINVAL || ibvx_coll_begin(r->world, forged) != -EINVAL)
		return 1;
	rc = ibvx_coll_start(r->world, &sum, &req);
	same = req;
	if (rc || ibvx_coll_begin(r->world, req) != -EINVAL) /* not persistent */
		return 2;
	if (ibvx_coll_wait(r->world, &req) || req != 0 || b != r->w->size || ibvx_coll_wait(r->world, &req))
		return 3;
	if (ibvx_coll_test(r->world, &same) != -EINVAL)
		return 4;
	rc = ibvx_coll_init(r->world, &sum, &req);
	if (rc || ibvx_coll_test(r->world, &req) != 1 || ibvx_coll_begin(r->world, req))
		return 5;
	if (ibvx_coll_begin(r->world, req) != -EBUSY)
		return 6;
	if (ibvx_coll_wait(r->world, &req) || req == 0 || ibvx_coll_wait(r->world, &req) || ibvx_coll_free(r->world, &req) || req)
		return 7;
	/* given up while it is under way: it goes on without its owner */
	rc = ibvx_coll_start(r->world, &given_up, &req);
	if (rc || ibvx_coll_free(r->world, &req) || req)
		return 8;
	while (late != r->w->size)
		ibvx_iprobe(r->w->ep[r->rank], r->rank, 1, 1, NULL);
	return ibvx_coll_run(r->world, &(struct ibvx_coll){.kind = IBVX_BARRIER}); /* until the others have it, too */
}

static void handles(void **state)
{
	struct world w;

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		begin(&w, ugly(3, seed), "spin_us=0", NULL);
		play_all(&w, play_handles, NULL);
		end(&w);
	}
}

/* Member 1 sends fewer bytes than the others expect: they learn of it, and the communicator can still be used. */
static int play_mismatch(struct rank *r)
{
	int64_t values[4] = {0}, sums[4];
	struct ibvx_coll sum = sum_of(values, sums, r->rank == 1 ? 3 : 4), again = sum_of(values, sums, 2);
	int rc = ibvx_coll_run(r->world, &sum);

	if (rc != -EMSGSIZE)
		return rc ? rc : 1;
	if (!strstr(ibvx_error(), "bytes") && !strstr(ibvx_error(), "reports"))
		return 2;
	return ibvx_coll_run(r->world, &again);
}

static void mismatched_counts(void **state)
{
	struct world w;

	(void)state;
	for (int size = 2; size <= 8; size *= 2) {
		begin(&w, calm(size, 0), NULL);
		play_all(&w, play_mismatch, NULL);
		end(&w);
	}
}

/* A user operation that fails on one member fails the operation on all that need it. */
static int apply_never(void *arg, const void *in, void *inout, size_t count)
{
	(void)arg, (void)in, (void)inout, (void)count;
	return -EDOM;
}

static int play_failing_op(struct rank *r)
{
	const struct ibvx_user_op user = {.apply = apply_never, .element_bytes = 8, .commutative = 1};
	int64_t a = 1, b;
	struct ibvx_coll sum = sum_of(&a, &b, 1);

	sum.op = IBVX_USER;
	sum.user = &user;
	return ibvx_coll_run(r->world, &sum) == -EDOM ? 0 : 1;
}

static void failing_operation(void **state)
{
	struct world w;

	(void)state;
	begin(&w, calm(5, 0), NULL);
	play_all(&w, play_failing_op, NULL);
	end(&w);
}

/* Any order of summation gives other bits; but all members have the same ones. */
static int play_bits(struct rank *r)
{
	enum { COUNT = 301 };
	double mine[COUNT], sum[COUNT], all[8 * COUNT];
	struct rng rng = rng_seed(*(uint64_t *)r->arg, (uint64_t)r->rank);
	struct ibvx_coll reduce = {.kind = IBVX_ALLREDUCE, .source = mine, .target = sum, .count = COUNT, .type = IBVX_DOUBLE};
	struct ibvx_coll gather = {.kind = IBVX_ALLGATHER,
				   .in = {.base = sum, .bytes = sizeof(sum)},
				   .out = {.base = all, .bytes = sizeof(sum), .stride_bytes = sizeof(sum)}};
	int rc;

	for (int i = 0; i < COUNT; i++)
		mine[i] = (double)rng_next(&rng) / (double)(1 + rng_below(&rng, 1u << 20));
	rc = ibvx_coll_run(r->world, &reduce);
	rc = rc ? rc : ibvx_coll_run(r->world, &gather);
	for (int i = 1; i < r->w->size && !rc; i++)
		rc = memcmp(all, all + i * COUNT, sizeof(sum)) ? 1 : 0;
	return rc;
}

static void same_bits(void **state)
{
	static const char *const algorithms[] = {"coll_allreduce=doubling", "coll_allreduce=rabenseifner", "coll_allreduce=ring"};

	(void)state;
	for (int size = 2; size <= 8; size++)
		for (uint64_t k = 0; k < 3; k++) {
			struct world w;

			begin(&w, calm(size, 0), algorithms[k], NULL);
			play_all(&w, play_bits, &k);
			end(&w);
		}
}

struct death {
	int victim;
	unsigned operations; /* until then */
};

/* Operations without an end, until one fails.  The victim stays away from one and dies. */
static int play_until_death(struct rank *r)
{
	const struct death *death = r->arg;
	enum { COUNT = 3000 };
	static const enum ibvx_coll_kind kinds[] = {IBVX_BARRIER, IBVX_ALLREDUCE, IBVX_ALLGATHER, IBVX_ALLTOALL};
	int64_t *memory = calloc(2 * 8 * COUNT, sizeof(*memory));
	int rc = 0;

	for (unsigned i = 0; rc == 0; i++) {
		struct ibvx_coll coll = sum_of(memory, memory + 8 * COUNT, i % 2 ? 5 : COUNT);
		size_t bytes = coll.count * sizeof(*memory);

		coll.kind = kinds[i % 4];
		coll.in = (struct ibvx_parts){.base = memory, .bytes = bytes, .stride_bytes = (ptrdiff_t)bytes};
		coll.out = (struct ibvx_parts){.base = memory + 8 * COUNT, .bytes = bytes, .stride_bytes = (ptrdiff_t)bytes};
		if (r->rank == death->victim && i == death->operations)
			break;
		rc = ibvx_coll_run(r->world, &coll);
	}
	free(memory);
	return rc;
}

static void death_of_a_member(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct rank ranks[WORLD_RANKS_MAX];
		int size = 2 + (int)(seed % 6), victim = (int)(seed * 7) % size;
		struct death death = {victim, (unsigned)seed * 3};
		struct world w;

		begin(&w, ugly(size, seed), "psl=4000", seed % 2 ? "progress_thread=1" : "progress_thread=0",
		      seed % 3 ? "fault_scope=peer" : "fault_scope=job", NULL);
		play_start(ranks, &w, play_until_death, &death);
		pthread_join(ranks[victim].thread, NULL);
		world_kill(&w, victim, seed % 2);
		for (int i = 0; i < size; i++) {
			if (i != victim)
				pthread_join(ranks[i].thread, NULL);
			ibvx_comm_free(ranks[i].world);
		}
		for (int i = 0; i < size; i++)
			if (i != victim && ranks[i].result != -ECONNRESET)
				fail_msg("seed %llu: rank %d ended with %d (%s)", (unsigned long long)seed, i, ranks[i].result,
					 ranks[i].text);
		world_close(&w); /* sends to the dead rank may be left */
	}
}

/* A rank that only waits for a message continues what others need of it. */
static int play_receive_meanwhile(struct rank *r)
{
	int64_t value = r->rank == 0 ? 42 : 0;
	struct ibvx_coll bcast = {.kind = IBVX_BCAST, .in = {.base = &value, .bytes = sizeof(value)}};
	struct ibvx *ep = r->w->ep[r->rank];
	struct ibvx_sbuf nothing = {0};
	struct ibvx_rbuf none = {0};
	ibvx_coll_req req;
	int last = r->w->size - 1, rc = 0;

	if (r->rank == 0) /* the others have begun, and are in their receives */
		usleep(20000);
	rc = ibvx_coll_start(r->world, &bcast, &req);
	if (r->rank != last && !rc) /* the last one sends when it has the value, which comes by way of these */
		rc = ibvx_recv(ep, &none, last, 1, 1, NULL);
	if (!rc)
		rc = ibvx_coll_wait(r->world, &req);
	for (int i = 0; r->rank == last && i < last && !rc; i++)
		rc = ibvx_send(ep, &nothing, i, 1, 1);
	return rc ? rc : value != 42;
}

static void progress_in_a_receive(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct world w;

		begin(&w, ugly(8, seed), seed % 2 ? "spin_us=0" : "spin_us=10", "yield_us=0", NULL);
		play_all(&w, play_receive_meanwhile, NULL);
		end(&w);
	}
}

/* Several threads of each rank make communicators at once, each out of one of its own, in whatever order they run. */
#define MAKERS 3
struct maker {
	pthread_t thread;
	struct ibvx_comm *own;
	int result;
};

static void *maker_main(void *arg)
{
	struct maker *m = arg;

	for (int i = 0; i < 4 && !m->result; i++) {
		struct ibvx_comm *made;
		int64_t one = 1, sum = 0;
		struct ibvx_coll check = sum_of(&one, &sum, 1);

		m->result = ibvx_comm_dup(m->own, &made);
		if (m->result)
			break;
		m->result = ibvx_coll_run(made, &check);
		if (!m->result && sum != ibvx_comm_size(made))
			m->result = 1;
		ibvx_comm_free(made);
	}
	return NULL;
}

static int play_makers(struct rank *r)
{
	struct maker makers[MAKERS] = {0};
	int rc = 0;

	for (int i = 0; i < MAKERS && !rc; i++)
		rc = ibvx_comm_dup(r->world, &makers[i].own);
	for (int i = 0; i < MAKERS && !rc; i++)
		pthread_create(&makers[i].thread, NULL, maker_main, &makers[i]);
	for (int i = 0; i < MAKERS; i++) {
		if (makers[i].thread)
			pthread_join(makers[i].thread, NULL);
		rc = rc ? rc : makers[i].result;
		ibvx_comm_free(makers[i].own);
	}
	return rc;
}

static void communicators_at_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world w;

		begin(&w, ugly(4, seed), "spin_us=0", "yield_us=0", NULL);
		play_all(&w, play_makers, NULL);
		end(&w);
	}
}

/* Even and odd ranks, joined. */
static int play_join(struct rank *r)
{
	struct ibvx_comm *half, *both;
	int odd = r->rank % 2, remote = 0, evens = (r->w->size + 1) / 2, odds = r->w->size / 2, rc, expected;
	int64_t mine = r->rank, all[8];
	struct ibvx_coll gather = {.kind = IBVX_ALLGATHER,
				   .in = {.base = &mine, .bytes = sizeof(mine)},
				   .out = {.base = all, .bytes = sizeof(mine), .stride_bytes = sizeof(mine)}};

	rc = ibvx_comm_split(r->world, odd, 0, &half);
	if (rc)
		return rc;
	rc = ibvx_comm_join(half, 0, odd ? 0 : 1, 9, 5, odd, &both, &remote);
	if (rc)
		return rc;
	if (remote != (odd ? evens : odds) || ibvx_comm_size(both) != r->w->size)
		return 1;
	rc = ibvx_coll_run(both, &gather);
	for (int i = 0; i < r->w->size && !rc; i++) { /* the odd ones first */
		expected = i < odds ? 2 * i + 1 : 2 * (i - odds);
		rc = all[i] != expected || ibvx_comm_peer(both, i) != expected;
	}
	ibvx_comm_free(both);
	ibvx_comm_free(half);
	return rc;
}

static void joined_groups(void **state)
{
	(void)state;
	for (int size = 2; size <= 7; size++) {
		struct world w;

		begin(&w, ugly(size, (uint64_t)size), NULL);
		play_all(&w, play_join, NULL);
		end(&w);
	}
}

/* There are IBVX_COMM_MAX ids; one that is freed can be had again. */
static void ids_run_out(void **state)
{
	static struct ibvx_comm *made[IBVX_COMM_MAX];
	struct ibvx_comm *world, *more;
	struct world w;

	(void)state;
	begin(&w, calm(1, 0), NULL);
	assert_int_equal(ibvx_comm_world(&world, w.ep[0], WORLD_CONTEXT), 0);
	for (int i = 1; i < IBVX_COMM_MAX; i++) {
		assert_int_equal(ibvx_comm_dup(world, &made[i]), 0);
		assert_int_equal(ibvx_comm_context(made[i]), WORLD_CONTEXT + 2 * i);
	}
	assert_int_equal(ibvx_comm_dup(world, &more), -ENOSPC);
	assert_null(more);
	ibvx_comm_free(made[100]);
	assert_int_equal(ibvx_comm_dup(world, &made[100]), 0);
	assert_int_equal(ibvx_comm_context(made[100]), WORLD_CONTEXT + 200);
	for (int i = 1; i < IBVX_COMM_MAX; i++)
		ibvx_comm_free(made[i]);
	ibvx_comm_free(world);
	end(&w);
}

/* An operation under way forbids to close. */
static void close_while_under_way(void **state)
{
	int64_t a = 1, b = 0, c = 0;
	struct ibvx_coll sum = sum_of(&a, &b, 1), other = sum_of(&a, &c, 1);
	struct ibvx_comm *comm[2];
	ibvx_coll_req req[2];
	struct world w;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibvx_comm_world(&comm[i], w.ep[i], WORLD_CONTEXT), 0);
	assert_int_equal(ibvx_coll_start(comm[0], &sum, &req[0]), 0);
	assert_int_equal(ibvx_close(w.ep[0]), -EBUSY);
	assert_int_equal(ibvx_coll_start(comm[1], &other, &req[1]), 0);
	for (int i = 0; i < 2000 && (req[0] || req[1]); i++) {
		for (int k = 0; k < 2; k++)
			assert_true(ibvx_coll_test(comm[k], &req[k]) >= 0);
		fabric_step(w.fabric, 1);
	}
	assert_int_equal(b, 2);
	assert_int_equal(c, 2);
	for (int i = 0; i < 2; i++)
		ibvx_comm_free(comm[i]);
	end(&w);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(bad_arguments),
	cmocka_unit_test(handles),
	cmocka_unit_test(mismatched_counts),
	cmocka_unit_test(failing_operation),
	cmocka_unit_test(same_bits),
	cmocka_unit_test(death_of_a_member),
	cmocka_unit_test(progress_in_a_receive),
	cmocka_unit_test(communicators_at_once),
	cmocka_unit_test(joined_groups),
	cmocka_unit_test(ids_run_out),
	cmocka_unit_test(close_while_under_way),
};

int main(void)
{
	return cmocka_run_group_tests_name("coll", tests, NULL, NULL);
}
