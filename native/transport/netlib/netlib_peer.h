/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_NETLIB_PEER_H
#define IBVX_TRANSPORT_NETLIB_PEER_H
/*
 * netlib_peer: peers, connected when a pair first talks, and their ends.  Lock held.
 */
#include "transport/netlib/netlib_state.h"

/* IDLE -> CONNECTING. */
void netlib_peer_connect(struct netlib_peer *p);
/* The peer is lost, or (-EPIPE) has left: a later poll notifies the core, after so many ticks. Not from a callback for an endpoint
 * (they call netlib_packet_failed()). */
void netlib_peer_end(struct netlib_peer *p, unsigned grace, int code, const char *fmt, ...) __attribute__((cold, format(printf, 4, 5)));
/* Nothing more is sent to it or taken from it. */
void netlib_peer_forget(struct netlib_peer *p);
/* work.h: the handler, on the monitor thread. */
void netlib_peer_on_work(void *netlib);
/* Ends the connection: no other thread is inside the library. */
void netlib_peer_disconnect(struct netlib_peer *p, bool force);

#endif
