/* SPDX-License-Identifier: MIT */
#include "bootstrap/star.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/error.h"
#include "bootstrap/deadline.h"

#define STAR_VERDICT_MS 1000
#define STAR_FD_SCAN 65536

static const bool star_steps[STAR_STATE_COUNT][STAR_STATE_COUNT] = {
	[STAR_NEW] = {[STAR_JOINED] = true, [STAR_FAILED] = true, [STAR_LEFT] = true},
	[STAR_JOINED] = {[STAR_WATCHED] = true, [STAR_FAILED] = true, [STAR_LEFT] = true},
	[STAR_WATCHED] = {[STAR_LEFT] = true},
	[STAR_FAILED] = {[STAR_LEFT] = true},
};

void star_set_state(struct bootstrap *b, enum star_state state)
{
	if (b->state == state)
		return;
	if (!star_steps[b->state][state]) {
		if (b->log)
			log_error(b->log, "bootstrap: step from state %d to %d refused", (int)b->state,
				  (int)state);
		return;
	}
	b->state = state;
}

void star_name_peer(struct bootstrap *b, int rank)
{
	struct peer *p = &b->peers[rank];
	const struct conf_host *host = launch_host(b->launch, rank);

	if (p->who.pid)
		snprintf(p->name, sizeof(p->name), "rank %d (pid %d on %s)", rank, p->who.pid, p->who.host);
	else if (host && host->host && host->port)
		snprintf(p->name, sizeof(p->name), "rank %d (%.100s:%d)", rank, host->host, host->port);
	else if (host && host->host)
		snprintf(p->name, sizeof(p->name), "rank %d (%.100s)", rank, host->host);
	else
		snprintf(p->name, sizeof(p->name), "rank %d", rank);
}

int star_fail(struct bootstrap *b, int code)
{
	if (b->state != STAR_FAILED) {
		snprintf(b->failure, sizeof(b->failure), "%s", error_text());
		b->failure_code = code;
		star_set_state(b, STAR_FAILED);
	}
	return code;
}

int star_failed(const struct bootstrap *b)
{
	return error_set(b->failure_code, "%s", b->failure);
}

/* Whoever cannot be told in a second is not told. */
static void star_flush_verdict(struct bootstrap *b)
{
	int64_t deadline = deadline_after_ms(STAR_VERDICT_MS);
	int rank = 0;

	while (star_flush(b, deadline, &rank) < 0)
		conn_close(star_conn_of(b, rank));
}

int star_fail_lost(struct bootstrap *b, int rank)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	int code;

	b->peers[rank].state = PEER_LOST;
	if (b->rank == 0)
		star_tell(b, MESSAGE_LOST, body, message_put_text(body, rank, error_text()), rank);
	code = error_prefix(-ECONNRESET, "%s died while the job was starting", b->peers[rank].name);
	star_fail(b, code);
	if (b->rank == 0)
		star_flush_verdict(b);
	return star_failed(b);
}

int star_fail_all(struct bootstrap *b, int code)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];

	star_fail(b, code);
	if (b->rank == 0) {
		star_tell(b, MESSAGE_FAILED, body, message_put_text(body, code, error_text()), 0);
		star_flush_verdict(b);
	}
	return star_failed(b);
}

int star_bad_news(struct bootstrap *b, int from, const struct conn_frame *frame)
{
	char text[MESSAGE_TEXT_BYTES + 1];
	int code = -1;

	if (frame->kind == MESSAGE_LEFT && frame->len == 4) {
		code = (int)message_get32(frame->body);
		text[0] = '\0';
	} else if (frame->kind == MESSAGE_LEFT ||
		   message_get_text(frame->body, frame->len, &code, text) < 0) {
		code = -1;
	}
	if (frame->kind == MESSAGE_FAILED && code < 0 && code > -4096)
		return star_fail(b, error_set(code, "%s", text));
	if (frame->kind != MESSAGE_FAILED && code >= 0 && code < b->size) {
		error_set(-ECONNRESET, "%s", frame->kind == MESSAGE_LEFT ? "it left the job" : text);
		return star_fail_lost(b, code);
	}
	error_set(-EPROTO, "it sent a malformed message of kind %d", (int)frame->kind);
	return star_fail_lost(b, from);
}

