/* SPDX-License-Identifier: MIT */
/* The PMI-1 wire against a server of our own: faithful, in other dialects, and broken at each step. */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bootstrap/card.h"

#define RANKS_MAX 4
#define KVS "kvs_77_0"
#define LINE 8192

enum step { INIT, MAXES, KVSNAME, PUT, BARRIER, GET, FINALIZE, NO_STEP };

static const char *const step_words[] = {"cmd=init ",      "cmd=get_maxes", "cmd=get_my_kvsname", "cmd=put ",
					 "cmd=barrier_in", "cmd=get ",      "cmd=finalize"};

/* How an answer goes wrong. */
enum manner {
	FAITHFUL,
	DIALECT, /* other orders, more fields, more blanks */
	GARBAGE,
	EMPTY,
	REFUSAL, /* rc=-1 */
	OTHER,   /* the answer to another question */
	CUT,     /* half an answer, then the end */
	GONE,    /* the end */
	ENDLESS, /* a line that does not end */
	SILENT,
	MANNERS
};

struct server {
	int count;
	int fds[RANKS_MAX];
	char in[RANKS_MAX][LINE];
	size_t in_len[RANKS_MAX];
	int in_barrier, absent, finalized;
	char value[LINE];
	enum step wrong_step;
	enum manner manner;
	int vallen_max;
	/* What GET gives in place of the value that was put; NULL: that value. */
	void (*forge)(char *value);
	unsigned seed; /* not 0: damage answers at random */
};

static void send_line(struct server *s, int i, const char *text)
{
	char damaged[LINE];
	size_t len = strlen(text);

	memcpy(damaged, text, len);
	if (s->seed && rand_r(&s->seed) % 3 == 0)
		for (int n = 1 + rand_r(&s->seed) % 4; n > 0; n--)
			damaged[(size_t)rand_r(&s->seed) % len] = (char)rand_r(&s->seed);
	if (s->seed && rand_r(&s->seed) % 8 == 0)
		len = (size_t)rand_r(&s->seed) % len;
	send(s->fds[i], damaged, len, MSG_NOSIGNAL);
	if (s->seed && rand_r(&s->seed) % 16 == 0)
		shutdown(s->fds[i], SHUT_WR);
}

