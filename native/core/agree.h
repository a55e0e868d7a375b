/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_AGREE_H
#define IBVX_CORE_AGREE_H
/*
 * agree: both ends of a pair use the same transport (PROTOCOL.md section 8).
 *
 * A transport may reach a peer that does not reach it by the same one, and two ranks may list their transports in
 * another order.  So each rank reports which of its transports reach which rank, and of those that work in both
 * directions the first in the order of the lower rank carries the pair.  The caller holds the core's lock.
 */
#include "core/core.h"

/* What core_reach() writes at most. */
size_t agree_reach_max(int size);

/* The order of the transports in a peer's address: its i-th is called name. */
void agree_note_order(struct peer *p, int i, const char *name);

/* The transport for p, or NULL with text. */
struct transport *agree_choose(struct peer *p);

#endif
