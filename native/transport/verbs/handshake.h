/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_HANDSHAKE_H
#define IBVX_TRANSPORT_VERBS_HANDSHAKE_H
/*
 * handshake: how a connection comes about, whatever carries the request: RDMA CM (cm.c) or TCP (wireup.c).
 *
 * Both sides may send a request at once: the one of the higher rank stands.  The higher rank refuses the other as crossed; the lower
 * one closes its own when it sees the other's, or, if it was refused first, awaits it.
 *
 * RDMA CM: a request that is given up unanswered may be read later, and another may follow it (retry.h).  The newest request of a rank
 * counts.
 *
 * The connecting side sends first: iWARP wants it so, and the accepting side sends nothing before.  soft-iWARP (Linux 6.1,
 * siw_cm.c: siw_accept) overlooks what arrives after the accepting side has sent its MPA reply and before the socket belongs to the queue pair:
 * the data stays in the socket until more comes.  So the connecting side over iWARP repeats HELLO until something comes back, with credit
 * that post.c keeps back for it.
 *
 * Everything but handshake_first_packet() runs on the monitor thread.
 */
#include "transport/verbs/post.h"

/* Our own private data; c may be NULL in a refusal. */
struct private_data handshake_data(const struct verbs *v, const struct verbs_conn *c, enum refusal why);
/* The peer whose request this is, if it may connect; else NULL and why not. */
struct verbs_peer *handshake_requester(struct verbs *v, const struct private_data *d, bool readable, enum refusal *why);
/* A connection that answers the request of p, in ACCEPTING, not built; an attempt of our own is closed.  Releases the lock.
 * NULL with text: p has ended. */
struct verbs_conn *handshake_accept(struct verbs_peer *p);
/* The connection method reports: it stands; it was refused (closed, or its peer ended); the other side ended it. */
void handshake_established(struct verbs_conn *c, const struct private_data *d, bool readable);
void handshake_refused(struct verbs_conn *c, int status, const struct private_data *d, bool readable);
void handshake_disconnected(struct verbs_conn *c);
/* In ACCEPTING: the other side no longer wants the request that this connection answers.  Releases the lock. */
void handshake_given_up(struct verbs_conn *c);
/* The other side's first packet has arrived.  Any thread. */
void handshake_first_packet(struct verbs_conn *c);
/* HELLOs may have to be repeated (a watch's callback; struct verbs). */
void handshake_on_timer(void *verbs);

#endif
