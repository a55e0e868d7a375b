/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_PACKET_H
#define IBVX_TRANSPORT_UCX_UCX_PACKET_H
/*
 * ucx_packet: buffers for packets, and packets that go out.  A peer has a bounded number of them with the library; small packets,
 * which carry credit and control, have their own.  Lock held, not `outside`.
 */
#include "transport/ucx/state.h"

/* 0, or -EAGAIN. The peer is UP. */
int ucx_packet_reserve(struct ucx_peer *p, size_t bytes, struct ucx_slot **out);
/* Sends the slot, whose header is filled in; it is the library's from here on.  `counts`: drained() waits for it. */
void ucx_packet_send(struct ucx_peer *p, struct ucx_slot *slot, bool counts);
void ucx_packet_discard(struct ucx *u, struct ucx_slot *slot);
/* A packet of the transport's own. False: there is no room now. */
bool ucx_packet_own(struct ucx_peer *p, enum ucx_own id);
/* The library has no packet any more. */
void ucx_packet_free_all(struct ucx *u);

#endif
