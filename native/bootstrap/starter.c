/* SPDX-License-Identifier: MIT */
#include "bootstrap/starter.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/conf.h"
#include "bootstrap/deadline.h"
#include "bootstrap/descriptors.h"
#include "bootstrap/message.h"

/* The starter listens before it starts a rank; a later round's one may be a moment late. */
#define STARTER_CONNECT_MS 3000
#define STARTER_SILENCE_MS 20000
#define STARTER_UTF_MAX 65535
#define STARTER_REPORT "Sending Info"
#define STARTER_ANSWER "#Peer Information"

struct starter {
	const struct conf *conf;
	int fd;
	int64_t deadline;
	char peer[ADDRESS_TEXT_BYTES];
	bool far; /* it is on another machine */
};

static int starter_bad(const char *what, const char *entry)
{
	return error_set(-EPROTO, "the starter's answer has %s: \"%.80s\"", what, entry);
}

static int starter_parse_entry(char *entry, int size, struct conf_host *hosts)
{
	char *fields[5], shown[81];
	int64_t rport, wport, rank;

	snprintf(shown, sizeof(shown), "%s", entry);
	for (int i = 0; i < 5; i++) {
		fields[i] = strsep(&entry, "@");
		if (!fields[i])
			return starter_bad("an entry that is not ip@port@port@rank@debugport", shown);
	}
	if (!*fields[0] || strlen(fields[0]) > 255)
		return starter_bad("an entry without an address", shown);
	if (conf_number(fields[1], 0, 65535, &rport) < 0 || conf_number(fields[2], 0, 65535, &wport) < 0)
		return starter_bad("an entry with a bad port", shown);
	if (conf_number(fields[3], 0, size - 1, &rank) < 0)
		return starter_bad("an entry with a bad rank", shown);
	if (hosts[rank].host)
		return starter_bad("a rank twice (were two ranks started with one number?)", shown);
	if (rank == 0 && rport == 0)
		return starter_bad("no port for rank 0", shown);
	hosts[rank].host = strdup(fields[0]);
	if (!hosts[rank].host)
		return error_set(-ENOMEM, "no memory for the starter's answer");
	hosts[rank].port = (int)rport;
	return 0;
}

int starter_parse(const char *text, size_t len, int size, struct conf_host *hosts)
{
	char *copy, *rest, *token;
	int count = 0, err = 0;

	if (memchr(text, '\0', len))
		return error_set(-EPROTO, "the starter's answer holds a NUL byte");
	copy = strndup(text, len);
	if (!copy)
		return error_set(-ENOMEM, "no memory for the starter's answer");
	rest = copy;
	token = strsep(&rest, ";");
	if (strcmp(token, STARTER_ANSWER) != 0)
		err = starter_bad("another beginning than " STARTER_ANSWER, token);
	while (!err && (token = strsep(&rest, ";"))) {
		if (!*token)
			continue;
		err = starter_parse_entry(token, size, hosts);
		count++;
	}
	if (!err && count != size)
		err = error_set(-EPROTO, "the starter's answer names %d ranks, the job has %d", count, size);
	free(copy);
	return err;
}

static int starter_wait(struct starter *s, short events)
{
	struct pollfd poll = {.fd = s->fd, .events = events};

	while (!poll.revents) {
		int err;

		if (deadline_left_ms(s->deadline) == 0)
			return error_set(-ETIMEDOUT,
					 "the starter at %s:%d gave no answer in time (start_timeout_ms); it "
					 "waits for all %d "
					 "ranks to report: one was not started",
					 s->conf->starter_host, s->conf->starter_port, s->conf->size);
		err = descriptors_poll(&poll, 1, s->deadline);
		if (err < 0)
			return err;
	}
	return 0;
}

/* The reading or the writing half, by `out`. */
static int starter_transfer(struct starter *s, uint8_t *bytes, size_t len, bool out)
{
	while (len > 0) {
		ssize_t n = out ? send(s->fd, bytes, len, MSG_NOSIGNAL) : recv(s->fd, bytes, len, 0);
		int err = 0;

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return error_set(-EHOSTUNREACH,
					 "the starter at %s:%d closed the connection without an answer; MPJ "
					 "Express's own "
					 "serves one MPI.Init of each rank",
					 s->conf->starter_host, s->conf->starter_port);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			err = starter_wait(s, out ? POLLOUT : POLLIN);
		} else if (errno != EINTR) {
			err = error_set(-EHOSTUNREACH, "the connection to the starter at %s:%d broke: %s", s->conf->starter_host,
					s->conf->starter_port, strerror(errno));
		}
		if (err)
			return err;
	}
	return 0;
}

