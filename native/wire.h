/* SPDX-License-Identifier: MIT */
#ifndef IBVX_WIRE_H
#define IBVX_WIRE_H
/*
 * wire: every structure that crosses between two ranks, for every transport.
 *
 * PROTOCOL.md draws the sequences.  Host byte order: bootstrap refuses to join ranks
 * whose byte order or WIRE_VERSION differ.  A receiver validates length, kind, ids and
 * offsets before it indexes anything.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 8u

enum wire_kind {
	WIRE_NONE = 0,
	WIRE_EAGER,       /* msg: a whole message; payload = head then body */
	WIRE_EAGER_FIRST, /* msg: payload = struct wire_long, then the first bytes */
	WIRE_EAGER_MORE,  /* ctl: the next bytes of the peer's open eager message; offset */
	WIRE_RTS,         /* msg: payload = struct wire_long, then the transport's rma descriptors if WIRE_RMA, else the first bytes */
	WIRE_CTS,         /* ctl: id = send, from = receive: stream it to me; payload = the transport's rma descriptors if WIRE_RMA */
	WIRE_DATA,        /* ctl: id = receive, offset; payload */
	WIRE_SEGMENT, /* ctl: id = receive, offset, value = bytes: a segment of my pinned memory, leased to you; payload = the transport's lease descriptor */
	WIRE_FIN,     /* ctl: id = send: received (or dropped); complete it */
	WIRE_DONE,    /* ctl: id = receive: all of it was written into your memory */
	WIRE_ACK,     /* ctl: id = synchronous eager send: it has matched */
	WIRE_CREDIT,  /* ctl: value = bytes of credit, offset = how much of all is emergency credit */
	WIRE_HINT,    /* ctl: id = size class, from = enum cost_method, value = interval: the faster method (core/cost.h) */
	WIRE_STALLED, /* ctl: I hold sends back; value = all credit that I have ever got */
	WIRE_BYE,     /* ctl: the last packet of an orderly close */
	WIRE_KIND_COUNT
};

enum wire_flag {
	WIRE_SYNC = 1 << 0,     /* EAGER*: answer with ACK when matched */
	WIRE_RMA = 1 << 1,      /* RTS, CTS: descriptors follow, a get (RTS) or a put (CTS) is possible */
	WIRE_LEASE = 1 << 2,    /* RTS: the memory is pinnable by a thread that waits for this message; CTS: so is mine: lease segments */
	WIRE_TIMED = 1 << 3,    /* EAGER_FIRST, RTS: start_ns is set */
	WIRE_MEASURED = 1 << 7, /* the transport's own: the core neither sets nor sees it */
};

/* The header of every packet. */
struct wire_hdr {
	uint16_t stamp; /* the transport's own */
	uint8_t kind;   /* enum wire_kind */
	uint8_t flags;  /* enum wire_flag */
	uint32_t len;   /* payload bytes in this packet */
	union {
		struct wire_msg {
			int32_t context;
			int32_t tag;
			uint64_t user;
			union {
				uint32_t body_bytes; /* EAGER: how much of the payload is body */
				uint32_t start_ns;   /* EAGER_FIRST, RTS: the sender's clock, modulo 2^32 */
			};
			uint32_t id; /* the sender's request, for ACK, CTS, FIN */
		} msg;
		struct wire_ctl {
			uint32_t id;   /* the addressee's request */
			uint32_t from; /* the sender's own request */
			uint64_t offset;
			uint64_t value;
		} ctl;
	};
};
static_assert(sizeof(struct wire_hdr) == 32, "a header is half a cache line");
static_assert(offsetof(struct wire_hdr, kind) == 2, "stamp, kind and flags share one 32-bit word");
static_assert(offsetof(struct wire_hdr, len) == 4, "len follows the stamp word");
static_assert(offsetof(struct wire_hdr, msg.user) == 16, "user is aligned");
static_assert(offsetof(struct wire_hdr, ctl.offset) == 16, "offset is aligned");

/* In front of the payload of EAGER_FIRST and RTS. */
struct wire_long {
	uint64_t head_bytes;
	uint64_t body_bytes;
};
static_assert(sizeof(struct wire_long) == 16, "no padding on the wire");

/* Largest sum of the rma descriptors of a message's two segments. */
#define WIRE_RMA_MAX 96u
/* Size of the descriptor of a lease. */
#define WIRE_LEASE_BYTES 16u

#endif
