/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_STATE_H
#define IBVX_TRANSPORT_VERBS_STATE_H
/*
 * verbs_state: what the files of this folder share.
 *
 *   verbs.c     the seam's functions            address.c   our addresses, and which of a peer's we can reach
 *   connect.c   RDMA CM: who calls whom         link.c      one connection's queue pair, buffers, states
 *   device.c    what is opened once per adapter pool.c      registered memory
 *   post.c      what goes out                   complete.c  what comes in
 *   move.c      gets and puts                   expose.c    memory that peers may read or write
 *   regcache.c  registrations of user memory    status.c    completion statuses in words
 *   exchange.c  TCP instead of RDMA CM          endpoint.c  a queue pair connected by hand
 *   gid.c       devices behind addresses        provider.c  the libraries
 *
 * Everything is guarded by the core's lock, but verbs.chores and the stash of a device.
 */
#include <netinet/in.h>
#include <stdatomic.h>

#include "transport/transport.h"
#include "transport/verbs/provider.h"
#include "transport/verbs/regcache.h"

#define VERBS_STASH 16
#define VERBS_ADDRESSES_MAX 16u
#define VERBS_CONTEXTS_MAX 16
/* How often a caller over iWARP says HELLO again. */
#define VERBS_GREETINGS 8u
#define VERBS_QPN_BUCKETS 256u
#define VERBS_EXPOSED_BUCKETS 256u

struct verbs;
struct verbs_link;
struct verbs_move;
struct verbs_exposed;
struct exchange;
struct exchange_door;

/*
 * A peer, and with it the connection to it.
 *
 *   IDLE --reserve--> RESOLVING --> CALLING --accepted--> UP
 *   IDLE, AWAITED --their call--> ANSWERING --established, first packet seen--> UP
 *   RESOLVING, CALLING --their call, and they are the higher rank--> ANSWERING
 *   CALLING --put out before it was answered, TCP--> RESOLVING
 *   CALLING --refused: both called, and we are the lower rank--> AWAITED
 *   any but DOWN --error, disconnected--> ENDING --completions delivered, core told--> DOWN
 *   any --forget--> DOWN
 */
enum peer_link_state {
	VERBS_IDLE,
	VERBS_RESOLVING,
	VERBS_CALLING,
	VERBS_AWAITED,
	VERBS_ANSWERING,
	VERBS_UP,
	VERBS_ENDING,
	VERBS_DOWN,
	VERBS_STATE_COUNT
};

/* RDMA reads move in, RDMA writes out. */
enum verbs_direction { VERBS_READ, VERBS_WRITE, VERBS_DIRECTIONS };
enum verbs_rendezvous { VERBS_RENDEZVOUS_AUTO, VERBS_RENDEZVOUS_READ, VERBS_RENDEZVOUS_WRITE };
/* RDMA writes that a connection has under way at a time. */
#define VERBS_WRITES_MAX 8u

/* What pack_rkey() writes: where two pieces of memory are, and the key to each. */
struct verbs_desc {
	struct {
		uint64_t addr;
		uint32_t rkey, pad;
	} piece[2];
};
static_assert(sizeof(struct verbs_desc) <= WIRE_RMA_MAX, "fits an announcement");

/* Moves of one direction on one connection. */
struct verbs_queue {
	struct verbs_move *head, **tail; /* those with something left to post */
	uint32_t under_way, max;         /* work requests */
};

/* Registered memory in equal pieces. */
struct verbs_slab {
	char *mem;
	size_t bytes, piece_bytes;
	uint32_t count;
	struct ibv_mr *mr;
};

/* How a connection is made; both sides go the same way. */
enum verbs_way { VERBS_WAY_CM, VERBS_WAY_CM_IWARP, VERBS_WAY_TCP_ROCE, VERBS_WAY_TCP_IB };