static void make_answer(struct server *s, enum step step, char *out, size_t size)
{
	bool d = s->manner == DIALECT;

	switch (step) {
	case INIT:
		snprintf(out, size,
			 d ? "rc=0 cmd=response_to_init  pmi_subversion=1 pmi_version=1\n"
			   : "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
		return;
	case MAXES:
		snprintf(out, size,
			 d ? "cmd=maxes vallen_max=%d keylen_max=64 kvsname_max=256\n"
			   : "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=%d\n",
			 s->vallen_max);
		return;
	case KVSNAME: snprintf(out, size, d ? "kvsname=" KVS " cmd=my_kvsname\n" : "cmd=my_kvsname kvsname=" KVS "\n"); return;
	case PUT: snprintf(out, size, d ? "cmd=put_result msg=success rc=0\n" : "cmd=put_result rc=0 msg=success\n"); return;
	case BARRIER: snprintf(out, size, d ? "cmd=barrier_out tag=0\n" : "cmd=barrier_out\n"); return;
	case GET:
		snprintf(out, size, d ? "value=%s cmd=get_result msg=success rc=0\n" : "cmd=get_result rc=0 msg=success value=%s\n",
			 s->value);
		return;
	case FINALIZE: snprintf(out, size, "cmd=finalize_ack\n"); return;
	case NO_STEP: break;
	}
	out[0] = '\0';
}

static void answer(struct server *s, int i, enum step step)
{
	char text[LINE + 128];

	make_answer(s, step, text, sizeof(text));
	if (step != s->wrong_step) {
		send_line(s, i, text);
		return;
	}
	switch (s->manner) {
	case GARBAGE: send_line(s, i, "\x01\xff no such thing\n"); break;
	case EMPTY: send_line(s, i, "\n"); break;
	case REFUSAL:
		text[strlen(text) - 1] = '\0';
		snprintf(text + strlen(text), 64, " rc=-1 msg=not_today\n");
		if (strstr(text, "rc=0"))
			memcpy(strstr(text, "rc=0"), "rc=9", 4);
		send_line(s, i, text);
		break;
	case OTHER: send_line(s, i, step == FINALIZE ? "cmd=barrier_out\n" : "cmd=finalize_ack\n"); break;
	case CUT:
		text[strlen(text) / 2] = '\0';
		send_line(s, i, text);
		shutdown(s->fds[i], SHUT_RDWR);
		break;
	case GONE: shutdown(s->fds[i], SHUT_RDWR); break;
	case ENDLESS:
		memset(text, 'a', sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		send(s->fds[i], text, 6000, MSG_NOSIGNAL);
		break;
	case SILENT:
	case FAITHFUL:
	case DIALECT:
	case MANNERS: break;
	}
}

static void on_line(struct server *s, int i, char *line)
{
	enum step step = INIT;
	char *value = strstr(line, " value=");

	while (step < NO_STEP && strncmp(line, step_words[step], strlen(step_words[step])) != 0)
		step++;
	if (step == PUT && value && strstr(line, "kvsname=" KVS " ") && strstr(line, " key=")) {
		snprintf(s->value, sizeof(s->value), "%s", value + 7);
		if (s->forge)
			s->forge(s->value);
	}
	s->finalized += step == FINALIZE;
	if (step != BARRIER) {
		answer(s, i, step);
	} else if (++s->in_barrier == s->count) {
		s->in_barrier = s->absent;
		for (int r = 0; r < s->count; r++)
			answer(s, r, BARRIER);
	}
}

static void on_bytes(struct server *s, int i)
{
	ssize_t n = recv(s->fds[i], s->in[i] + s->in_len[i], LINE - 1 - s->in_len[i], 0);
	char *end;

	if (n <= 0) {
		close(s->fds[i]);
		s->fds[i] = -1;
		return;
	}
	s->in_len[i] += (size_t)n;
	while (s->fds[i] >= 0 && (end = memchr(s->in[i], '\n', s->in_len[i]))) {
		size_t len = (size_t)(end - s->in[i]) + 1;
		char line[LINE];

		memcpy(line, s->in[i], len);
		line[len - 1] = '\0';
		s->in_len[i] -= len;
		memmove(s->in[i], end + 1, s->in_len[i]);
		on_line(s, i, line);
	}
}

static bool serve_once(struct server *s)
{
	struct pollfd polls[RANKS_MAX];
	int open = 0;

	for (int i = 0; i < s->count; i++) {
		polls[i] = (struct pollfd){.fd = s->fds[i], .events = POLLIN};
		open += s->fds[i] >= 0;
	}
	if (!open || poll(polls, (nfds_t)s->count, 10000) <= 0)
		return false;
	for (int i = 0; i < s->count; i++)
		if (polls[i].revents)
			on_bytes(s, i);
	return true;
}

/* Ranks first to last - 1 are processes; the others exist for the engine only, and are in each barrier already. */
static void run(struct server *s, struct session_rank *ranks, int first, int last)
{
	char variables[RANKS_MAX][3][40];

	for (int i = 0; i < s->count; i++)
		s->fds[i] = -1;
	for (int i = first; i < last; i++) {
		struct session_rank *r = &ranks[i];
		int pair[2], n = 0;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		s->fds[i] = pair[0];
		snprintf(variables[i][0], 40, "PMI_FD=%d", pair[1]);
		snprintf(variables[i][1], 40, "PMI_RANK=%d", i);
		snprintf(variables[i][2], 40, "PMI_SIZE=%d", s->count);
		while (r->variables[n])
			n++;
		for (int v = 0; v < 3; v++)
			r->variables[n + v] = variables[i][v];
		r->fd = pair[1];
		session_start(r);
	}
	s->absent = s->in_barrier = s->count - (last - first);
	while (serve_once(s))
		;
	for (int i = first; i < last; i++)
		session_wait(&ranks[i]);
	for (int i = 0; i < s->count; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
}

static void init(struct server *s, struct session_rank *ranks, int count, int rounds)
{
	*s = (struct server){.count = count, .wrong_step = NO_STEP, .vallen_max = 1024};
	for (int i = 0; i < count; i++)
		ranks[i] = (struct session_rank){.rank = -1, .fd = -1, .rounds = rounds, .settings = {"start_timeout_ms=8000"}};
}

static void test_faithful(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	for (enum manner m = FAITHFUL; m <= DIALECT; m++) {
		init(&s, ranks, 4, 3);
		s.manner = m;
		run(&s, ranks, 0, s.count);
		for (int i = 0; i < 4; i++) {
			assert_string_equal(ranks[i].text, "");
			assert_int_equal(ranks[i].rounds_done, 3);
			/* Its number stays in the environment: it must never mean another file. */
			assert_true(ranks[i].fd_open);
			assert_int_equal(ranks[i].joined_rank, i);
			assert_int_equal(ranks[i].joined_size, 4);
			/* A round is a job of its own. */
			assert_string_equal(ranks[i].job_ids[2], ranks[0].job_ids[2]);
			assert_string_not_equal(ranks[i].job_ids[1], ranks[i].job_ids[2]);
		}
		assert_int_equal(s.finalized, 4);
	}
}

static void test_alone(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	init(&s, ranks, 1, 2);
	run(&s, ranks, 0, s.count);
	assert_int_equal(ranks[0].rounds_done, 2);
	assert_int_equal(s.finalized, 1);
}

/* Another copy of the library in the process (another class loader) finds the session used up, and no other file. */
static void test_used_up(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;
	char name[32];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	shutdown(pair[1], SHUT_RDWR);
	init(&s, ranks, 1, 1);
	ranks[0].fd = pair[1];
	ranks[0].variables[0] = "PMI_RANK=0";
	ranks[0].variables[1] = "PMI_SIZE=1";
	snprintf(name, sizeof(name), "PMI_FD=%d", pair[1]);
	ranks[0].variables[2] = name;
	session_start(&ranks[0]);
	session_wait(&ranks[0]);
	close(pair[0]);
	assert_int_equal(ranks[0].result, -EPROTO);
	assert_non_null(strstr(ranks[0].text, "use it up before"));
}

/* All ranks are on one node: rank 0 listens where no other machine can see it. */
static void test_local(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct card card;
	struct server s;

	(void)state;
	init(&s, ranks, 2, 1);
	ranks[0].variables[0] = ranks[1].variables[0] = "MPI_LOCALNRANKS=2";
	run(&s, ranks, 0, s.count);
	assert_int_equal(ranks[1].rounds_done, 1);
	assert_int_equal(card_parse(&card, s.value), 0);
	assert_true(card.addresses.count >= 1);
	for (int i = 0; i < card.addresses.count; i++)
		assert_true(address_is_loopback(&card.addresses.at[i]));
}

static void test_rank_given(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	init(&s, ranks, 2, 1);
	ranks[0].rank = 0;
	ranks[1].rank = 1;
	run(&s, ranks, 0, s.count);
	assert_int_equal(ranks[1].rounds_done, 1);
	init(&s, ranks, 2, 1);
	ranks[1].rank = 0;
	run(&s, ranks, 1, 2);
	assert_int_equal(ranks[1].result, -EINVAL);
	assert_non_null(strstr(ranks[1].text, "rank 0 was given"));
	assert_non_null(strstr(ranks[1].text, "rank 1 of 2"));
}

/* One rank, one wrong answer: an error with a text in bounded time, and a second try reports why it cannot be. */
static void expect_failure(int rank, enum step step, enum manner manner)
{
	struct session_rank ranks[RANKS_MAX];
	int64_t begin = clock_now_ns();
	struct server s;

	init(&s, ranks, 2, 2);
	s.wrong_step = step;
	s.manner = manner;
	ranks[rank].settings[0] = "start_timeout_ms=150";
	run(&s, ranks, rank, rank + 1);
	assert_true(clock_now_ns() - begin < 8000 * CLOCK_NS_PER_MS);
	assert_int_equal(ranks[rank].rounds_done, 0);
	assert_non_null(strstr(ranks[rank].first_text, "PMI"));
	assert_int_equal(ranks[rank].result, -ESTALE);
	assert_non_null(strstr(ranks[rank].text, "failed in this process before"));
}

static void test_wrong_answers(void **state)
{
	(void)state;
	for (enum manner m = GARBAGE; m < MANNERS; m++) {
		for (enum step step = INIT; step <= GET; step++)
			expect_failure(step == PUT ? 0 : 1, step, m);
	}
}

/* The launcher that goes away at the very end fails the start of both ranks. */
static void test_lost_at_the_end(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	init(&s, ranks, 2, 1);
	s.wrong_step = FINALIZE;
	s.manner = GONE;
	run(&s, ranks, 0, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ranks[i].rounds_done, 0);
		assert_non_null(strstr(ranks[i].text, "end the session"));
	}
}

static void forge_secret(char *value)
{
	struct card card;

	assert_int_equal(card_parse(&card, value), 0);
	memset(card.secret, '0', CARD_SECRET_CHARS);
	card_print(&card, value);
}

static void forge_cut(char *value)
{
	value[strlen(value) - 3] = '\0';
}

static void forge_empty(char *value)
{
	value[0] = '\0';
}

/* A card whose secret is not rank 0's, one that was cut, none at all. */
static void test_cards(void **state)
{
	static void (*const forgeries[])(char *) = {forge_secret, forge_cut, forge_empty};
	static const char *const texts[] = {"job_secret", "cut", "cut"};
	static const int codes[] = {-EACCES, -EPROTO, -EPROTO};
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	for (int i = 0; i < 3; i++) {
		init(&s, ranks, 2, 1);
		ranks[0].settings[0] = ranks[1].settings[0] = "start_timeout_ms=1000";
		s.forge = forgeries[i];
		run(&s, ranks, 0, 2);
		assert_int_equal(ranks[0].result, -ETIMEDOUT);
		assert_int_equal(ranks[1].result, codes[i]);
		assert_non_null(strstr(ranks[1].text, texts[i]));
	}
}

#define STRANGERS 400

static int strangers[STRANGERS];

/* Before any rank has the card, strangers stand at its port and send nothing. */
static void forge_flood(char *value)
{
	struct card card;

	assert_int_equal(card_parse(&card, value), 0);
	for (int i = 0; i < STRANGERS; i++)
		strangers[i] = address_connect(&card.addresses.at[0]);
}

static void test_flood(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	init(&s, ranks, 4, 1);
	for (int i = 0; i < 4; i++)
		ranks[i].variables[0] = "MPI_LOCALNRANKS=4"; /* the card's first address is 127.0.0.1 */
	s.forge = forge_flood;
	run(&s, ranks, 0, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(ranks[i].text, "");
		assert_int_equal(ranks[i].rounds_done, 1);
	}
	for (int i = 0; i < STRANGERS; i++)
		close(strangers[i]);
}

/* The user's own secret counts more than the card's. */
static void test_own_secret(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	init(&s, ranks, 2, 1);
	ranks[0].settings[1] = ranks[1].settings[1] = "job_secret=open sesame";
	s.forge = forge_secret;
	run(&s, ranks, 0, 2);
	assert_int_equal(ranks[1].rounds_done, 1);
	init(&s, ranks, 2, 1);
	ranks[0].settings[0] = ranks[1].settings[0] = "start_timeout_ms=1000";
	ranks[0].settings[1] = "job_secret=open sesame";
	run(&s, ranks, 0, 2);
	assert_int_equal(ranks[1].result, -EACCES);
}

static void test_small_values(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	init(&s, ranks, 2, 1);
	s.vallen_max = 60;
	run(&s, ranks, 0, 1);
	assert_int_equal(ranks[0].result, -EMSGSIZE);
	assert_non_null(strstr(ranks[0].text, "60"));
}

static void test_environment(void **state)
{
	static const char *const bad[][4] = {
		{"PMI_FD=x", "PMI_RANK=0", "PMI_SIZE=2", "PMI_FD"},         {"PMI_FD=799", "PMI_RANK=0", "PMI_SIZE=2", "799"},
		{"PMI_PORT=nonsense", "PMI_ID=0", "A=B", "PMI_PORT"},       {"PMI_PORT=127.0.0.1:1", "A=B", "A=B", "PMI_ID"},
		{"PMI_PORT=127.0.0.1:1", "PMI_ID=0", "A=B", "127.0.0.1:1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct session_rank r = {.rank = -1, .fd = -1, .rounds = 1};

		for (int v = 0; v < 3; v++)
			r.variables[v] = bad[i][v];
		session_start(&r);
		session_wait(&r);
		assert_true(r.result < 0);
		assert_non_null(strstr(r.text, bad[i][3]));
	}
}

/* Answers damaged at random: whatever comes of it, it comes in time and without a crash. */
static void test_fuzz(void **state)
{
	struct session_rank ranks[RANKS_MAX];
	struct server s;

	(void)state;
	for (unsigned seed = 1; seed <= 150; seed++) {
		init(&s, ranks, 2, 1);
		s.seed = seed;
		ranks[0].settings[0] = ranks[1].settings[0] = "start_timeout_ms=100";
		run(&s, ranks, (int)seed % 2, (int)seed % 2 + 1);
		assert_true(ranks[seed % 2].result < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faithful),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_used_up),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_rank_given),
		cmocka_unit_test(test_wrong_answers),
		cmocka_unit_test(test_lost_at_the_end),
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_own_secret),
		cmocka_unit_test(test_small_values),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_fuzz),
	};

	session_forget_engines();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
