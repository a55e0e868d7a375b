/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_NETLIB_STATE_H
#define IBVX_TRANSPORT_NETLIB_STATE_H
/*
 * netlib_state: what transports over a communication library of the system (ucx, ofi) have in common, and what they add to it.
 *
 * Layers, each of which includes those above it here:
 *
 *   netlib_state
 *   netlib_packet      buffers, packets that go out, credit
 *   netlib_peer        peers: connected, ended
 *   netlib_receive     packets that come in, the ends of peers, ticks
 *   netlib             the functions of the seam
 *   ../ucx, ../ofi     a struct netlib_ops each
 *
 * Such a library may be used by one thread at a time.  All calls are made with the core's lock held, but those that connect and
 * disconnect peers, which take their time: they are made on the monitor thread with the lock released and `outside` set, and
 * meanwhile no other thread enters the library or touches what its callbacks change (slots, `failed`, `closing_count`).
 */
#include <stdatomic.h>

#include "transport/heartbeat.h"
#include "transport/loader.h"
#include "transport/order.h"
#include "transport/transport.h"
#include "transport/work.h"

#define NETLIB_PAYLOAD_MIN 8000u
#define NETLIB_SMALL_BYTES 512u        /* payload of a small slot */
#define NETLIB_SMALL_SLOTS 32u         /* of a peer */
#define NETLIB_LARGE_LEAST 2u          /* large slots of a peer, at least */
#define NETLIB_PEER_BYTES (1u << 20)   /* of the large slots of a peer */
#define NETLIB_LARGE_BYTES (64u << 20) /* of all large slots */
#define NETLIB_CLOSE_MS 500            /* that close() waits for the library at most */
#define NETLIB_GRACE 2u                /* ticks for which the report of a lost connection waits for the control tree */
#define NETLIB_ACKS 4u                 /* acknowledgements in a credit window */

struct netlib;

/* In front of every packet. */
struct netlib_head {
	uint64_t job;    /* from the job's id: nobody else's packets */
	uint32_t rank;   /* the sender */
	uint32_t number; /* of this packet, from 1 on (order.h) */
	uint32_t ack;    /* the last number that was handed on, of those of the receiver */
	uint32_t bytes;  /* payload */
	struct wire_hdr hdr;
};
static_assert(sizeof(struct netlib_head) == 56, "no padding on the wire");

/* Packets of the transport itself: kind WIRE_NONE, ctl.id one of these. */
enum netlib_own {
	NETLIB_OWN_BEAT = 1, /* the sender lives */
	NETLIB_OWN_FLUSH,    /* acknowledge what you have */
	NETLIB_OWN_ACK,      /* its head acknowledges */
	NETLIB_OWN_LEAVE,    /* the connection's end will be no death */
};

/* In front of the library's address. */
#define NETLIB_MAGIC_BYTES 4u

/* Memory of one packet; head and payload are contiguous. */
struct netlib_slot {
	struct netlib_slot *next, *prev; /* in a list of free slots, of a peer's queue (next), of those that the library has */
	struct netlib_peer *peer;
	uint64_t library[8]; /* the library's own while it has the slot */
	uint64_t large;
	struct netlib_head head;
	uint64_t payload[];
};

/*   IDLE --reserve, first packet--> CONNECTING --connected--> UP
 *   each of them --failed--> ENDING --poll: the core is notified--> DOWN
 *   each of them --forget--> DOWN
 * A connection that is left in DOWN is ended by the monitor thread. */
enum netlib_peer_state { NETLIB_IDLE, NETLIB_CONNECTING, NETLIB_UP, NETLIB_ENDING, NETLIB_DOWN };

struct netlib_peer {
	struct netlib *netlib;
	int rank;
	enum netlib_peer_state state;
	void *address; /* the library's; NULL: it is not reached */
	size_t address_bytes;
	void *endpoint; /* the library's, while `connected` */
	bool connected;
	struct netlib_peer *next_note; /* in netlib.notes */
	bool noted;
	int failed; /* the library's status that a completion or a callback has reported; 0: none */
	bool left;  /* LEAVE has come */
	bool ack_wanted;
	bool lingers;   /* closing: what is with the library may go out */
	unsigned grace; /* ENDING: ticks until the core is notified */
	int end_code;
	char *end_text;

	uint32_t number;         /* of the last packet sent */
	uint32_t number_core;    /* of the last that is to be acknowledged */
	uint32_t number_flushed; /* FLUSH was sent for it */
	uint32_t acked;
	uint32_t unacked_count; /* packets of the core that have come since we last acknowledged */
	struct order order;
	struct heartbeat_peer beat;
	uint32_t in_flight[2];                  /* slots with the library or in the queue: small, large */
	struct netlib_slot *queue, **queue_end; /* packets that the library had no room for */
	struct netlib_peer *next_queued;        /* in netlib.queued */
	bool in_queued;

