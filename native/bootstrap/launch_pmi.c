/* SPDX-License-Identifier: MIT */
/*
 * launch_pmi: the PMI-1 wire, lines of text over a socket: Hydra, srun --mpi=pmi2, Flux, ibvrun.
 *
 *   -> cmd=init pmi_version=1 pmi_subversion=1    <- cmd=response_to_init rc=0 ...
 *   -> cmd=get_maxes                              <- cmd=maxes vallen_max=1024 ...
 *   -> cmd=get_my_kvsname                         <- cmd=my_kvsname kvsname=K
 *   -> cmd=put kvsname=K key=k value=v            <- cmd=put_result rc=0         rank 0
 *   -> cmd=barrier_in                             <- cmd=barrier_out             all
 *   -> cmd=get kvsname=K key=k                    <- cmd=get_result rc=0 value=v all but rank 0
 *   -> cmd=finalize                               <- cmd=finalize_ack
 *
 * The socket is inherited (PMI_FD), or connected to PMI_PORT=host:port, where "cmd=initack pmiid=$PMI_ID" comes first.
 * The order of an answer's fields varies, and values hold no blank.  A process that closes the socket before finalize is taken
 * for dead by Hydra, which kills the job: so a failed start leaves it open.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/launch_row.h"

#define PMI_LINE_BYTES 4096
#define PMI_NAME_BYTES 257
#define PMI_KEY "ibvx-card"
#define PMI_SHOWN 80

struct pmi {
	int fd;
	char kvs[PMI_NAME_BYTES];
	int value_max;
	char in[PMI_LINE_BYTES]; /* in_len bytes that no call has taken yet */
	size_t in_len;
};

static bool pmi_found(char why[LAUNCH_WHY_BYTES])
{
	const char *name = getenv("PMI_FD") ? "PMI_FD" : getenv("PMI_PORT") ? "PMI_PORT" : NULL;

	if (name)
		snprintf(why, LAUNCH_WHY_BYTES, "%s=%.100s is set", name, getenv(name));
	else
		snprintf(why, LAUNCH_WHY_BYTES, "neither PMI_FD nor PMI_PORT is set");
	return name;
}

static int pmi_gone(const char *doing, int err)
{
	if (err == 0 || err == -EPIPE)
		return error_set(-EPROTO,
				 "PMI: the connection to the launcher, asked to %s, has ended; did another copy of "
				 "this library, or an MPI library, use it up before?",
				 doing);
	return error_sys(err, "PMI: asking the launcher to %s", doing);
}

static int pmi_wait(const struct pmi *p, short events, const char *doing, int64_t deadline)
{
	struct pollfd poll_fd = {.fd = p->fd, .events = events};

	for (;;) {
		int left = deadline_left_ms(deadline), n = left > 0 ? poll(&poll_fd, 1, left) : 0;

		if (n > 0)
			return 0;
		if (left == 0)
			return error_set(-ETIMEDOUT,
					 "PMI: the launcher did not %s in time (start_timeout_ms); were all "
					 "ranks started, and do they all open an endpoint?",
					 doing);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return pmi_gone(doing, -errno);
	}
}

