/* SPDX-License-Identifier: MIT */
/*
 * What strangers, other users and recordings can do at the listeners of a job that has a secret: nothing but take a place for a
 * while.  A wrong and a missing secret are in faults.c, what launchers carry in card.c, pmi.c and slurm.c.
 */
#include "party.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap_state.h"
#include "bootstrap/local.h"
#include "bootstrap/message.h"

#define SECRET "job_secret=for two"
#define HELLO_BYTES (sizeof(struct message_header) + sizeof(struct message_hello))
#define PROOF_FRAME_BYTES (sizeof(struct message_header) + MESSAGE_PROOF_BYTES)
#define EXCHANGE_BYTES (HELLO_BYTES + PROOF_FRAME_BYTES)
#define OTHER_USER 65534
/* How many strangers rank 0 bears beside its ranks, and for how long (handshake.c). */
#define PLACES 128
#define PLACE_MS 5000

static void expect_fine(const struct member *m)
{
	if (m->result != 0)
		fail_msg("rank %d: %d: %s", m->rank, m->result, m->text);
}

static void seat(struct member members[2], const char *conf)
{
	for (int i = 0; i < 2; i++)
		members[i] = (struct member){.rank = i, .conf = conf, .settings = {"start_timeout_ms=30000", SECRET}};
}

static int listener(int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

static void read_exactly(int fd, void *out, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = recv(fd, (uint8_t *)out + got, len - got, 0);

		if (n <= 0)
			fail_msg("the connection ended after %zu of %zu bytes", got, len);
		got += (size_t)n;
	}
}

/* The body of a frame that has to be of this kind. */
static size_t read_frame(int fd, enum message_kind kind, uint8_t body[4096])
{
	uint8_t head[sizeof(struct message_header)];
	uint32_t len;

	read_exactly(fd, head, sizeof(head));
	assert_int_equal(message_get_header(head, &len), kind);
	assert_in_range(len, 0, 4096);
	read_exactly(fd, body, len);
	return len;
}

static void send_frame(int fd, enum message_kind kind, const void *body, size_t len)
{
	uint8_t head[sizeof(struct message_header)];

	message_put_header(head, kind, (uint32_t)len);
	assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	assert_int_equal(send(fd, body, len, MSG_NOSIGNAL), len);
}

/* A relay between rank 1 and rank 0 that reads along. */
struct relay {
	int listener, root_port;
	uint8_t bytes[EXCHANGE_BYTES]; /* the first of rank 1 */
	size_t len;
};

static void *relay_thread(void *arg)
{
	struct relay *r = arg;
	int fds[2] = {accept(r->listener, NULL, NULL), party_connect(r->root_port)};

	for (int open = 2; open > 0;) {
		struct pollfd p[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};

		poll(p, 2, -1);
		for (int side = 0; side < 2; side++) {
			uint8_t data[4096];
			ssize_t n;
			size_t room = sizeof(r->bytes) - r->len;

			if (!p[side].revents)
				continue;
			n = recv(p[side].fd, data, sizeof(data), 0);
			if (n <= 0) {
				shutdown(fds[!side], SHUT_WR);
				fds[side] = -1 - fds[side]; /* poll passes over it */
				open--;
				continue;
			}
			if (side == 0 && room > 0) {
				room = room < (size_t)n ? room : (size_t)n;
				memcpy(r->bytes + r->len, data, room);
				r->len += room;
			}
			send(fds[!side] >= 0 ? fds[!side] : -1 - fds[!side], data, (size_t)n, MSG_NOSIGNAL);
		}
	}
	for (int side = 0; side < 2; side++)
		close(-1 - fds[side]);
	return NULL;
}

/* What rank 1 sent to rank 0 in a start that went well. */
static void record(struct relay *r)
{
	static char text[2][64];
	static const char *const peers[2][2] = {{text[0], "x:1"}, {text[1], "x:1"}};
	struct member members[2];
	int port = party_port();
	pthread_t thread;

	*r = (struct relay){.root_port = party_port()};
	r->listener = listener(port);
	/* Different names of rank 0's address: the two do not meet within the node. */
	snprintf(text[0], sizeof(text[0]), "127.0.0.1:%d", r->root_port);
	snprintf(text[1], sizeof(text[1]), "localhost:%d", port);
	seat(members, NULL);
	for (int i = 0; i < 2; i++) {
		members[i].peers = peers[i];
		members[i].size = 2;
	}
	assert_int_equal(pthread_create(&thread, NULL, relay_thread, r), 0);
	party_run(members, 2);
	pthread_join(thread, NULL);
	close(r->listener);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	assert_int_equal(r->len, sizeof(r->bytes));
}

