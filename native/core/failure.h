/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_FAILURE_H
#define IBVX_CORE_FAILURE_H
/*
 * failure: the end of a peer, in good order or by death, and of the requests that it concerns
 * (PROTOCOL.md section 6).  The caller holds the core's lock.
 */
#include "core/core.h"

/* The peer sent BYE: what names it and has not matched fails with -EPIPE. */
void peer_on_bye(struct peer *p);

/* The bootstrap reports that the peer has left; what had arrived has been delivered.  Its end takes
 * effect now, or when its transport has delivered what is in flight (transport_ops.awaits). */
void peer_left(struct peer *p);

/* The peer is dead: every request of it fails with code (negative errno) and this text.
 * Once per peer; later calls do nothing. */
void peer_fail(struct peer *p, int code, const char *why);

/* The peer is known to be dead: fails the rank whose death was the cause of its end, if that is not
 * known yet, then the peer itself. */
void peer_died(struct peer *p, const char *why);

#endif
