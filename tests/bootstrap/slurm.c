/* SPDX-License-Identifier: MIT */
/* Plain Slurm, with a double of libmunge.so.2 (lib/fake_munge.c): meeting, wrong users, replays, strangers. */
#include "session.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/card_service.h"
#include "bootstrap/deadline.h"
#include "bootstrap/hostlist.h"
#include "bootstrap/munge.h"

#define RANKS 3
#define JOB "77.3"

static void set_step(int size, int nodes, const char *list, const char *ports)
{
	char text[16];

	setenv("SLURM_JOB_ID", "77", 1);
	setenv("SLURM_STEP_ID", "3", 1);
	snprintf(text, sizeof(text), "%d", size);
	setenv("SLURM_STEP_NUM_TASKS", text, 1);
	snprintf(text, sizeof(text), "%d", nodes);
	setenv("SLURM_STEP_NUM_NODES", text, 1);
	setenv("SLURM_STEP_NODELIST", list, 1);
	if (ports)
		setenv("SLURM_STEP_RESV_PORTS", ports, 1);
	else
		unsetenv("SLURM_STEP_RESV_PORTS");
}

/* more[i]: a variable of rank i only, or NULL. */
static void run(struct session_rank *ranks, int size, int rounds, const char *timeout, const char *const *more)
{
	static const char *const names[] = {"SLURM_PROCID=0", "SLURM_PROCID=1", "SLURM_PROCID=2"};

	for (int i = 0; i < size; i++) {
		ranks[i] = (struct session_rank){
			.rank = -1, .fd = -1, .rounds = rounds, .settings = {timeout}, .variables = {names[i], more ? more[i] : NULL}};
		session_start(&ranks[i]);
	}
	for (int i = 0; i < size; i++)
		session_wait(&ranks[i]);
}

static const char *a_port(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "%d", party_port());
	return text;
}

static void expect_all(const struct session_rank *ranks, int rounds)
{
	for (int i = 0; i < RANKS; i++) {
		assert_string_equal(ranks[i].text, "");
		assert_int_equal(ranks[i].rounds_done, rounds);
		assert_int_equal(ranks[i].joined_rank, i);
		assert_string_equal(ranks[i].job_ids[1], ranks[0].job_ids[1]);
	}
}

static void test_meet(void **state)
{
	struct session_rank ranks[RANKS];

	(void)state;
	/* Two nodes whose first one has a name that means this one. */
	set_step(RANKS, 2, "localhost,n[7-9]", a_port());
	run(ranks, RANKS, 3, "start_timeout_ms=20000", NULL);
	expect_all(ranks, 3);
	/* No reserved ports; one node, whose name nobody can resolve. */
	set_step(RANKS, 1, "no-such-node-[004-009]", NULL);
	run(ranks, RANKS, 2, "start_timeout_ms=20000", NULL);
	expect_all(ranks, 2);
	set_step(RANKS, 2, "no-such-node-[004-009]", a_port());
	setenv("SLURMD_NODENAME", "no-such-node-004", 1);
	run(ranks, RANKS, 2, "start_timeout_ms=20000", NULL);
	expect_all(ranks, 2);
	unsetenv("SLURMD_NODENAME");
}

static int listen_on(int port, struct address_listener *l)
{
	struct address_list list = {.count = 1};

	assert_int_equal(address_from_numeric(&list.at[0], "127.0.0.1", 0), 0);
	return address_listen(l, &list, port);
}

/* On the first port something listens that never sends anything. */
static void test_port_taken(void **state)
{
	struct address_listener silent = {.count = 0};
	struct session_rank ranks[RANKS];
	char ports[32];

	(void)state;
	assert_int_equal(listen_on(0, &silent), 0);
	snprintf(ports, sizeof(ports), "%d,%d", silent.port, party_port());
	set_step(RANKS, 1, "localhost", ports);
	run(ranks, RANKS, 2, "start_timeout_ms=30000", NULL);
	expect_all(ranks, 2);
	snprintf(ports, sizeof(ports), "%d", silent.port);
	set_step(RANKS, 1, "localhost", ports);
	run(ranks, 1, 1, "start_timeout_ms=1000", NULL);
	assert_int_equal(ranks[0].result, -EADDRINUSE);
	assert_non_null(strstr(ranks[0].text, "--resv-ports"));
	address_unlisten(&silent);
}

static void test_no_name(void **state)
{
	struct session_rank ranks[RANKS];
	static const char *const more[] = {NULL, NULL};

	(void)state;
	set_step(2, 2, "no-such-node.invalid", a_port());
	run(ranks, 2, 1, "start_timeout_ms=1500", more);
	assert_int_equal(ranks[1].result, -EHOSTUNREACH);
	assert_non_null(strstr(ranks[1].text, "no-such-node.invalid"));
	assert_non_null(strstr(ranks[1].text, "--mpi=pmi2"));
}

