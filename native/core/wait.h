/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_WAIT_H
#define IBVX_CORE_WAIT_H
/*
 * wait: how threads wait, and who polls (PROTOCOL.md section 7).
 *
 * One waiter holds the token (ep->poller) and polls: it spins, yields, then sleeps on the
 * bell.  The others sleep on their own signal.  A waiter that leaves hands the token on.  The progress
 * thread holds it only while nobody else waits; it stays asleep on the bell while others poll.
 */
#include "core/core.h"

/* Delivers and sends what can be; nothing once the endpoint is aborted. Lock held. Returns how many events there were. */
int wait_progress(struct ibvx *ep);
/* Its halves: delivers up to budget packets of each peer; sends. */
int wait_poll(struct ibvx *ep, int budget);
int wait_flush(struct ibvx *ep);

/* Might wait_progress() find something? No lock needed; may err for a moment. */
bool wait_ready(const struct ibvx *ep);

/* Spins for a moment, lock released, until something may be there.  False, and the lock was kept: spinning is not set. */
bool wait_glance(struct ibvx *ep);

/* Blocks until done(arg) is true; timeout_ns < 0: for ever. Lock held on entry and exit, released
 * in between. w is the caller's, with the wants_ fields set. 0, -ETIMEDOUT, or -ESHUTDOWN if the endpoint is aborted. */
int wait_until(struct ibvx *ep, struct waiter *w, bool (*done)(struct ibvx *ep, void *arg), void *arg,
	       int64_t timeout_ns);

/* There is work that only w can do: wakes it and makes it the poller if possible. Lock held. */
void wait_call(struct ibvx *ep, struct waiter *w);

/* w, which may hold the token, will not poll for a while, until it says that it is not `away`: another thread of the layer above gets the
 * token, if one waits. Lock held. */
void wait_away(struct ibvx *ep, struct waiter *w);

/* There is work that any thread of the layer above can do: calls one that waits. Lock held. */
void wait_call_any(struct ibvx *ep);

/* One waiter, or those that want any completion, are to look again. Lock held. */
void wait_signal(struct ibvx *ep, struct waiter *w);
void wait_signal_any(struct ibvx *ep);

/* Called by completions, unexpected arrivals, and failures. Lock held. */
static inline void wait_on_complete(struct ibvx *ep, const struct request *r)
{
	if (r->waiter)
		wait_signal(ep, r->waiter);
	else if (ep->any_waiters > 0)
		wait_signal_any(ep);
}

void wait_on_message(struct ibvx *ep);
void wait_signal_all(struct ibvx *ep);

/* Wakes the sleeping poller if there is one. Lock held. */
void wait_kick(struct ibvx *ep);

/* A test or probe found nothing: when ranks outnumber processors, let others run now and then. No lock. */
void wait_idle_test(struct ibvx *ep);

/* Spin and yield times from the settings; starts the progress thread if it is set. */
int wait_open(struct ibvx *ep, int local_ranks);
/* Starts a thread that takes no signals. 0 or -errno with text. */
int wait_thread(pthread_t *thread, void *(*fn)(void *), void *arg);
/* Stops the progress thread. No lock. */
void wait_close(struct ibvx *ep);

#endif
