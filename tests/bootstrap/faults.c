/* SPDX-License-Identifier: MIT */
/* The meeting when something is wrong: each fault has its error, and harms nobody that it need not. */
#include "child.h"
#include "party.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/message.h"

/* Long enough for arrivals on a loaded machine, short enough to wait for. */
#define MEETING "start_timeout_ms=3000"

static void expect_fault(const struct member *m, int code, const char *words)
{
	char copy[256], *rest = copy;

	if (m->result != code)
		fail_msg("rank %d: %d, not %d: %s", m->rank, m->result, code, m->text);
	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word; (word = strsep(&rest, "|"));)
		if (!strstr(m->text, word))
			fail_msg("rank %d: no \"%s\" in \"%s\"", m->rank, word, m->text);
}

static void expect_fine(const struct member *m)
{
	if (m->result != 0)
		fail_msg("rank %d: %d: %s", m->rank, m->result, m->text);
}

static void seat(struct member *members, int count, const char *conf, const char *setting)
{
	memset(members, 0, (size_t)count * sizeof(*members));
	for (int i = 0; i < count; i++) {
		members[i].rank = i;
		members[i].conf = conf;
		members[i].settings[0] = setting;
	}
}

static void test_missing_rank(void **state)
{
	struct member members[3];
	const char *conf = party_conf(4, party_port());

	(void)state;
	seat(members, 3, conf, MEETING);
	members[2].rank = 3;
	party_run(members, 3);
	for (int i = 0; i < 3; i++)
		expect_fault(&members[i], -ETIMEDOUT, "1 of 4|rank 2 (localhost|start_timeout_ms");
	party_forget(conf);
}

static void test_all_missing(void **state)
{
	struct member members[1];
	const char *conf = party_conf(4, party_port());

	(void)state;
	seat(members, 1, conf, "start_timeout_ms=300");
	party_run(members, 1);
	expect_fault(&members[0], -ETIMEDOUT, "3 of 4|rank 1|rank 2|rank 3|300 ms");
	party_forget(conf);
}

/* The earliest limit of those that came ends the meeting, and all hear the same. */
static void test_smallest_limit(void **state)
{
	struct member members[2];
	const char *conf = party_conf(3, party_port());

	(void)state;
	seat(members, 2, conf, "start_timeout_ms=600000");
	members[1].settings[0] = MEETING;
	party_run(members, 2);
	for (int i = 0; i < 2; i++)
		expect_fault(&members[i], -ETIMEDOUT, "1 of 3|rank 2");
	party_forget(conf);
}

static void test_no_root(void **state)
{
	struct member members[2];
	int port = party_port();
	const char *conf = party_conf(2, port);
	char where[64];

	(void)state;
	snprintf(where, sizeof(where), "localhost:%d|%s line 4|refused|300 ms|joined already", port, conf);
	seat(members, 2, conf, "start_timeout_ms=300");
	party_run(members + 1, 1);
	expect_fault(&members[1], -ETIMEDOUT, where);
	party_forget(conf);
}

static void test_wrong_secret(void **state)
{
	struct member members[3];
	const char *conf = party_conf(3, party_port());

	(void)state;
	seat(members, 3, conf, MEETING);
	members[0].settings[1] = members[1].settings[1] = "job_secret=right";
	members[2].settings[1] = "job_secret=wrong";
	party_run(members, 3);
	expect_fault(&members[2], -EACCES, "refused this rank|wrong job_secret");
	for (int i = 0; i < 2; i++)
		expect_fault(&members[i], -ETIMEDOUT, "1 of 3|rank 2|refused 1 connection|wrong job_secret");
	party_forget(conf);
}

static void test_secret_on_one_side(void **state)
{
	struct member members[2];
	const char *conf = party_conf(2, party_port());

	(void)state;
	for (int side = 0; side < 2; side++) {
		seat(members, 2, conf, MEETING);
		members[side].settings[1] = "job_secret=x";
		party_run(members, 2);
		expect_fault(&members[1], -EACCES, "job_secret is set on");
		expect_fault(&members[0], -ETIMEDOUT, "rank 1|job_secret");
	}
	party_forget(conf);
}