static void test_replayed(void **state)
{
	struct member members[2];
	struct relay r;
	int port = party_port(), fd, code;
	const char *conf = party_conf(2, port);
	uint8_t body[4096];
	char text[MESSAGE_TEXT_BYTES + 1];
	size_t len;

	(void)state;
	record(&r);
	seat(members, conf);
	party_start(members, 1);
	fd = party_connect(port);
	assert_int_equal(send(fd, r.bytes, HELLO_BYTES, MSG_NOSIGNAL), HELLO_BYTES);
	read_frame(fd, MESSAGE_CHALLENGE, body);
	assert_int_equal(send(fd, r.bytes + HELLO_BYTES, PROOF_FRAME_BYTES, MSG_NOSIGNAL), PROOF_FRAME_BYTES);
	len = read_frame(fd, MESSAGE_REFUSED, body);
	assert_int_equal(message_get_text(body, len, &code, text), 0);
	assert_int_equal(code, -EACCES);
	assert_non_null(strstr(text, "wrong job_secret"));
	assert_int_equal(recv(fd, body, sizeof(body), 0), 0);
	close(fd);
	party_run(members + 1, 1);
	party_wait(members, 1);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	party_forget(conf);
}

/* What rank 1 sends ends after each byte. */
static void test_cut(void **state)
{
	struct member members[2];
	struct relay r;
	int port = party_port();
	const char *conf = party_conf(2, port);

	(void)state;
	record(&r);
	seat(members, conf);
	party_start(members, 1);
	for (size_t len = 0; len <= EXCHANGE_BYTES; len++) {
		int fd = party_connect(port);

		assert_true(fd >= 0);
		assert_int_equal(send(fd, r.bytes, len, MSG_NOSIGNAL), len);
		close(fd);
	}
	party_run(members + 1, 1);
	party_wait(members, 1);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	party_forget(conf);
}

/* A process that plays rank 0 and does not know the secret sends rank 1's proof back as its own. */
static void test_reflected(void **state)
{
	struct member members[2];
	struct message_challenge challenge = {{0}};
	struct message_accepted accepted = {{0}};
	int port = party_port(), listens = listener(port), fd;
	const char *conf = party_conf(2, port);
	uint8_t body[4096];

	(void)state;
	seat(members, conf);
	party_start(members + 1, 1);
	fd = accept(listens, NULL, NULL);
	assert_int_equal(read_frame(fd, MESSAGE_HELLO, body), sizeof(struct message_hello));
	memcpy(challenge.nonce, body + offsetof(struct message_hello, nonce), sizeof(challenge.nonce));
	message_put32(&challenge.secret, 1);
	send_frame(fd, MESSAGE_CHALLENGE, &challenge, sizeof(challenge));
	assert_int_equal(read_frame(fd, MESSAGE_PROOF, body), sizeof(accepted.proof));
	memcpy(accepted.proof, body, sizeof(accepted.proof));
	memset(accepted.job_id, 'a', sizeof(accepted.job_id));
	send_frame(fd, MESSAGE_ACCEPTED, &accepted, sizeof(accepted));
	party_wait(members + 1, 1);
	assert_int_equal(members[1].result, -EACCES);
	assert_non_null(strstr(members[1].text, "does not know the job_secret"));
	close(fd);
	close(listens);
	party_forget(conf);
}

/* A process of another user that does `act` and ends with its result. */
static pid_t as_other_user(int (*act)(const struct local_name *name, int ready_fd), const struct local_name *name, int ready_fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setresgid(OTHER_USER, OTHER_USER, OTHER_USER) < 0 || setresuid(OTHER_USER, OTHER_USER, OTHER_USER) < 0
			      ? 99
			      : act(name, ready_fd));
	return pid;
}

