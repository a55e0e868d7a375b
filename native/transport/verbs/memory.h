/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_MEMORY_H
#define IBVX_TRANSPORT_VERBS_MEMORY_H
/* memory: the local memory of one message, registered for RDMA; and how two ranks name it to each other. */
#include "transport/verbs/connection.h"

/* What pack_rkey() writes: where two pieces of memory are, and the key to each. */
struct rma_desc {
	struct {
		uint64_t addr;
		uint32_t rkey, pad;
	} piece[2];
};
static_assert(sizeof(struct rma_desc) <= WIRE_RMA_MAX, "fits an announcement");

/* Up to two pieces of local memory, being registered or registered. */
struct rma_memory {
	struct regcache *regs;
	struct regcache_use use[2];
	int pending; /* registrations, or ends of them, that are awaited */
	int err;
};

/* A registration was refused: -errno. */
void memory_warn(const struct rma_memory *m, struct verbs *v, int err);
/* Registers up to two pieces, as one if they touch.  0; -EINPROGRESS: ready() of the uses follows, m->pending times; -ENOMEM. */
int memory_register(struct rma_memory *m, struct regcache *regs, void *const base[2], const size_t len[2], int access,
		    void (*ready)(struct regcache_use *use, int err), void *owner);
void memory_release(struct rma_memory *m);
/* The adapter is to reach it no more.  True: ready(-ECANCELED) of the uses follows, m->pending times; false: it does not now. */
bool memory_revoke(struct rma_memory *m);

#endif
