/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_SIPHASH_H
#define IBVX_BASE_SIPHASH_H
/*
 * siphash: SipHash-2-4 with a 128-bit result (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012, and its authors' 128-bit variant).
 *
 * A keyed pseudo-random function: without the key nobody can guess the result for a new
 * input.  Any thread; the same bytes give the same result on every machine.
 */
#include <stddef.h>
#include <stdint.h>

void siphash128(const uint8_t key[16], const void *data, size_t len, uint8_t out[16]);

#endif
