/* SPDX-License-Identifier: MIT */
#include "bootstrap/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

void conn_open(struct conn *c, int fd, int size)
{
	memset(c, 0, sizeof(*c));
	c->fd = fd;
	c->size = size;
}

void conn_close(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->body);
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

/* The header is complete: is this frame welcome, and is there memory for it? */
static int conn_begin_body(struct conn *c)
{
	uint32_t len;
	int kind = message_get_header(c->head, &len);

	if (kind < 0)
		return error_set(-EPROTO, "what it sends is not ibvdev's protocol");
	if (!(c->expects & CONN_EXPECT(kind)))
		return error_set(-EPROTO, "it sent message kind %d out of turn", kind);
	if (len > message_limit((enum message_kind)kind, c->size))
		return error_set(-EPROTO, "it sent message kind %d with %u bytes, which is too long", kind,
				 len);
	free(c->body);
	c->body = malloc((size_t)len + 1);
	if (!c->body)
		return error_set(-ENOMEM, "no memory for a message of %u bytes", len);
	c->body_len = len;
	c->body_got = 0;
	return 0;
}

int conn_receive(struct conn *c, struct conn_frame *frame)
{
	int done;

	if (c->fd < 0)
		return error_set(-ECONNRESET, "the connection is closed");
	if (c->head_got < sizeof(c->head)) {
		done = conn_fill(c, c->head, sizeof(c->head), &c->head_got);
		if (done > 0)
			done = conn_begin_body(c) < 0 ? -EPROTO : 1;
		if (done <= 0)
			return done;
	}
	done = conn_fill(c, c->body, c->body_len, &c->body_got);
	if (done <= 0)
		return done;
	frame->kind = (enum message_kind)c->head[2];
	frame->body = c->body;
	frame->len = c->body_len;
	c->head_got = 0;
	return 1;
}

bool conn_pending(const struct conn *c)
{
	return c->fd >= 0 && (c->queue_done < c->queue_len || c->tail_len > 0);
}

/* How many bytes went: 0 if none can now, -errno with text. */
static ssize_t conn_push(struct conn *c, const uint8_t *from, size_t len)
{
	for (;;) {
		ssize_t n = send(c->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			return n;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		if (errno != EINTR)
			return error_sys(-errno, "the connection broke");
	}
}

int conn_flush(struct conn *c)
{
	while (conn_pending(c)) {
		bool queued = c->queue_done < c->queue_len;
		ssize_t n = queued ? conn_push(c, c->queue + c->queue_done, c->queue_len - c->queue_done)
				   : conn_push(c, c->tail, c->tail_len);

		if (n <= 0)
			return (int)n;
		if (queued) {
			c->queue_done += (size_t)n;
		} else {
			c->tail += n;
			c->tail_len -= (size_t)n;
		}
	}
	c->queue_done = 0;
	c->queue_len = 0;
	return 0;
}

static int conn_reserve(struct conn *c, size_t len)
{
	size_t capacity;
	uint8_t *queue;

	if (c->queue_done > 0) {
		memmove(c->queue, c->queue + c->queue_done, c->queue_len - c->queue_done);
		c->queue_len -= c->queue_done;
		c->queue_done = 0;
	}
	if (c->queue_len + len <= c->queue_capacity)
		return 0;
	capacity = c->queue_len + len + 256;
	queue = realloc(c->queue, capacity);
	if (!queue)
		return error_set(-ENOMEM, "no memory for a message of %zu bytes", len);
	c->queue = queue;
	c->queue_capacity = capacity;
	return 0;
}

static bool conn_full(const struct conn *c, size_t len)
{
	return c->bounded && c->queue_len - c->queue_done + len > CONN_QUEUE_BYTES + (size_t)c->size * 32;
}

int conn_own(struct conn *c)
{
	int err;

	if (c->fd < 0 || c->tail_len == 0)
		return 0;
	err = conn_reserve(c, c->tail_len);
	if (err) {
		conn_close(c);
		return err;
	}
	memcpy(c->queue + c->queue_len, c->tail, c->tail_len);
	c->queue_len += c->tail_len;
	c->tail_len = 0;
	return 0;
}

static int conn_queue(struct conn *c, enum message_kind kind, const void *body, size_t body_len, size_t total)
{
	int err;

	if (c->fd < 0)
		return error_set(-EPIPE, "the connection is closed");
	if (conn_full(c, 8 + body_len))
		return error_set(-ENOBUFS, "it has not read its control connection for too long");
	err = conn_own(c);
	if (!err)
		err = conn_reserve(c, 8 + body_len);
	if (err)
		return err;
	message_put_header(c->queue + c->queue_len, kind, (uint32_t)total);
	if (body_len > 0)
		memcpy(c->queue + c->queue_len + 8, body, body_len);
	c->queue_len += 8 + body_len;
	return 0;
}

int conn_send(struct conn *c, enum message_kind kind, const void *body, size_t len)
{
	int err = conn_queue(c, kind, body, len, len);

	return err ? err : conn_flush(c);
}

int conn_lend(struct conn *c, enum message_kind kind, const void *body, size_t len)
{
	int err = conn_queue(c, kind, NULL, 0, len);

	if (err)
		return err;
	c->tail = body;
	c->tail_len = len;
	return conn_flush(c);
}

void conn_discard_input(struct conn *c)
{
	uint8_t bin[4096];

	for (int i = 0; i < 64 && c->fd >= 0; i++)
		if (recv(c->fd, bin, sizeof(bin), MSG_DONTWAIT) <= 0)
			return;
}