/* A stranger with a wrong secret and one with a wrong size do not keep the right ones out. */
static void test_refused_harm_nobody(void **state)
{
	struct member members[5];
	int port = party_port();
	const char *conf = party_conf(3, port), *other = party_conf(4, port);

	(void)state;
	seat(members, 5, conf, "start_timeout_ms=20000");
	for (int i = 0; i < 5; i++)
		members[i].settings[1] = "job_secret=right";
	members[3].rank = 2;
	members[3].settings[1] = "job_secret=wrong";
	members[4].rank = 1;
	members[4].conf = other;
	party_start(members, 2);
	party_run(members + 3, 2);
	party_run(members + 2, 1);
	party_wait(members, 2);
	for (int i = 0; i < 3; i++)
		expect_fine(&members[i]);
	expect_fault(&members[3], -EACCES, "secret");
	expect_fault(&members[4], -EINVAL, "4 ranks|3");
	party_forget(conf);
	party_forget(other);
}

static void test_rank_twice(void **state)
{
	struct member members[4];
	const char *conf = party_conf(3, party_port());
	int loser = -1;

	(void)state;
	seat(members, 4, conf, "start_timeout_ms=20000");
	members[3].rank = 1;
	party_start(members, 2);
	party_start(members + 3, 1);
	/* Whichever of the two comes second is refused, while rank 2 is still missing. */
	while (loser < 0) {
		party_sleep(5);
		if (pthread_tryjoin_np(members[1].thread, NULL) == 0)
			loser = 1;
		else if (pthread_tryjoin_np(members[3].thread, NULL) == 0)
			loser = 3;
	}
	party_run(members + 2, 1);
	party_wait(members, 1);
	party_wait(members + (loser == 1 ? 3 : 1), 1);
	expect_fault(&members[loser], -EEXIST, "rank 1 (pid|already there|another job");
	for (int i = 0; i < 4; i++)
		if (i != loser)
			expect_fine(&members[i]);
	party_forget(conf);
}

static int occupy(int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 128), 0);
	return fd;
}

static void test_port_in_use(void **state)
{
	struct member members[2];
	int port = party_port(), fd = occupy(port);
	const char *conf = party_conf(2, port);
	char words[128];

	(void)state;
	snprintf(words, sizeof(words), "port %d is in use|%s line 4", port, conf);
	seat(members, 2, conf, NULL);
	party_run(members, 1);
	expect_fault(&members[0], -EADDRINUSE, words);

	/* A round that is just ending is waited for. */
	party_start(members, 2);
	party_sleep(200);
	close(fd);
	party_wait(members, 2);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	party_forget(conf);
}

static void test_hosts(void **state)
{
	static const char *const lost[] = {"no-such-host.invalid:2000", "x:1"}, *const far[] = {"240.0.0.1:2000", "x:1"};
	struct member m = {.rank = 1, .size = 2, .peers = lost, .settings = {"start_timeout_ms=500"}};

	(void)state;
	member_run(&m);
	expect_fault(&m, -EHOSTUNREACH, "no-such-host.invalid|cannot be resolved");
	m.peers = far;
	member_run(&m);
	expect_fault(&m, m.result == -EHOSTUNREACH ? -EHOSTUNREACH : -ETIMEDOUT, "240.0.0.1:2000");
}

static void test_bad_job_id(void **state)
{
	struct member members[1];
	const char *conf = party_conf(1, party_port());

	(void)state;
	seat(members, 1, conf, "job_id=xyz");
	party_run(members, 1);
	expect_fault(&members[0], -EINVAL, "job_id|xyz|32");
	party_forget(conf);
}

/* Something that is not ibvdev listens where rank 0 should: garbage, then silence. */
static void test_foreign_server(void **state)
{
	struct member members[2];
	int port = party_port(), fd = occupy(port), guest;
	const char *conf = party_conf(2, port);

	(void)state;
	seat(members, 2, conf, "start_timeout_ms=700");
	party_start(members + 1, 1);
	guest = accept(fd, NULL, NULL);
	assert_true(write(guest, "SSH-2.0-OpenSSH_9.2p1\r\n", 23) == 23);
	party_wait(members + 1, 1);
	expect_fault(&members[1], -ETIMEDOUT, "rank 0 at localhost");
	close(guest);
	close(fd);
	party_forget(conf);
}

