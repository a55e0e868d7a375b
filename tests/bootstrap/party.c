/* SPDX-License-Identifier: MIT */
#include "party.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

static const struct log party_silence = {.level = LOG_OFF, .fd = -1};

void party_sleep(int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

int member_gather(struct member *m, int times)
{
	uint8_t mine[300], all[PARTY_MAX * sizeof(mine)];
	uint32_t lengths[PARTY_MAX];

	for (int turn = 0; turn < times; turn++) {
		size_t len = (size_t)((m->rank * 37 + turn * 11) % 300), at = 0;
		int err;

		memset(mine, m->rank + 1 + turn, sizeof(mine));
		err = bootstrap_allgather(m->b, mine, len, all, sizeof(all), lengths);
		if (err)
			return err;
		for (int r = 0; r < m->joined_size; r++) {
			if (lengths[r] != (uint32_t)((r * 37 + turn * 11) % 300))
				return error_set(-EBADMSG, "length of rank %d is %u", r, lengths[r]);
			for (uint32_t i = 0; i < lengths[r]; i++)
				if (all[at++] != (uint8_t)(r + 1 + turn))
					return error_set(-EBADMSG, "content of rank %d", r);
		}
	}
	return 0;
}

static int member_act(struct member *m)
{
	static const struct bootstrap_events none = {0};
	int err;

	if (m->act)
		return m->act(m);
	err = member_gather(m, 2);
	if (err)
		return err;
	bootstrap_watch(m->b, &none);
	bootstrap_leave(m->b);
	return 0;
}

static int member_try(struct member *m, struct settings *settings)
{
	struct bootstrap_config cfg = {.rank = m->rank, .conf = m->conf, .peers = m->peers, .size = m->size, .settings = settings};
	int err;

	for (int i = 0; i < 6 && m->settings[i]; i++) {
		err = settings_set_pair(settings, SETTINGS_CALLER, m->settings[i], "test");
		if (err)
			return err;
	}
	err = bootstrap_open(&m->b, &cfg, &m->joined_size);
	if (err)
		return err;
	party_sleep(m->delay_ms);
	err = bootstrap_join(m->b, m->log ? m->log : &party_silence, m->job_id);
	return err ? err : member_act(m);
}

void member_run(struct member *m)
{
	struct settings *settings = settings_new();

	m->b = NULL;
	m->text[0] = '\0';
	m->result = settings ? member_try(m, settings) : -ENOMEM;
	if (m->result < 0)
		snprintf(m->text, sizeof(m->text), "%s", error_text());
	bootstrap_close(m->b);
	m->b = NULL;
	settings_free(settings);
}

static void *member_thread(void *arg)
{
	member_run(arg);
	return NULL;
}

void party_start(struct member *members, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_create(&members[i].thread, NULL, member_thread, &members[i]), 0);
}

void party_wait(struct member *members, int count)
{
	for (int i = 0; i < count; i++)
		pthread_join(members[i].thread, NULL);
}

int party_port(void)
{
	static atomic_int next;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (int i = 0; i < 5000; i++) {
		int port = 20000 + (getpid() * 61 + atomic_fetch_add(&next, 1)) % 12000;
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int bound;

		in.sin_port = htons((uint16_t)port);
		bound = bind(fd, (struct sockaddr *)&in, sizeof(in));
		close(fd);
		if (bound == 0)
			return port;
	}
	fail_msg("no free port");
	return -1;
}

const char *party_file(const char *text)
{
	const char *folder = getenv("TMPDIR");
	char *path = malloc(4096);
	int fd;

	assert_non_null(path);
	snprintf(path, 4096, "%s/ibvdev-test-XXXXXX", folder ? folder : "/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

void party_forget(const char *path)
{
	unlink(path);
	free((void *)(uintptr_t)path);
}

const char *party_conf(int size, int port)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "# a test\n%d\n131072\n", size);

	for (int i = 0; i < size; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "localhost@%d@%d@%d@0\n", port, port + 1, i);
	return party_file(text);
}

int party_connect(int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};

	for (int i = 0; i < 1000; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return -1;
		if (connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0)
			return fd;
		close(fd);
		party_sleep(10);
	}
	return -1;
}
