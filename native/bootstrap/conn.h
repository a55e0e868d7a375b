/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_CONN_H
#define IBVX_BOOTSTRAP_CONN_H
/*
 * conn: one non-blocking stream socket that carries frames (message.h).
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
	int fd; /* -1: closed */

	uint8_t head[8];
	size_t head_got;
	struct frame *in;
	size_t in_got; /* of its body */

	struct frame **queue; /* [first, first + count), as a ring of `room` */
	int first, count, room;
	size_t front_done; /* bytes of the first that have gone */
	size_t queue_bytes;
	size_t queue_max; /* 0: no limit */
};

/* The longest body of a frame of this kind; -1: it is not expected now. */
typedef int64_t conn_limit(void *arg, enum message_kind kind);

/* Takes the descriptor over. Zeroed memory with fd -1 is a closed connection. */
void conn_open(struct conn *c, int fd);
/* Drops what is queued.  Allowed on a closed one. */
void conn_close(struct conn *c);

/* 1: *frame, the caller's reference; 0: no whole frame yet; -ECONNRESET and other -errno: the connection is over
 * (text); -EPROTO: the other side breaks the protocol (text). */
int conn_receive(struct conn *c, conn_limit *limit, void *arg, struct frame **frame);

/* Queues one frame, with a reference of its own, and sends what goes without waiting.  0; -ENOBUFS: the other side has
 * not read for so long that the queue is full; -ENOMEM; another -errno: the connection is over.  All with text. */
int conn_send(struct conn *c, struct frame *frame);
/* Sends what goes without waiting.  0, or -errno with text. */
int conn_flush(struct conn *c);
bool conn_pending(const struct conn *c);

/* Throws away what has arrived, so that closing does not reset the connection under the
 * other side's feet. Bounded. */
void conn_discard_input(struct conn *c);

#endif