static int expect_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Sends a good HELLO to the process that has the name: 0 if the connection ends without an answer. */
static int knock(const struct local_name *name, int ready_fd)
{
	struct message_rank rank = {.rank = 1, .size = 2, .secret = true, .purpose = MESSAGE_LOCAL};
	struct message_hello hello;
	struct pollfd p = {.events = POLLIN};
	uint8_t head[sizeof(struct message_header)];
	char answer;

	(void)ready_fd;
	p.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(p.fd, (const struct sockaddr *)&name->addr, name->len) < 0)
		return 2;
	message_put_hello(&hello, &rank);
	message_put_header(head, MESSAGE_HELLO, sizeof(hello));
	send(p.fd, head, sizeof(head), MSG_NOSIGNAL);
	send(p.fd, &hello, sizeof(hello), MSG_NOSIGNAL);
	if (poll(&p, 1, PLACE_MS / 2) != 1)
		return 3; /* it holds a place */
	return recv(p.fd, &answer, 1, 0) > 0 ? 1 : 0;
}

/* Holds the name until it is killed. */
static int squat(const struct local_name *name, int ready_fd)
{
	int fd = local_listen(name);

	if (fd < 0 || write(ready_fd, "r", 1) != 1)
		return 2;
	for (;;)
		pause();
}

