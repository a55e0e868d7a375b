/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/star.h"

#define WATCH_FAREWELL_MS 200
#define WATCH_BATCH 32
#define WATCH_EXPECTS (CONN_EXPECT(MESSAGE_LOST) | CONN_EXPECT(MESSAGE_LEFT) | CONN_EXPECT(MESSAGE_FAILED))

int watch_open(struct bootstrap *b)
{
	b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll_fd < 0 && errno == EMFILE)
		return star_no_descriptors("watching the other ranks", 1);
	if (b->epoll_fd < 0)
		return error_sys(-errno, "epoll_create1");
	for (int i = 0; i < b->conn_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		if (b->conns[i].fd >= 0 && epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, b->conns[i].fd, &event) < 0)
			return error_sys(-errno, "epoll_ctl");
	}
	return 0;
}

void bootstrap_watch(struct bootstrap *b, const struct bootstrap_events *events)
{
	b->events = *events;
	star_set_state(b, STAR_WATCHED);
	for (int i = 0; i < b->conn_count; i++) {
		b->conns[i].expects = WATCH_EXPECTS;
		b->conns[i].bounded = true;
	}
}

int bootstrap_fds(const struct bootstrap *b, int *fds, int max)
{
	if (b->state != STAR_WATCHED || b->epoll_fd < 0 || max < 1)
		return 0;
	fds[0] = b->epoll_fd;
	return 1;
}

/* Asks for POLLOUT exactly while something waits to be written. */
static void watch_rearm(struct bootstrap *b)
{
	for (int i = 0; i < b->conn_count; i++) {
		struct conn *c = &b->conns[i];
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		if (c->fd < 0 || conn_pending(c) == c->armed)
			continue;
		c->armed = !c->armed;
		if (c->armed)
			event.events |= EPOLLOUT;
		epoll_ctl(b->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
	}
}

static void watch_lost(struct bootstrap *b, int rank, const char *why)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	struct peer *p = &b->peers[rank];
	char text[MESSAGE_TEXT_BYTES + 1];

	if (p->state != PEER_PRESENT)
		return;
	snprintf(text, sizeof(text), "%s", why);
	p->state = PEER_LOST;
	if (b->rank == 0) {
		struct conn *c = star_conn_of(b, rank);

		star_tell(b, MESSAGE_LOST, body, message_put_text(body, rank, text), rank);
		/* Should it live after all, it must not believe that the job goes on with it. */
		if (c->fd >= 0)
			conn_send(c, MESSAGE_FAILED, body, message_put_text(body, -ECONNRESET, text));
		conn_close(c);
	}
	if (b->events.lost)
		b->events.lost(b->events.arg, rank, text);
}

static void watch_left(struct bootstrap *b, int rank)
{
	uint8_t body[4];

	if (b->peers[rank].state != PEER_PRESENT)
		return;
	b->peers[rank].state = PEER_LEFT;
	message_put32(body, (uint32_t)rank);
	if (b->rank == 0)
		star_tell(b, MESSAGE_LEFT, body, sizeof(body), rank);
	if (b->rank == 0 || rank == 0)
		conn_close(star_conn_of(b, rank));
	if (b->events.left)
		b->events.left(b->events.arg, rank);
}

/* Rank `from` says that `rank` is dead.  On rank 0 that waits for watch_settle(): the process may have been seen to
 * end before we have read its farewell. */
static void watch_hearsay(struct bootstrap *b, int from, int rank, const char *why)
{
	struct peer *p = &b->peers[rank];
	size_t bytes = MESSAGE_TEXT_BYTES + 1;

	if (rank == b->rank || rank == from || p->state != PEER_PRESENT || p->hearsay)
		return;
	if (b->rank != 0) {
		watch_lost(b, rank, why);
		return;
	}
	p->hearsay = malloc(bytes);
	if (!p->hearsay)
		return; /* its own connection tells the same a little later */
	snprintf(p->hearsay, bytes, "%.380s (seen by rank %d)", why, from);
	b->hearsay_count++;
}

