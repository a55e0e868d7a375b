/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_STATE_H
#define IBVX_TRANSPORT_VERBS_STATE_H
/*
 * state: the transport's own structure, for the files of this folder.  Layers, each of which includes those above it here:
 *
 *   provider, status   the libraries; their codes in words
 *   work               slow calls, outside the core's lock
 *   regcache, buffers  registrations of user memory; registered memory of our own
 *   device             what exists once for an adapter: queues, buffers, events
 *   connection         a peer and its connection: states, queue pair, end
 *   route, gid         our addresses with a device behind them, and which of a peer's we can reach
 *   post               packets that go out, credit
 *   handshake          how a connection comes about, whatever carries the request
 *   retry              connecting again, after a while
 *   cm; wireup, qp     the connection methods: RDMA CM; TCP (wireup_socket), and a queue pair connected by hand
 *   memory, rkey, rma  memory of a message; what a peer may reach of it; RDMA reads and writes
 *   complete           completions
 *   verbs, report      the functions of the seam
 *
 * Everything is guarded by the core's lock, but verbs.chores and the stash of a completion queue.
 */
#include <stdatomic.h>

#include "transport/transport.h"
#include "transport/verbs/provider.h"
#include "transport/verbs/regcache.h"
#include "transport/work.h"

#define VERBS_ADDRESSES_MAX 16u
#define VERBS_CONTEXTS_MAX 16
#define VERBS_RKEY_BUCKETS 256u
/* RDMA writes that a connection has under way at a time. */
#define VERBS_WRITES_MAX 8u

struct verbs_device;
struct verbs_peer;
struct verbs_conn;
struct verbs_op;
struct verbs_rkey;
struct wireup_listener;

/* Which side transfers long messages, as the setting has it. */
enum verbs_rendezvous { VERBS_RENDEZVOUS_AUTO, VERBS_RENDEZVOUS_READ, VERBS_RENDEZVOUS_WRITE };

/* How an address is connected to; both sides use the same method. */
enum verbs_method { VERBS_CM, VERBS_CM_IWARP, VERBS_TCP_ROCE, VERBS_TCP_IB };

/* An address of this node behind which an RDMA device stands. */
struct verbs_local {
	struct sockaddr_storage addr;
	struct rdma_cm_id *listener; /* RDMA CM */
	char device[64];
	struct ibv_context *context;
	uint8_t port;
	uint8_t gid_index; /* TCP wire-up */
	uint16_t pkey_index;
	enum verbs_method method;
};

/* What a connection method does for connection.c and handshake.c.  All on the monitor thread, or while the transport closes. */
struct verbs_connector {
	/* Starts to connect to a peer in state RESOLVING. 0 or -errno with text. */
	int (*start)(struct verbs_peer *p);
	/* Notifies the other side that the connection has ended.  Lock released. */
	void (*disconnect)(struct verbs_conn *c);
	/* Frees what the method holds, and the queue pair before it.  Lock released. */
	void (*close)(struct verbs_conn *c);
};

struct verbs {
	struct transport base;
	struct transport_env env;
	const struct verbs_provider *api;
	struct work work;
	char *unusable; /* why there is nothing here; NULL: usable */
	bool leaving;
	uint8_t job[16];
	uint32_t slot_bytes;   /* of a packet buffer */
	uint32_t slots;        /* packets that one side of a connection has under way at most */
	uint32_t first_credit; /* quota of a new connection */
	uint64_t buffer_bytes; /* registered for packets on one device, at most */
	size_t register_max;   /* bytes of messages registered at a time; 0: no limit */
	bool warned_memory, warned_pkey;
	size_t get_min;
	enum verbs_rendezvous rendezvous;
	struct regcache_ranges ranges; /* user memory that stays mapped */

	const struct verbs_connector *connector;
	struct rdma_event_channel *events; /* RDMA CM */
	struct wireup_listener *listener;  /* TCP wire-up, and the devices that it uses */
	struct ibv_context *contexts[VERBS_CONTEXTS_MAX];
	int context_count;
	struct verbs_local locals[VERBS_ADDRESSES_MAX];
	int local_count;
	int timer_fd; /* a HELLO is to be repeated */
	int retry_fd; /* connecting is to be repeated, at retry_ns; 0: not */
	int64_t retry_ns;

	struct verbs_device *_Atomic devices;
	struct verbs_peer *peers;     /* [size]; NULL before attach */
	struct verbs_peer *requested; /* to be connected */
	struct verbs_conn **conns;    /* by number; NULL: freed */
	uint32_t conn_count, conn_room;
	uint32_t conn_promised;                 /* connections whose other side has its first quota */
	void (*on_freed)(struct verbs_conn *c); /* rma.c */
	struct verbs_conn *condemned;           /* to be ended */
	bool ending;                            /* one of them is just being ended */

	struct verbs_op **ops;
	uint32_t op_room, op_next;
	struct verbs_rkey *rkeys[VERBS_RKEY_BUCKETS]; /* by cookie */
	struct verbs_op *op_events;                   /* to be looked at by poll() */
	struct verbs_rkey *rkey_events;
	_Atomic int chores; /* for poll(): peers in ENDING, and the events above */
};

#endif