	uint64_t packets_out, packets_in, full_count, beats, queued_count;
};

/* What the library of a transport does; statuses are its own, 0: good. */
struct netlib_ops {
	const char *product;      /* its name in texts */
	const char *magic;        /* of addresses, NETLIB_MAGIC_BYTES */
	const char *timeout_name; /* the setting whose value is netlib.timeout_ms */
	/* Opens the library and its objects: sets address and address_bytes.  0 or -errno with text; close() in any case. */
	int (*open)(struct netlib *f);
	/* Ends the objects. Callbacks may still come; afterwards the library has no slot. */
	void (*close)(struct netlib *f);
	/* NULL: always.  Does our library understand the address? */
	bool (*matches)(const struct netlib *f, const void *address, size_t bytes);
	/* Slow; the lock is released.  A status. */
	int (*connect)(struct netlib_peer *p, const void *address, void **endpoint);
	/* Slow.  force: what is under way may be lost. */
	void (*disconnect)(struct netlib_peer *p, void *endpoint, bool force);
	/* close() waits for this. */
	bool (*closing)(const struct netlib *f);
	/* Delivers and completes something, about `budget` packets: by netlib_receive() and netlib_packet_sent(). False: there was nothing. */
	bool (*progress)(struct netlib *f, int budget);
	/* The slot is the library's until netlib_packet_sent(), which may also be called from here.  -EAGAIN: it has no room. */
	int (*send)(struct netlib_peer *p, struct netlib_slot *slot);
	/* fd becomes readable when there is something.  False: there is something already.  *timer_ns, less than a second: look again after that
	 * time, too; 0: no need. */
	bool (*arm)(struct netlib *f, int64_t *timer_ns);
	int (*errno_of)(int status);
	const char *(*text_of)(const struct netlib *f, int status);
	/* Names of counters. */
	const char *packets_out, *packets_in, *full, *heartbeats, *queued, *connections, *early, *foreign, *buffers;
};
#define NETLIB_COUNTERS(prefix)                                                                                     \
	.packets_out = prefix "_packets_out", .packets_in = prefix "_packets_in", .full = prefix "_full",           \
	.heartbeats = prefix "_heartbeats", .queued = prefix "_queued_packets", .connections = prefix "_endpoints", \
	.early = prefix "_early_packets", .foreign = prefix "_foreign_packets", .buffers = prefix "_packet_buffers"

/* First member of each such transport. */
struct netlib {
	struct transport base;
	const struct netlib_ops *ops;
	struct transport_env env;
	void *address; /* NULL: it cannot be used */
	size_t address_bytes;
	uint64_t job;
	int64_t timeout_ms;
	size_t payload_max;
	uint32_t large_slots; /* of a peer */
	uint32_t credit;      /* packets that a peer may send before one of them is acknowledged; 0: the library limits them */
	void *fixed_slots;    /* NULL, or: there are those of netlib_packet_fix() and no others */
	size_t fixed_bytes;
	struct netlib_peer *peers; /* NULL before attach */

	int used;     /* peers that the core sends to by this transport */
	bool outside; /* the monitor thread is inside the library without the lock */
	int gate;     /* epoll with fd and timer, open for one event after arm() */
	int fd;       /* the library's; -1: none, and ops->arm always wants the timer */
	int timer;    /* timerfd */
	bool timer_set;
	unsigned vain;          /* events of the gate in a row after which nothing was found, up to the longest pause */
	bool armed;             /* the gate is open, or its event is not yet taken in */
	_Atomic bool sleeping;  /* between arm() and disarm() */
	_Atomic bool news;      /* arm() could not arm: poll() is to look */
	_Atomic uint32_t quiet; /* polls in a row that found nothing */
	_Atomic uint32_t looks; /* of ready(), in vain */
	struct work work;
	struct heartbeat heartbeat;
	struct netlib_peer *notes;  /* peers that are to be connected or disconnected */
	struct netlib_peer *queued; /* peers with a queue */

	struct netlib_slot *free[2]; /* small, large */
	struct netlib_slot *with_library;
	uint32_t free_count[2], slot_count[2];
	int chores;             /* peers with `failed`, `ack_wanted` or at the end of ENDING */
	int events;             /* of the poll that runs */
	uint64_t foreign_count; /* packets of unknown senders */
};

static inline struct netlib *netlib_of(struct transport *t)
{
	return (struct netlib *)t;
}

#endif
