/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_WAITER_H
#define IBVX_CORE_WAITER_H
/*
 * waiter: the threads inside blocking calls, which of them owns progress (ep->poller), and how they
 * are woken (PROTOCOL.md section 7).  The caller holds the core's lock unless a comment states otherwise.
 */
#include "core/core.h"

/* Might a poll find something? No lock needed; may err for a moment. */
bool core_ready(const struct ibvx *ep);

/* Wakes the sleeping progress owner if there is one. */
void waiter_wake(struct ibvx *ep);

/* One waiter, all of them, or those that wait for any completion, are to look again. */
void waiter_signal(struct ibvx *ep, struct waiter *w);
void waiter_signal_all(struct ibvx *ep);
void waiter_signal_any(struct ibvx *ep);

/* Work that only w can do: wakes it and makes it the progress owner if possible. */
void waiter_call(struct ibvx *ep, struct waiter *w);
/* Work that any thread of the embedding layer can do: calls one that waits. */
void waiter_call_any(struct ibvx *ep);

/* A request is complete; an unexpected message has been stored. */
static inline void waiter_on_complete(struct ibvx *ep, const struct request *r)
{
	if (r->waiter)
		waiter_signal(ep, r->waiter);
	else if (ep->any_waiters > 0)
		waiter_signal_any(ep);
}

void waiter_on_message(struct ibvx *ep);

/* Ownership of progress.  take: w becomes the owner unless a thread that polls is; other: the next
 * owner after w, or NULL; away: w waits for something else until w->away is cleared, another waiter
 * takes over.  The progress thread never owns it: it polls only while nobody does (background.h). */
void waiter_take_ownership(struct ibvx *ep, struct waiter *w);
struct waiter *waiter_other(struct ibvx *ep, const struct waiter *w);
void waiter_away(struct ibvx *ep, struct waiter *w);

/* The doorbell: a futex word for the progress owner and one for the progress thread.  Bit 0 means that
 * it sleeps, the rest counts.  arm() returns the value to sleep on: a wake-up from now on changes
 * it.  ring() wakes the thread that sleeps there. */
_Atomic uint32_t *waiter_doorbell(struct ibvx *ep, enum transport_doorbell word);
uint32_t waiter_arm(struct ibvx *ep, enum transport_doorbell word);
void waiter_disarm(struct ibvx *ep, enum transport_doorbell word);
void waiter_ring(struct ibvx *ep, enum transport_doorbell word);

#endif
