/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_CONTINUATION_H
#define IBVX_CORE_CONTINUATION_H
/*
 * continuation: what goes on when messages complete (ibvx_continue.h).  A continuation that has something to do is *due*:
 * it stands in a queue of the endpoint until a thread runs it, in `due_callers` if the progress thread may not.  The caller holds the core's lock.
 *
 *   idle --(a message completes)--> due --(a thread takes it)--> running --(nothing has completed meanwhile)--> idle
 *                                                                running --(over)--> not touched any more
 */
#include "core/core.h"
#include "ibvx_continue.h"

/* The result of r.  text: error_text() of its error, or NULL. */
void continuation_fill(struct ibvx_completion *done, const struct request *r, const char *text);

/* r, a request with a completion, is DONE: fills the completion in and makes its owner due.  text: as above. */
void continuation_complete(struct ibvx *ep, const struct request *r, const char *text);

/* Runs one, or all that are due.  Releases the lock meanwhile. */
void continuation_run(struct ibvx *ep, struct ibvx_continuation *c);
void continuation_run_all(struct ibvx *ep);
/* The progress thread: those that it may run. */
void continuation_run_background(struct ibvx *ep);

static inline void continuation_run_due(struct ibvx *ep)
{
	if (ep->due.first || ep->due_callers.first)
		continuation_run_all(ep);
}

#endif
