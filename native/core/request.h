/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_REQUEST_H
#define IBVX_CORE_REQUEST_H
/*
 * request: one operation under way, in a slot that is reused.
 *
 *   send:     QUEUED --(eager out)-------------------------------> DONE
 *             QUEUED -> PUSHING --(last fragment out)------------> DONE
 *             QUEUED, PUSHING --(synchronous)--> WAIT_ACK -------> DONE
 *             QUEUED --(RTS out)--> WAIT_CTS --(FIN)-------------> DONE
 *                                   WAIT_CTS -> STREAMING -------> DONE
 *                                               STREAMING --(a lease failed)--> WAIT_CTS
 *                                   WAIT_CTS -> PUTTING ---------> DONE
 *                                               PUTTING --(impossible)--> STREAMING
 *   receive:  POSTED --(eager, truncated, cancelled)-------------> DONE
 *             POSTED --(fragments, DATA or DONE to come)--> FILLING ---> DONE
 *             POSTED --(get started)--> GETTING -----------------> DONE
 *                                       GETTING --(impossible)--> FILLING
 *   matched probe: MESSAGE -> (as a receive that has just matched)
 *   Every state -> DONE when the peer fails; -> ENDING -> DONE where an adapter may still reach the memory.
 *   DONE -> FREE when consumed.
 *
 * The caller of every function here holds the core's lock.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/buffer.h"
#include "core/list.h"
#include "core/match_table.h"
#include "ibvx.h"
#include "wire.h"

struct ibvx_completion;
struct peer;
struct umsg;
struct waiter;

enum req_state {
	REQ_FREE,
	REQ_QUEUED,
	REQ_PUSHING,
	REQ_WAIT_ACK,
	REQ_WAIT_CTS,
	REQ_STREAMING,
	REQ_PUTTING,
	REQ_POSTED,
	REQ_FILLING,
	REQ_GETTING,
	REQ_MESSAGE,
	REQ_ENDING,
	REQ_DONE,
	REQ_STATE_COUNT
};

#define COST_METHOD_UNDECIDED 3 /* enum cost_method */

/* How a rendezvous transfers its bytes: rendezvous.h has the table, in this order. */
enum rndv_scheme { RNDV_GET, RNDV_LEASED_GET, RNDV_PUT, RNDV_PIPELINE, RNDV_SCHEME_COUNT };

enum req_kind { REQ_SEND, REQ_RECV, REQ_PROBED };

struct request {
	uint32_t slot;
	uint32_t generation; /* of the handle; bumped when the slot is given back */
	enum req_state state;
	enum req_kind kind;
	_Atomic uint32_t done; /* state == REQ_DONE, for a look without the lock */

	int32_t error;
	bool sync;               /* send: complete only when matched */
	bool acked;              /* send: ACK came while fragments were still going out */
	bool blocking;           /* not shown to peek, consumed by the call that made it */
	bool watched;            /* ibvx_watched() is to return it */
	bool detached;           /* given up by its owner: free it when done */
	bool background;         /* counted in background_count: the progress thread continues it */
	bool consumed;           /* the owner has its status, but a control packet is still pending */
	bool rkey_packed;        /* the peer may have access to the memory: release the rkey */
	uint8_t method;          /* send: enum cost_method */
	bool offered_get;        /* receive: the RTS offered a get or a lease */
	bool timed;              /* send: the receiver is to measure it; receive: is being measured (cost.h) */
	uint8_t scheme;          /* enum rndv_scheme, once a rendezvous has matched */
	bool served;             /* pinnable: a thread is pinning it, or has pinned it: the slot stays */
	uint8_t pending_control; /* enum wire_kind of the control packet that this request pending_control, or 0 */

	/* what peer_flush() calls while r is in a queue of its peer: sends its next packet. 0, or a negative errno */
	int (*emit)(struct request *r);
	struct peer *peer; /* send: destination; receive: once matched, the sender */
	struct waiter *waiter;
	struct ibvx_completion *completion; /* detached, and this gets the result (continuation.h); else NULL */
	struct buffer buffer;
	uint64_t at;      /* bytes transferred so far */
	int64_t start_ns; /* receive: when the sender started it, if timed */
	uint64_t user;
	uint64_t want, want_mask; /* receive: bits of the user word that must be equal */
	struct umsg *message;     /* REQ_MESSAGE */

	int32_t context;
	int32_t source;  /* receive: as asked for, may be a wildcard */
	int32_t tag;     /* receive: as asked for until matched */
	uint32_t remote; /* the other side's wire id */

