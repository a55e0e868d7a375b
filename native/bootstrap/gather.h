/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_GATHER_H
#define IBVX_BOOTSTRAP_GATHER_H
/*
 * gather: the inside of bootstrap_allgather(), open to tests and fuzzers.
 */
#include <stddef.h>
#include <stdint.h>

/* Takes the payload of GATHERED apart.  0; -EPROTO; -ENOBUFS: out is too small (lengths are set). */
int gather_unpack(const void *in, size_t len, int size, uint32_t number, void *out, size_t out_size,
		  uint32_t *lengths);

#endif
