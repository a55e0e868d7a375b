/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_RENDEZVOUS_H
#define IBVX_CORE_RENDEZVOUS_H
/*
 * rendezvous: messages that are announced (RTS) and transferred after they have matched, by one scheme of
 * a table (PROTOCOL.md section 3).  The caller holds the core's lock.
 */
#include "core/core.h"

/* What an RTS offers: a packed rkey, or the first bytes of the message, or a leased source. */
struct rndv_offer {
	const void *rest;
	size_t rkey_bytes, first_bytes; /* at most one of them is not 0 */
	bool leasable;
};

/* The schemes, as the receiver starts them.  The first possible one whose start succeeds carries the
 * message; if it fails later the next one does. */
struct rndv_row {
	const char *name;
	/* Can r, which has matched this offer, be received so? */
	bool (*possible)(const struct request *r, const struct rndv_offer *offer);
	/* 0; any error: the next scheme is tried. */
	int (*start)(struct request *r, const struct rndv_offer *offer);
	/* A packet (DATA, SEGMENT, DONE) for r. -EPROTO: not a legal one here. */
	int (*progress)(struct request *r, const struct wire_hdr *hdr, const void *payload);
	/* r ends early. 0: no adapter reaches its memory; -EINPROGRESS: rendezvous_on_cancelled() follows when that is so.
	 * NULL: none ever does. */
	int (*abort)(struct request *r);
};
extern const struct rndv_row rndv_table[RNDV_SCHEME_COUNT];

/* Sender: sends the RTS of r.  As request.emit. */
int rendezvous_announce(struct request *r);
/* Sender; r is pinned at `at`: transfers a piece of it by the scheme that the receiver chose, with the
 * lock released in between.  False: not by this scheme, push it through the ring. */
bool rendezvous_push(struct ibvx *ep, struct request *r, const char *at);
/* Sender: the next DATA packet of r.  As request.emit. */
int rendezvous_stream(struct request *r);

/* Receiver: r has matched an announcement; error: and declines it. */
void rendezvous_receive(struct ibvx *ep, struct request *r, int error, const struct rndv_offer *offer);
/* Receiver; r is pinned at `at`: copies a leased segment, with the lock released in between.
 * False: there was none. */
bool rendezvous_pull(struct ibvx *ep, struct request *r, char *at);

/* Either side: r ends early.  0, or -EINPROGRESS: an adapter may still reach its memory, and r->error describes what becomes of it
 * when rendezvous_on_cancelled() has come. */
int rendezvous_abort(struct request *r);

/* Packets that have arrived.  Everything in them is checked; what is wrong breaks the peer. */
void rendezvous_rts_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload);
void rendezvous_cts_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload);
void rendezvous_fin_arrived(struct peer *p, const struct wire_hdr *hdr);
void rendezvous_piece_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload);

/* As struct transport_sink has them. */
void rendezvous_on_get(void *core, int rank, uint64_t cookie, int err);
void rendezvous_on_put(void *core, int rank, uint64_t cookie, int err);
void rendezvous_on_cancelled(void *core, int rank, uint64_t cookie);

#endif
