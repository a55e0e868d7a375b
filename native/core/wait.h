/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_WAIT_H
#define IBVX_CORE_WAIT_H
/*
 * wait: how a thread waits (PROTOCOL.md section 7).  One waiter owns progress: it polls, spins,
 * yields, then sleeps on the doorbell.  The others sleep on their own signal.  A waiter that leaves
 * hands ownership on.  While nobody waits the progress thread polls where that is needed (background.h).
 */
#include "core/core.h"

/* Blocks until done(arg) is true; timeout_ns < 0: for ever. Lock held on entry and exit, released
 * in between. w is the caller's, with the wants_ fields set. 0, -ETIMEDOUT, or -ESHUTDOWN if the
 * endpoint is aborted. */
int wait_until(struct ibvx *ep, struct waiter *w, bool (*done)(struct ibvx *ep, void *arg), void *arg, int64_t timeout_ns);

/* A test or probe found nothing: when ranks outnumber processors, yields now and then. No lock. */
void wait_idle_test(struct ibvx *ep);

/* Spin and yield times from the settings. */
void wait_open(struct ibvx *ep, int local_ranks);

#endif