/* Credentials of another user, for another user, opened before; no daemon. */
static void test_wrong_users(void **state)
{
	static const char *const by_asker[] = {NULL, "FAKE_MUNGE_UID=4711"}, *const by_rank_0[] = {"FAKE_MUNGE_UID=4711", NULL},
				 *const for_other[] = {"FAKE_MUNGE_FOR=4711", NULL}, *const replayed[] = {"FAKE_MUNGE_TWICE=1", NULL};
	struct session_rank ranks[RANKS];

	(void)state;
	set_step(2, 1, "localhost", a_port());
	run(ranks, 2, 1, "start_timeout_ms=700", by_asker);
	assert_int_equal(ranks[1].result, -ETIMEDOUT);
	assert_non_null(strstr(ranks[1].text, "closed the connection"));
	assert_int_equal(ranks[0].result, -ETIMEDOUT);
	run(ranks, 2, 1, "start_timeout_ms=700", by_rank_0);
	assert_int_equal(ranks[1].result, -ETIMEDOUT);
	assert_non_null(strstr(ranks[1].text, "of the user 4711"));
	run(ranks, 2, 1, "start_timeout_ms=700", for_other);
	assert_int_equal(ranks[1].result, -ETIMEDOUT);
	assert_non_null(strstr(ranks[1].text, "Unauthorized"));
	run(ranks, 2, 1, "start_timeout_ms=700", replayed);
	assert_int_equal(ranks[1].result, -ETIMEDOUT);
	assert_non_null(strstr(ranks[1].text, "closed the connection"));
	setenv("FAKE_MUNGE_FAIL", "encode", 1);
	run(ranks, 2, 1, "start_timeout_ms=20000", NULL);
	assert_int_equal(ranks[1].result, -EACCES);
	assert_non_null(strstr(ranks[1].text, "munge"));
	unsetenv("FAKE_MUNGE_FAIL");
}

static void test_environment(void **state)
{
	struct session_rank ranks[RANKS];

	(void)state;
	set_step(2, 1, "[", a_port());
	run(ranks, 1, 1, "launcher=slurm", NULL);
	assert_non_null(strstr(ranks[0].text, "SLURM_STEP_NODELIST"));
	set_step(2, 1, "n1", "no port");
	run(ranks, 1, 1, "launcher=slurm", NULL);
	assert_non_null(strstr(ranks[0].text, "SLURM_STEP_RESV_PORTS"));
	set_step(2, 1, "n1", NULL);
	/* A batch script, and the shell of an allocation: one rank alone, and no waiting. */
	unsetenv("SLURM_STEP_ID");
	run(ranks, 1, 1, "launcher=slurm", NULL);
	assert_non_null(strstr(ranks[0].text, "SLURM_STEP_ID is not set: this is a batch script"));
	run(ranks, 1, 1, "launcher=auto", NULL);
	assert_int_equal(ranks[0].joined_size, 1);
	setenv("SLURM_STEP_ID", "4294967290", 1);
	run(ranks, 1, 1, "launcher=auto", NULL);
	assert_int_equal(ranks[0].joined_size, 1);
}

static void test_hostlists(void **state)
{
	static const char *const good[][2] = {
		{"n1", "n1"},
		{"n[01-16,20],login", "n01"},
		{"n[7]", "n7"},
		{"rack[0-1]n[03-05]", "rack0n03"},
		{"a-b.c,x[1-2]", "a-b.c"},
		{"n[3,5]-ib", "n3-ib"},
	};
	static const char *const bad[] = {"", ",", "[", "n[", "n[]", "n[1", "n[x]", "n]", "n 1", "n[1x]", "n\x80"};
	char out[16];
	int ports[4];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(hostlist_first(good[i][0], out, sizeof(out)), 0);
		assert_string_equal(out, good[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(hostlist_first(bad[i], out, sizeof(out)), -EINVAL);
	assert_int_equal(hostlist_first("a-name-of-16-cha", out, sizeof(out)), -EINVAL);
	assert_int_equal(hostlist_ports("31000-31002,31007,31009", ports, 4), 4);
	assert_int_equal(ports[2], 31002);
	assert_int_equal(ports[3], 31007);
	assert_int_equal(hostlist_ports("5", ports, 4), 1);
	assert_int_equal(hostlist_ports("", ports, 4), -EINVAL);
	assert_int_equal(hostlist_ports("5-4", ports, 4), -EINVAL);
	assert_int_equal(hostlist_ports("0", ports, 4), -EINVAL);
	assert_int_equal(hostlist_ports("1-70000", ports, 4), -EINVAL);
	assert_int_equal(hostlist_ports("1,,2", ports, 4), -EINVAL);
}

/* A card service of this process. */
static struct card_service *serve(struct card *card, struct address_list *where)
{
	struct address_listener listener = {.count = 0};
	struct card_service *s = NULL;

	memset(card, 0, sizeof(*card));
	assert_int_equal(card_draw(card), 0);
	snprintf(card->host, sizeof(card->host), "here");
	card->addresses.count = 1;
	assert_int_equal(address_from_numeric(&card->addresses.at[0], "127.0.0.1", 4242), 0);
	assert_int_equal(listen_on(0, &listener), 0);
	assert_int_equal(card_service_start(&s, &listener, JOB, card), 0);
	where->count = 1;
	assert_int_equal(address_from_numeric(&where->at[0], "127.0.0.1", listener.port), 0);
	return s;
}

/* Sends these bytes; whether an answer came before the end of the connection. */
static bool answered(const struct address_list *where, const void *bytes, size_t len)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)address_port(&where->at[0]))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;
	ssize_t n;

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	send(fd, bytes, len, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	n = recv(fd, &byte, 1, 0);
	close(fd);
	return n > 0;
}

