/* SPDX-License-Identifier: MIT */
/* ibvx_continue.h but for the messages, which start in send_api.c and recv_api.c. */
#include <sched.h>

#include "base/error.h"
#include "core/api.h"
#include "core/background.h"
#include "core/continuation.h"
#include "core/peer.h"
#include "core/progress.h"
#include "core/wait.h"

int api_attach(struct ibvx *ep, struct request *r, struct ibvx_completion *done)
{
	if (r->state != REQ_DONE) {
		background_start(ep, r);
		if (r->state != REQ_DONE) { /* what background_start() has polled may have completed it */
			r->completion = done;
			r->detached = true;
			return 0;
		}
	}
	continuation_fill(done, r, r->error ? (complete_text(ep, r), error_text()) : NULL);
	complete_consume(ep, r, NULL);
	return 1;
}

void ibvx_continuation_start(struct ibvx *ep, struct ibvx_continuation *c)
{
	core_lock(ep);
	continuation_run(ep, c);
	core_unlock(ep);
}

/* The thread that runs c sets `over` without the lock. */
static bool continuation_over(struct ibvx *ep, void *arg)
{
	const struct ibvx_continuation *c = arg;

	(void)ep;
	return !c->running && c->over;
}

int api_check_needs(const struct ibvx *ep, const struct ibvx_continuation *c)
{
	int rc = 0;

	for (int i = 0; ep->failed_rank >= 0 && i < ep->size && rc == 0; i++) {
		const struct peer *p = &ep->peers[i];

		if (p->state == PEER_FAILED && c->needs(c, i))
			rc = peer_text(p);
	}
	return rc;
}

int ibvx_continuation_check(struct ibvx *ep, const struct ibvx_continuation *c)
{
	int rc;

	core_lock(ep);
	rc = ep->fault_job && ep->failed_rank >= 0 ? peer_text(&ep->peers[ep->failed_rank]) : api_check_needs(ep, c);
	core_unlock(ep);
	return rc;
}

/* Lock held. */
static int continuation_wait(struct ibvx *ep, struct ibvx_continuation *c)
{
	struct waiter w = {.wants_any = true};
	int rc = 0;

	if (!continuation_over(ep, c))
		rc = wait_until(ep, &w, continuation_over, c, -1);
	while (rc && c->running) { /* by another thread, which has not seen the abort yet */
		core_unlock(ep);
		sched_yield();
		core_lock(ep);
	}
	return rc;
}

int ibvx_continuation_wait(struct ibvx *ep, struct ibvx_continuation *c)
{
	int rc;

	core_lock(ep);
	rc = continuation_wait(ep, c);
	core_unlock(ep);
	return rc;
}

int ibvx_continuation_run(struct ibvx *ep, struct ibvx_continuation *c)
{
	int rc;

	core_lock(ep);
	continuation_run(ep, c);
	rc = continuation_wait(ep, c);
	core_unlock(ep);
	return rc;
}

int ibvx_continuation_test(struct ibvx *ep, struct ibvx_continuation *c)
{
	bool over;

	core_lock(ep);
	if (!continuation_over(ep, c)) {
		ep->runners++;
		progress_run(ep);
		ep->runners--;
		continuation_run_due(ep);
	}
	over = continuation_over(ep, c);
	core_unlock(ep);
	if (!over)
		wait_idle_test(ep);
	return over;
}

bool ibvx_continuation_abandon(struct ibvx *ep, struct ibvx_continuation *c)
{
	bool over;

	core_lock(ep);
	over = !c->running && c->over;
	c->abandoned = true;
	core_unlock(ep);
	return over;
}

int ibvx_shared_processors(const struct ibvx *ep, int rank)
{
	return ep->oversubscribed && ep->peers[rank].same_node ? ep->processor_count : 0;
}

const struct settings *ibvx_settings(const struct ibvx *ep)
{
	return ep->settings;
}