	struct list link;     /* in one of the peer's queues: sends, controls, streams */
	struct list finished; /* in the endpoint's list for peek */
	struct request *next_free;
	struct match_node node;
};

struct request_table {
	struct request **chunks;
	uint32_t chunk_count;
	uint32_t live_count;
	struct request *free; /* last in, first out: its lines are warm */
};

#define REQUEST_CHUNK 256u
#define REQUEST_SLOTS_MAX (1u << 24) /* what a wire id can name */

int request_table_init(struct request_table *t);
void request_table_fini(struct request_table *t);

/* Room for more. 0 or -ENOMEM with text. */
int request_table_grow(struct request_table *t) __attribute__((cold));

/* A fresh request with the given state, or NULL (text set). Its envelope, capacity and remote id are for the caller to fill. */
static inline struct request *request_get(struct request_table *t, enum req_kind kind, enum req_state state)
{
	struct request *r = t->free;

	if (!r) {
		if (request_table_grow(t) != 0)
			return NULL;
		r = t->free;
	}
	t->free = r->next_free;
	t->live_count++;
	r->state = state;
	r->kind = kind;
	atomic_store_explicit(&r->done, 0, memory_order_relaxed);
	/* one by one: the compiler makes vector stores of them, and a slow string instruction of a memset() */
	r->error = 0;
	r->sync = false;
	r->acked = false;
	r->blocking = false;
	r->detached = false;
	r->consumed = false;
	r->rkey_packed = false;
	r->background = false;
	r->watched = false;
	r->scheme = 0;
	r->method = COST_METHOD_UNDECIDED;
	r->timed = false;
	r->offered_get = false;
	r->served = false;
	r->pending_control = 0;
	r->peer = NULL;
	r->waiter = NULL;
	r->completion = NULL;
	r->at = 0;
	r->user = 0;
	r->want = 0;
	r->want_mask = 0;
	r->message = NULL;
	r->buffer.kind = BUFFER_CONTIGUOUS;
	r->buffer.lost = false;
	r->buffer.base[0] = NULL;
	r->buffer.base[1] = NULL;
	r->buffer.bytes[0] = 0;
	r->buffer.bytes[1] = 0;
	r->buffer.bounce = NULL;
	r->buffer.bounce_at = 0;
	r->buffer.bounce_end = 0;
	list_init(&r->link);
	list_init(&r->finished);
	r->node.next = NULL;
	return r;
}

/* Gives the slot back; every handle and wire id of it becomes stale.  Its buffer has been released. */
static inline void request_put(struct request_table *t, struct request *r)
{
	list_drop(&r->link);
	list_drop(&r->finished);
	r->state = REQ_FREE;
	r->generation = (r->generation + 1) & 0x7fffffffu;
	r->generation += r->generation == 0;
	t->live_count--;
	r->next_free = t->free;
	t->free = r;
}

/* legal[from] has a bit for each state that may follow */
extern const uint16_t request_legal[REQ_STATE_COUNT];

/* The one place where state changes. An illegal transition is logged by the caller's core and refused: false. */
static inline bool request_set_state(struct request *r, enum req_state to)
{
	if (!(request_legal[r->state] >> to & 1u))
		return false;
	r->state = to;
	return true;
}

static inline ibvx_req request_handle(const struct request *r)
{
	return (uint64_t)r->generation << 32 | (r->slot + 1u);
}

/* The slot with this index if it is live, else NULL; for walking all. */
static inline struct request *request_at(const struct request_table *t, uint32_t slot)
{
	struct request *r;

	if (slot >= t->chunk_count * REQUEST_CHUNK)
		return NULL;
	r = &t->chunks[slot / REQUEST_CHUNK][slot % REQUEST_CHUNK];
	return r->state == REQ_FREE ? NULL : r;
}

/* By handle: NULL if stale, forged, or consumed. */
static inline struct request *request_find(const struct request_table *t, ibvx_req handle)
{
	struct request *r = request_at(t, (uint32_t)handle - 1u);

	if (!r || r->generation != (uint32_t)(handle >> 32) || r->consumed || r->detached)
		return NULL;
	return r;
}

static inline uint32_t request_wire_id(const struct request *r)
{
	return r->generation << 24 | r->slot;
}

/* By wire id: NULL if stale or out of range. */
struct request *request_find_wire(const struct request_table *t, uint32_t id);

static inline size_t request_total(const struct request *r)
{
	return buffer_bytes(&r->buffer);
}

const char *request_state_name(enum req_state s);

#endif
