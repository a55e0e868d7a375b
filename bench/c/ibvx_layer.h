/* SPDX-License-Identifier: MIT */
#ifndef BENCH_IBVX_LAYER_H
#define BENCH_IBVX_LAYER_H
/*
 * ibvx_layer: the operations of ops.h on ibvx.h.
 *
 * The library has no collective operations; barrier (dissemination), allreduce (recursive doubling, for a power of two
 * of ranks) and alltoall (everything at once) are written here on its messages, as an MPI on top of it would.
 */
#include "harness.h"
#include "ibvx.h"

struct ibvx_layer {
	struct layer layer;
	struct ibvx *ep;
	ibvx_req *extra; /* what stands in the queues of posted and unexpected */
};

/* Fills in the operations for this job; ep, rank and size are set. */
void ibvx_layer_init(struct ibvx_layer *self);

#endif
