/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_WORKER_H
#define IBVX_TRANSPORT_UCX_UCX_WORKER_H
/*
 * ucx_worker: the library's objects of this endpoint: context, worker, address, descriptor.  No other thread is inside.
 */
#include "transport/ucx/ucx_state.h"

typedef ucx_status ucx_worker_receive_fn(void *ucx, const void *header, size_t header_bytes, void *data, size_t bytes,
					 const struct ucx_am_recv_param *param);
/* 0 or -errno with text; ucx_worker_close() in any case. */
int ucx_worker_open(struct ucx *u, ucx_worker_receive_fn *receive);
/* Callbacks may still come. */
void ucx_worker_close(struct ucx *u);

#endif
