/* SPDX-License-Identifier: MIT */
#include "core/continuation.h"

#include <stdio.h>

#include "base/error.h"
#include "core/waiter.h"

/* A thread that waits, or is about to leave a call, runs what is due; without one the progress thread does. */
static void continuation_call_thread(struct ibvx *ep, const struct ibvx_continuation *c)
{
	if (!list_empty(&ep->waiters))
		waiter_call_any(ep);
	else if (ep->runners == 0 && ep->background_running && !c->by_caller)
		waiter_ring(ep, TRANSPORT_DOORBELL_BACKGROUND);
}

static void continuation_make_due(struct ibvx *ep, struct ibvx_continuation *c)
{
	struct due_queue *q = c->by_caller ? &ep->due_callers : &ep->due;

	if (c->running || c->due)
		return;
	c->due = true;
	c->next_due = NULL;
	if (q->first)
		q->last->next_due = c;
	else
		q->first = c;
	q->last = c;
	continuation_call_thread(ep, c);
}

void continuation_fill(struct ibvx_completion *done, const struct request *r, const char *text)
{
	struct ibvx_continuation *c = done->owner;

	done->error = r->error;
	done->user = r->user;
	done->bytes = request_total(r);
	if (r->error && !c->why[0]) {
		snprintf(c->why, sizeof(c->why), "%s", text);
		c->why_rank = error_rank();
	}
}

void continuation_complete(struct ibvx *ep, const struct request *r, const char *text)
{
	struct ibvx_completion *done = r->completion;
	struct ibvx_continuation *c;

	if (ep->aborted) /* the layer has been notified of that, and *done may be gone */
		return;
	c = done->owner;
	continuation_fill(done, r, text);
	done->next = c->done;
	c->done = done;
	continuation_make_due(ep, c);
}

void continuation_run(struct ibvx *ep, struct ibvx_continuation *c)
{
	bool over;

	c->running = true;
	do {
		struct ibvx_completion *done = c->done;

		c->done = NULL;
		ep->users++; /* an abort waits for us */
		core_unlock(ep);
		c->run(c, done);
		core_lock(ep);
		ep->users--;
	} while (c->done && !ep->aborted);
	c->running = false;
	over = c->over;
	if (over && c->abandoned) {
		core_unlock(ep);
		c->release(c);
		core_lock(ep);
	} else if (over && ep->any_waiters > 0) {
		waiter_signal_any(ep);
	}
}

static void continuation_run_queue(struct ibvx *ep, struct due_queue *q)
{
	while (q->first && !ep->aborted) {
		struct ibvx_continuation *c = q->first;

		q->first = c->next_due;
		c->due = false;
		continuation_run(ep, c);
	}
}

void continuation_run_background(struct ibvx *ep)
{
	continuation_run_queue(ep, &ep->due);
}

void continuation_run_all(struct ibvx *ep)
{
	while ((ep->due.first || ep->due_callers.first) && !ep->aborted) {
		continuation_run_queue(ep, &ep->due);
		continuation_run_queue(ep, &ep->due_callers);
	}
}
