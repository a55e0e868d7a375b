/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_ORDER_H
#define IBVX_TRANSPORT_ORDER_H
/*
 * order: packets of one peer that arrive in any order are handed on in the order of their numbers.
 *
 * The sender numbers its packets from 1 on, modulo 2^32.  A packet that comes early is copied and waits for those before
 * it.  The caller holds the core's lock.
 */
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* Bytes of early packets that are kept for a peer at most. */
#define ORDER_HELD_MAX (64u << 20)

struct order_held;
struct order {
	uint32_t last;           /* the number of the last packet handed on */
	struct order_held *held; /* early ones, by number */
	size_t held_bytes;
	uint64_t early_count;
};

/* deliver(arg, hdr, payload) is called for the packet, if its turn has come, and for those that waited for it. 0; -EPROTO: a number that
 * was there before; -ENOMEM; -ENOBUFS: too much is held back.  All with text. */
int order_arrived(struct order *o, uint32_t number, const struct wire_hdr *hdr, const void *payload,
		  void (*deliver)(void *arg, const struct wire_hdr *hdr, const void *payload), void *arg);
void order_free(struct order *o);

#endif
