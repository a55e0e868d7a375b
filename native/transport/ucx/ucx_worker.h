/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_WORKER_H
#define IBVX_TRANSPORT_UCX_UCX_WORKER_H
/*
 * ucx_worker: the library's objects of this endpoint: context, worker, address, descriptor.  No other thread is inside.
 */
#include "transport/ucx/state.h"

/* 0 or -errno with text; ucx_worker_close() in any case. */
int ucx_worker_open(struct ucx *u);
/* Callbacks may still come. */
void ucx_worker_close(struct ucx *u);

#endif
