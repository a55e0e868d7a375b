/* SPDX-License-Identifier: MIT */
/* After the start: farewells, deaths, reports, and a peer that does not read. */
#include "child.h"
#include "party.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/conn.h"

/* What a rank has heard. */
struct ears {
	int lost[PARTY_MAX], left[PARTY_MAX];
	char why[PARTY_MAX][PARTY_TEXT];
};

static void on_lost(void *arg, int rank, const char *why)
{
	struct ears *ears = arg;

	ears->lost[rank]++;
	snprintf(ears->why[rank], sizeof(ears->why[rank]), "%s", why);
}

static void on_left(void *arg, int rank)
{
	struct ears *ears = arg;

	ears->left[rank]++;
}

static int start_watch(struct member *m, struct ears *ears)
{
	struct bootstrap_events events = {.arg = ears, .lost = on_lost, .left = on_left};
	int err = member_gather(m, 1);

	memset(ears, 0, sizeof(*ears));
	if (!err)
		bootstrap_watch(m->b, &events);
	return err;
}

/* Listens until word of `rank` has come; bounded, so that a missing event is a failure and no hang. */
static int listen_for(struct member *m, const struct ears *ears, int rank)
{
	struct pollfd p = {.events = POLLIN};

	if (bootstrap_fds(m->b, &p.fd, 1) != 1)
		return error_set(-EBADMSG, "no descriptor to watch");
	for (int i = 0; i < 200; i++) {
		if (ears->lost[rank] || ears->left[rank])
			return 0;
		poll(&p, 1, 100);
		bootstrap_on_readable(m->b, p.fd);
	}
	return error_set(-ETIME, "rank %d heard nothing of rank %d", m->rank, rank);
}

static int expect_heard(const struct ears *ears, int rank, int lost, int left)
{
	if (ears->lost[rank] == lost && ears->left[rank] == left)
		return 0;
	return error_set(-EBADMSG, "of rank %d: lost %d times (%s), left %d times", rank, ears->lost[rank], ears->why[rank],
			 ears->left[rank]);
}

/* arg: int, the rank that goes first. */
static int act_farewell(struct member *m)
{
	int first = *(int *)m->arg;
	struct ears ears;
	int err = start_watch(m, &ears);

	if (!err && m->rank != first)
		err = listen_for(m, &ears, first);
	if (!err && m->rank != first)
		err = expect_heard(&ears, first, 0, 1);
	bootstrap_leave(m->b);
	if (bootstrap_fds(m->b, &(int){0}, 1) != 0)
		err = error_set(-EBADMSG, "still something to watch");
	return err;
}

static void run_threads(int count, int (*act)(struct member *m), void *arg)
{
	struct member members[PARTY_MAX] = {{0}};
	const char *conf = party_conf(count, party_port());

	for (int i = 0; i < count; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .act = act, .arg = arg};
	party_run(members, count);
	party_forget(conf);
	for (int i = 0; i < count; i++)
		if (members[i].result)
			fail_msg("rank %d: %d: %s", i, members[i].result, members[i].text);
}

static void test_farewell(void **state)
{
	(void)state;
	for (int first = 0; first < 4; first++)
		run_threads(4, act_farewell, &first);
}

/* Every rank leaves when it likes; the last rank has heard one word of each but the silent end of rank 0. */
static int act_scatter(struct member *m)
{
	struct ears ears;
	int err = start_watch(m, &ears);

	if (m->rank == 0)
		for (int r = 1; r < m->joined_size && !err; r++)
			err = listen_for(m, &ears, r);
	else
		party_sleep(m->rank * 3 % 7);
	for (int r = 0; r < m->joined_size && !err; r++)
		err = expect_heard(&ears, r, 0, m->rank == 0 && r != 0);
	bootstrap_leave(m->b);
	return err;
}

static void test_everybody_leaves(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		run_threads(8, act_scatter, NULL);
}

struct report {
	pthread_barrier_t barrier;
	bool leaves; /* rank 2 leaves before rank 1 declares it dead */
};

static int act_reported(struct member *m)
{
	struct report *report = m->arg;
	struct ears ears;
	int err = start_watch(m, &ears);

	if (m->rank == 2 && report->leaves)
		bootstrap_leave(m->b);
	pthread_barrier_wait(&report->barrier);
	if (!err && m->rank == 1) {
		bootstrap_report_lost(m->b, 2, "its process has ended");
		bootstrap_report_lost(m->b, 2, "its process has ended");
	}
	pthread_barrier_wait(&report->barrier);
	/* Rank 0 starts to listen only now: both messages have come, in whatever order. */
	if (m->rank != 2 && m->rank != 1 && !err)
		err = listen_for(m, &ears, 2);
	if (m->rank != 2 && !err)
		err = m->rank == 1 ? expect_heard(&ears, 2, 0, 0) : expect_heard(&ears, 2, !report->leaves, report->leaves);
	if (m->rank == 3 && !err && !report->leaves && !strstr(ears.why[2], "its process has ended (seen by rank 1)"))
		err = error_set(-EBADMSG, "why: %s", ears.why[2]);
	/* A rank that was given up learns it, if it still lives. */
	if (m->rank == 2 && !err && !report->leaves)
		err = listen_for(m, &ears, 0);
	if (m->rank == 2 && !err && !report->leaves)
		err = expect_heard(&ears, 0, 1, 0);
	pthread_barrier_wait(&report->barrier);
	bootstrap_leave(m->b);
	return err;
}

