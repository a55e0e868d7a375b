/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_NETLIB_H
#define IBVX_TRANSPORT_NETLIB_H
/*
 * netlib: the functions of the seam for a transport over a communication library.
 *
 * The transport has a structure that begins with a struct netlib, a struct netlib_ops, and a struct transport_ops of
 * NETLIB_TRANSPORT_OPS, its name, piece_min, describe and open.
 */
#include "transport/netlib/netlib_state.h"

/* transport_ops.open: `f` is zeroed memory of malloc, with `ops` and `base.ops` set; close() or an error frees it. payload_max: if the
 * job's ranks leave room for that. */
int netlib_open(struct netlib *f, const struct transport_env *env, int64_t timeout_ms, struct transport **out);
/* All packets that peers may have with the library fit into the memory for them.  netlib_ops.open() calls it. */
void netlib_fit_packets(struct netlib *f, size_t payload_max);

int netlib_address(struct transport *t, void *out, size_t size);
int netlib_attach(struct transport *t, const struct transport_peer_info *peers);
void netlib_close(struct transport *t);
void netlib_leave(struct transport *t);
bool netlib_drained(struct transport *t);
bool netlib_awaits(const struct transport *t, int peer);
bool netlib_reaches(const struct transport *t, int peer);
void netlib_use(struct transport *t, int peer);
void netlib_forget(struct transport *t, int peer);
size_t netlib_payload_max(const struct transport *t, int peer);
int netlib_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot);
void netlib_commit(struct transport *t, int peer, struct transport_slot *slot);
void netlib_discard(struct transport *t, int peer, struct transport_slot *slot);
int netlib_poll(struct transport *t, int budget);
bool netlib_ready(const struct transport *t);
bool netlib_prefers_get(const struct transport *t, int peer, size_t bytes);
void netlib_arm(struct transport *t);
void netlib_disarm(struct transport *t);
void netlib_wake(struct transport *t, void *doorbell, void *flag, bool urgent);
void netlib_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg);

#define NETLIB_TRANSPORT_OPS                                                                                                             \
	.costly = true, .address = netlib_address, .attach = netlib_attach, .close = netlib_close, .drained = netlib_drained,            \
	.awaits = netlib_awaits, .leave = netlib_leave, .reaches = netlib_reaches, .use = netlib_use, .payload_max = netlib_payload_max, \
	.reserve = netlib_reserve, .commit = netlib_commit, .discard = netlib_discard, .poll = netlib_poll, .ready = netlib_ready,       \
	.arm = netlib_arm, .disarm = netlib_disarm, .wake = netlib_wake, .prefers_get = netlib_prefers_get, .counters = netlib_counters, \
	.forget = netlib_forget

#endif
