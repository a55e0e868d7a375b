/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PIN_SERVE_H
#define IBVX_CORE_PIN_SERVE_H
/*
 * pin_serve: a thread of the embedding layer pins the memory of a request and transfers a piece of it
 * (PROTOCOL.md section 10).  The caller holds the core's lock, which is released meanwhile.
 */
#include "core/core.h"

/* Pins the memory of r, transfers a piece, unpins it.  False: it could not be pinned now. */
bool pin_serve(struct ibvx *ep, struct request *r);

/* Serves zero-copy sends for which there is room, for a call that does not wait. */
void pin_serve_zero_copy_now(struct ibvx *ep);

static inline void pin_serve_zero_copy(struct ibvx *ep)
{
	if (!list_empty(&ep->wanting))
		pin_serve_zero_copy_now(ep);
}

/* A waiter's turn: serves the request that w waits for, or a zero-copy send, if that could be used
 * now.  False: nothing was done. */
bool pin_turn(struct ibvx *ep, struct waiter *w);

/* A pin of this duration has ended. */
void pin_count(struct ibvx *ep, int64_t ns);

#endif
