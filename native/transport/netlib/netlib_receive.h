/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_NETLIB_RECEIVE_H
#define IBVX_TRANSPORT_NETLIB_RECEIVE_H
/*
 * netlib_receive: packets that come in, and the ends of peers.  Lock held.
 */
#include "transport/netlib/netlib_state.h"

/* A packet as it came: its head is checked here.  whole: the library has all of it. */
void netlib_receive(struct netlib *f, const void *header, size_t header_bytes, const void *payload, size_t bytes, bool whole);
/* transport_ops.poll, if the transport is in use. */
int netlib_receive_poll(struct netlib *f, int budget);
/* heartbeat.h: a tick, on the monitor thread. */
void netlib_receive_tick(void *netlib);

#endif