/* A question for `job`; its length. */
static size_t make_question(uint8_t frame[MUNGE_TEXT_BYTES + 8], const char *kind, const char *job)
{
	char payload[128];
	size_t len;

	snprintf(payload, sizeof(payload), "%s0123456789abcdef%s", kind, job);
	assert_int_equal(munge_seal(payload, strlen(payload), (char *)frame + 8), 0);
	len = strlen((char *)frame + 8);
	memcpy(frame, "ibcs\0\0", 6);
	frame[6] = (uint8_t)(len >> 8);
	frame[7] = (uint8_t)len;
	return 8 + len;
}

static void test_service(void **state)
{
	uint8_t frame[MUNGE_TEXT_BYTES + 8], bad[MUNGE_TEXT_BYTES + 8];
	struct address_list where;
	struct card card, got;
	struct card_service *s = serve(&card, &where);
	size_t len;

	(void)state;
	assert_int_equal(card_service_ask(&where, JOB, &got, deadline_after_ms(5000)), 0);
	assert_string_equal(got.secret, card.secret);
	assert_int_equal(card_service_ask(&where, "77.4", &got, deadline_after_ms(5000)), -EACCES);

	len = make_question(frame, "ask1", JOB);
	assert_true(answered(&where, frame, len));
	assert_false(answered(&where, frame, len)); /* the same credential again */
	len = make_question(frame, "ask1", "77.4");
	assert_false(answered(&where, frame, len));
	len = make_question(frame, "card", JOB);
	assert_false(answered(&where, frame, len));
	len = make_question(frame, "ask1", JOB);
	for (size_t cut = 0; cut < len; cut += 7)
		assert_false(answered(&where, frame, cut));
	for (size_t at = 0; at < len; at += 5) {
		memcpy(bad, frame, len);
		bad[at] ^= 1;
		assert_false(answered(&where, bad, len));
	}
	memset(bad, 0xff, sizeof(bad));
	assert_false(answered(&where, bad, sizeof(bad)));
	card_service_stop(s);
	assert_int_equal(card_service_ask(&where, JOB, &got, deadline_after_ms(500)), -ECONNREFUSED);
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Strangers that send nothing: they hold no more than their slots, and a rank is served all the same. */
static void test_flood(void **state)
{
	enum { STRANGERS = 300 };
	struct address_list where;
	struct card card, got;
	struct card_service *s = serve(&card, &where);
	int fds[STRANGERS], before = count_descriptors();

	(void)state;
	for (int i = 0; i < STRANGERS; i++)
		fds[i] = party_connect(address_port(&where.at[0]));
	assert_int_equal(card_service_ask(&where, JOB, &got, deadline_after_ms(5000)), 0);
	assert_string_equal(got.secret, card.secret);
	/* Each stranger is one descriptor of this process, and so is each slot of the service. */
	assert_true(count_descriptors() <= before + STRANGERS + CARD_SERVICE_VISITORS);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	card_service_stop(s);
	assert_true(count_descriptors() < before);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostlists),   cmocka_unit_test(test_service),     cmocka_unit_test(test_flood),
		cmocka_unit_test(test_meet),        cmocka_unit_test(test_port_taken),  cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_wrong_users), cmocka_unit_test(test_environment),
	};

	(void)argc;
	/* The loader reads LD_LIBRARY_PATH once, at the start. */
	if (!getenv("LD_LIBRARY_PATH") || !strstr(getenv("LD_LIBRARY_PATH"), FAKE_PREFIX "/lib")) {
		setenv("LD_LIBRARY_PATH", FAKE_PREFIX "/lib", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	session_forget_engines();
	if (munge_load("") < 0) {
		fprintf(stderr, "%s\n", error_text());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
