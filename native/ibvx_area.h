/* SPDX-License-Identifier: MIT */
#ifndef IBVX_AREA_H
#define IBVX_AREA_H
/*
 * ibvx_area: memory that the ranks of a node share, for native/coll.  Not exported.
 *
 * Every rank owns IBVX_AREAS areas.  What they hold, and which are in use, is the layer's business.
 */
#include <stdbool.h>
#include <stddef.h>

#include "ibvx.h"

#define IBVX_AREAS 16
#define IBVX_AREA_BYTES ((size_t)2 << 20)

/* Does this rank run on our node?  The same answer on both. */
bool ibvx_same_node(const struct ibvx *ep, int rank);

/* An area of this rank that was not reserved before, for as long as the endpoint exists; -1: there is none left. */
int ibvx_area_reserve(struct ibvx *ep);

/* Maps the first `bytes` bytes of area `index` of a rank.  The owner maps it first, and the memory is zero then.  It stays until
 * ibvx_area_unmap(), also after the endpoint was closed.  -ENOTSUP: no transport of this endpoint shares memory with that
 * rank; or another negative errno; both with text. */
int ibvx_area_map(struct ibvx *ep, int owner, unsigned index, size_t bytes, void **memory);
void ibvx_area_unmap(void *memory, size_t bytes);

/* Copies the `bytes` bytes that a layout selects from base on, or those at base if it is NULL: out of there, or there.  0, or
 * -EINVAL with text: the layout is shorter. */
int ibvx_area_pack(const struct ibvx_layout *layout, const void *base, void *to, size_t bytes);
int ibvx_area_unpack(const struct ibvx_layout *layout, void *base, const void *from, size_t bytes);

/* Around an operation: ibvx_abort() waits for it, ibvx_close() refuses meanwhile.  0, or -ESHUTDOWN with text, and no
 * ibvx_area_exit() follows. */
int ibvx_area_enter(struct ibvx *ep);
void ibvx_area_exit(struct ibvx *ep);

/* Waits until look(arg), as long as a blocking call spins and yields before it sleeps; polls the endpoint meanwhile.  False: not
 * in that time, or the endpoint was aborted.  look() is called without locks. */
bool ibvx_area_spin(struct ibvx *ep, bool (*look)(const void *arg), const void *arg);

/* Polls the endpoint once: a thread that finds everything in areas would let the messages of this rank wait. */
void ibvx_area_poll(struct ibvx *ep);

/* Has any rank died?  A look without the lock. */
bool ibvx_any_died(const struct ibvx *ep);

#endif
