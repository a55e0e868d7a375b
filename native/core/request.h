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
 *                                   WAIT_CTS -> PUTTING ---------> DONE
 *                                               PUTTING --(impossible)--> STREAMING
 *   receive:  POSTED --(eager, truncated, cancelled)-------------> DONE
 *             POSTED --(fragments, DATA or DONE to come)--> FILLING ---> DONE
 *             POSTED --(get started)--> GETTING -----------------> DONE
 *                                       GETTING --(impossible)--> FILLING
 *   matched probe: MESSAGE -> (as a receive that has just matched)
 *   Every state -> DONE when the peer fails.  DONE -> FREE when consumed.
 *
 * The caller of every function here holds the core's lock.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/list.h"
#include "core/match.h"
#include "ibvx.h"
#include "wire.h"

struct ibvx_heap;
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
	REQ_DONE,
	REQ_STATE_COUNT
};

enum req_kind { REQ_SEND, REQ_RECV, REQ_PROBED };

struct request {
	uint32_t slot;
	uint32_t generation; /* of the handle; bumped when the slot is given back */
	enum req_state state;
	enum req_kind kind;
	_Atomic uint32_t done; /* state == REQ_DONE, for a look without the lock */

	bool sync;         /* send: complete only when matched */
	bool acked;        /* send: ACK came while fragments were still going out */
	bool blocking;     /* not shown to peek, consumed by the call that made it */
	bool detached;     /* given up by its owner: free it when done */
	bool consumed;     /* the owner has its status, but a control packet is still owed */
	bool exposed;      /* the transport holds something for this memory */
	bool split;        /* receive: the body goes to memory of ours */
	bool wants_put;    /* receive: the CTS that it owes offers its memory */
	bool heap;         /* the memory moves, or there is none: base is NULL but inside a region (heap.h) */
	bool lost;         /* receive: there was no memory for the stage */
	bool served;       /* heap: a thread is opening a region of it, or has one open: the slot stays */
	uint8_t owes;      /* enum wire_kind of the control packet that this request owes, or 0 */

	struct peer *peer; /* send: destination; receive: once matched, the sender */
	struct waiter *waiter;
	struct list link;  /* in one of the peer's queues: sends, controls, streams */
	struct list finished; /* in the endpoint's list for peek */

	/* the memory: send: two segments; receive: segment 0 (and 1 if split) */
	char *base[2];
	size_t bytes[2];   /* send: lengths; receive: [0] is the capacity until matched, then both lengths as sent */
	size_t capacity;
	uint64_t at;       /* bytes moved so far */
	uint32_t remote;   /* the other side's wire id */

	int32_t context;
	int32_t source;    /* receive: as asked for, may be a wildcard */
	int32_t tag;       /* receive: as asked for until matched */
	int32_t error;
	uint64_t user;
	uint64_t want, want_mask; /* receive: bits of the user word that must be equal */
	struct umsg *message; /* REQ_MESSAGE */

	struct ibvx_heap *place; /* heap: of the thread that waits, or lent; or NULL */
	struct list wanting; /* heap: in the endpoint's list, if the place is lent and somebody is to serve it */
	char *stage;       /* what arrived outside of a region, or the copy that a send reads; freed with the slot */
	uint64_t stage_at, stage_end; /* receive: the part of the stage that is not in its place yet */
	struct match_node node;
};

struct request_table {
	struct request **chunks;
	uint32_t chunk_count;
	uint32_t live_count;
	struct list free; /* through link */
};

#define REQUEST_CHUNK 256u
#define REQUEST_SLOTS_MAX (1u << 24) /* what a wire id can name */

int request_table_init(struct request_table *t);
void request_table_fini(struct request_table *t);

/* A fresh request with the given state, or NULL (text set). */
struct request *request_get(struct request_table *t, enum req_kind kind, enum req_state state);
/* Gives the slot back; every handle and wire id of it becomes stale. */
void request_put(struct request_table *t, struct request *r);
/* The one place where state changes. An illegal transition is logged by the caller's core and refused: false. */
bool request_set_state(struct request *r, enum req_state to);

static inline ibvx_req request_handle(const struct request *r)
{
	return (uint64_t)r->generation << 32 | (r->slot + 1u);
}

/* By handle: NULL if stale, forged, or consumed. */
struct request *request_find(const struct request_table *t, ibvx_req handle);

static inline uint32_t request_wire_id(const struct request *r)
{
	return r->generation << 24 | r->slot;
}

/* By wire id: NULL if stale or out of range. */
struct request *request_find_wire(const struct request_table *t, uint32_t id);

/* The slot with this index if it is live, else NULL; for walking all. */
struct request *request_at(const struct request_table *t, uint32_t slot);

static inline size_t request_total(const struct request *r)
{
	return r->bytes[0] + r->bytes[1];
}

/* Copies len bytes at stream position `at` (head, then body) out of a send's memory. */
void request_read(const struct request *r, uint64_t at, void *to, size_t len);
/* ... into a receive's memory. A receive that is not split has its head and body one after the other. */
void request_write(struct request *r, uint64_t at, const void *from, size_t len);

const char *request_state_name(enum req_state s);

#endif
