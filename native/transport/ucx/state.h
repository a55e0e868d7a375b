/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_STATE_H
#define IBVX_TRANSPORT_UCX_STATE_H
/*
 * state: the transport's own structure, for the files of this folder.  Layers, each of which includes those above it here:
 *
 *   ucx_abi, ucx_library  the library, loaded
 *   state
 *   ucx_packet         buffers, packets that go out
 *   ucx_peer           endpoints: made, ended
 *   ucx_receive        packets that come in, the ends of peers
 *   ucx_worker         the library's objects
 *   ucx                the functions of the seam
 *
 * UCX may be used by one thread at a time.  All calls are made with the core's lock held, but those that make and end
 * endpoints, which take their time: they are made on the monitor thread with the lock released and `outside` set, and
 * meanwhile no other thread enters the library or touches what its callbacks change (slots, `failed`, `closing_count`).
 */
#include <stdatomic.h>

#include "transport/heartbeat.h"
#include "transport/loader.h"
#include "transport/order.h"
#include "transport/transport.h"
#include "transport/ucx/ucx_abi.h"
#include "transport/work.h"

#define UCX_PAYLOAD_MAX 64000u /* with its headers one segment of 64 KB */
#define UCX_PAYLOAD_MIN 8000u
#define UCX_SMALL_BYTES 512u   /* payload of a small slot */
#define UCX_SMALL_SLOTS 32u    /* of a peer */
#define UCX_LARGE_SLOTS 16u    /* of a peer, at most */
#define UCX_LARGE_LEAST 2u
#define UCX_LARGE_BYTES (64u << 20) /* of all large slots */
#define UCX_CLOSE_MS 500       /* that close() waits for the library at most */
#define UCX_GRACE 2u           /* ticks for which the report of a lost connection waits for the control tree */
#define UCX_AM_ID 0u

struct ucx;

/* In front of every packet. */
struct ucx_head {
	uint64_t job;    /* from the job's id: nobody else's packets */
	uint32_t rank;   /* the sender */
	uint32_t number; /* of this packet, from 1 on (order.h) */
	uint32_t ack;    /* the last number that was handed on, of those of the receiver */
	uint32_t bytes;  /* payload */
	struct wire_hdr hdr;
};
static_assert(sizeof(struct ucx_head) == 56, "no padding on the wire");

/* Packets of the transport itself: kind WIRE_NONE, ctl.id one of these. */
enum ucx_own {
	UCX_OWN_BEAT = 1, /* the sender lives */
	UCX_OWN_FLUSH,    /* acknowledge what you have */
	UCX_OWN_ACK,      /* its head acknowledges */
	UCX_OWN_LEAVE,    /* the connection's end will be no death */
};

/* In front of the worker's address, as UCX has packed it. */
#define UCX_ADDRESS_MAGIC "ucx1"
#define UCX_ADDRESS_MAGIC_BYTES 4u

/* Memory of one packet. */
struct ucx_slot {
	struct ucx_slot *next;
	struct ucx_peer *peer;
	uint64_t large;
	struct ucx_head head;
	uint64_t payload[];
};

/*   IDLE --reserve, first packet--> CONNECTING --endpoint made--> UP
 *   each of them --failed--> ENDING --poll: the core is notified--> DOWN
 *   each of them --forget--> DOWN
 * An endpoint that is left in DOWN is ended by the monitor thread. */
enum ucx_peer_state { UCX_IDLE, UCX_CONNECTING, UCX_UP, UCX_ENDING, UCX_DOWN };

struct ucx_peer {
	struct ucx *ucx;
	int rank;
	enum ucx_peer_state state;
	void *address;             /* NULL: it is not reached */
	size_t address_bytes;
	size_t payload_max;
	struct ucx_ep *ep;
	struct ucx_peer *next_note; /* in ucx.notes */
	bool noted;
	ucx_status failed;         /* what a callback has reported */
	bool left;                 /* LEAVE has come */
	bool ack_wanted;
	unsigned grace;            /* ENDING: ticks until the core is notified */
	int end_code;
	char *end_text;

	uint32_t number;           /* of the last packet sent */
	uint32_t number_core;      /* of the last that is to be acknowledged */
	uint32_t number_flushed;   /* FLUSH was sent for it */
	uint32_t acked;
	struct order order;
	struct heartbeat_peer beat;
	uint32_t in_flight[2];     /* slots with the library: small, large */

	uint64_t packets_out, packets_in, full_count, beats;
};

struct ucx {
	struct transport base;
	struct transport_env env;
	const struct ucx_library *api;
	struct ucx_library library;
	struct ucx_context *context;
	struct ucx_worker *worker;
	char *unusable;            /* why; NULL: it can be used */
	void *address;
	size_t address_bytes;
	uint64_t job;
	int64_t timeout_ms;
	size_t payload_max;
	uint32_t large_slots;      /* of a peer */
	struct ucx_peer *peers;    /* NULL before attach */

	int used;                  /* peers that the core sends to by this transport */
	bool outside;              /* the monitor thread is inside UCX without the lock */
	bool leaving;
	int gate;                  /* epoll with UCX's descriptor, open for one event after arm() */
	int efd;
	bool armed;                /* the gate is open, or its event is not yet taken in */
	_Atomic bool sleeping;     /* between arm() and disarm() */
	_Atomic bool news;         /* arm() could not arm: poll() is to look */
	_Atomic uint32_t quiet;    /* polls in a row that found nothing */
	_Atomic uint32_t looks;    /* of ready(), in vain */
	struct work work;
	struct heartbeat heartbeat;
	struct ucx_peer *notes;    /* peers whose endpoint is to be made or ended */

	struct ucx_slot *free[2];  /* small, large */
	uint32_t free_count[2], slot_count[2];
	int closing_count;         /* endpoints that are being ended */
	int chores;                /* peers with `failed`, `ack_wanted` or at the end of ENDING */
	int events;                /* of the poll that runs */
	uint64_t foreign_count;    /* packets of unknown senders */
};

static inline struct ucx *ucx_of(struct transport *t)
{
	return (struct ucx *)t;
}

#endif
