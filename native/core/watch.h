/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_WATCH_H
#define IBVX_CORE_WATCH_H
/* watch: what ibvx_watched() returns (ibvx_watch.h).  The caller holds the core's lock. */
#include "core/core.h"

/* r, which is watched, is complete: instead of a place in the list for peek. */
void watch_complete(struct ibvx *ep, struct request *r);

#endif
