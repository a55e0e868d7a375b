/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_EAGER_H
#define IBVX_CORE_EAGER_H
/*
 * eager: messages that are sent before they are matched, as one packet or in fragments, within the
 * credit of flow_control.h (PROTOCOL.md section 2).  The caller holds the core's lock.
 */
#include "core/core.h"

/* The peer's transport and limits are known. */
void eager_attach(struct peer *p);

/* A standard send that can leave at once as one packet, without a request: 1 if it has left; 0:
 * start a request. */
int eager_try(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context);

/* The next packet of r, an eager send: whole, first fragment, further fragment.  As request.emit. */
int eager_emit(struct request *r);
int eager_emit_first(struct request *r);
int eager_emit_more(struct request *r);

/* Packets that have arrived.  Everything in them is checked; what is wrong breaks the peer. */
void eager_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload);
void eager_first_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload);
void eager_more_arrived(struct peer *p, const struct wire_hdr *hdr, const void *payload);
void eager_on_ack(struct peer *p, const struct wire_hdr *hdr);

/* r has matched the unexpected message u (error: and cannot take it). */
void eager_receive(struct ibvx *ep, struct request *r, struct umsg *u, int error);

#endif
