/* SPDX-License-Identifier: MIT */
/* A hundred thousand posted or unexpected entries: what a match looks at does not grow. */
#include "directed.h"

#include <stdlib.h>

#define COUNT 100000
#define STEPS_MOST 4 /* entries looked at per match, on average */

static ibvx_req *requests;

static uint64_t steps(struct world *w)
{
	uint64_t count = world_counter(w->ep[0], -1, "match_steps");

	assert_true(count != UINT64_MAX);
	return count;
}

/* Takes what rank 0 expects, in an order that has nothing to do with the order of arrival. */
static unsigned shuffled(unsigned i)
{
	return (unsigned)((uint64_t)i * 77777u % COUNT);
}

static int source_of(unsigned i)
{
	return 1 + (int)(i % 3);
}

static void send_one(struct world *w, unsigned i, struct text t)
{
	struct ibvx_sbuf buf = {NULL, 0, t.bytes, t.len, i};

	assert_int_equal(ibvx_isend(w->ep[source_of(i)], &buf, 0, (int)(i / 3), CTX + (int)(i % 2), &requests[i]), 0);
}

static void receive_one(struct world *w, unsigned i, bool by_tag)
{
	char mem[8];
	struct ibvx_rbuf buf = {mem, sizeof(mem), 0};
	struct ibvx_status s;
	ibvx_req r;

	/* the tag alone would do, but then one source's credit window must not hold it back */
	assert_int_equal(ibvx_irecv(w->ep[0], &buf, by_tag ? IBVX_ANY_SOURCE : source_of(i), (int)(i / 3), CTX + (int)(i % 2), &r), 0);
	assert_int_equal(finish(w, 0, &r, &s), 0);
	if (!by_tag)
		assert_int_equal(s.user, i);
	assert_text(mem, 1, 8);
}

static void unexpected(void **state)
{
	struct text t = text_of(1, 8);
	struct world w;
	uint64_t before;

	(void)state;
	begin(&w, calm(4, 0), "eager_window=256m", NULL);
	for (unsigned i = 0; i < COUNT; i++) {
		send_one(&w, i, t);
		if (i % 64 == 0)
			world_turn(&w, 1);
	}
	settle(&w);
	settle(&w);
	assert_int_equal(fabric_in_flight(w.fabric), 0);
	before = steps(&w);
	for (unsigned i = 0; i < COUNT; i++)
		receive_one(&w, shuffled(i), false);
	assert_true(steps(&w) - before < (uint64_t)COUNT * STEPS_MOST);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(finish(&w, source_of(i), &requests[i], NULL), 0);
	end(&w);
	text_free(t);
}

/* Wildcards of every class among and after them. */
static void unexpected_by_wildcards(void **state)
{
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	struct world w;
	uint64_t before;
	char mem[8];

	(void)state;
	begin(&w, calm(4, 0), "eager_window=256m", NULL);
	for (unsigned i = 0; i < COUNT; i++) {
		send_one(&w, i, t);
		if (i % 64 == 0)
			world_turn(&w, 1);
	}
	settle(&w);
	settle(&w);
	before = steps(&w);
	for (unsigned i = 0; i < COUNT; i++) {
		struct ibvx_rbuf buf = {mem, sizeof(mem), 0};
		ibvx_req r;
		int context = CTX + (int)(i % 2);

		/* what is left of this context, of any source, or of one source of it */
		if (ibvx_iprobe(w.ep[0], i % 3 ? source_of(i) : IBVX_ANY_SOURCE, IBVX_ANY_TAG, context, &s) == 0)
			assert_int_equal(ibvx_iprobe(w.ep[0], IBVX_ANY_SOURCE, IBVX_ANY_TAG, context, &s), 1);
		assert_int_equal(ibvx_irecv(w.ep[0], &buf, i % 5 ? s.source : IBVX_ANY_SOURCE, i % 7 ? s.tag : IBVX_ANY_TAG, context, &r),
				 0);
		assert_int_equal(finish(&w, 0, &r, &s), 0);
	}
	assert_true(steps(&w) - before < (uint64_t)COUNT * 3 * STEPS_MOST);
	assert_int_equal(ibvx_iprobe(w.ep[0], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CTX, &s), 0);
	assert_int_equal(ibvx_iprobe(w.ep[0], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CTX + 1, &s), 0);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(finish(&w, source_of(i), &requests[i], NULL), 0);
	end(&w);
	text_free(t);
}

static void posted(void **state)
{
	struct text t = text_of(1, 8);
	static char mem[COUNT][8];
	struct ibvx_status s;
	struct world w;
	uint64_t before;

	(void)state;
	begin(&w, calm(4, 0), NULL);
	before = steps(&w);
	/* a wildcard of each class stands among them, in another context, so that every table is in use */
	for (unsigned i = 0; i < COUNT; i++) {
		struct ibvx_rbuf buf = {mem[i], 8, 0};
		int any = i % 4 == 3;

		assert_int_equal(ibvx_irecv(w.ep[0], &buf, any ? IBVX_ANY_SOURCE : source_of(i), (int)i, CTX, &requests[i]), 0);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		unsigned k = shuffled(i);
		struct ibvx_sbuf buf = {NULL, 0, t.bytes, 8, k};
		ibvx_req send;

		assert_int_equal(ibvx_isend(w.ep[source_of(k)], &buf, 0, (int)k, CTX, &send), 0);
		assert_int_equal(finish(&w, source_of(k), &send, NULL), 0);
		if (i % 16 == 0)
			world_turn(&w, 1);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(finish(&w, 0, &requests[i], &s), 0);
		assert_int_equal(s.user, i);
		assert_text(mem[i], 1, 8);
	}
	assert_true(steps(&w) - before < (uint64_t)COUNT * 2 * STEPS_MOST);
	end(&w);
	text_free(t);
}

/* Ten thousand small messages that nobody wants yet: by default those behind them still go eagerly. */
static void eager_behind_many(void **state)
{
	struct text t = text_of(1, 8);
	struct world w;
	char mem[8];

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (unsigned i = 0; i < 10000; i++) {
		requests[i] = put(&w, 1, 0, (int)i, t, i, false);
		assert_int_equal(finish(&w, 1, &requests[i], NULL), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		ibvx_req r = take(&w, 0, 1, 10000, mem, sizeof(mem));
		ibvx_req s = put(&w, 1, 0, 10000, t, i, false);

		assert_int_equal(finish(&w, 0, &r, NULL), 0);
		assert_int_equal(finish(&w, 1, &s, NULL), 0);
	}
	assert_int_equal(world_counter(w.ep[1], 0, "rendezvous_out"), 0);
	for (unsigned i = 0; i < 10000; i++) {
		ibvx_req r = take(&w, 0, 1, (int)i, mem, sizeof(mem));

		assert_int_equal(finish(&w, 0, &r, NULL), 0);
	}
	end(&w);
	text_free(t);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(unexpected),
	cmocka_unit_test(unexpected_by_wildcards),
	cmocka_unit_test(posted),
	cmocka_unit_test(eager_behind_many),
};

int main(void)
{
	int failed;

	requests = calloc(COUNT, sizeof(*requests));
	failed = cmocka_run_group_tests_name("scale", tests, NULL, NULL);
	free(requests);
	return failed;
}
