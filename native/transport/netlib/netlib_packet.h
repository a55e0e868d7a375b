/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_NETLIB_PACKET_H
#define IBVX_TRANSPORT_NETLIB_PACKET_H
/*
 * netlib_packet: buffers for packets, and packets that go out.  A peer has a bounded number of them with the library; small packets,
 * which carry credit and control, have their own.  Lock held, not `outside`.
 */
#include "transport/netlib/netlib_state.h"

/* All slots are made now, in one piece of memory (fixed_slots, fixed_bytes) that the transport may register.  0 or -ENOMEM with text. */
int netlib_packet_fix(struct netlib *f);
/* 0, or -EAGAIN. The peer is UP. */
int netlib_packet_reserve(struct netlib_peer *p, size_t bytes, struct netlib_slot **out);
/* Sends the slot, whose header is filled in; it is the library's from here on.  `counts`: drained() waits for it. */
void netlib_packet_send(struct netlib_peer *p, struct netlib_slot *slot, bool counts);
/* The library has let go of the slot, however late: when the peer is disconnected, or in close(). */
void netlib_packet_sent(struct netlib_slot *slot, int status);
void netlib_packet_discard(struct netlib *f, struct netlib_slot *slot);
/* The library has reported an error of this peer: a later poll ends it. */
void netlib_packet_failed(struct netlib_peer *p, int status);
/* A packet of the transport's own. False: there is no room now. */
bool netlib_packet_own(struct netlib_peer *p, enum netlib_own id);
/* Queued packets go out as far as the library has room. */
void netlib_packet_push(struct netlib *f);
/* The peer's queued packets will not go out. */
void netlib_packet_drop(struct netlib_peer *p);
/* The library has no packet any more. */
void netlib_packet_free_all(struct netlib *f);

#endif
