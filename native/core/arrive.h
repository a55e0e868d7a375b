/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_ARRIVE_H
#define IBVX_CORE_ARRIVE_H
/*
 * arrive: packets come in, are checked, and meet their receive (the upcalls of struct
 * transport_sink, declared in recv.h), and what recv.c and arrive.c say to each other.
 * The caller holds the core's lock.
 */
#include <errno.h>

#include "core/core.h"

/* What an envelope says, whatever carried it. */
struct recv_envelope {
	int tag;
	uint64_t user;
	size_t head, body;
	uint32_t id;
};

/* The posted receive that this envelope matches, taken out of the tables, or NULL. */
struct request *recv_match(struct ibvx *ep, struct peer *p, int context, int tag);

/* The same where something is asked of the message but its length: its type, or memory of ours for its body. */
int recv_accept_apart(struct request *r, const struct recv_envelope *e);

/* Tells r what it has matched. 0, -EMSGSIZE (the message is dropped), -EPROTOTYPE or -ENOMEM. */
static inline int recv_accept(struct request *r, struct peer *p, const struct recv_envelope *e)
{
	r->peer = p;
	r->tag = e->tag;
	r->user = e->user;
	r->remote = e->id;
	r->bytes[0] = e->head;
	r->bytes[1] = e->body;
	if (r->split || r->want_mask)
		return recv_accept_apart(r, e);
	return e->head + e->body > r->capacity ? -EMSGSIZE : 0;
}

/* Queues an unexpected message and wakes those who probe. */
void recv_store(struct ibvx *ep, struct umsg *u);

/* What an announcement carries behind the lengths: descriptors for a get, or the first bytes. */
struct recv_rts {
	const void *rest;
	size_t desc_bytes, first_bytes; /* one of them is 0 */
	bool pinnable;                  /* WIRE_LEASE */
};

/* r has matched an announcement: gets it, asks for the (rest of the) stream, or (error) declines it. */
void recv_rendezvous(struct ibvx *ep, struct request *r, int error, const struct recv_rts *rts);

/* r, which has matched an announcement, asks its sender for a put or for the stream. */
void recv_ask(struct request *r);

/* The peer whose end forbids a receive or probe of this source to wait, or NULL. */
struct peer *recv_hopeless(struct ibvx *ep, int source);

#endif
