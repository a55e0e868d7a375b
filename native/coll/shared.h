/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_SHARED_H
#define IBVX_COLL_SHARED_H
/*
 * shared: blocking collective operations with short contributions, through the communicator's area (area.h).  Every member
 * copies what it contributes to its slot, publishes it, and reads the slots that it needs.
 */
#include "coll/engine.h"
#include "coll/op.h"

/* Is it short enough, and no algorithm was set?  The same on all members.  The arguments have been checked. */
bool shared_fits(const struct ibvx_comm *comm, const struct ibvx_coll *a, const struct coll_op *op);

/* Executes it; area_ready() was 1.  0, or a negative errno with text. */
int shared_run(struct ibvx_comm *comm, const struct ibvx_coll *a, const struct coll_op *op);

#endif
