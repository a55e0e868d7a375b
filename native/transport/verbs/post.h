/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_POST_H
#define IBVX_TRANSPORT_VERBS_POST_H
/*
 * post: packets that go out, and credit.
 *
 * A packet without payload is built in the connection's own header slot, any other in a piece of the device's send pool.  Each costs a
 * credit: a receive that the other side has posted for us.  The stamp of every packet returns what its sender has posted again.
 */
#include "transport/verbs/connection.h"

/* Packets of the transport's own: hdr.kind is WIRE_NONE, hdr.ctl.id one of these. */
enum own_packet { OWN_CREDIT, OWN_HELLO, OWN_LEAVE };

/* HELLOs that the connecting side over iWARP sends at most until it is answered (handshake.h). */
#define POST_HELLOS 8u

/* As the seam's functions (transport.h), for a peer that is UP. */
int post_reserve(struct verbs_conn *c, size_t len, struct transport_slot *slot);
void post_commit(struct verbs_conn *c, struct transport_slot *slot);
/* A packet of our own; last: may use the slot and the credit that are kept back. False: no room. */
bool post_own(struct verbs_conn *c, enum own_packet id, bool last);
/* The packet behind a put, without payload. False: no room. */
bool post_behind(struct verbs_conn *c, const struct wire_hdr *hdr);
/* A receive is posted again, for the other side to use: its credit returns with the next packet, or with one of its own if
 * half of all has gathered. */
void post_consumed(struct verbs_conn *c);
/* Sends that packet if it is due and there is room now. */
void post_credit(struct verbs_conn *c);
/* All packets before this one are done. */
void post_done(struct verbs_conn *c, uint32_t end);
/* Is every packet acknowledged?  If not, has that reported. */
bool post_drained(struct verbs_conn *c);

#endif
