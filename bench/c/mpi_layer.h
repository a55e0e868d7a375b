/* SPDX-License-Identifier: MIT */
#ifndef BENCH_MPI_LAYER_H
#define BENCH_MPI_LAYER_H
/*
 * mpi_layer: the operations of ops.h on MPI.  MPI ends the job on an error, so they always return 0.
 */
#include "harness.h"

/* Fills in the operations; MPI is initialised. */
void mpi_layer_init(struct layer *layer);

#endif
