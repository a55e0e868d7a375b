/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PACKET_H
#define IBVX_CORE_PACKET_H
/*
 * packet: building and reading the packets that eager and rendezvous share.
 * The caller holds the core's lock.
 */
#include "core/core.h"
#include "core/match.h"

/* Fills in the header of an envelope packet (EAGER, EAGER_FIRST, RTS) of r. */
void packet_msg_header(struct wire_hdr *hdr, enum wire_kind kind, size_t len, const struct request *r);

/* Payload bytes of one piece of a message of `total` bytes to p.  A message that is not longer is
 * one packet; longer ones go in pieces, so that the receiver copies one while the sender fills the
 * next. */
size_t packet_piece_bytes(const struct peer *p, size_t total);

/* transport_ops.reserve() for a piece of r.  PIN_ABSENT: r's memory has no address now; its owner
 * was called. */
int packet_reserve(struct request *r, size_t len, struct transport_slot *slot);

/* Sends the next piece of r, as DATA or EAGER_MORE.  0, or as packet_reserve(). */
int packet_send_piece(struct request *r, enum wire_kind kind);

/* Copies [at, at + len) of a message to the buffer of r, the receive that has matched it.  The owner of
 * pinnable memory that is not pinned now is called. */
void packet_deliver(struct request *r, uint64_t at, const void *from, size_t len);

/* packet_deliver() of a whole short message. */
static inline void packet_deliver_short(struct request *r, const void *from, size_t len)
{
	if (!buffer_write_short(&r->buffer, from, len))
		packet_deliver(r, 0, from, len);
}

/* Reads the envelope of an EAGER_FIRST or RTS.  False: the peer broke the protocol. */
bool packet_read_long(struct peer *p, const struct wire_hdr *hdr, const void *payload, struct envelope *e);

/* The send that the answer in hdr names, if it waits for an answer; else NULL, and the peer broke the
 * protocol unless a failure is being handled. */
struct request *packet_find_send(struct peer *p, const struct wire_hdr *hdr, const char *what);

#endif