/* An address of this node behind which an RDMA device stands. */
struct verbs_local {
	struct sockaddr_storage addr;
	struct rdma_cm_id *listener;
	char device[64];
	struct ibv_context *context;
	uint8_t port;
	uint8_t gid_index;   /* TCP exchange */
	enum verbs_way way;
};

/* What a rank tells the others at the start. */
struct verbs_address_entry {
	uint8_t ip[16];      /* IPv4: the first four bytes */
	uint16_t port;       /* network byte order; RDMA port space, or TCP's */
	uint8_t family;      /* 4 or 6 */
	uint8_t way;         /* enum verbs_way */
};
struct verbs_address_blob {
	uint32_t slot_bytes; /* of a receive buffer */
	uint32_t count;
	struct verbs_address_entry entry[VERBS_ADDRESSES_MAX];
};
static_assert(sizeof(struct verbs_address_entry) == 20, "no padding");
static_assert(sizeof(struct verbs_address_blob) == 8 + 20 * VERBS_ADDRESSES_MAX, "no padding");

/* What the two ends of a connection tell each other in RDMA CM's private data, or by TCP; also in a refusal. */
#define VERBS_HELLO_MAGIC 0x31584249u
enum verbs_refusal { VERBS_WELCOME, VERBS_CROSSED, VERBS_STRANGER, VERBS_GONE };
struct verbs_greeting {
	uint32_t magic;
	uint32_t rank;
	uint8_t job[16];
	uint16_t receives;   /* posted here for you */
	uint16_t reads;      /* of yours that we answer at a time */
	uint32_t refusal;
};
static_assert(sizeof(struct verbs_greeting) == 32, "fits the 56 bytes of a connection request");

/* What a queue pair that is connected by hand must know of the other. */
struct verbs_endpoint {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;         /* enum ibv_mtu */
	uint8_t ethernet;    /* RoCE */
	uint8_t gid[16];
};
static_assert(sizeof(struct verbs_endpoint) == 28, "no padding on the wire");

/* As often an adapter repeats a packet; a few more cover a peer whose receives lag.  Not 7: for receives that means for
 * ever, and soft-RoCE takes it so for repetitions too (Linux 6.1, rxe_comp.c). */
#define VERBS_RETRIES 6
#define VERBS_RNR_RETRIES 6

/* Packets between transports: hdr.kind is WIRE_NONE, hdr.ctl.id one of these. */
enum verbs_own {
	VERBS_OWN_CREDIT,
	VERBS_OWN_HELLO,
	VERBS_OWN_LEAVE,
};

struct verbs_device {
	struct verbs *verbs;
	struct verbs_device *_Atomic next;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct verbs_slab *srq_slabs;
	uint32_t srq_slab_count, srq_slab_room, srq_room;
	uint32_t srq_posted, srq_promised; /* buffers in the SRQ; credits given to peers */
	int cq_room, cq_used;
	bool iwarp, armed, broken;
	uint8_t port_down;           /* the number of a port that is down, or 0 */
	int port_fd;                 /* timer: how long it may be */
	bool inline_known;
	uint32_t max_inline;
	uint16_t reads_out, reads_in;      /* RDMA reads at a time per queue pair: as requester, as responder */
	size_t max_move;                   /* bytes of one RDMA read or write */
	struct regcache regs;
	struct verbs_link *by_qpn[VERBS_QPN_BUCKETS];
	/* completions taken by ready() before poll(); guarded by stash_busy */
	atomic_flag stash_busy;
	int stash_at, stash_count;
	struct ibv_wc stash[VERBS_STASH];
};

/* One attempt to connect, and what became of it. */
struct verbs_link {
	struct verbs *verbs;
	struct verbs_peer *peer;     /* NULL: the attempt was given up */
	struct verbs_device *device;
	struct verbs_link *next_qpn;
	struct rdma_cm_id *id;       /* NULL: connected by TCP exchange */
	struct exchange *exchange;
	struct verbs_endpoint here;
	struct ibv_qp *qp;
	uint32_t number;             /* in verbs.links, and in work request ids */
	bool caller;
	bool established, greeted;   /* RDMA CM says so; the other side's first packet came */
	uint32_t greetings;          /* repeated while nothing came back */
	bool left;                   /* the peer said that it leaves */
	bool dead;                   /* the queue pair was put into its error state */