static void test_other_user(void **state)
{
	struct member members[2];
	struct local_name name;
	int port = party_port(), ready[2];
	const char *conf = party_conf(2, port);
	char where[64], byte;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip(); /* nobody else can be played */
	snprintf(where, sizeof(where), "localhost:%d", port);
	local_make_name(&name, strchr(SECRET, '=') + 1, where, "", 2);

	/* At rank 0's local listener: turned away before it is heard. */
	seat(members, conf);
	party_start(members, 1);
	close(party_connect(port)); /* rank 0 listens, locally too */
	assert_int_equal(expect_status(as_other_user(knock, &name, -1)), 0);
	party_run(members + 1, 1);
	party_wait(members, 1);
	expect_fine(&members[0]);
	expect_fine(&members[1]);

	/* In place of rank 0's local listener: passed over. */
	assert_int_equal(pipe(ready), 0);
	pid = as_other_user(squat, &name, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	seat(members, conf);
	party_run(members, 2);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	party_forget(conf);
}

/* How many of these connections have been ended by the other side. */
static int ended(const int *fds, int count)
{
	int found = 0;
	char byte;

	for (int i = 0; i < count; i++)
		found += recv(fds[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 || errno == ECONNRESET;
	return found;
}

/* Silent strangers: so many places and no more, and each for so long and no longer. */
static void test_places(void **state)
{
	enum { STRANGERS = 200 };
	struct member members[2];
	int port = party_port(), fds[STRANGERS];
	const char *conf = party_conf(2, port);
	int64_t begin;

	(void)state;
	seat(members, conf);
	party_start(members, 1);
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = party_connect(port);
		assert_true(fds[i] >= 0);
	}
	begin = clock_now_ns();
	while (ended(fds, STRANGERS) < STRANGERS - PLACES - 2 && clock_now_ns() - begin < 2000 * CLOCK_NS_PER_MS)
		party_sleep(10);
	assert_int_equal(ended(fds, STRANGERS), STRANGERS - PLACES - 2); /* and one for each rank */
	while (ended(fds, STRANGERS) < STRANGERS && clock_now_ns() - begin < 3 * PLACE_MS * CLOCK_NS_PER_MS)
		party_sleep(100);
	assert_int_equal(ended(fds, STRANGERS), STRANGERS);
	assert_true(clock_now_ns() - begin > PLACE_MS / 2 * CLOCK_NS_PER_MS);
	party_run(members + 1, 1);
	party_wait(members, 1);
	expect_fine(&members[0]);
	expect_fine(&members[1]);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	party_forget(conf);
}

/* After the start */

#define RANKS 4 /* on two nodes: 2 leads the second */
#define VICTIM 2

struct siege {
	int ready_fd; /* each rank's port for orphans, 0: it has none */
	int lost[RANKS];
};

static void on_lost(void *arg, int rank, const char *why)
{
	struct siege *s = arg;

	(void)why;
	s->lost[rank]++;
}

static void on_left(void *arg, int rank)
{
	(void)arg;
	(void)rank;
}

static int act_besieged(struct member *m)
{
	struct siege *s = m->arg;
	struct bootstrap_events events = {.arg = s, .lost = on_lost, .left = on_left};
	int err = member_gather(m, 1), most = 0, port;
	struct pollfd p = {.events = POLLIN};

	if (err)
		return err;
	bootstrap_watch(m->b, &events);
	port = m->b->net.listeners[MESSAGE_ATTACH].count ? m->b->net.listeners[MESSAGE_ATTACH].port : 0;
	port |= m->rank << 16;
	if (write(s->ready_fd, &port, sizeof(port)) != sizeof(port) || bootstrap_fds(m->b, &p.fd, 1) != 1)
		return error_set(-EIO, "pipe");
	for (int i = 0; i < 200 && !s->lost[VICTIM]; i++) {
		poll(&p, 1, 100);
		bootstrap_on_readable(m->b, p.fd);
		most = m->b->net.socket_count > most ? m->b->net.socket_count : most;
	}
	for (int r = 0; r < RANKS && !err; r++)
		if (s->lost[r] != (r == VICTIM))
			err = error_set(-EBADMSG, "rank %d was lost %d times", r, s->lost[r]);
	if (!err && most > PLACES + RANKS)
		err = error_set(-EBADMSG, "%d connections at once", most);
	if (!err && m->rank == 0 && most < PLACES / 2)
		err = error_set(-EBADMSG, "no more than %d connections: nobody was there", most);
	bootstrap_leave(m->b);
	return err;
}

static void send_something(int fd, int what)
{
	struct message_rank rank = {.rank = 3, .size = RANKS, .secret = true, .purpose = MESSAGE_ATTACH};
	struct message_hello hello;

	if (what % 4 == 1)
		send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
	if (what % 4 < 2)
		return;
	if (what % 4 == 3) /* the job's id is what a stranger does not know */
		memset(rank.job_id, 'a', MESSAGE_ID_BYTES);
	message_put_hello(&hello, &rank);
	send_frame(fd, MESSAGE_HELLO, &hello, sizeof(hello));
}

/* Strangers stand at rank 0's listener for orphans; a leader dies, and its rank still finds rank 0. */
static void test_flood_after_the_start(void **state)
{
	enum { STRANGERS = 300 };
	static char text[2][64];
	static const char *peers[2][RANKS] = {{text[0], "x:1", "x:1", "x:1"}, {text[1], "x:1", "x:1", "x:1"}};
	struct siege siege = {.lost = {0}};
	int port = party_port(), ready[2], attach = 0, word, status, fds[STRANGERS];
	pid_t pids[RANKS];

	(void)state;
	assert_int_equal(pipe(ready), 0);
	siege.ready_fd = ready[1];
	for (int i = 0; i < 2; i++)
		snprintf(text[i], sizeof(text[i]), "127.0.0.%d:%d", i + 1, port);
	for (int i = 0; i < RANKS; i++) {
		struct member m = {.rank = i,
				   .size = RANKS,
				   .peers = peers[i / 2],
				   .act = act_besieged,
				   .arg = &siege,
				   .settings = {"start_timeout_ms=30000", SECRET}};

		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			member_run(&m);
			if (m.result)
				fprintf(stderr, "rank %d: %d: %s\n", i, m.result, m.text);
			_exit(m.result ? 1 : 0);
		}
	}
	close(ready[1]);
	for (int i = 0; i < RANKS; i++) {
		assert_int_equal(read(ready[0], &word, sizeof(word)), sizeof(word));
		if (word >> 16 == 0)
			attach = word & 0xffff;
	}
	assert_true(attach > 0);
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = party_connect(attach);
		assert_true(fds[i] >= 0);
		send_something(fds[i], i);
	}
	kill(pids[VICTIM], SIGKILL);
	for (int i = 0; i < RANKS; i++) {
		waitpid(pids[i], &status, 0);
		if (i != VICTIM)
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	close(ready[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replayed),   cmocka_unit_test(test_cut),    cmocka_unit_test(test_reflected),
		cmocka_unit_test(test_other_user), cmocka_unit_test(test_places), cmocka_unit_test(test_flood_after_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
