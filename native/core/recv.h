/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_RECV_H
#define IBVX_CORE_RECV_H
/*
 * recv: the incoming half: envelopes meet posted receives, payload goes to its place.
 * The caller holds the core's lock.
 */
#include "core/core.h"

/* A blocking receive whose thread looks for its message itself before it posts anything (PROTOCOL.md section 2). */
struct direct_recv {
	const struct ibvx_rbuf *buf;
	int source, tag, context;
	uint64_t want, want_mask;   /* as of a request */
	bool done;                  /* the message is in buf, and this is its status */
	struct ibvx_status status;
	struct request *request;    /* the message needs more than a copy: this request has matched it, and may be complete */
};

/* Polls for it, and once more, if nothing came after a short spin, during which the lock is released.  Neither done nor a request: post it. */
void direct_recv_poll(struct ibvx *ep, struct direct_recv *l);

static inline bool direct_recv_matches(const struct direct_recv *l, int rank, int context, int tag)
{
	return l->context == context && (l->source == rank || l->source == IBVX_ANY_SOURCE) &&
	       (l->tag == tag || l->tag == IBVX_ANY_TAG);
}

/* It matches, and a copy is all that it needs. */
static inline bool direct_recv_fits(const struct direct_recv *l, int rank, const struct wire_hdr *hdr)
{
	return direct_recv_matches(l, rank, hdr->msg.context, hdr->msg.tag) && hdr->len <= l->buf->capacity_bytes &&
	       !(hdr->flags & WIRE_SYNC) && !((hdr->msg.user ^ l->want) & l->want_mask) &&
	       !(l->buf->split && hdr->msg.body_bytes);
}

/* A fresh receive, or NULL with the text set. The arguments have been checked. */
static inline struct request *recv_new(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context)
{
	struct request *r = request_get(&ep->requests, REQ_RECV, REQ_POSTED);

	if (!r)
		return NULL;
	r->base[0] = buf->base;
	r->capacity = buf->capacity_bytes;
	r->split = buf->split;
	r->context = context;
	r->source = source;
	r->tag = tag;
	return r;
}

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