	struct verbs_slab tx, rx;    /* rx: empty with an SRQ */
	uint32_t rx_count;
	uint32_t entries;            /* of the completion queue, kept for this link */
	uint32_t tx_head, tx_done;   /* packets posted, known to be done */
	uint32_t unsignalled;
	uint32_t credits, credits_max;
	uint32_t owed;               /* receives that were posted again and not told to the peer */
	uint32_t max_inline;

	struct verbs_queue queue[VERBS_DIRECTIONS];
	bool behind_waits;           /* a packet behind a put goes before those of the core */
};

struct verbs_peer {
	struct verbs *verbs;
	int rank;
	enum peer_link_state state;
	struct verbs_link *link;
	int local;                   /* index into verbs.locals; -1: out of reach */
	struct sockaddr_storage remote;
	uint32_t slot_bytes;         /* the smaller of ours and theirs */
	int end_code;                /* ENDING */
	int64_t end_ns;              /* since when */
	char *end_text;
	uint64_t packets_out, packets_in, inlined, full_count, credit_packets;
	uint64_t moves[VERBS_DIRECTIONS], move_bytes[VERBS_DIRECTIONS];
};

enum verbs_work { VERBS_WORK_RECV, VERBS_WORK_SEND, VERBS_WORK_MOVE };

/* Names a work request: kind, link (or with an SRQ nothing), and what it is about. */
static inline uint64_t verbs_work_id(enum verbs_work kind, uint32_t link, uint32_t value)
{
	return (uint64_t)kind << 60 | (uint64_t)(link & 0xfffffff) << 32 | value;
}

struct verbs {
	struct transport base;
	struct transport_env env;
	const struct verbs_provider *api;
	char *unusable;              /* why there is nothing here; NULL: usable */
	bool leaving;
	uint8_t job[16];
	uint32_t slot_bytes, slots;
	bool tcp;                    /* connections by TCP exchange, not by RDMA CM */
	struct rdma_event_channel *events; /* RDMA CM */
	struct exchange_door *door;  /* TCP exchange, and the devices that it uses */
	struct ibv_context *contexts[VERBS_CONTEXTS_MAX];
	int context_count;
	int timer_fd;
	struct verbs_local locals[VERBS_ADDRESSES_MAX];
	int local_count;
	struct verbs_device *_Atomic devices;
	struct verbs_peer *peers;    /* [size]; NULL before attach */
	struct verbs_link **links;
	uint32_t link_count, link_room;
	struct verbs_move **moves;
	uint32_t move_room, move_next;
	struct verbs_exposed *exposed[VERBS_EXPOSED_BUCKETS]; /* by cookie */
	_Atomic int chores;          /* peers in ENDING */
	size_t get_min;
	enum verbs_rendezvous rendezvous;
	size_t register_max;         /* bytes of messages registered at a time; 0: no limit */
	bool warned_memory;
	struct regcache_ranges ranges; /* user memory that stays mapped */
};

/* --- route.c --- */
/* Finds this node's addresses with RDMA devices, as the settings restrict them; with RDMA CM listens on them. */
int route_scan(struct verbs *v);
void route_close(struct verbs *v);
/* Writes the blob of address(). */
int route_write(const struct verbs *v, void *out, size_t size);
/* Chooses local and remote for p from what the peer wrote; false: none fits. */
bool route_choose(const struct verbs *v, struct verbs_peer *p, const void *blob, size_t bytes);
/* TCP exchange: the index of the local that was called by this socket; -1: none of them. */
int route_called(const struct verbs *v, int fd);
/* "10.77.0.1:4711" */
const char *route_text(const struct sockaddr_storage *a, char *out, size_t size);