static int pmi_send(const struct pmi *p, const char *line, const char *doing, int64_t deadline)
{
	size_t len = strlen(line);

	while (len > 0) {
		ssize_t n = send(p->fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		int err = n >= 0 || errno == EINTR ? 0 : -errno;

		if (err == -EAGAIN)
			err = pmi_wait(p, POLLOUT, doing, deadline);
		else if (err)
			err = pmi_gone(doing, err);
		if (err)
			return err;
		line += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* One line, without its end; texts of a launcher may go to an exception, so only printable characters are let in. */
static int pmi_receive(struct pmi *p, char line[PMI_LINE_BYTES], const char *doing, int64_t deadline)
{
	for (;;) {
		char *end = memchr(p->in, '\n', p->in_len);
		ssize_t n;
		int err;

		if (end) {
			size_t len = (size_t)(end - p->in);

			for (size_t i = 0; i < len; i++)
				line[i] = p->in[i] >= ' ' && p->in[i] <= '~' ? p->in[i] : '?';
			line[len] = '\0';
			p->in_len -= len + 1;
			memmove(p->in, end + 1, p->in_len);
			return 0;
		}
		if (p->in_len == sizeof(p->in))
			return error_set(-EPROTO, "PMI: the launcher answered with a line of more than %d bytes when asked to %s",
					 PMI_LINE_BYTES, doing);
		err = pmi_wait(p, POLLIN, doing, deadline);
		if (err)
			return err;
		n = recv(p->fd, p->in + p->in_len, sizeof(p->in) - p->in_len, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return pmi_gone(doing, n == 0 ? 0 : -errno);
		p->in_len += n > 0 ? (size_t)n : 0;
	}
}

/* The value of name=value among the blanks of a line; false: it is not there, or does not fit. */
static bool pmi_field(const char *line, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);

	while (*line) {
		size_t word = strcspn(line, " ");

		if (word > len && line[len] == '=' && strncmp(line, name, len) == 0) {
			if (word - len - 1 >= size)
				return false;
			memcpy(out, line + len + 1, word - len - 1);
			out[word - len - 1] = '\0';
			return true;
		}
		line += word;
		line += strspn(line, " ");
	}
	return false;
}

static int pmi_number(const char *line, const char *name, int64_t min, int64_t max, int *out)
{
	char text[24];
	int64_t number;

	if (!pmi_field(line, name, text, sizeof(text)) || conf_number(text, min, max, &number) < 0)
		return -EPROTO;
	*out = (int)number;
	return 0;
}

/* What a line shows of itself in an error: no value, as that may be the card. */
static int pmi_odd(const char *doing, const char *line)
{
	const char *value = strstr(line, "value=");
	int shown = value && value - line < PMI_SHOWN ? (int)(value - line) : PMI_SHOWN;

	return error_set(-EPROTO, "PMI: the launcher's answer when asked to %s is not understood: \"%.*s\"", doing, shown, line);
}

/* Sends a line and waits for the answer of that name; rc must be 0 where there is one. */
static int pmi_ask(struct pmi *p, const char *question, const char *answer, char line[PMI_LINE_BYTES], const char *doing, int64_t deadline)
{
	int err = pmi_send(p, question, doing, deadline), rc = 0;
	char cmd[32] = "";

	memset(line, 0, PMI_LINE_BYTES);
	if (!err)
		err = pmi_receive(p, line, doing, deadline);
	if (err)
		return err;
	if (!pmi_field(line, "cmd", cmd, sizeof(cmd)) || strcmp(cmd, answer) != 0)
		return pmi_odd(doing, line);
	if (pmi_number(line, "rc", INT32_MIN, INT32_MAX, &rc) == 0 && rc != 0)
		return pmi_odd(doing, line);
	return 0;
}

static int pmi_start(struct pmi *p, int64_t deadline)
{
	char line[PMI_LINE_BYTES];
	int err = pmi_ask(p, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", line, "begin", deadline);

	if (!err)
		err = pmi_ask(p, "cmd=get_maxes\n", "maxes", line, "name its limits", deadline);
	if (!err && pmi_number(line, "vallen_max", 1, INT32_MAX, &p->value_max) < 0)
		err = pmi_odd("name its limits", line);
	if (!err)
		err = pmi_ask(p, "cmd=get_my_kvsname\n", "my_kvsname", line, "name its key-value space", deadline);
	if (!err && !pmi_field(line, "kvsname", p->kvs, sizeof(p->kvs)))
		err = pmi_odd("name its key-value space", line);
	return err;
}

/* PMI_FD: the socket is there. */
static int pmi_inherit(struct launch *l, struct pmi *p)
{
	int type, err = launch_variable("PMI_FD", 0, INT32_MAX, &p->fd);
	socklen_t len = sizeof(type);

	if (err)
		return err;
	if (getsockopt(p->fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return error_set(-EINVAL,
				 "PMI_FD=%d is not an open socket: was this process started by one that has used "
				 "it up, or that closes its files?",
				 p->fd);
	fcntl(p->fd, F_SETFD, FD_CLOEXEC);
	err = launch_variable("PMI_SIZE", 1, CONF_RANKS_MAX, &l->size);
	if (!err)
		err = launch_variable("PMI_RANK", 0, l->size - 1, &l->rank);
	return err == -ENOENT ? error_set(-EINVAL, "PMI_FD is set, but not both PMI_RANK and PMI_SIZE") : err;
}

/* PMI_PORT: the socket has to be connected, and provides rank and size. */
static int pmi_connect(struct launch *l, struct pmi *p, int64_t deadline)
{
	char line[PMI_LINE_BYTES], ask[64], *host;
	struct address_list list;
	uint32_t tried = 0;
	int id, port, which, debug, err = launch_variable("PMI_ID", 0, CONF_RANKS_MAX - 1, &id);

	if (err)
		return err == -ENOENT ? error_set(-EINVAL, "PMI_PORT is set, but not PMI_ID") : err;
	err = address_split(getenv("PMI_PORT"), &host, &port);
	if (err)
		return error_prefix(err, "PMI_PORT");
	err = address_resolve(&list, host, port);
	free(host);
	if (err)
		return error_prefix(err, "PMI_PORT");
	p->fd = address_connect_any(&list, &tried, deadline, &which);
	if (p->fd < 0)
		return error_sys(p->fd, "PMI: connecting to PMI_PORT=%.100s", getenv("PMI_PORT"));
	snprintf(ask, sizeof(ask), "cmd=initack pmiid=%d\n", id);
	err = pmi_ask(p, ask, "initack", line, "let this rank in", deadline);
	for (int i = 0; !err && i < 3; i++) {
		err = pmi_ask(p, "", "set", line, "name rank and size", deadline);
		if (!err && pmi_number(line, "size", 1, CONF_RANKS_MAX, &l->size) < 0 &&
		    pmi_number(line, "rank", 0, CONF_RANKS_MAX - 1, &l->rank) < 0 &&
		    pmi_number(line, "debug", INT32_MIN, INT32_MAX, &debug) < 0)
			err = pmi_odd("name rank and size", line);
	}
	return err || l->rank < l->size ? err : pmi_odd("name rank and size", line);
}

static int pmi_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline)
{
	struct pmi *p = calloc(1, sizeof(*p));
	int err;

	(void)cfg;
	if (!p)
		return error_set(-ENOMEM, "no memory");
	p->fd = -1;
	l->session = p;
	err = getenv("PMI_FD") ? pmi_inherit(l, p) : pmi_connect(l, p, deadline);
	if (!err)
		err = pmi_start(p, deadline);
	if (!err && launch_variable("MPI_LOCALNRANKS", 1, CONF_RANKS_MAX, &l->local_size) == -EINVAL)
		l->local_size = 0;
	return err;
}

static int pmi_barrier(struct pmi *p, int64_t deadline)
{
	char line[PMI_LINE_BYTES];

	return pmi_ask(p, "cmd=barrier_in\n", "barrier_out", line, "pass the barrier", deadline);
}

static int pmi_publish(struct launch *l, const struct card *card, const struct address_listener *listener, int64_t deadline)
{
	struct pmi *p = l->session;
	char text[CARD_TEXT_BYTES], question[PMI_LINE_BYTES], line[PMI_LINE_BYTES];
	int err;

	(void)listener;
	if (card_print(card, text) > (size_t)p->value_max)
		return error_set(-EMSGSIZE,
				 "PMI: the launcher takes values of %d characters, rank 0's card has %zu; let the "
				 "setting net choose one interface",
				 p->value_max, strlen(text));
	snprintf(question, sizeof(question), "cmd=put kvsname=%s key=" PMI_KEY " value=%s\n", p->kvs, text);
	err = pmi_ask(p, question, "put_result", line, "take rank 0's card", deadline);
	return err ? err : pmi_barrier(p, deadline);
}

static int pmi_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	struct pmi *p = l->session;
	char text[PMI_LINE_BYTES], question[PMI_LINE_BYTES], line[PMI_LINE_BYTES];
	int err = pmi_barrier(p, deadline);

	if (err)
		return err;
	snprintf(question, sizeof(question), "cmd=get kvsname=%s key=" PMI_KEY "\n", p->kvs);
	err = pmi_ask(p, question, "get_result", line, "give rank 0's card", deadline);
	if (err)
		return err;
	if (!pmi_field(line, "value", text, sizeof(text)))
		return pmi_odd("give rank 0's card", line);
	err = card_parse(card, text);
	return err ? error_prefix(err, "PMI") : 0;
}

static int pmi_done(struct launch *l, int64_t deadline)
{
	struct pmi *p = l->session;
	char line[PMI_LINE_BYTES];
	int err = pmi_ask(p, "cmd=finalize\n", "finalize_ack", line, "end the session", deadline);

	/* The descriptor stays: its number is in the environment, and must never mean another file. */
	if (!err)
		shutdown(p->fd, SHUT_RDWR);
	return err;
}

static void pmi_close(struct launch *l)
{
	free(l->session);
}

const struct launch_row launch_pmi = {
	.name = "pmi",
	.title = "PMI",
	.engine = true,
	.found = pmi_found,
	.open = pmi_open,
	.publish = pmi_publish,
	.fetch = pmi_fetch,
	.done = pmi_done,
	.close = pmi_close,
};
