/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_PROGRESS_H
#define IBVX_CORE_PROGRESS_H
/*
 * progress: delivers what has arrived and sends what is queued.  The caller holds the core's lock.
 */
#include "core/core.h"

/* Both of the below; nothing once the endpoint is aborted.  Returns how many events there were. */
int progress_run(struct ibvx *ep);
/* Delivers up to `budget` packets of each peer. */
int progress_poll(struct ibvx *ep, int budget);
/* Sends what the busy peers have queued, and fails those with an error. */
int progress_flush(struct ibvx *ep);

/* Spins for a moment without the lock (the caller does not hold it) until something may be there. */
void progress_spin(struct ibvx *ep, struct waiter *w);
/* The same for a caller that holds the lock.  False, and the lock was kept: spinning is not set. */
bool progress_spin_once(struct ibvx *ep);

#endif
