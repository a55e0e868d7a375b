/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_POOL_H
#define IBVX_BASE_POOL_H
/*
 * pool: malloc() for memory that holds a message for a short time: unexpected messages, bounce buffers, private copies.
 * Blocks of 8 KB to 4 MB are kept when they are given back, up to 16 MB together, because malloc() returns them to the
 * kernel too soon: touching fresh pages costs more than the copy of a message does.
 *
 * Every block is one of malloc(), so free() may end it too.  Any thread, any time.
 */
#include <stddef.h>

/* NULL: no memory. */
void *pool_get(size_t bytes);
/* NULL is allowed. */
void pool_put(void *block);
/* Frees what is kept. */
void pool_drain(void);

#endif
