/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_RECV_H
#define IBVX_CORE_RECV_H
/*
 * recv: the incoming half: envelopes meet posted receives, payload goes to its place.
 * The caller holds the core's lock.
 */
#include "core/core.h"

/* Matches the request (state POSTED, fields set) with the earliest unexpected message, or posts
 * it.  May complete it at once. */
void recv_post(struct ibvx *ep, struct request *r);

/* Somebody waits for r or tests it: if it is a receive that nobody is left to send for, it ends with
 * -EPIPE.  (Not before: a rank may still send to itself.) */
void recv_end_posted(struct ibvx *ep, struct request *r);

static inline void recv_end_hopeless(struct ibvx *ep, struct request *r)
{
	if (r->state == REQ_POSTED)
		recv_end_posted(ep, r);
}

/* Takes a posted receive out of the matching tables. */
void recv_unpost(struct ibvx *ep, struct request *r);

/* A receive or probe of this source (perhaps a wildcard) waits, or no longer does: by is 1 or -1. */
void recv_interest(struct ibvx *ep, int source, int by);

/* The earliest unexpected message that a receive with these arguments would get, or NULL. */
struct umsg *recv_peek(struct ibvx *ep, int source, int tag, int context);

/* Takes an unexpected message out of the matching tables, for a matched probe. */
void recv_extract(struct ibvx *ep, struct umsg *u);

/* Receives an extracted message into r (state POSTED, not in any table); u is freed. */
void recv_extracted(struct ibvx *ep, struct request *r, struct umsg *u);

/* Drops an extracted message as if it had been received and truncated. */
void recv_discard(struct ibvx *ep, struct umsg *u);

/* Sends the CTS of r, with a description of its memory if a put is wanted. 0, -EAGAIN, or the transport's error. */
int recv_emit_cts(struct request *r);

/* Frees whatever is queued; for closing. */
void recv_free_all(struct ibvx *ep);

/* A packet from a transport (struct transport_sink). */
void recv_on_packet(void *core, int rank, const struct wire_hdr *hdr, const void *payload);
void recv_on_get(void *core, int rank, uint64_t cookie, int err);
void recv_on_down(void *core, int rank, int err, const char *why);

#endif
