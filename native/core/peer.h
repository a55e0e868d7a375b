/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PEER_H
#define IBVX_CORE_PEER_H
/*
 * peer: the outgoing queues of one peer, and its state (PROTOCOL.md section 1).
 * The caller holds the core's lock.
 */
#include "core/core.h"

void peer_init(struct peer *p, struct ibvx *ep, int rank);
void peer_fini(struct peer *p);

/* Sends what can be sent now, by request.emit.  The rest stays queued and the peer stays on the
 * busy list.  Returns how many packets went out. */
int peer_flush(struct peer *p);

/* Records an error of the peer with the calling thread's error text: the next progress fails the
 * peer with it (callers hold requests of the peer). */
void peer_set_error(struct peer *p, int code);
/* The same with -EPROTO: the peer broke the protocol. */
void peer_broken(struct peer *p, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* Sends the control packet of a request (CTS by request.emit, FIN or ACK), or queues it. */
void peer_queue_control(struct request *r, enum wire_kind kind);

/* Sends a control packet now. 0, -EAGAIN, or the transport's error. */
int peer_control(struct peer *p, enum wire_kind kind, uint32_t id, uint32_t from, uint64_t value);

/* On or off the list of peers that have something to send. */
void peer_busy(struct peer *p);
void peer_not_busy(struct peer *p);

/* The error, with its text, of a peer that has failed. */
int peer_text(const struct peer *p) __attribute__((cold));

/* 0 if an operation that names this peer may start, else the error with its text. */
int peer_why_not(const struct peer *p) __attribute__((cold));

static inline int peer_check(const struct peer *p)
{
	return p->state == PEER_OPEN && p->ep->failed_rank < 0 ? 0 : peer_why_not(p);
}

/* The peer whose end forbids a receive or probe of this source to wait, or NULL. */
struct peer *peer_ended_source(struct ibvx *ep, int source);

/* Nothing queued, nothing pending. */
bool peer_idle(const struct peer *p);

#endif
