/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_RKEY_H
#define IBVX_TRANSPORT_VERBS_RKEY_H
/*
 * rkey: memory that a peer may read or write.  A remote key is in preparation until regcache_work() has registered the memory.
 */
#include "transport/verbs/connection.h"

/* The seam's functions (transport.h). */
int verbs_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2], const size_t len[2],
		    void *desc);
void verbs_release_rkey(struct transport *t, int peer, uint64_t cookie);
bool verbs_prefers_get(const struct transport *t, int peer, size_t bytes);
bool verbs_prefers_put(const struct transport *t, int peer, size_t bytes);

/* A request ends early.  True: on_cancelled follows when no adapter reaches its memory through the key. */
bool rkey_cancel(struct verbs *v, int peer, uint64_t cookie);
/* Upcalls for what has been deregistered meanwhile; how many events there were. */
int rkey_events_poll(struct verbs *v);
/* The peer's connection has been freed. */
void rkey_on_freed(const struct verbs_peer *p);
/* Frees all remote keys. */
void rkey_close(struct verbs *v);

#endif
