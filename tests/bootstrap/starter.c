/* SPDX-License-Identifier: MIT */
/* MPJ Express's starter, played by a thread as MPJRun.collectPortInfo does it: faithfully, and with several faults. */
#include "party.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/message.h"

enum manner {
	FAITHFUL,
	LONG_ANSWER, /* 60 KB, a little at a time */
	HANGS_UP,    /* after the report, as the real one does when asked once too often */
	NONSENSE,
	SILENT,
};

struct starter {
	enum manner manner;
	int count, rounds;
	int listen_fd, port;
	int reports[PARTY_MAX][3]; /* wport, rport, rank */
	int bad_reports;
	pthread_t thread;
	char conf[256];
};

static bool read_all(int fd, uint8_t *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = recv(fd, bytes, len, 0);

		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static void read_report(struct starter *s, int fd, int i)
{
	uint8_t bytes[2 + 12 + 12];

	if (!read_all(fd, bytes, sizeof(bytes)) || memcmp(bytes, "\0\14Sending Info", 14) != 0) {
		s->bad_reports++;
		return;
	}
	for (int n = 0; n < 3; n++)
		s->reports[i][n] = (int)message_get32(bytes + 14 + 4 * n);
}

static size_t make_answer(const struct starter *s, uint8_t *out)
{
	size_t len = 2;

	len += (size_t)sprintf((char *)out + len, s->manner == NONSENSE ? "#Peer Inform" : "#Peer Information");
	for (int i = 0; i < s->count; i++)
		len += (size_t)sprintf((char *)out + len, ";127.0.0.1@%d@%d@%d@%d", s->reports[i][1], s->reports[i][0], s->reports[i][2],
				       24500 + i);
	while (s->manner == LONG_ANSWER && len < 60000)
		out[len++] = ';';
	out[0] = (uint8_t)((len - 2) >> 8);
	out[1] = (uint8_t)(len - 2);
	return len;
}

static void serve_round(struct starter *s)
{
	static uint8_t answer[65536];
	int fds[PARTY_MAX];
	size_t len;

	for (int i = 0; i < s->count; i++) {
		fds[i] = accept(s->listen_fd, NULL, NULL);
		if (fds[i] >= 0)
			read_report(s, fds[i], i);
	}
	len = make_answer(s, answer);
	if (s->manner == SILENT)
		party_sleep(1500);
	for (int i = s->count - 1; i >= 0; i--) {
		size_t step = s->manner == LONG_ANSWER ? 1000 : len;

		for (size_t at = 0; at < len && s->manner != HANGS_UP && s->manner != SILENT; at += step)
			send(fds[i], answer + at, len - at < step ? len - at : step, MSG_NOSIGNAL);
		close(fds[i]);
	}
}

static void *starter_thread(void *arg)
{
	struct starter *s = arg;

	for (int i = 0; i < s->rounds; i++)
		serve_round(s);
	close(s->listen_fd);
	return NULL;
}

static void starter_open(struct starter *s, enum manner manner, int count, int rounds)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	memset(s, 0, sizeof(*s));
	s->manner = manner;
	s->count = count;
	s->rounds = rounds;
	s->port = party_port();
	s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	in.sin_port = htons((uint16_t)s->port);
	setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(s->listen_fd, 64), 0);
	snprintf(s->conf, sizeof(s->conf), "#Number of Processes;%d;#Protocol Switch Limit;4096;#Server Name;localhost;#Server Port;%d",
		 count, s->port);
	assert_int_equal(pthread_create(&s->thread, NULL, starter_thread, s), 0);
}

static void run(struct starter *s, struct member *members, const char *setting)
{
	memset(members, 0, (size_t)s->count * sizeof(*members));
	for (int i = 0; i < s->count; i++) {
		members[i].rank = i;
		members[i].conf = s->conf;
		members[i].settings[0] = setting;
	}
	party_run(members, s->count);
}

static void expect_fine(const struct starter *s, const struct member *members)
{
	assert_int_equal(s->bad_reports, 0);
	for (int i = 0; i < s->count; i++) {
		if (members[i].result)
			fail_msg("rank %d: %d: %s", i, members[i].result, members[i].text);
		assert_string_equal(members[i].job_id, members[0].job_id);
	}
}

static void test_faithful(void **state)
{
	struct starter s;
	struct member members[PARTY_MAX];

	(void)state;
	starter_open(&s, FAITHFUL, 4, 3);
	for (int round = 0; round < 3; round++) {
		run(&s, members, NULL);
		expect_fine(&s, members);
	}
	pthread_join(s.thread, NULL);
	for (int i = 0; i < 4; i++)
		assert_true((s.reports[i][1] > 0) == (s.reports[i][2] == 0)); /* only rank 0 listens */
}

static void test_long_answer(void **state)
{
	struct starter s;
	struct member members[PARTY_MAX];

	(void)state;
	starter_open(&s, LONG_ANSWER, 3, 1);
	run(&s, members, NULL);
	pthread_join(s.thread, NULL);
	expect_fine(&s, members);
}

static void run_wrong(enum manner manner, int code, const char *word)
{
	struct starter s;
	struct member members[PARTY_MAX];

	starter_open(&s, manner, 2, 1);
	run(&s, members, "start_timeout_ms=1000");
	pthread_join(s.thread, NULL);
	for (int i = 0; i < 2; i++) {
		if (members[i].result != code || !strstr(members[i].text, word))
			fail_msg("rank %d: %d: %s", i, members[i].result, members[i].text);
	}
}

static void test_wrong_starters(void **state)
{
	(void)state;
	run_wrong(HANGS_UP, -EHOSTUNREACH, "one MPI.Init");
	run_wrong(NONSENSE, -EPROTO, "#Peer Inform");
	run_wrong(SILENT, -ETIMEDOUT, "one was not started");
}

static void test_no_starter(void **state)
{
	struct starter s = {.count = 2};
	struct member members[PARTY_MAX];

	(void)state;
	snprintf(s.conf, sizeof(s.conf), "#Number of Processes;2;#Server Name;localhost;#Server Port;%d", party_port());
	run(&s, members, "start_timeout_ms=300");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(members[i].result, -EHOSTUNREACH);
		assert_non_null(strstr(members[i].text, "mpjrun"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faithful),
		cmocka_unit_test(test_long_answer),
		cmocka_unit_test(test_wrong_starters),
		cmocka_unit_test(test_no_starter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