static void test_reported(void **state)
{
	struct report report;

	(void)state;
	for (int i = 0; i < 2; i++) {
		report.leaves = i == 1;
		assert_int_equal(pthread_barrier_init(&report.barrier, NULL, 4), 0);
		run_threads(4, act_reported, &report);
		pthread_barrier_destroy(&report.barrier);
	}
}

/* Rank 0 itself saw somebody die. */
static int act_root_reports(struct member *m)
{
	struct ears ears;
	int err = start_watch(m, &ears);

	if (!err && m->rank == 0) {
		bootstrap_report_lost(m->b, 1, "killed");
		err = expect_heard(&ears, 1, 0, 0);
		if (!err)
			err = listen_for(m, &ears, 2);
	} else if (!err) {
		err = listen_for(m, &ears, m->rank == 1 ? 0 : 1);
		if (!err && m->rank == 2 && strcmp(ears.why[1], "killed") != 0)
			err = error_set(-EBADMSG, "why: %s", ears.why[1]);
	}
	bootstrap_leave(m->b);
	return err;
}

static void test_root_reports(void **state)
{
	(void)state;
	run_threads(3, act_root_reports, NULL);
}

struct kill_plan {
	int victim;
	int ready_fd;
};

static int act_survive(struct member *m)
{
	struct kill_plan *plan = m->arg;
	struct ears ears;
	char expected[32];
	int err = start_watch(m, &ears);

	if (err)
		return err;
	if (write(plan->ready_fd, "r", 1) != 1)
		return error_set(-EIO, "pipe");
	if (m->rank == plan->victim)
		for (;;)
			pause();
	err = listen_for(m, &ears, plan->victim);
	if (!err)
		err = expect_heard(&ears, plan->victim, 1, 0);
	if (!err && !strstr(ears.why[plan->victim], "without a farewell"))
		err = error_set(-EBADMSG, "why: %s", ears.why[plan->victim]);
	snprintf(expected, sizeof(expected), "rank %d (pid ", plan->victim);
	if (!err && !strstr(bootstrap_peer_name(m->b, plan->victim), expected))
		err = error_set(-EBADMSG, "name: %s", bootstrap_peer_name(m->b, plan->victim));
	for (int r = 0; r < m->joined_size && !err; r++)
		if (r != plan->victim && ears.lost[r])
			err = expect_heard(&ears, r, 0, 0);
	bootstrap_leave(m->b);
	return err;
}

/* Rank 0's address under another name for each pair of ranks: to the bootstrap each pair is a node of its own, and all but
 * the first have a leader that comes by TCP. */
static const char *const *pair_peers(int rank, int count, int port)
{
	static char text[PARTY_MAX][PARTY_MAX][64];
	static const char *peers[PARTY_MAX][PARTY_MAX];

	for (int i = 0; i < count; i++) {
		snprintf(text[rank][i], sizeof(text[rank][i]), "127.0.0.%d:%d", i == 0 ? 1 + rank / 2 : 99, port);
		peers[rank][i] = text[rank][i];
	}
	return peers[rank];
}

/* pairs: nodes of two ranks; else all are on one. */
static void run_killed(int count, int victim, bool pairs)
{
	struct kill_plan plan = {.victim = victim};
	int port = party_port(), ready[2], status;
	const char *conf = party_conf(count, port);
	pid_t pids[PARTY_MAX];
	char byte;

	assert_int_equal(pipe(ready), 0);
	plan.ready_fd = ready[1];
	for (int i = 0; i < count; i++) {
		struct member m = {.rank = i,
				   .conf = pairs ? NULL : conf,
				   .size = pairs ? count : 0,
				   .peers = pairs ? pair_peers(i, count, port) : NULL,
				   .act = act_survive,
				   .arg = &plan};

		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			member_run(&m);
			if (m.result)
				fprintf(stderr, "rank %d: %d: %s\n", i, m.result, m.text);
			child_exit(m.result ? 1 : 0);
		}
	}
	close(ready[1]);
	for (int i = 0; i < count; i++)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(pids[victim], SIGKILL);
	for (int i = 0; i < count; i++) {
		waitpid(pids[i], &status, 0);
		if (i != victim)
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	close(ready[0]);
	party_forget(conf);
}

static void test_killed(void **state)
{
	(void)state;
	run_killed(4, 2, false);
	run_killed(4, 0, false);
	run_killed(2, 1, false);
}

/* A follower, and a leader whose follower has to find rank 0. */
static void test_killed_among_leaders(void **state)
{
	(void)state;
	for (int victim = 1; victim < 8; victim++)
		run_killed(8, victim, true);
}

