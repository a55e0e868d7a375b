/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_CONN_H
#define IBVX_BOOTSTRAP_CONN_H
/*
 * conn: one non-blocking TCP connection that carries frames (message.h).
 *
 * Reading takes one frame at a time and never a byte beyond it, so that "the descriptor is
 * readable" and "there is news" stay the same thing.  A frame of a kind that is not
 * expected now, or longer than its kind may be, ends the connection before memory is taken for it.
 *
 * Not thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/message.h"

/* What may wait for a peer that does not read, beyond what one rank's farewells need. */
#define CONN_QUEUE_BYTES 65536

struct conn {
	int fd;           /* -1: closed */
	int size;         /* of the job: bounds the lengths */
	unsigned expects; /* bit 1 << enum message_kind */

	uint8_t head[8];
	size_t head_got;
	uint8_t *body;
	size_t body_len, body_got;

	uint8_t *queue; /* frames that wait, [queue_done, queue_len) */
	size_t queue_len, queue_done, queue_capacity;
	const uint8_t *tail; /* lent by the caller, follows the queue */
	size_t tail_len;
	bool bounded; /* the queue has a limit */
	bool armed;   /* watch.c waits for room to write */
};

/* One received frame; body is valid until the next conn_receive or conn_close. */
struct conn_frame {
	enum message_kind kind;
	const uint8_t *body;
	size_t len;
};

#define CONN_EXPECT(kind) (1u << (kind))

/* Takes the descriptor over. Zeroed memory with fd -1 is a closed connection. */
void conn_open(struct conn *c, int fd, int size);
/* Drops what is queued.  Allowed on a closed one. */
void conn_close(struct conn *c);

/* 1: *frame; 0: no whole frame yet; -ECONNRESET and other -errno: the connection is over (text); -EPROTO: the
 * other side breaks the protocol (text). */
int conn_receive(struct conn *c, struct conn_frame *frame);

/* Queues one frame and sends what goes without waiting.  0; -ENOBUFS: the other side has not read for so
 * long that the queue is full; -ENOMEM; another -errno: the connection is over.  All with text. */
int conn_send(struct conn *c, enum message_kind kind, const void *body, size_t len);
/* Same, but the body is lent: it must stay until conn_pending() says false or conn_own() was called. */
int conn_lend(struct conn *c, enum message_kind kind, const void *body, size_t len);
/* Copies what is left of a lent body, so that the lender may free it.  0 or -ENOMEM: the connection is closed. */
int conn_own(struct conn *c);
/* Sends what goes without waiting.  0, or -errno with text. */
int conn_flush(struct conn *c);
bool conn_pending(const struct conn *c);

/* Throws away what has arrived, so that closing does not reset the connection under the
 * other side's feet. Bounded. */
void conn_discard_input(struct conn *c);

#endif
