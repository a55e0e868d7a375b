/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_RECEIVE_H
#define IBVX_TRANSPORT_UCX_UCX_RECEIVE_H
/*
 * ucx_receive: packets that come in, and the ends of peers.  Lock held.
 */
#include "transport/ucx/state.h"

/* The library's callback for a packet. */
ucx_status ucx_receive_packet(void *ucx, const void *header, size_t header_bytes, void *data, size_t bytes,
			  const struct ucx_am_recv_param *param);
/* transport_ops.poll, if the transport is in use. */
int ucx_receive_poll(struct ucx *u, int budget);
/* heartbeat.h: a tick, on the monitor thread. */
void ucx_receive_tick(void *ucx);

#endif
