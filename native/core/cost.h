/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_COST_H
#define IBVX_CORE_COST_H
/*
 * cost: which method carries a long message, learned from the messages themselves (PROTOCOL.md section 3).
 *
 * Two methods compete for a rendezvous where the transport asks for it (transport_ops.learns_get): the
 * pipeline through the ring, with two copies, and a get with one copy.  Messages up to the protocol
 * switch limit stay eager: a standard send of that size must complete before it is received.
 * Which is faster depends on the processors' distance, the caches and the pages, and changes within
 * seconds.  So for each peer and size class the receiver measures what real messages took, from the
 * sender's start to the last byte (the ranks of a node share a clock), and reports the faster method by
 * a HINT.  The sender follows the hint and explores the other method now and then (base/choice.h).
 *
 * The caller holds the core's lock.
 */
#include "core/core.h"

/* Sender: the method for r, which has not been announced.  Counts r as sent; sets r->timed
 * if the receiver is to measure it. */
enum cost_method cost_choose(struct request *r);

/* Receiver: a timed message (WIRE_TIMED) that started at this time of the sender's clock has been
 * matched by r, a posted receive. */
void cost_begin(struct request *r, uint32_t start_ns);
/* Receiver: the last byte of a long message has arrived, by this method. */
void cost_end(struct request *r, enum cost_method method);
/* Receiver: r ends otherwise. */
void cost_forget(struct request *r);

/* Sender: a HINT has arrived. False: nonsense. */
bool cost_on_hint(struct peer *p, uint32_t size_class, uint32_t method, uint64_t interval);

/* The sender's clock, as WIRE_TIMED carries it. */
uint32_t cost_clock(void);

/* Adds what has been learned about the peer to the counters. */
void cost_counters(const struct peer *p, void (*add)(void *arg, const char *name, uint64_t value), void *arg);

#endif
