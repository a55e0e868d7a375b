/* SPDX-License-Identifier: MIT */
/* The meeting when all goes well: sizes, addresses, job ids, rounds. */
#include "party.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void expect_joined(const struct member *members, int count)
{
	for (int i = 0; i < count; i++) {
		if (members[i].result != 0)
			fail_msg("rank %d: %d: %s", members[i].rank, members[i].result, members[i].text);
		assert_int_equal(members[i].joined_size, count);
		assert_int_equal(strlen(members[i].job_id), 32);
		assert_string_equal(members[i].job_id, members[0].job_id);
	}
}

static void meet(int size, const char *setting)
{
	struct member members[PARTY_MAX] = {{0}};
	const char *conf = party_conf(size, party_port());

	for (int i = 0; i < size; i++) {
		members[i].rank = i;
		members[i].conf = conf;
		members[i].settings[0] = setting;
	}
	party_run(members, size);
	party_forget(conf);
	expect_joined(members, size);
}

static void test_sizes(void **state)
{
	(void)state;
	for (int size = 1; size <= PARTY_MAX; size++)
		meet(size, NULL);
}

static void test_secret(void **state)
{
	(void)state;
	meet(3, "job_secret=the same on all");
}

static void test_job_id(void **state)
{
	struct member members[2] = {{0}};
	const char *conf = party_conf(2, party_port());

	(void)state;
	for (int i = 0; i < 2; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .settings = {"job_id=0123456789abcdef0123456789abcdef"}};
	party_run(members, 2);
	expect_joined(members, 2);
	assert_string_equal(members[1].job_id, "0123456789abcdef0123456789abcdef");
	party_forget(conf);
}

