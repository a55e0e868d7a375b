/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_GATHER_H
#define IBVX_BOOTSTRAP_GATHER_H
/*
 * gather: the payloads of an allgather, open to tests and fuzzers.
 *
 *   GATHER    number left_ms ranks | rank len data | rank len data ...     ranks without data have no record
 *   GATHERED  number common | size lengths, if common is GATHER_DIFFERENT | the data of all in rank order
 */
#include <stddef.h>
#include <stdint.h>

#define GATHER_DIFFERENT UINT32_MAX

/* Takes the payload of GATHERED apart.  0; -EPROTO; -ENOBUFS: out is too small (lengths are set). */
int gather_unpack(const void *in, size_t len, int size, uint32_t number, void *out, size_t out_size, uint32_t *lengths);

/* Checks the records of a GATHER: 0 or -EPROTO. */
int gather_check(const uint8_t *in, size_t len, int size);

#endif