void star_tell(struct bootstrap *b, enum message_kind kind, const void *body, size_t len, int except)
{
	for (int i = 0; i < b->conn_count; i++) {
		int rank = star_rank_of(b, i);
		int err;

		if (rank == except || rank == b->rank || b->conns[i].fd < 0)
			continue;
		err = conn_send(&b->conns[i], kind, body, len);
		if (err == -ENOBUFS || err == -ENOMEM) {
			b->peers[rank].stuck = true;
			shutdown(b->conns[i].fd, SHUT_RDWR);
		}
	}
}

int star_no_descriptors(const char *what, int more)
{
	struct rlimit limit;
	int open_count = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return error_sys(-EMFILE, "%s", what);
	for (int fd = 0; fd < STAR_FD_SCAN && (rlim_t)fd < limit.rlim_cur; fd++)
		open_count += fcntl(fd, F_GETFD) >= 0;
	return error_set(-EMFILE,
			 "%s: this process has no file descriptor left: its limit RLIMIT_NOFILE is %llu, it needs "
			 "at least %d; raise it (ulimit -n)",
			 what, (unsigned long long)limit.rlim_cur, open_count + more);
}

int star_poll(struct pollfd *fds, int count, struct pollfd *live, int64_t deadline)
{
	int live_count = 0, n, err;

	for (int i = 0; live && i < count; i++)
		if (fds[i].fd >= 0)
			live[live_count++] = fds[i];
	n = live ? poll(live, (nfds_t)live_count, deadline_left_ms(deadline))
		 : poll(fds, (nfds_t)count, deadline_left_ms(deadline));
	err = n < 0 ? -errno : 0;
	/* More are open than the limit allows: it was lowered meanwhile. */
	if (err == -EINVAL)
		return star_no_descriptors("waiting for the other ranks", 1);
	if (err && err != -EINTR && err != -EAGAIN)
		return error_sys(err, "waiting for the other ranks");
	live_count = 0;
	for (int i = 0; i < count; i++) {
		if (err || fds[i].fd < 0)
			fds[i].revents = 0;
		else if (live)
			fds[i].revents = live[live_count++].revents;
	}
	return err ? 0 : n;
}

int star_flush(struct bootstrap *b, int64_t deadline, int *rank)
{
	for (;;) {
		int last = -1, err;

		for (int i = 0; i < b->conn_count; i++) {
			bool pending = conn_pending(&b->conns[i]);

			b->polls[i] = (struct pollfd){.fd = pending ? b->conns[i].fd : -1, .events = POLLOUT};
			last = pending ? i : last;
		}
		if (last < 0)
			return 0;
		*rank = star_rank_of(b, last);
		if (deadline_left_ms(deadline) == 0)
			return error_set(-ETIMEDOUT, "%s does not read its control connection",
					 b->peers[*rank].name);
		err = star_poll(b->polls, b->conn_count, b->polls + b->conn_count, deadline);
		for (int i = 0; err > 0 && i < b->conn_count; i++) {
			if (!b->polls[i].revents)
				continue;
			*rank = star_rank_of(b, i);
			if (conn_flush(&b->conns[i]) < 0)
				return -ECONNRESET;
		}
		if (err < 0)
			return err;
	}
}

int star_receive(struct bootstrap *b, int i, struct conn_frame *frame, int64_t deadline)
{
	struct conn *c = &b->conns[i];

	for (;;) {
		struct pollfd poll = {.fd = c->fd, .events = POLLIN};
		int got = conn_receive(c, frame);

		if (got)
			return got;
		if (deadline_left_ms(deadline) == 0)
			return 0;
		/* A failed write is not the end: the reason may lie unread in front of us. */
		if (conn_pending(c) && conn_flush(c) == 0 && conn_pending(c))
			poll.events |= POLLOUT;
		got = star_poll(&poll, 1, NULL, deadline);
		if (got < 0)
			return got;
	}
}
