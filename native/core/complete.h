/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_COMPLETE_H
#define IBVX_CORE_COMPLETE_H
/*
 * complete: the one door through which requests end, and what their owner is told.
 * The caller holds the core's lock.
 */
#include "core/core.h"

/* The operation has ended: 0 or a negative errno.  Wakes whoever waits for it. */
void complete_request(struct ibvx *ep, struct request *r, int error);

/* The transport lets go of the request's memory, if it held any for r->peer. */
void complete_unexpose(struct request *r);

/* The request's control packet has gone (or nobody is left to get it): gives the slot back if
 * nobody else needs it. */
void complete_released(struct ibvx *ep, struct request *r);

/* The owner takes the result: fills status (may be NULL), gives the slot back, sets the error text.
 * r must be DONE. Returns the operation's error. */
int complete_consume(struct ibvx *ep, struct request *r, struct ibvx_status *status);

#endif
