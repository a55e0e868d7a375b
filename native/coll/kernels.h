/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_KERNELS_H
#define IBVX_COLL_KERNELS_H
/*
 * kernels: the loops of the reductions.  kernels.c is compiled once for each instruction set; op.c chooses a table when
 * it is first used.
 */
#include <stddef.h>

#include "ibvx_coll.h"

/* inout[i] = in[i] op inout[i]; of pairs: count pairs.  The two do not overlap. */
typedef void coll_kernel(const void *restrict in, void *restrict inout, size_t count);
typedef coll_kernel *const coll_kernel_table[IBVX_USER][IBVX_TYPE_COUNT]; /* NULL: there is no such operation */

extern const coll_kernel_table coll_kernels_base;
#ifdef __x86_64__
extern const coll_kernel_table coll_kernels_avx2, coll_kernels_avx512;
#endif

#endif
