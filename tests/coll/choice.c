/* SPDX-License-Identifier: MIT */
/* Which algorithm `auto` is: its schedule has the steps of the one that the setting names. */
#include <stdio.h>

#include "coll/schedule.h"
#include "ibvx_coll.h"
#include "proto/directed.h"

#define WORLD_CONTEXT 50

/* An operation that has a linear algorithm, and what auto chooses otherwise. */
struct row {
	enum ibvx_coll_kind kind;
	const char *setting, *linear, *other;
	size_t size; /* bytes of a bcast, elements of a reduction */
	/* By the number of ranks: the most processors for which linear is chosen. */
	int most[WORLD_RANKS_MAX + 1];
};

static const struct row rows[] = {
	{IBVX_BARRIER, "coll_barrier", "linear", "dissemination", 0, {0, 0, 0, 1, 1, 3, 3, 3, 3}},
	{IBVX_ALLREDUCE, "coll_allreduce", "linear", "doubling", 1024, {0, 0, 0, 1, 1, 3, 3, 3, 3}},
	{IBVX_ALLREDUCE, "coll_allreduce", "linear", "doubling", 1025, {0}},
	{IBVX_REDUCE, "coll_reduce", "linear", "binomial", 2048, {0, 0, 0, 3, 3, 5, 5, 5, 5}},
	{IBVX_REDUCE, "coll_reduce", "linear", "binomial", 2049, {0}},
	{IBVX_BCAST, "coll_bcast", "linear", "binomial", (256 << 10) - 1, {0}},
	{IBVX_BCAST, "coll_bcast", "linear", "chain", 256 << 10, {0, 0, 0, 3, 3, 5, 5, 5, 5}},
};

static char memory[2][256 << 10];

static struct ibvx_coll operation(const struct row *row)
{
	return (struct ibvx_coll){
		.kind = row->kind,
		.in = {.base = memory[0], .bytes = row->size},
		.source = memory[0],
		.target = memory[1],
		.count = row->size,
		.type = IBVX_INT64,
		.op = IBVX_SUM,
	};
}

/* The steps of an operation of one rank, as text. */
static void steps_of(struct ibvx_comm *comm, const struct row *row, char *text, size_t room)
{
	const struct ibvx_coll coll = operation(row);
	struct schedule *s;
	ibvx_coll_req req;
	size_t at = 0;

	assert_int_equal(ibvx_coll_init(comm, &coll, &req), 0);
	s = schedule_take(comm->engine, req);
	assert_non_null(s);
	text[0] = '\0';
	for (int i = 0; i < s->count && at < room; i++)
		at += (size_t)snprintf(text + at, room - at, "%d:%d:%zu ", (int)s->steps[i].kind, s->steps[i].member, s->steps[i].size);
	assert_true(at < room);
	schedule_leave(s);
	assert_int_equal(ibvx_coll_free(comm, &req), 0);
}

/* The steps of every rank where `processors` are shared (0: there is one for each); apart: the last rank is on another node. */
static void world_steps(const struct row *row, const char *algorithm, int size, int processors, bool apart, char *text, size_t room)
{
	char setting[64];
	struct world w;

	snprintf(setting, sizeof(setting), "%s=%s", row->setting, algorithm);
	begin(&w, calm(size, 0), setting, NULL);
	text[0] = '\0';
	for (int i = 0; i < size; i++) {
		struct ibvx_comm *comm;
		size_t at = strlen(text);

		w.ep[i]->oversubscribed = processors > 0;
		w.ep[i]->processor_count = processors;
		for (int k = 0; k < size; k++)
			w.ep[i]->peers[k].same_node = !apart || (k == size - 1) == (i == size - 1);
		assert_int_equal(ibvx_comm_world(&comm, w.ep[i], WORLD_CONTEXT), 0);
		steps_of(comm, row, text + at, room - at);
		ibvx_comm_free(comm);
	}
	end(&w);
}

static char want[2][16 << 10], got[16 << 10];

static void is_chosen(const struct row *row, bool linear, int size, int processors, bool apart)
{
	world_steps(row, "auto", size, processors, apart, got, sizeof(got));
	if (strcmp(got, want[linear]) != 0)
		fail_msg("%s of %zu, %d ranks, %d processors, %s: auto is not %s", row->setting, row->size, size, processors,
			 apart ? "two nodes" : "one node", linear ? row->linear : row->other);
}

static void linear_where_processors_are_shared(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int size = 3; size <= WORLD_RANKS_MAX; size++) {
			const struct row *row = &rows[i];

			world_steps(row, row->other, size, 0, false, want[0], sizeof(want[0]));
			world_steps(row, row->linear, size, 0, false, want[1], sizeof(want[1]));
			assert_string_not_equal(want[0], want[1]);
			for (int processors = 0; processors < size; processors++)
				is_chosen(row, processors > 0 && processors <= row->most[size], size, processors, false);
		}
}

/* Ranks of several nodes do not wait for one processor. */
static void not_between_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_steps(&rows[i], rows[i].other, 4, 0, false, want[0], sizeof(want[0]));
		is_chosen(&rows[i], false, 4, 1, true);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(linear_where_processors_are_shared),
	cmocka_unit_test(not_between_nodes),
};

int main(void)
{
	return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
