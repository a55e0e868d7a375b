/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_SEND_H
#define IBVX_CORE_SEND_H
/*
 * send: the choice between eager and rendezvous, in the order in which sends were started.
 * The caller holds the core's lock.
 */
#include "core/core.h"

/* Queues the request (state QUEUED) behind earlier sends to its peer and sends what can be sent. */
void send_start(struct request *r);

/* The next packet of the first send in the peer's queue (request.emit).  0: a packet went out, r
 * may be complete or have left the queue; -EAGAIN: no room; -ENOBUFS: no credit; PIN_ABSENT; else
 * the error of the peer. */
int send_emit(struct request *r);

#endif
