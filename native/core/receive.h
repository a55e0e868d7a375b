/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_RECEIVE_H
#define IBVX_CORE_RECEIVE_H
/*
 * receive: receives meet unexpected messages or are posted.  The caller holds the core's lock.
 */
#include "core/core.h"
#include "core/match.h"

/* Polls for the message of a blocking receive before anything is posted, and once more after a
 * short spin without the lock.  Neither d->done nor d->request afterwards: post it. */
void direct_recv_poll(struct ibvx *ep, struct direct_recv *d);

/* Matches the request (state POSTED, fields set) with the earliest unexpected message, or posts
 * it.  May complete it at once. */
void receive_post(struct ibvx *ep, struct request *r);

/* A thread waits for r or tests it: a receive for which nobody is left to send ends with -EPIPE.
 * (Not earlier: a rank may still send to itself.) */
void receive_end_posted(struct ibvx *ep, struct request *r);

static inline void receive_end_hopeless(struct ibvx *ep, struct request *r)
{
	if (r->state == REQ_POSTED)
		receive_end_posted(ep, r);
}

/* Receives an extracted message into r (state POSTED, not in any table); u is freed. */
void receive_extracted(struct ibvx *ep, struct request *r, struct umsg *u);

/* Drops an extracted message as if it had been received and truncated. */
void receive_discard(struct ibvx *ep, struct umsg *u);

/* Frees whatever is queued; for closing. */
void receive_free_all(struct ibvx *ep);

#endif
