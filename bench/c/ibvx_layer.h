/* SPDX-License-Identifier: MIT */
#ifndef BENCH_IBVX_LAYER_H
#define BENCH_IBVX_LAYER_H
/*
 * ibvx_layer: the operations of ops.h on ibvx.h and ibvx_coll.h.
 */
#include "harness.h"
#include "ibvx_coll.h"

struct ibvx_layer {
	struct layer layer;
	struct ibvx *ep;
	struct ibvx_comm *world;
	ibvx_req *extra; /* what stands in the queues of posted and unexpected */
};

/* Fills in the operations for this job and makes `world`; ep, rank and size are set.  0, or 1 with a text on stderr. */
int ibvx_layer_init(struct ibvx_layer *self);

#endif
