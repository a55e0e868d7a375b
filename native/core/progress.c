/* SPDX-License-Identifier: MIT */
#include "core/progress.h"

#include "base/clock.h"
#include "core/failure.h"
#include "core/peer.h"
#include "core/waiter.h"

int progress_poll(struct ibvx *ep, int budget)
{
	int events = 0;

	ep->polls++;
	for (int i = 0; i < ep->polled_count; i++)
		events += ep->polled[i]->ops->poll(ep->polled[i], budget);
	return events;
}

int progress_flush(struct ibvx *ep)
{
	int events = 0;

	for (int n = atomic_load_explicit(&ep->busy_count, memory_order_relaxed); n > 0; n--) {
		struct peer *p;

		if (list_empty(&ep->busy))
			break;
		p = LIST_ITEM(ep->busy.next, struct peer, busy);
		list_remove(&p->busy);
		list_append(&ep->busy, &p->busy);
		if (p->error)
			peer_fail(p, p->error, p->why ? p->why : "the connection failed");
		else
			events += peer_flush(p);
	}
	return events;
}

int progress_run(struct ibvx *ep)
{
	int events;

	if (ep->aborted) /* callers may have taken their buffers away */
		return 0;
	events = progress_poll(ep, TRANSPORT_BUDGET);
	return events + progress_flush(ep);
}

/* Turns of the spin loop between two looks at the clock. */
#define PROGRESS_SPINS 64

/* A short look without the lock. */
void progress_spin(struct ibvx *ep, struct waiter *w)
{
	for (int i = 0; i < PROGRESS_SPINS; i++) {
		if (core_ready(ep) || atomic_load_explicit(&w->signal, memory_order_relaxed))
			return;
		cpu_relax();
	}
}

bool progress_spin_once(struct ibvx *ep)
{
	struct waiter nobody = {0};

	if (ep->spin_ns <= 0)
		return false;
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	progress_spin(ep, &nobody);
	core_lock(ep);
	ep->users--;
	return true;
}