/* 0, or -EPROTO with text. */
static int watch_on_frame(struct bootstrap *b, int from, const struct conn_frame *frame)
{
	char text[MESSAGE_TEXT_BYTES + 1] = "";
	int code;

	if (frame->kind == MESSAGE_LEFT && frame->len == 4) {
		code = (int)message_get32(frame->body);
		if (code < 0 || code >= b->size || code == b->rank || (b->rank == 0 && code != from))
			return error_set(-EPROTO, "it sent a farewell of rank %d", code);
		watch_left(b, code);
		return 0;
	}
	if (frame->kind == MESSAGE_LEFT || message_get_text(frame->body, frame->len, &code, text) < 0)
		return error_set(-EPROTO, "it sent a malformed message of kind %d", (int)frame->kind);
	if (frame->kind == MESSAGE_FAILED)
		return error_set(-EPROTO, "it has given this rank up: %s", text);
	if (code < 0 || code >= b->size)
		return error_set(-EPROTO, "it reported the loss of rank %d", code);
	watch_hearsay(b, from, code, text);
	return 0;
}

/* Reads connection i until it is empty or over, or has said more than a rank has to say. */
static void watch_drain(struct bootstrap *b, int i)
{
	int rank = star_rank_of(b, i);
	struct conn_frame frame;
	int got;

	for (int frames = 0; b->conns[i].fd >= 0 && frames < 2 * b->size + 8; frames++) {
		got = conn_receive(&b->conns[i], &frame);
		if (got == 0)
			return;
		if (got > 0 && watch_on_frame(b, rank, &frame) == 0)
			continue;
		if (b->peers[rank].stuck)
			error_set(-ENOBUFS, "it did not read its control connection");
		else if (got < 0 && got != -EPROTO)
			error_prefix(got, "it ended without a farewell");
		watch_lost(b, rank, error_text());
		conn_close(&b->conns[i]);
	}
}

/* Judges what was said of the dead, when their own last words have been heard. */
static void watch_settle(struct bootstrap *b)
{
	for (int rank = 0; b->hearsay_count > 0 && rank < b->size; rank++) {
		char *why = b->peers[rank].hearsay;

		if (!why)
			continue;
		watch_drain(b, rank);
		watch_lost(b, rank, why);
		b->peers[rank].hearsay = NULL;
		b->hearsay_count--;
		free(why);
		rank = 0; /* it may have spoken of others */
	}
}

void bootstrap_on_readable(struct bootstrap *b, int fd)
{
	struct epoll_event events[WATCH_BATCH];
	int count;

	if (b->state != STAR_WATCHED || fd != b->epoll_fd)
		return;
	count = epoll_wait(b->epoll_fd, events, WATCH_BATCH, 0);
	for (int n = 0; n < count; n++) {
		int i = (int)events[n].data.u32;

		if (b->conns[i].fd < 0)
			continue;
		/* A write that fails shows in the reading. */
		if (events[n].events & EPOLLOUT)
			conn_flush(&b->conns[i]);
		watch_drain(b, i);
	}
	watch_settle(b);
	watch_rearm(b);
}

void bootstrap_report_lost(struct bootstrap *b, int rank, const char *why)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	struct bootstrap_events events = b->events;

	if (b->state != STAR_WATCHED || rank < 0 || rank >= b->size || rank == b->rank ||
	    b->peers[rank].state != PEER_PRESENT)
		return;
	if (b->rank == 0) {
		/* The caller knows already. */
		memset(&b->events, 0, sizeof(b->events));
		watch_lost(b, rank, why);
		b->events = events;
	} else {
		b->peers[rank].state = PEER_LOST;
		star_tell(b, MESSAGE_LOST, body, message_put_text(body, rank, why), rank);
	}
	watch_rearm(b);
}

void bootstrap_leave(struct bootstrap *b)
{
	uint8_t body[4];
	int rank = 0;

	if (b->state == STAR_LEFT || b->state == STAR_FAILED)
		return;
	if (b->state == STAR_WATCHED) {
		/* The last news that the others would not get otherwise; nobody here wants to hear it. */
		memset(&b->events, 0, sizeof(b->events));
		for (int i = 0; i < b->conn_count; i++)
			watch_drain(b, i);
		watch_settle(b);
	}
	message_put32(body, (uint32_t)b->rank);
	star_tell(b, MESSAGE_LEFT, body, sizeof(body), -1);
	while (star_flush(b, deadline_after_ms(WATCH_FAREWELL_MS), &rank) < 0)
		conn_close(star_conn_of(b, rank));
	for (int i = 0; i < b->conn_count; i++) {
		if (b->conns[i].fd < 0)
			continue;
		shutdown(b->conns[i].fd, SHUT_WR);
		conn_discard_input(&b->conns[i]);
		conn_close(&b->conns[i]);
	}
	star_set_state(b, STAR_LEFT);
}
