/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PROGRESS_H
#define IBVX_CORE_PROGRESS_H
/*
 * wait: how threads wait, and who polls (PROTOCOL.md section 7).
 *
 * One waiter holds the token (ep->poller) and polls: it spins, yields, then sleeps on the
 * bell.  The others sleep on their own signal.  A waiter that leaves hands the token on.  The progress
 * thread holds it only while nobody else waits; it stays asleep on the bell while others poll.
 */
#include "core/core.h"

/* Delivers and sends what can be; nothing once the endpoint is aborted. Lock held. Returns how many events there were. */
int progress_run(struct ibvx *ep);
/* Its halves: delivers up to budget packets of each peer; sends. */
int progress_poll(struct ibvx *ep, int budget);
int progress_flush(struct ibvx *ep);

/* Might progress_run() find something? No lock needed; may err for a moment. */
bool progress_ready(const struct ibvx *ep);

/* Spins for a moment, lock released, until something may be there.  False, and the lock was kept: spinning is not set. */
bool progress_spin_once(struct ibvx *ep);

/* Blocks until done(arg) is true; timeout_ns < 0: for ever. Lock held on entry and exit, released
 * in between. w is the caller's, with the wants_ fields set. 0, -ETIMEDOUT, or -ESHUTDOWN if the endpoint is aborted. */
int progress_wait(struct ibvx *ep, struct waiter *w, bool (*done)(struct ibvx *ep, void *arg), void *arg,
	       int64_t timeout_ns);

/* There is work that only w can do: wakes it and makes it the poller if possible. Lock held. */
void progress_call(struct ibvx *ep, struct waiter *w);

/* w, which may hold the token, will not poll for a while, until it says that it is not `away`: another thread of the layer above gets the
 * token, if one waits. Lock held. */
void progress_away(struct ibvx *ep, struct waiter *w);

/* There is work that any thread of the layer above can do: calls one that waits. Lock held. */
void progress_call_any(struct ibvx *ep);

/* One waiter, or those that want any completion, are to look again. Lock held. */
void progress_signal(struct ibvx *ep, struct waiter *w);
void progress_signal_any(struct ibvx *ep);

/* Called by completions, unexpected arrivals, and failures. Lock held. */
static inline void progress_on_complete(struct ibvx *ep, const struct request *r)
{
	if (r->waiter)
		progress_signal(ep, r->waiter);
	else if (ep->any_waiters > 0)
		progress_signal_any(ep);
}

void progress_on_message(struct ibvx *ep);
void progress_signal_all(struct ibvx *ep);

/* Wakes the sleeping poller if there is one. Lock held. */
void progress_wake(struct ibvx *ep);

/* A test or probe found nothing: when ranks outnumber processors, let others run now and then. No lock. */
void progress_idle_test(struct ibvx *ep);

/* Spin and yield times from the settings; starts the progress thread if it is set. */
int progress_open(struct ibvx *ep, int local_ranks);
/* Starts a thread that takes no signals. 0 or -errno with text. */
int progress_thread(pthread_t *thread, void *(*fn)(void *), void *arg);
/* Stops the progress thread. No lock. */
void progress_close(struct ibvx *ep);

#endif