/* Ranks that belong to another job ask again, and find their own rank 0 at the same port. */
static void test_two_jobs_one_port(void **state)
{
	struct member members[4] = {{0}};
	const char *conf = party_conf(2, party_port());

	(void)state;
	for (int i = 0; i < 4; i++)
		members[i] = (struct member){
			.rank = i % 2,
			.conf = conf,
			.settings = {i < 2 ? "job_id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" : "job_id=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}};
	members[1].delay_ms = 300;
	party_run(members, 4);
	expect_joined(members, 2);
	expect_joined(members + 2, 2);
	party_forget(conf);
}

/* The first job's rank 0 closed its listener before the second's came: no network, no port. */
static void test_size_one_needs_no_port(void **state)
{
	int port = party_port();
	const char *conf = party_conf(1, port), *two = party_conf(2, port);
	struct member alone = {.rank = 0, .conf = conf};
	struct member holder = {.rank = 0, .conf = two, .settings = {"start_timeout_ms=700"}};
	struct member starter = {.rank = 0, .conf = "#Number of Processes;1;#Protocol Switch Limit;1000;"};

	(void)state;
	party_start(&holder, 1);
	close(party_connect(port));
	party_run(&alone, 1);
	party_wait(&holder, 1);
	expect_joined(&alone, 1);
	party_run(&starter, 1);
	expect_joined(&starter, 1);
	party_forget(conf);
	party_forget(two);
}

static void test_peers(void **state)
{
	char text[3][64];
	const char *peers[3];
	struct member members[3] = {{0}};
	int port = party_port();

	(void)state;
	for (int i = 0; i < 3; i++) {
		snprintf(text[i], sizeof(text[i]), i == 1 ? "localhost:%d" : "127.0.0.1:%d", port + i);
		peers[i] = text[i];
	}
	for (int i = 0; i < 3; i++)
		members[i] = (struct member){.rank = i, .peers = peers, .size = 3};
	party_run(members, 3);
	expect_joined(members, 3);
}

static int act_names(struct member *m)
{
	char expected[64];
	int err = member_gather(m, 1);

	for (int r = 0; r < m->joined_size && !err; r++) {
		snprintf(expected, sizeof(expected), "rank %d (pid %d on ", r, (int)getpid());
		if (strncmp(bootstrap_peer_name(m->b, r), expected, strlen(expected)) != 0)
			err = error_set(-EBADMSG, "name is %s", bootstrap_peer_name(m->b, r));
		if (bootstrap_peer_pid(m->b, r) != (int)getpid() || !bootstrap_peer_local(m->b, r))
			err = error_set(-EBADMSG, "pid %d local %d", bootstrap_peer_pid(m->b, r), bootstrap_peer_local(m->b, r));
	}
	if (strspn(bootstrap_node_id(m->b), "0123456789abcdef") != 16 || bootstrap_node_id(m->b)[16])
		err = error_set(-EBADMSG, "node id is %s", bootstrap_node_id(m->b));
	if (strcmp(bootstrap_peer_name(m->b, 99), "rank 99") != 0)
		err = error_set(-EBADMSG, "name is %s", bootstrap_peer_name(m->b, 99));
	bootstrap_leave(m->b);
	return err;
}

static void test_names(void **state)
{
	struct member members[3] = {{0}};
	const char *conf = party_conf(3, party_port());

	(void)state;
	for (int i = 0; i < 3; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .act = act_names};
	party_run(members, 3);
	expect_joined(members, 3);
	party_forget(conf);
}

struct rounds {
	const char *conf;
	int rank, count;
	int failed_round;
	char text[PARTY_TEXT];
	char (*ids)[33];
	unsigned seed;
};

static void *rounds_thread(void *arg)
{
	struct rounds *r = arg;

	r->failed_round = -1;
	for (int i = 0; i < r->count && r->failed_round < 0; i++) {
		struct member m = {.rank = r->rank, .conf = r->conf};

		r->seed = r->seed * 1103515245u + 12345u;
		party_sleep((int)(r->seed >> 16) % 6);
		member_run(&m);
		memcpy(r->ids[i], m.job_id, 33);
		if (m.result) {
			r->failed_round = i;
			snprintf(r->text, sizeof(r->text), "%s", m.text);
		}
	}
	return NULL;
}

/* Every rank goes from round to round as fast as it can, with jitter: same conf, same port. */
static void test_rounds(void **state)
{
	enum { RANKS = 4, ROUNDS = 130 };
	static char ids[RANKS][ROUNDS][33];
	struct rounds rounds[RANKS];
	pthread_t threads[RANKS];
	const char *conf = party_conf(RANKS, party_port());

	(void)state;
	for (int i = 0; i < RANKS; i++) {
		rounds[i] = (struct rounds){.conf = conf, .rank = i, .count = ROUNDS, .ids = ids[i], .seed = 7u + (unsigned)i};
		assert_int_equal(pthread_create(&threads[i], NULL, rounds_thread, &rounds[i]), 0);
	}
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
	party_forget(conf);
	for (int i = 0; i < RANKS; i++) {
		if (rounds[i].failed_round >= 0)
			fail_msg("rank %d round %d: %s", i, rounds[i].failed_round, rounds[i].text);
		for (int r = 0; r < ROUNDS; r++)
			assert_string_equal(ids[i][r], ids[0][r]);
	}
	assert_string_not_equal(ids[0][0], ids[0][1]);
}

/* The next round's endpoints are opened while the present ones still live. */
static int act_nested(struct member *m)
{
	struct member inner = {.rank = m->rank, .conf = m->conf};
	int err = member_gather(m, 1);

	if (err)
		return err;
	member_run(&inner);
	if (inner.result)
		return error_set(inner.result, "inner: %s", inner.text);
	err = member_gather(m, 1);
	bootstrap_leave(m->b);
	return err;
}

static void test_two_endpoints_per_rank(void **state)
{
	struct member members[3] = {{0}};
	const char *conf = party_conf(3, party_port());

	(void)state;
	for (int i = 0; i < 3; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .act = act_nested};
	party_run(members, 3);
	expect_joined(members, 3);
	party_forget(conf);
}

static int act_big(struct member *m)
{
	size_t each = 65536, all = each * (size_t)m->joined_size;
	uint8_t *mine = malloc(each), *out = malloc(all);
	uint32_t lengths[PARTY_MAX];
	int err;

	if (!mine || !out) {
		free(mine);
		free(out);
		return error_set(-ENOMEM, "no memory");
	}
	memset(mine, 'a' + m->rank, each);
	err = bootstrap_allgather(m->b, mine, each, out, all - 1, lengths);
	if (err != -ENOBUFS)
		err = error_set(-EBADMSG, "small buffer gave %d", err);
	else
		err = bootstrap_allgather(m->b, mine, each, out, all, lengths);
	for (size_t i = 0; i < all && !err; i++)
		if (out[i] != 'a' + (int)(i / each))
			err = error_set(-EBADMSG, "byte %zu", i);
	if (!err && bootstrap_allgather(m->b, mine, each + 1, out, all, lengths) != -EINVAL)
		err = error_set(-EBADMSG, "too much was accepted");
	if (!err)
		err = bootstrap_allgather(m->b, NULL, 0, NULL, 0, lengths);
	bootstrap_leave(m->b);
	free(mine);
	free(out);
	return err;
}

static void test_big_gather(void **state)
{
	struct member members[4] = {{0}};
	const char *conf = party_conf(4, party_port());

	(void)state;
	for (int i = 0; i < 4; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .act = act_big};
	party_run(members, 4);
	expect_joined(members, 4);
	party_forget(conf);
}

static int act_silent_rank(struct member *m)
{
	int err = m->rank == 2 ? 0 : member_gather(m, 1);

	if (m->rank == 2)
		party_sleep(3500);
	bootstrap_leave(m->b);
	return err;
}

/* A rank that is there but never enters the allgather: a time limit that names it. */
static void test_gather_timeout(void **state)
{
	struct member members[4] = {{0}};
	const char *conf = party_conf(4, party_port());

	(void)state;
	for (int i = 0; i < 4; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .act = act_silent_rank, .settings = {"start_timeout_ms=2500"}};
	party_run(members, 4);
	party_forget(conf);
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		assert_true(members[i].result == -ETIMEDOUT || members[i].result == -ECONNRESET);
		assert_non_null(strstr(members[i].text, "rank 2"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_job_id),
		cmocka_unit_test(test_two_jobs_one_port),
		cmocka_unit_test(test_size_one_needs_no_port),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_two_endpoints_per_rank),
		cmocka_unit_test(test_big_gather),
		cmocka_unit_test(test_gather_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
