/* SPDX-License-Identifier: MIT */
#include "bootstrap/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

void conn_open(struct conn *c, int fd)
{
	memset(c, 0, sizeof(*c));
	c->fd = fd;
}

void conn_close(struct conn *c)
{
	if (c->fd >= 0) {
		shutdown(c->fd, SHUT_RDWR); /* it ends even if a forked process holds a copy */
		close(c->fd);
	}
	frame_unref(c->in);
	for (int i = 0; i < c->count; i++)
		frame_unref(c->queue[(c->first + i) % c->room]);
	free(c->queue);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

/* 1: all of it; 0: not yet; -errno with text. */
static int conn_fill(struct conn *c, uint8_t *into, size_t len, size_t *got)
{
	while (*got < len) {
		ssize_t n = recv(c->fd, into + *got, len - *got, MSG_DONTWAIT);

		if (n > 0) {
			*got += (size_t)n;
			continue;
		}
		if (n == 0)
			return error_set(-ECONNRESET, "the connection was closed");
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		return error_sys(-errno, "the connection broke");
	}
	return 1;
}

/* The header is complete: is this frame expected, and is there memory for it? */
static int conn_begin_body(struct conn *c, conn_limit *limit, void *arg)
{
	uint32_t len;
	int kind = message_get_header(c->head, &len);
	int64_t max;

	if (kind < 0)
		return error_set(-EPROTO, "what it sends is not ibvdev's protocol");
	max = limit(arg, (enum message_kind)kind);
	if (max < 0)
		return error_set(-EPROTO, "it sent message kind %d out of turn", kind);
	if ((int64_t)len > max)
		return error_set(-EPROTO, "it sent message kind %d with %u bytes, which is too long", kind, len);
	c->in = frame_new((enum message_kind)kind, NULL, len);
	c->in_got = 0;
	return c->in ? 1 : error_set(-EPROTO, "no memory for a message of %u bytes", len);
}

int conn_receive(struct conn *c, conn_limit *limit, void *arg, struct frame **frame)
{
	int done;

	if (c->fd < 0)
		return error_set(-ECONNRESET, "the connection is closed");
	if (!c->in) {
		done = conn_fill(c, c->head, sizeof(c->head), &c->head_got);
		if (done > 0)
			done = conn_begin_body(c, limit, arg);
		if (done <= 0)
			return done;
	}
	done = conn_fill(c, c->in->bytes + sizeof(c->head), c->in->len, &c->in_got);
	if (done <= 0)
		return done;
	*frame = c->in;
	c->in = NULL;
	c->head_got = 0;
	return 1;
}

bool conn_pending(const struct conn *c)
{
	return c->count > 0;
}

int conn_flush(struct conn *c)
{
	while (c->count > 0) {
		struct frame *f = c->queue[c->first];
		size_t len = sizeof(struct message_header) + f->len;
		ssize_t n = send(c->fd, f->bytes + c->front_done, len - c->front_done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0)
			return error_sys(-errno, "the connection broke");
		c->front_done += (size_t)n;
		if (c->front_done < len)
			continue;
		c->front_done = 0;
		c->queue_bytes -= len;
		c->first = (c->first + 1) % c->room;
		c->count--;
		frame_unref(f);
	}
	return 0;
}

static int conn_grow(struct conn *c)
{
	int room = c->room ? 2 * c->room : 8;
	struct frame **queue = malloc((size_t)room * sizeof(struct frame *));

	if (!queue)
		return error_set(-ENOMEM, "no memory for a message");
	for (int i = 0; i < c->count; i++)
		queue[i] = c->queue[(c->first + i) % c->room];
	free(c->queue);
	c->queue = queue;
	c->first = 0;
	c->room = room;
	return 0;
}

int conn_send(struct conn *c, struct frame *frame)
{
	size_t len = sizeof(struct message_header) + frame->len;
	int err;

	if (c->fd < 0)
		return error_set(-EPIPE, "the connection is closed");
	if (c->queue_max && c->count > 0 && c->queue_bytes + len > c->queue_max)
		return error_set(-ENOBUFS, "it has not read its control connection for too long");
	err = c->count == c->room ? conn_grow(c) : 0;
	if (err)
		return err;
	c->queue[(c->first + c->count++) % c->room] = frame_ref(frame);
	c->queue_bytes += len;
	return conn_flush(c);
}

void conn_discard_input(struct conn *c)
{
	uint8_t bin[4096];

	for (int i = 0; i < 64 && c->fd >= 0; i++)
		if (recv(c->fd, bin, sizeof(bin), MSG_DONTWAIT) <= 0)
			return;
}
