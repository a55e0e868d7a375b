/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_BACKGROUND_H
#define IBVX_CORE_BACKGROUND_H
/*
 * background: the progress thread, which continues rendezvous while no thread of the rank polls (PROTOCOL.md section 7).
 *
 * It sleeps on the second word of the doorbell.  That word is armed only while a non-blocking operation needs
 * packets from a peer in order to complete and no thread polls, so programs of blocking calls and of short messages have no cost.
 * Peers wake it for packets that need an answer or belong to a rendezvous, and for room in a ring that was full; never
 * for an eager message.  It pins no memory of the layer above: what arrives for such memory goes to the bounce buffer, what
 * leaves from it waits for a thread of that layer.
 *
 * The caller holds the core's lock, unless stated otherwise.
 */
#include "core/core.h"

/* Receives with less room match eager messages only: they complete with the next call, and need no progress thread. */
#define BACKGROUND_RECV_BYTES (16u << 10)

/* Arms the doorbell if something needs the progress thread and no thread polls.  May deliver packets. The last
 * thing that a call does before it releases the lock. */
void background_rest(struct ibvx *ep);

/* r, a non-blocking operation, is under way when its call returns. */
void background_adopt(struct ibvx *ep, struct request *r);

/* The call that has started r, a non-blocking operation, is about to release the lock. */
static inline void background_start(struct ibvx *ep, struct request *r)
{
	if (r->state != REQ_DONE && (r->kind == REQ_SEND || buffer_is_split(&r->buffer) || r->buffer.capacity >= BACKGROUND_RECV_BYTES))
		background_adopt(ep, r);
}

/* Starts the progress thread if the setting asks for one. 0 or -errno with text. */
int background_open(struct ibvx *ep);
/* Ends it. No lock. */
void background_close(struct ibvx *ep);

#endif
