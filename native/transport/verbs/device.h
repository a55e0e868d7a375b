/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_DEVICE_H
#define IBVX_TRANSPORT_VERBS_DEVICE_H
/*
 * device: what exists once for an adapter.
 *
 * Completion queues: each connection belongs to one; a further one, twice as large, is made when no queue has room, since not every
 * adapter can resize one.  Receive buffers: one pool, in the shared receive queue; connections are promised a part of
 * it as credit (post.h).  Send buffers: one pool for all connections.  Both pools grow with traffic, up to verbs_buffer_bytes together with
 * what connections have of their own.
 */
#include "transport/verbs/buffers.h"
#include "transport/verbs/state.h"

#define DEVICE_STASH 16
#define DEVICE_QPN_BUCKETS 1024u

/* Completions that ready() took without the lock wait in the stash for poll(); `busy` guards it and the order of the queue. */
struct verbs_cq {
	struct verbs_cq *_Atomic next;
	struct ibv_cq *cq;
	int room, used; /* entries; those that connections may need */
	atomic_flag busy;
	int stash_at, stash_count;
	struct ibv_wc stash[DEVICE_STASH];
};

struct verbs_device {
	struct verbs *verbs;
	struct verbs_device *_Atomic next;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct verbs_cq *_Atomic cqs;
	int cq_entries_max;
	struct ibv_srq *srq; /* NULL: receives are posted for each connection */
	struct buffers send, receive;
	uint32_t promised; /* receives that peers have credit for */
	bool scarce;       /* a connection asked for more than there is */
	bool iwarp, armed, broken;
	uint64_t ports_down; /* device_port_bit() of those that are down */
	int port_fd;         /* timer: how long they may be */
	bool inline_known;
	uint32_t max_inline;
	uint16_t reads_out, reads_in; /* RDMA reads at a time for a queue pair: as requester, as responder */
	size_t max_rma;               /* bytes of one RDMA read or write */
	struct regcache regs;
	void (*on_event)(struct verbs_device *d, const struct ibv_async_event *e); /* but those of ports */
	void (*on_port_timer)(struct verbs_device *d);                             /* one has been down for too long */
	struct verbs_conn *by_qpn[DEVICE_QPN_BUCKETS];
};

/* The opened device behind this context; opens it.  Monitor thread; releases the lock.  NULL with text. */
struct verbs_device *device_get(struct verbs *v, struct ibv_context *context,
				void (*on_event)(struct verbs_device *d, const struct ibv_async_event *e),
				void (*on_port_timer)(struct verbs_device *d));
/* work.single. */
void device_close(struct verbs_device *d);
/* A completion queue with room for so many entries; taken until device_give_cq().  Monitor thread; releases the lock.  NULL with text. */
struct verbs_cq *device_take_cq(struct verbs_device *d, uint32_t entries);
void device_give_cq(struct verbs_cq *q, uint32_t entries);
/* Promises `count` receives out of the shared pool, fewer if it has fewer (at least `least`).  Monitor thread; releases the lock.  The
 * number promised, or -errno with text. */
int device_promise_first(struct verbs_device *d, uint32_t count, uint32_t least);
/* Promises up to `count` more, of what is posted and not reserved for connections to come; more is asked for if that is too little. */
uint32_t device_promise(struct verbs_device *d, uint32_t count);
/* Adds the buffers that were asked for.  Monitor thread; releases the lock.  False: none were. */
bool device_work(struct verbs_device *d);
/* Puts piece `number` of the pool back into the shared receive queue. 0 or -errno with text. */
int device_post_receive(struct verbs_device *d, uint32_t number);
/* Asks for an event with the next completion. */
void device_arm(struct verbs_device *d);
/* A registration of `bytes` failed for lack of lockable memory: logs it once. */
void device_warn_memory(struct verbs *v, size_t bytes);
/* Lines for describe(). */
size_t device_describe(const struct verbs_provider *api, char *out, size_t size);

/* Names a work request: kind, connection (with a shared receive queue 0), and what it is about. */
enum verbs_work_kind { VERBS_WORK_RECV, VERBS_WORK_SEND, VERBS_WORK_RMA };
static inline uint64_t verbs_work_id(enum verbs_work_kind kind, uint32_t conn, uint32_t value)
{
	return (uint64_t)kind << 60 | (uint64_t)(conn & 0xfffffff) << 32 | value;
}

/* Ports are numbered from 1; no adapter is known with more than 64. */
static inline uint64_t device_port_bit(unsigned port)
{
	return (uint64_t)1 << ((port - 1) & 63);
}

#endif