static void send_hello(int fd, uint32_t version, const struct message_rank *member)
{
	struct message_hello hello;
	uint8_t head[8];

	message_put_hello(&hello, member);
	message_put32(&hello.version, version);
	message_put_header(head, MESSAGE_HELLO, sizeof(hello));
	assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	assert_int_equal(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
}

static void test_other_version(void **state)
{
	struct member members[2];
	int port = party_port(), fd, code = 0;
	const char *conf = party_conf(2, port);
	struct message_rank member = {.rank = 1, .size = 2};
	uint8_t answer[8 + 4 + MESSAGE_TEXT_BYTES];
	char text[MESSAGE_TEXT_BYTES + 1];
	size_t got = 0;

	(void)state;
	seat(members, 2, conf, "start_timeout_ms=20000");
	party_start(members, 1);
	fd = party_connect(port);
	send_hello(fd, 7u << 16 | 1, &member);
	for (ssize_t n; (n = recv(fd, answer + got, sizeof(answer) - got, 0)) > 0;)
		got += (size_t)n;
	close(fd);
	assert_true(got > 12);
	assert_int_equal(answer[2], MESSAGE_REFUSED);
	assert_int_equal(message_get_text(answer + 8, got - 8, &code, text), 0);
	assert_int_equal(code, -EPROTONOSUPPORT);
	assert_non_null(strstr(text, "7.1"));
	party_run(members + 1, 1);
	party_wait(members, 1);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	party_forget(conf);
}

/* Hundreds that connect and send nothing, send nonsense, or stop in the middle. */
static void test_strangers(void **state)
{
	enum { STRANGERS = 300 };
	struct member members[3];
	int port = party_port(), fds[STRANGERS];
	const char *conf = party_conf(3, port);
	struct message_rank member = {.rank = 1, .size = 3};
	uint8_t long_head[8];

	(void)state;
	seat(members, 3, conf, "start_timeout_ms=30000");
	message_put_header(long_head, MESSAGE_HELLO, UINT32_MAX);
	party_start(members, 2);
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = party_connect(port);
		assert_true(fds[i] >= 0);
		/* 0: silent */
		if (i % 6 == 1)
			send(fds[i], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
		else if (i % 6 == 2)
			send(fds[i], "IB\1", 3, MSG_NOSIGNAL);
		else if (i % 6 == 3)
			send(fds[i], long_head, sizeof(long_head), MSG_NOSIGNAL);
		else if (i % 6 == 4)
			send_hello(fds[i], MESSAGE_VERSION << 16 | 1, &member); /* and no proof */
		else if (i % 6 == 5)
			shutdown(fds[i], SHUT_WR);
	}
	party_run(members + 2, 1);
	party_wait(members, 2);
	for (int i = 0; i < 3; i++)
		expect_fine(&members[i]);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	party_forget(conf);
}

static void refuse(int fd)
{
	char c;

	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	while (recv(fd, &c, 1, 0) > 0)
		;
}

/* A forked process holds copies of the descriptors: a connection that rank 0 closes ends all the same, and gives no events. */
static void test_forked_child(void **state)
{
	struct member members[2];
	int port = party_port(), fds[2];
	const char *conf = party_conf(2, port);
	pid_t child;

	(void)state;
	seat(members, 2, conf, "start_timeout_ms=30000");
	party_start(members, 1);
	for (int i = 0; i < 2; i++) {
		fds[i] = party_connect(port);
		assert_true(fds[i] >= 0);
	}
	refuse(fds[1]); /* then rank 0 has accepted the first too */
	child = fork();
	if (child == 0) {
		pause();
		_exit(1);
	}
	assert_true(child > 0);
	refuse(fds[0]);
	party_run(members + 1, 1);
	party_wait(members, 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 2; i++) {
		expect_fine(&members[i]);
		close(fds[i]);
	}
	party_forget(conf);
}

static int act_gather_only(struct member *m)
{
	static const struct bootstrap_events none = {0};
	int err = member_gather(m, 3);

	if (!err) {
		bootstrap_watch(m->b, &none);
		bootstrap_leave(m->b);
	}
	return err;
}

static int act_vanish(struct member *m)
{
	(void)m;
	return 0; /* and close without a farewell */
}

static void test_death_before_gather(void **state)
{
	struct member members[4];
	const char *conf = party_conf(4, party_port());

	(void)state;
	for (int dead = 0; dead < 4; dead += 2) {
		char words[32];

		snprintf(words, sizeof(words), "rank %d (pid|died", dead);
		seat(members, 4, conf, "start_timeout_ms=20000");
		for (int i = 0; i < 4; i++)
			members[i].act = i == dead ? act_vanish : act_gather_only;
		party_run(members, 4);
		for (int i = 0; i < 4; i++)
			if (i != dead)
				expect_fault(&members[i], -ECONNRESET, words);
	}
	party_forget(conf);
}

/* Reads the log of rank 0 until it contains `words`. */
static void await_log(int fd, const char *words)
{
	char text[8192] = "";
	size_t used = 0;

	while (!strstr(text, words)) {
		ssize_t n = read(fd, text + used, sizeof(text) - 1 - used);

		if (n <= 0)
			fail_msg("the log ended without \"%s\": %s", words, text);
		used += (size_t)n;
		text[used] = '\0';
	}
}

/* One rank in a process of its own is killed after it was let in, while rank 2 is still missing. */
static void killed_while_waiting(int victim)
{
	struct member members[2];
	const char *conf = party_conf(3, party_port());
	struct log log = {.level = LOG_DEBUG};
	char words[64];
	int pipe_fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	log.fd = pipe_fds[1];
	seat(members, 2, conf, "start_timeout_ms=20000");
	members[0].log = &log;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		member_run(&members[victim]);
		child_exit(0);
	}
	party_start(members + !victim, 1);
	await_log(pipe_fds[0], "rank 1 (pid");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	party_wait(members + !victim, 1);
	if (victim == 1)
		snprintf(words, sizeof(words), "rank 1 (pid %d|died", (int)pid);
	else
		snprintf(words, sizeof(words), "rank 0 (pid %d|died", (int)pid);
	expect_fault(&members[!victim], -ECONNRESET, words);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	party_forget(conf);
}

