/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_API_H
#define IBVX_CORE_API_H
/*
 * api: what the files behind ibvx.h share.  The caller holds the core's lock.
 */
#include "core/core.h"

/* -ESHUTDOWN with its text once the endpoint is closing. */
int api_check_open(const struct ibvx *ep);

/* Waits for a request that no other thread waits for, and consumes it. */
int api_wait_request(struct ibvx *ep, struct request *r, struct ibvx_status *status);

#endif