/* Does verbs_device name it, or nothing? */
bool route_device_wanted(const struct verbs *v, const struct verbs_local *l);

/* --- gid.c --- */
/* Opens the devices that a TCP exchange can connect. 0 or -errno with text. */
int gid_open_devices(struct verbs *v);
void gid_close_devices(struct verbs *v);
/* The device, port and GID entry behind an address of ours; false: none. */
bool gid_local(struct verbs *v, struct verbs_local *l, const struct sockaddr *addr);

/* --- exchange.c --- */
/* Listens. 0 or -errno with text; exchange_close_door() in any case. */
int exchange_open_door(struct verbs *v);
void exchange_close_door(struct verbs *v);
/* Of the door, in network byte order. */
uint16_t exchange_port(const struct verbs *v);
/* Starts to connect. 0 or -errno with text. */
int exchange_start(struct verbs_peer *p);
/* Tells the other side that the connection has ended. */
void exchange_shut(struct exchange *x);
/* NULL allowed. */
void exchange_close(struct exchange *x);

/* --- endpoint.c --- */
/* A queue pair in the state INIT; NULL: errno. */
struct ibv_qp *endpoint_make_qp(struct verbs_link *l, struct ibv_qp_init_attr *attr);
/* Fills in l->here. 0 or -errno with text. */
int endpoint_describe(struct verbs_link *l);
/* Joins the queue pair to the other; after link_take_grant(). 0 or -errno with text. */
int endpoint_connect(struct verbs_link *l, const struct verbs_endpoint *there);

/* --- device.c --- */
/* The opened device behind this context; opens it. NULL with text. */
struct verbs_device *device_get(struct verbs *v, struct ibv_context *context);
void device_close(struct verbs_device *d);
/* Room for one more link: entries in the completion queue, and with an SRQ receives. 0 or -errno. */
int device_take_room(struct verbs_device *d, uint32_t entries, uint32_t *receives);
void device_give_room(struct verbs_device *d, uint32_t entries, uint32_t receives);
void device_arm(struct verbs_device *d);
/* Lines for describe(). */
size_t device_describe(const struct verbs_provider *api, char *out, size_t size);

/* --- pool.c --- */
int slab_open(struct verbs_slab *s, struct verbs_device *d, uint32_t count, size_t piece_bytes);
void slab_close(struct verbs_slab *s, const struct verbs_provider *api);
static inline char *slab_piece(const struct verbs_slab *s, uint32_t i)
{
	return s->mem + (size_t)i * s->piece_bytes;
}
/* A registration failed for lack of lockable memory: says so once. */
void pool_warn_memory(struct verbs *v, size_t bytes);
/* Puts receive buffer `index` of the link (or of its SRQ) into the queue. 0 or -errno. */
int pool_post_receive(struct verbs_device *d, struct verbs_link *l, uint32_t index);
/* The memory of a receive by the value in its work request id. */
char *pool_receive(const struct verbs_device *d, const struct verbs_link *l, uint32_t index);

