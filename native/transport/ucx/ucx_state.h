/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_STATE_H
#define IBVX_TRANSPORT_UCX_STATE_H
/*
 * ucx_state: what the transport adds to a struct netlib.  Statuses of UCX are those of netlib_ops.
 */
#include "transport/netlib/netlib_state.h"
#include "transport/ucx/ucx_abi.h"

#define UCX_PAYLOAD_MAX 64000u /* with its headers one segment of 64 KB */
#define UCX_AM_ID 0u

struct ucx {
	struct netlib netlib;
	const struct ucx_library *api;
	struct ucx_library library;
	struct ucx_context *context;
	struct ucx_worker *worker;
	int closing_count; /* endpoints that are being ended */
};

static inline struct ucx *ucx_of(struct netlib *f)
{
	return (struct ucx *)f;
}

#endif