static int starter_connect_one(struct starter *s, const struct address *a, int64_t deadline)
{
	struct pollfd poll = {.fd = address_connect(a), .events = POLLOUT};
	int err = poll.fd < 0 ? poll.fd : 0;

	while (!err && !poll.revents) {
		if (deadline_left_ms(deadline) == 0)
			err = -ETIMEDOUT;
		else if (descriptors_poll(&poll, 1, deadline) < 0)
			err = -EIO;
	}
	if (!err)
		err = address_connected(poll.fd);
	if (err && poll.fd >= 0)
		close(poll.fd);
	if (err)
		return err;
	s->fd = poll.fd;
	s->far = !address_is_loopback(a);
	address_tune(s->fd, STARTER_SILENCE_MS);
	address_peer_text(s->fd, s->peer);
	return 0;
}

static int starter_connect(struct starter *s)
{
	static const struct timespec pause = {.tv_nsec = 50 * CLOCK_NS_PER_MS};
	int64_t deadline = deadline_earlier(s->deadline, deadline_after_ms(STARTER_CONNECT_MS));
	struct address_list list;
	int err = address_resolve(&list, s->conf->starter_host, s->conf->starter_port);

	if (err)
		return error_prefix(-EHOSTUNREACH, "the starter");
	for (;;) {
		for (int i = 0; i < list.count; i++) {
			err = starter_connect_one(s, &list.at[i], deadline);
			if (!err)
				return 0;
		}
		if (deadline_left_ms(deadline) == 0)
			return error_set(-EHOSTUNREACH,
					 "the starter at %s:%d cannot be reached: %s; is mpjrun still "
					 "running? (its port serves "
					 "one MPI.Init of each rank)",
					 s->conf->starter_host, s->conf->starter_port, strerror(-err));
		nanosleep(&pause, NULL);
	}
}

static int starter_report(struct starter *s, int rank, int port)
{
	uint8_t report[2 + sizeof(STARTER_REPORT) - 1 + 12] = {0, sizeof(STARTER_REPORT) - 1};
	uint8_t *numbers = report + 2 + sizeof(STARTER_REPORT) - 1;

	memcpy(report + 2, STARTER_REPORT, sizeof(STARTER_REPORT) - 1);
	message_put32(numbers, (uint32_t)port);
	message_put32(numbers + 4, (uint32_t)port);
	message_put32(numbers + 8, (uint32_t)rank);
	return starter_transfer(s, report, sizeof(report), true);
}

static int starter_read(struct starter *s, char **text, size_t *len)
{
	uint8_t head[2];
	int err = starter_transfer(s, head, sizeof(head), false);

	if (err)
		return err;
	*len = (size_t)(head[0] << 8 | head[1]);
	*text = malloc(*len + 1);
	if (!*text)
		return error_set(-ENOMEM, "no memory for the starter's answer");
	return starter_transfer(s, (uint8_t *)*text, *len, false);
}

/* A rank on the starter's machine may have reached it by 127.0.0.1: that leads nowhere from here. */
static int starter_correct(struct starter *s, struct conf_host *hosts, int size)
{
	struct address_list list;

	for (int i = 0; s->far && i < size; i++) {
		char *host;

		if (address_resolve(&list, hosts[i].host, 1) < 0 || !address_is_loopback(&list.at[0]))
			continue;
		host = strdup(s->peer);
		if (!host)
			return error_set(-ENOMEM, "no memory for the starter's answer");
		free(hosts[i].host);
		hosts[i].host = host;
	}
	return 0;
}

int starter_ask(struct conf *conf, int rank, int port, int64_t deadline)
{
	struct starter s = {.conf = conf, .fd = -1, .deadline = deadline};
	char *text = NULL;
	size_t len;
	int err = starter_connect(&s);

	if (!err)
		err = starter_report(&s, rank, port);
	if (!err)
		err = starter_read(&s, &text, &len);
	if (!err) {
		conf->hosts = calloc((size_t)conf->size, sizeof(*conf->hosts));
		err = conf->hosts ? starter_parse(text, len, conf->size, conf->hosts)
				  : error_set(-ENOMEM, "no memory for %d ranks", conf->size);
	}
	if (!err)
		err = starter_correct(&s, conf->hosts, conf->size);
	if (s.fd >= 0)
		close(s.fd);
	free(text);
	return err;
}
