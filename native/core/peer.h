/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PEER_H
#define IBVX_CORE_PEER_H
/*
 * peer: what goes out to one rank, in which order, and what happens when it leaves or dies
 * (PROTOCOL.md sections 1 and 6).  The caller holds the core's lock.
 */
#include "core/core.h"

void peer_init(struct peer *p, struct ibvx *ep, int rank);
void peer_fini(struct peer *p);

/* Sends what can be sent now.  What cannot stays queued and the peer stays on the busy list.
 * Returns how many packets went out. */
int peer_flush(struct peer *p);

/* The transport has lost the peer (the text says how).  Callers hold requests of it: the next poll ends them. */
void peer_set_error(struct peer *p, int code);

/* The request pending_control its peer a control packet (CTS, TAKEN, FIN or ACK): sends or queues it. */
void peer_queue_control(struct request *r, enum wire_kind kind);

/* Fills in a control packet and commits it. 0, -EAGAIN, or the transport's error. */
int peer_control(struct peer *p, enum wire_kind kind, uint32_t id, uint32_t from, uint64_t value);

/* Marks the peer as having something to send. */
void peer_busy(struct peer *p);

/* The peer said BYE: what names it and has not matched fails with -EPIPE. */
void peer_on_bye(struct peer *p);

/* The bootstrap says that the peer has left; what had arrived has been delivered. Its end is believed now, or when its
 * transport has delivered what is still under way (transport_ops.awaits). */
void peer_left(struct peer *p);

/* The peer is dead: every request of it fails with code (negative errno) and this text.
 * Once per peer; later calls do nothing. */
void peer_fail(struct peer *p, int code, const char *why);

/* The peer is known to be dead: fails the one because of whose death it gave up, if that is not known yet,
 * then the peer itself. */
void peer_died(struct peer *p, const char *why);

/* The peer broke the protocol: it is failed with -EPROTO and a text. */
void peer_broken(struct peer *p, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* 0 if an operation that names this peer may start, else the error with its text. */
int peer_why_not(const struct peer *p) __attribute__((cold));

static inline int peer_check(const struct peer *p)
{
	return p->state == PEER_OPEN && p->ep->failed_rank < 0 ? 0 : peer_why_not(p);
}

/* Nothing queued, nothing owed. */
bool peer_idle(const struct peer *p);

#endif
