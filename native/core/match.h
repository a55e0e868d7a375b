/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_MATCH_H
#define IBVX_CORE_MATCH_H
/*
 * match: posted receives and unexpected messages (MPI 4.0, section 3.5), over the tables of
 * match_table.h.  The caller holds the core's lock.
 */
#include <errno.h>

#include "core/core.h"

/* The envelope of a message, whatever packet carried it. */
struct envelope {
	int tag;
	uint64_t user;
	size_t head, body;
	uint32_t id; /* the sender's request */
};

/* The arguments of a receive. */
struct recv_args {
	const struct ibvx_rbuf *buf;
	bool pinnable; /* the memory is a pin's; buf->base is not used */
	int source, tag, context;
	uint64_t want, want_mask; /* as of a request */
};

/* Direct receive: a blocking receive whose thread polls before it posts anything (PROTOCOL.md
 * section 2).  A short message is copied straight to buf, without a request. */
struct direct_recv {
	struct recv_args args; /* neither pinnable nor with a layout */
	bool done;             /* the message is in buf, and this is its status */
	struct ibvx_status status;
	struct request *request; /* the message needs more than a copy: this request has matched it, and may be complete */
};

static inline bool direct_recv_matches(const struct recv_args *a, int rank, int context, int tag)
{
	return a->context == context && (a->source == rank || a->source == IBVX_ANY_SOURCE) && (a->tag == tag || a->tag == IBVX_ANY_TAG);
}

/* It matches, and a copy is all that it needs. */
static inline bool direct_recv_fits(const struct recv_args *a, int rank, const struct wire_hdr *hdr)
{
	return direct_recv_matches(a, rank, hdr->msg.context, hdr->msg.tag) && hdr->len <= a->buf->capacity_bytes &&
	       !(hdr->flags & WIRE_SYNC) && !((hdr->msg.user ^ a->want) & a->want_mask) && !(a->buf->split && hdr->msg.body_bytes);
}

/* A fresh receive, or NULL with the text set. The arguments have been checked. */
static inline struct request *receive_new(struct ibvx *ep, const struct recv_args *a)
{
	struct request *r = request_get(&ep->requests, REQ_RECV, REQ_POSTED);

	if (!r)
		return NULL;
	buffer_init_receive(&r->buffer, a->buf);
	if (a->pinnable)
		buffer_set_pinnable(&r->buffer, NULL);
	r->context = a->context;
	r->source = a->source;
	r->tag = a->tag;
	r->want = a->want;
	r->want_mask = a->want_mask;
	return r;
}

/* Posts a receive that no unexpected message matches. */
void match_post(struct ibvx *ep, struct request *r);
/* Takes a posted receive out of the tables. */
void match_unpost(struct ibvx *ep, struct request *r);
/* The posted receive that this envelope matches, taken out of the tables, or NULL. */
struct request *match_arrival(struct ibvx *ep, struct peer *p, int context, int tag);

/* A receive or probe of this source (perhaps a wildcard) waits, or no longer does: by is 1 or -1. */
void match_interest(struct ibvx *ep, int source, int by);

/* An unexpected message with room for `room` bytes of payload; NULL: not even memory for the
 * envelope.  Without memory for the payload it is marked lost: its receive fails, order holds. */
struct umsg *umsg_new(struct peer *p, const struct wire_hdr *hdr, const struct envelope *e, size_t room);
/* Queues an unexpected message and wakes the threads that probe. */
void match_store(struct ibvx *ep, struct umsg *u);
/* The earliest unexpected message that a receive with these arguments would get, or NULL. */
struct umsg *match_peek(struct ibvx *ep, int source, int tag, int context);
/* Takes an unexpected message out of the tables. */
void match_extract(struct ibvx *ep, struct umsg *u);

/* envelope_accept() of a receive that checks the user word or allocates the body. */
int envelope_accept_slow(struct request *r, const struct envelope *e);

/* Enters the envelope that r has matched. 0, -EMSGSIZE (the message is dropped), -EPROTOTYPE or
 * -ENOMEM. */
static inline int envelope_accept(struct request *r, struct peer *p, const struct envelope *e)
{
	r->peer = p;
	r->tag = e->tag;
	r->user = e->user;
	r->remote = e->id;
	buffer_set_bytes(&r->buffer, e->head, e->body);
	if (buffer_is_split(&r->buffer) || r->want_mask)
		return envelope_accept_slow(r, e);
	return e->head + e->body > r->buffer.capacity ? -EMSGSIZE : 0;
}

#endif
