/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_CONNECTION_H
#define IBVX_TRANSPORT_VERBS_CONNECTION_H
/*
 * connection: a peer, and the connection to it.
 *
 *   IDLE --reserve()--> RESOLVING --request sent--> CONNECTING --accepted--> UP
 *   IDLE, AWAITING --their request--> ACCEPTING --established, first packet here--> UP
 *   RESOLVING, CONNECTING --their request, and they are the higher rank--> ACCEPTING
 *   CONNECTING --the other side dropped the request before it was answered, was busy or silent--> RESOLVING
 *   CONNECTING --refused: requests crossed, and we are the lower rank--> AWAITING
 *   ACCEPTING --the request was given up by its sender, which may repeat it--> IDLE
 *   any but DOWN --error, disconnected--> ENDING --completions delivered, core notified--> DOWN
 *   any --forget()--> DOWN
 *
 * Any thread with the lock changes states.  Connections are made and freed, and adapters called for them, by the monitor thread alone,
 * with the lock released (work.h): the end of a peer condemns its connection, and connection_work() carries that out.
 */
#include "transport/verbs/device.h"

enum peer_state {
	PEER_IDLE,
	PEER_RESOLVING,
	PEER_CONNECTING,
	PEER_AWAITING,
	PEER_ACCEPTING,
	PEER_UP,
	PEER_ENDING,
	PEER_DOWN,
	PEER_STATE_COUNT
};

/* RDMA reads bring memory in, RDMA writes send it out. */
enum rma_direction { RMA_READ, RMA_WRITE, RMA_DIRECTIONS };

/* Operations of one direction on one connection. */
struct rma_queue {
	struct verbs_op *head, **tail; /* those with something left to post */
	uint32_t under_way, max;       /* work requests */
};

/* What the two ends exchange in RDMA CM's private data, or by TCP; also in a refusal. */
#define PRIVATE_DATA_MAGIC 0x32584249u
enum refusal { REFUSAL_NONE, REFUSAL_CROSSED, REFUSAL_STRANGER, REFUSAL_GONE };
struct private_data {
	uint32_t magic;
	uint32_t rank;
	uint8_t job[16];
	uint16_t credit;     /* credit that the other side has at first */
	uint16_t credit_max; /* and at most, later */
	uint16_t reads;      /* RDMA reads of the other side that are answered at a time */
	uint16_t refusal;
};
static_assert(sizeof(struct private_data) == 32, "fits the 56 bytes of a connection request");

/* What a queue pair that is connected by hand must know of the other. */
struct qp_address {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;      /* enum ibv_mtu */
	uint8_t ethernet; /* RoCE */
	uint8_t gid[16];
};
static_assert(sizeof(struct qp_address) == 28, "no padding on the wire");

/* How often an adapter repeats a packet; a few more cover a peer whose receives lag.  Not 7: for receives that means for
 * ever, and soft-RoCE takes it so for repetitions too (Linux 6.1, rxe_comp.c). */
#define CONNECTION_RETRIES 6
#define CONNECTION_RNR_RETRIES 6

struct wireup;

/* One attempt to connect, and what became of it. */
struct verbs_conn {
	struct verbs *verbs;
	struct verbs_peer *peer;
	struct verbs_device *device; /* NULL: not built yet */
	struct verbs_cq *cq;
	struct verbs_conn *next_qpn, *next_condemned;
	struct rdma_cm_id *id; /* RDMA CM */
	struct wireup *wireup; /* TCP */
	struct qp_address here;
	struct ibv_qp *qp;
	uint32_t number; /* in verbs.conns, and in work request ids */
	bool active;
	bool established;    /* the connection method reports it */
	bool hello_received; /* the other side's first packet came */
	uint32_t hellos;     /* HELLOs sent while nothing came back */
	bool left;           /* the peer reported that it leaves */
	bool condemned;      /* in verbs.condemned */
	bool dead;           /* the queue pair was put into its error state */