/* Leaders go before their followers, which still hear of everybody. */
static int act_leave_in_turn(struct member *m)
{
	int *order = m->arg;
	struct ears ears;
	int err = start_watch(m, &ears);

	for (int i = 0; i < m->joined_size && order[i] != m->rank && !err; i++)
		err = listen_for(m, &ears, order[i]);
	for (int i = 0; i < m->joined_size && !err; i++)
		err = expect_heard(&ears, i, 0, ears.left[i] != 0);
	bootstrap_leave(m->b);
	return err;
}

static void test_leaders_leave(void **state)
{
	static int order[2][8] = {{2, 4, 6, 3, 5, 7, 1, 0}, {7, 6, 5, 4, 3, 2, 1, 0}};
	struct member members[8];

	(void)state;
	for (int run = 0; run < 2; run++) {
		int port = party_port();

		memset(members, 0, sizeof(members));
		for (int i = 0; i < 8; i++)
			members[i] = (struct member){
				.rank = i, .peers = pair_peers(i, 8, port), .size = 8, .act = act_leave_in_turn, .arg = order[run]};
		party_run(members, 8);
		for (int i = 0; i < 8; i++)
			if (members[i].result)
				fail_msg("rank %d: %d: %s", i, members[i].result, members[i].text);
	}
}

static int act_close_without_leave(struct member *m)
{
	struct ears ears;
	int err = start_watch(m, &ears);

	if (m->rank == 1)
		return err;
	if (!err)
		err = listen_for(m, &ears, 1);
	if (!err)
		err = expect_heard(&ears, 1, 1, 0);
	bootstrap_leave(m->b);
	return err;
}

static void test_close_without_leave(void **state)
{
	(void)state;
	run_threads(3, act_close_without_leave, NULL);
}

static int64_t any_length(void *arg, enum message_kind kind)
{
	(void)arg;
	return (int64_t)message_limit(kind, 4);
}

static void make_pair(struct conn *one, struct conn *other)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	conn_open(one, fds[0]);
	conn_open(other, fds[1]);
}

/* A rank that does not read is dropped; nobody waits for it. */
static void test_stuck(void **state)
{
	static uint8_t body[400];
	struct frame *f = frame_new(MESSAGE_LOST, body, sizeof(body)), *in;
	struct conn c, other;
	int err = 0, sent = 0, got = 0;

	(void)state;
	make_pair(&c, &other);
	c.queue_max = CONN_QUEUE_BYTES;
	while (!err && sent < 1000000) {
		err = conn_send(&c, f);
		sent += !err;
	}
	assert_int_equal(err, -ENOBUFS);
	assert_true(conn_pending(&c));
	assert_true(sent > CONN_QUEUE_BYTES / 408);

	/* If it reads after all, what it gets is whole. */
	for (int n = 1; n > 0 || conn_pending(&c);) {
		n = conn_receive(&other, any_length, NULL, &in);
		assert_true(n >= 0);
		if (n > 0)
			frame_unref(in);
		got += n;
		assert_int_equal(conn_flush(&c), 0);
	}
	assert_int_equal(got, sent);
	conn_close(&c);
	assert_int_equal(conn_receive(&other, any_length, NULL, &in), -ECONNRESET);
	conn_close(&other);
	conn_close(&other);
	assert_int_equal(f->refs, 1);
	frame_unref(f);
}

/* One frame in many queues: it is sent whole from each and freed after the last. */
static void test_shared_frame(void **state)
{
	enum { PAIRS = 3, BYTES = 250000 };
	struct conn c[PAIRS], other[PAIRS];
	struct frame *f = frame_new(MESSAGE_GATHERED, NULL, BYTES), *left = frame_new(MESSAGE_LEFT, "\0\0\0\1", 4);

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		f->bytes[8 + i] = (uint8_t)(i * 7 >> 3);
	for (int i = 0; i < PAIRS; i++) {
		make_pair(&c[i], &other[i]);
		assert_int_equal(conn_send(&c[i], f), 0);
		assert_int_equal(conn_send(&c[i], left), 0);
		assert_true(conn_pending(&c[i]));
	}
	assert_int_equal(f->refs, 1 + PAIRS);
	for (int i = 0; i < PAIRS; i++) {
		for (int want = 0; want < 2;) {
			struct frame *in;
			int n = conn_receive(&other[i], any_length, NULL, &in);

			assert_true(n >= 0);
			assert_int_equal(conn_flush(&c[i]), 0);
			if (n == 0)
				continue;
			assert_int_equal(frame_kind(in), want ? MESSAGE_LEFT : MESSAGE_GATHERED);
			if (want++ == 0)
				assert_memory_equal(frame_body(in), frame_body(f), BYTES);
			frame_unref(in);
		}
		conn_close(&c[i]);
		conn_close(&other[i]);
	}
	assert_int_equal(f->refs, 1);
	frame_unref(f);
	frame_unref(left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),       cmocka_unit_test(test_killed_among_leaders), cmocka_unit_test(test_leaders_leave),
		cmocka_unit_test(test_farewell),     cmocka_unit_test(test_everybody_leaves),     cmocka_unit_test(test_reported),
		cmocka_unit_test(test_root_reports), cmocka_unit_test(test_close_without_leave),  cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_shared_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
