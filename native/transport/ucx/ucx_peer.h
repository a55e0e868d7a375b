/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_PEER_H
#define IBVX_TRANSPORT_UCX_UCX_PEER_H
/*
 * ucx_peer: endpoints, made when a pair first talks, and their ends.  Lock held.
 */
#include "transport/ucx/state.h"

/* IDLE -> CONNECTING. */
void ucx_peer_connect(struct ucx_peer *p);
/* The peer is lost, or (-EPIPE) has left: a later poll notifies the core, after so many ticks. Not from a callback for an endpoint
 * (they set `failed`). */
void ucx_peer_end(struct ucx_peer *p, unsigned grace, int code, const char *fmt, ...) __attribute__((cold, format(printf, 4, 5)));
/* Nothing more is sent to it or taken from it. */
void ucx_peer_forget(struct ucx_peer *p);
/* work.h: the handler, on the monitor thread. */
void ucx_peer_on_work(void *ucx);
/* Ends the endpoint: no other thread is inside the library. */
void ucx_peer_close_endpoint(struct ucx_peer *p, bool force);
/* What a status of the library is as -errno. */
int ucx_peer_errno(ucx_status status);

#endif