	struct slab headers;                 /* one header for each packet under way: all of a packet without payload */
	uint32_t *piece;                     /* of the send pool, for each packet under way, or BUFFERS_NONE */
	uint32_t spare;                      /* a piece that reserve() took and commit() did not use, or BUFFERS_NONE */
	uint32_t tx_count, tx_head, tx_done; /* packets under way at most, posted, known to be done */
	uint32_t unsignalled;
	uint32_t max_inline;
	uint32_t credit, credit_first, credit_max; /* packets that the other side takes: now; at first; at most */

	struct slab rx;      /* without a shared receive queue */
	uint32_t quota;      /* receives that the other side has credit for, or gets it back */
	uint32_t unreturned; /* of these: not returned yet */
	uint32_t cq_entries;

	struct rma_queue queue[RMA_DIRECTIONS];
	bool behind_waits; /* the packet behind a put goes before those of the core */
};

struct verbs_peer {
	struct verbs *verbs;
	int rank;
	enum peer_state state;
	struct verbs_conn *conn;
	struct verbs_peer *next_requested;
	bool requested;      /* in verbs.requested */
	bool unanswered;     /* a request of ours was not answered and may still be read there */
	unsigned retries[2]; /* by reason (retry.h) */
	int64_t retry_ns;    /* RESOLVING without a connection: when it is requested again; 0: at once */
	int local;           /* index into verbs.locals; -1: not reachable */
	struct sockaddr_storage remote;
	uint32_t slot_bytes; /* the smaller of ours and theirs */
	int end_code;        /* ENDING */
	int64_t end_ns;      /* since when; 0: its connection has not ended yet */
	char *end_text;
	uint64_t packets_out, packets_in, inlined, full_count, credit_packets;
	uint64_t ops[RMA_DIRECTIONS], op_bytes[RMA_DIRECTIONS];
};

/* A legal change of state, else logged and refused. */
bool peer_set_state(struct verbs_peer *p, enum peer_state to);
/* The peer ends: what has arrived is still delivered, then poll() reports it. The first reason counts. */
void peer_end(struct verbs_peer *p, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The core has given the peer up: nothing is delivered or reported any more, its adapter will be cut off. */
void peer_forget(struct verbs_peer *p);
/* Given up, and its connection not freed yet: that cuts its adapter off. */
static inline bool peer_ends_connection(const struct verbs_peer *p)
{
	return p->conn && p->state == PEER_DOWN;
}
/* Has the connection method start to connect to this peer, in RESOLVING: for the first time, or again. */
void peer_request(struct verbs_peer *p);

/* Everything below runs on the monitor thread. */

/* A connection for p, not built yet. NULL with text. */
struct verbs_conn *connection_open(struct verbs_peer *p, bool active);
/* Device, buffers, queue pair, receives: everything before the request or the answer.  Releases the lock; the peer's state may
 * have changed meanwhile.  make_qp creates the queue pair, lock released (NULL: errno). 0 or -errno with text. */
int connection_build(struct verbs_conn *c, struct ibv_context *context,
		     struct ibv_qp *(*make_qp)(struct verbs_conn *c, struct ibv_qp_init_attr *attr));
/* Is this still the connection of its peer, in this state? */
bool connection_in(const struct verbs_conn *c, enum peer_state state);
/* The first credit from the other side; false: too little. */
bool connection_take_credit(struct verbs_conn *c, const struct private_data *d);
/* The adapter's code for the time after which a packet is sent again. */
uint8_t connection_timeout_exponent(const struct verbs *v);
/* Frees everything of it, then calls verbs.on_freed: the adapter reaches no memory through it any more.  Completions that still come
 * are ignored.  Releases the lock. */
void connection_close(struct verbs_conn *c);
/* Ends one connection that was condemned: into the error state, or freed if its peer was forgotten.  Releases the lock.  False: none was. */
bool connection_work(struct verbs *v);
/* By number, by queue pair; NULL: freed. */
struct verbs_conn *connection_at(const struct verbs *v, uint32_t number);
struct verbs_conn *connection_of_qpn(const struct verbs_device *d, uint32_t qpn);
/* Puts receive buffer `index` of the connection, or piece of the pool, into its queue. 0 or -errno with text. */
int connection_post_receive(struct verbs_conn *c, uint32_t index);

#endif