static void test_killed_while_waiting(void **state)
{
	(void)state;
	killed_while_waiting(1);
	killed_while_waiting(0);
}

/* In a child of few descriptors: the members' results come back through shared memory. */
static pid_t fork_with_limit(struct member *members, int count, int limit)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit few = {.rlim_cur = (rlim_t)limit, .rlim_max = (rlim_t)limit};

		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		if (setrlimit(RLIMIT_NOFILE, &few) < 0)
			child_exit(1);
		party_run(members, count);
		child_exit(0);
	}
	return pid;
}

static struct member *seat_shared(int count, const char *conf, const char *setting)
{
	struct member *members = mmap(NULL, (size_t)count * sizeof(*members), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(members, MAP_FAILED);
	seat(members, count, conf, setting);
	for (int i = 0; i < count; i++)
		members[i].result = 1;
	return members;
}

/* Far fewer than rank 0 has places for guests, and enough for the job. */
static void test_few_descriptors(void **state)
{
	const char *conf = party_conf(4, party_port());
	struct member *members = seat_shared(4, conf, "start_timeout_ms=20000");
	int status;

	(void)state;
	waitpid(fork_with_limit(members, 4, 40), &status, 0);
	assert_int_equal(status, 0);
	for (int i = 0; i < 4; i++)
		expect_fine(&members[i]);
	munmap(members, 4 * sizeof(*members));
	party_forget(conf);
}

/* Rank 0 has room for its listeners and one or two of three connections. */
static void test_too_few_descriptors(void **state)
{
	const char *conf = party_conf(4, party_port());
	struct member *root = seat_shared(1, conf, MEETING);
	struct member members[4];
	int status, reported = 0;
	pid_t pid;

	(void)state;
	seat(members, 4, conf, MEETING);
	pid = fork_with_limit(root, 1, 9);
	party_run(members + 1, 3);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_fault(root, -EMFILE, "RLIMIT_NOFILE is 9|needs at least |ulimit -n");
	for (int i = 1; i < 4; i++) {
		assert_true(members[i].result < 0);
		reported += strstr(members[i].text, "RLIMIT_NOFILE is 9") != NULL;
	}
	assert_in_range(reported, 1, 2);
	munmap(root, sizeof(*root));
	party_forget(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_rank),        cmocka_unit_test(test_all_missing),
		cmocka_unit_test(test_smallest_limit),      cmocka_unit_test(test_no_root),
		cmocka_unit_test(test_wrong_secret),        cmocka_unit_test(test_secret_on_one_side),
		cmocka_unit_test(test_refused_harm_nobody), cmocka_unit_test(test_rank_twice),
		cmocka_unit_test(test_port_in_use),         cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_bad_job_id),          cmocka_unit_test(test_foreign_server),
		cmocka_unit_test(test_other_version),       cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_death_before_gather), cmocka_unit_test(test_killed_while_waiting),
		cmocka_unit_test(test_few_descriptors),     cmocka_unit_test(test_too_few_descriptors),
		cmocka_unit_test(test_forked_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
