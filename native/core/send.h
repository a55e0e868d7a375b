/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_SEND_H
#define IBVX_CORE_SEND_H
/*
 * send: the outgoing half of every message: eager, fragmented eager, announcement, stream.
 * The caller holds the core's lock.
 */
#include "core/core.h"

/* The peer's transport and limits are known. */
void send_attach(struct peer *p);

/* A standard send that can leave at once as one packet, without a request: 1 if it
 * has left, 0 if it has to take the general way, or the peer's error. */
int send_at_once(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context);

/* Queues the request (state QUEUED) behind earlier sends to its peer and sends what can be sent. */
void send_start(struct request *r);

/* The next packet of the first send in the peer's queue.  0: a packet went out (r may be done or have
 * left the queue); -EAGAIN: no room; -ENOBUFS: no credit; else the peer's error. */
int send_emit(struct request *r);

/* The next DATA packet of a stream. 0, -EAGAIN, or the peer's error. */
int send_stream(struct request *r);

/* r is to go as a stream from here on. */
void send_stream_start(struct request *r);
/* r has been moved as far as r->at: that may have been all. */
void send_streamed(struct request *r);
/* r, a stream, goes on when the receiver has asked for it once more. */
void send_await_cts(struct request *r);

/* The receiver's answers. They validate ids; a bad one breaks the peer. */
void send_on_cts(struct peer *p, const struct wire_hdr *hdr, const void *payload);
void send_on_fin(struct peer *p, const struct wire_hdr *hdr);
void send_on_ack(struct peer *p, const struct wire_hdr *hdr);
/* As struct transport_sink has it. */
void send_on_put(void *core, int rank, uint64_t cookie, int err);

#endif