/* --- link.c --- */
/* A legal change of state, else logged and refused. */
bool peer_set_state(struct verbs_peer *p, enum peer_link_state to);
const char *peer_state_name(enum peer_link_state s);
/* What the other side grants; false: too little. */
bool link_take_grant(struct verbs_link *l, const struct verbs_greeting *g);
/* The adapter's code for the time after which a packet is sent again. */
uint8_t link_timeout_exponent(const struct verbs *v);
/* A link around an id (NULL: by TCP exchange); takes the id over only on success. NULL with text. */
struct verbs_link *link_open(struct verbs *v, struct verbs_peer *p, struct rdma_cm_id *id, bool caller);
/* Device, buffers, queue pair, receives: everything before connect or accept. 0 or -errno with text. */
int link_build(struct verbs_link *l);
/* Frees everything of an attempt; its completions, if any come, are ignored. */
void link_close(struct verbs_link *l);
/* No more traffic: the queue pair goes to its error state, the other side is told. */
void link_kill(struct verbs_link *l);
/* By number, by queue pair; NULL: given up. */
struct verbs_link *link_at(const struct verbs *v, uint32_t number);
struct verbs_link *link_of_qpn(const struct verbs_device *d, uint32_t qpn);
/* The peer ends: what has arrived is delivered by the next poll, then the core is told. The first reason counts. */
void peer_end(struct verbs_peer *p, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* --- connect.c --- */
/* Starts to connect. 0 or -errno with text. */
int connect_start(struct verbs_peer *p);
/* The event channel is readable. */
void connect_on_events(void *verbs);
/* A caller has not been answered yet. */
void connect_on_timer(void *verbs);
/* What either way of connecting tells: our greeting; who calls, if it may (else why not); the connection stands; it was
 * refused (closes the link); it was ended by the other side. */
struct verbs_greeting connect_greeting(const struct verbs *v, const struct verbs_link *l, enum verbs_refusal why);
struct verbs_peer *connect_caller(struct verbs *v, const struct verbs_greeting *g, bool readable, enum verbs_refusal *why);
void connect_on_established(struct verbs_link *l, const struct verbs_greeting *g, bool readable);
void connect_on_rejected(struct verbs_link *l, int status, const struct verbs_greeting *g, bool readable);
void connect_on_disconnected(struct verbs_link *l);
/* An answering link got its first packet, or RDMA CM said that it stands. */
void connect_maybe_up(struct verbs_link *l);

/* --- post.c --- */
int verbs_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot);
void verbs_commit(struct transport *t, int peer, struct transport_slot *slot);
void verbs_discard(struct transport *t, int peer, struct transport_slot *slot);
bool verbs_drained(struct transport *t);
/* A packet of our own (ctl->id says which); last: may use the slot and the credit that are kept back. False: no room. */
bool post_own(struct verbs_link *l, const struct wire_ctl *ctl, bool last);
/* The packet behind a put. False: no room. */
bool post_behind(struct verbs_link *l, const struct wire_hdr *hdr);
/* Returns credit by a packet of its own if enough has gathered. */
void post_credit(struct verbs_link *l);

/* --- complete.c --- */
int verbs_poll(struct transport *t, int budget);
bool verbs_ready(const struct transport *t);

/* --- expose.c --- */
int verbs_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2],
		 const size_t len[2], void *desc);
void verbs_release_rkey(struct transport *t, int peer, uint64_t cookie);
bool verbs_prefers_get(const struct transport *t, int peer, size_t bytes);
bool verbs_prefers_put(const struct transport *t, int peer, size_t bytes);
/* Registers up to two pieces, in one if they touch; all or nothing. 0, or -errno with text. */
int expose_register(struct verbs_device *d, void *const base[2], const size_t len[2], int access,
		    struct regcache_entry *reg[2]);
void expose_close(struct verbs *v);
int verbs_buffer_register(struct transport *t, void *base, size_t bytes);
int verbs_buffer_release(struct transport *t, const void *base, size_t bytes);

/* --- move.c --- */
int verbs_get(struct transport *t, int peer, const struct transport_rma *get);
int verbs_put(struct transport *t, int peer, const struct transport_rma *put, const struct wire_hdr *behind);
void verbs_cancel(struct transport *t, int peer, uint64_t cookie);
void move_on_completion(struct verbs_link *l, uint32_t index, bool ok);
/* Posts what can be posted: work requests have come back, or credit. Upcalls. */
void move_pump(struct verbs_link *l);
/* Frees all moves. */
void move_close(struct verbs *v);

/* --- status.c --- */
/* What a completion status means and what to check. */
const char *status_text(enum ibv_wc_status status);
/* "asynchronous event: port 1 went down" */
const char *event_text(enum ibv_event_type type);

#endif
