/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_RMA_H
#define IBVX_TRANSPORT_VERBS_RMA_H
/*
 * rma: RDMA reads and writes of a peer's memory.  An operation waits until regcache_work() has registered the local memory.
 *
 * cancel(), of operations and of remote keys, ends with on_cancelled once no adapter reaches the memory through them: deregistered, or their connection freed.
 */
#include "transport/verbs/post.h"

/* The seam's functions (transport.h). */
int verbs_get(struct transport *t, int peer, const struct transport_rma *get);
int verbs_put(struct transport *t, int peer, const struct transport_rma *put, const struct wire_hdr *behind);
int verbs_cancel(struct transport *t, int peer, uint64_t cookie);

/* A work request of operation `index` has completed. */
void rma_on_completion(struct verbs_conn *c, uint32_t index, bool ok);
/* Posts what can be posted: work requests have come back, or credit. Upcalls. */
void rma_progress(struct verbs_conn *c);
/* Upcalls for what has been registered, deregistered or refused meanwhile, also of remote keys; how many. */
int rma_poll(struct verbs *v);
/* verbs.on_freed */
void rma_on_freed(struct verbs_conn *c);
/* Frees all operations and remote keys. */
void rma_close(struct verbs *v);

#endif
