/* SPDX-License-Identifier: MIT */
#include "transport/verbs/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/rkey.h"

#define RMA_SHORT_BYTES 32u
#define RMA_PAGE_BYTES 4096u /* the least there is: larger pages end where these do */

/* A get or put. Cancelled ones stay until the adapter has given back what was posted. */
struct verbs_op {
	struct verbs_op *next, *next_event; /* next: in the connection's queue, while something is left to post */
	struct verbs_conn *conn;            /* NULL: freed */
	struct verbs_peer *peer;
	enum rma_direction direction;
	uint32_t index; /* in verbs.ops */
	uint64_t cookie;
	bool queued, event, cancelled, unreachable, announce; /* as for a remote key */
	uint32_t under_way;
	int piece; /* where to go on */
	size_t at;
	struct {
		uint64_t remote;
		uint32_t rkey;
		char *local;
		size_t len;
	} seg[2];
	struct rma_memory memory;
	struct wire_hdr behind; /* a put: goes out after the last write */
};

static void op_free(struct verbs *v, struct verbs_op *o)
{
	memory_release(&o->memory);
	v->ops[o->index] = NULL;
	free(o);
}

static void op_event(struct verbs_op *o)
{
	struct verbs *v = o->peer->verbs;

	if (o->event)
		return;
	o->event = true;
	o->next_event = v->op_events;
	v->op_events = o;
	atomic_fetch_add(&v->chores, 1);
}

static void op_ready(struct regcache_use *use, int err)
{
	struct verbs_op *o = use->owner;

	if (err && !o->cancelled)
		o->memory.err = err;
	if (--o->memory.pending > 0)
		return;
	o->unreachable = o->cancelled;
	op_event(o);
}

static void op_queue(struct verbs_op *o)
{
	struct rma_queue *q = &o->conn->queue[o->direction];

	*q->tail = o;
	q->tail = &o->next;
	o->queued = true;
}

static void op_unqueue(struct verbs_op *o)
{
	struct rma_queue *q = o->conn ? &o->conn->queue[o->direction] : NULL;

	for (struct verbs_op **at = q ? &q->head : NULL; o->queued && *at; at = &(*at)->next) {
		if (*at != o)
			continue;
		*at = o->next;
		if (q->tail == &o->next)
			q->tail = at;
		o->queued = false;
		return;
	}
}

static bool op_all_posted(struct verbs_op *o)
{
	while (o->piece < 2 && o->at == o->seg[o->piece].len) {
		o->piece++;
		o->at = 0;
	}
	return o->piece == 2;
}

/* What the next work request transfers. soft-iWARP (Linux, siw_qp_tx.c: siw_try_1seg; measured: bench/RESULTS.md) sends wrong bytes of
 * memory of at most 32 bytes across the end of a page: over iWARP a request of this size ends there. */
static size_t op_next_bytes(const struct verbs_conn *c, const struct verbs_op *o)
{
	size_t left = o->seg[o->piece].len - o->at;
	size_t n = left < c->device->max_rma ? left : c->device->max_rma;
	uint64_t source = o->direction == RMA_READ ? o->seg[o->piece].remote : (uint64_t)(uintptr_t)o->seg[o->piece].local;
	size_t in_page = RMA_PAGE_BYTES - (size_t)((source + o->at) % RMA_PAGE_BYTES);

	return c->device->iwarp && n <= RMA_SHORT_BYTES && n > in_page ? in_page : n;
}

static int op_post(struct verbs_conn *c, struct verbs_op *o)
{
	size_t n = op_next_bytes(c, o);
	struct ibv_sge sge = {(uint64_t)(uintptr_t)(o->seg[o->piece].local + o->at), (uint32_t)n, o->memory.use[o->piece].entry->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_RMA, c->number, o->index),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = o->direction == RMA_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = o->seg[o->piece].remote + o->at, .rkey = o->seg[o->piece].rkey}},
			   *bad;
	int err = c->verbs->api->post_send(c->qp, &wr, &bad);

	if (err) {
		peer_end(c->peer, -err, "rank %d: the adapter takes no more work: %s", c->peer->rank, strerror(err));
		return -err;
	}
	o->at += n;
	o->under_way++;
	c->queue[o->direction].under_way++;
	c->peer->ops[o->direction]++;
	c->peer->op_bytes[o->direction] += n;
	return 0;
}

/* Reports the end to the core. */
static void op_finish(struct verbs *v, struct verbs_op *o, int err)
{
	const struct transport_sink *sink = &v->env.sink;
	struct verbs_peer *p = o->peer;
	enum rma_direction direction = o->direction;
	uint64_t cookie = o->cookie;

	op_free(v, o);
	if (p->state == PEER_DOWN)
		return;
	(direction == RMA_READ ? sink->on_get : sink->on_put)(sink->core, p->rank, cookie, err);
}

/* The next step of the first operation in the queue. False: it has to wait. */
static bool op_step(struct verbs_conn *c, struct rma_queue *q)
{
	struct verbs_op *o = q->head;

	if (!op_all_posted(o))
		return q->under_way < q->max && op_post(c, o) == 0;
	c->behind_waits = o->direction == RMA_WRITE && !post_behind(c, &o->behind);
	if (c->behind_waits || c->peer->state != PEER_UP)
		return false;
	op_unqueue(o);
	if (!o->under_way)
		op_finish(c->verbs, o, 0);
	return true;
}

void rma_progress(struct verbs_conn *c)
{
	for (int direction = 0; direction < RMA_DIRECTIONS; direction++) {
		/* an upcall may end the peer */
		while (connection_in(c, PEER_UP) && c->queue[direction].head && op_step(c, &c->queue[direction]))
			;
	}
}

/* A place in verbs.ops. */
static int op_number(struct verbs *v, struct verbs_op *o)
{
	uint32_t room = v->op_room ? 2 * v->op_room : 64;
	struct verbs_op **ops;

	for (uint32_t i = 0; i < v->op_room; i++) {
		uint32_t at = (v->op_next + i) % v->op_room;

		if (v->ops[at])
			continue;
		o->index = at;
		v->ops[at] = o;
		v->op_next = at + 1;
		return 0;
	}
	ops = realloc(v->ops, room * sizeof(struct verbs_op *));
	if (!ops)
		return error_set(-ENOMEM, "no memory for an RDMA operation");
	memset(ops + v->op_room, 0, (room - v->op_room) * sizeof(struct verbs_op *));
	o->index = v->op_room;
	ops[o->index] = o;
	v->ops = ops;
	v->op_room = room;
	v->op_next = o->index + 1;
	return 0;
}

static int op_access(const struct verbs_device *d, enum rma_direction direction)
{
	if (direction == RMA_WRITE)
		return 0;
	/* iWARP: the answer of a read is a write of the other side */
	return IBV_ACCESS_LOCAL_WRITE | (d->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static struct verbs_op *op_new(struct verbs_peer *p, enum rma_direction direction, const struct transport_rma *rma,
			       const struct wire_hdr *behind)
{
	struct verbs_op *o = calloc(1, sizeof(*o));
	struct rma_desc desc;

	if (!o || op_number(p->verbs, o) < 0) {
		free(o);
		return NULL;
	}
	memcpy(&desc, rma->desc, sizeof(desc));
	o->conn = p->conn;
	o->peer = p;
	o->direction = direction;
	o->cookie = rma->cookie;
	if (behind)
		o->behind = *behind;
	for (int i = 0; i < 2; i++) {
		o->seg[i].remote = desc.piece[i].addr;
		o->seg[i].rkey = desc.piece[i].rkey;
		o->seg[i].local = rma->local[i].base;
		o->seg[i].len = rma->local[i].len;
	}
	return o;
}

static int op_start(struct verbs *v, int peer, enum rma_direction direction, const struct transport_rma *rma, const struct wire_hdr *behind)
{
	struct verbs_peer *p = &v->peers[peer];
	void *const base[2] = {rma->local[0].base, rma->local[1].base};
	const size_t len[2] = {rma->local[0].len, rma->local[1].len};
	struct verbs_op *o;
	int rc;

	if (rma->desc_bytes != sizeof(struct rma_desc))
		return error_set(-EPROTO, "a descriptor of %zu bytes from rank %d", rma->desc_bytes, peer);
	if (p->state != PEER_UP || p->conn->queue[direction].max == 0)
		return error_set(-ENOSYS, "no RDMA from and to rank %d", peer);
	o = op_new(p, direction, rma, behind);
	if (!o)
		return error_set(-ENOMEM, "no memory for an RDMA operation");
	rc = memory_register(&o->memory, &p->conn->device->regs, base, len, op_access(p->conn->device, direction), op_ready, o);
	if (rc == 0) {
		op_queue(o);
		rma_progress(p->conn);
	} else if (rc != -EINPROGRESS) {
		op_free(v, o);
		return rc;
	}
	return 0;
}

int verbs_get(struct transport *t, int peer, const struct transport_rma *get)
{
	return op_start((struct verbs *)t, peer, RMA_READ, get, NULL);
}

int verbs_put(struct transport *t, int peer, const struct transport_rma *put, const struct wire_hdr *behind)
{
	return op_start((struct verbs *)t, peer, RMA_WRITE, put, behind);
}

/* Frees a cancelled operation to which nothing refers any more. */
static void op_maybe_free(struct verbs *v, struct verbs_op *o)
{
	if (o->unreachable && !o->announce && !o->event && (!o->under_way || !o->conn))
		op_free(v, o);
}

/* No adapter reaches the memory of a cancelled operation. */
static void op_end(struct verbs_op *o)
{
	o->unreachable = true;
	memory_release(&o->memory);
	if (o->announce)
		op_event(o);
	else
		op_maybe_free(o->peer->verbs, o);
}

void rma_on_completion(struct verbs_conn *c, uint32_t index, bool ok)
{
	struct verbs *v = c->verbs;
	struct verbs_op *o = index < v->op_room ? v->ops[index] : NULL;

	if (!o || o->conn != c || !o->under_way)
		return;
	c->queue[o->direction].under_way--;
	o->under_way--;
	if (o->cancelled && !o->under_way)
		op_end(o);
	else if (!o->cancelled && ok && !o->under_way && !o->queued)
		op_finish(v, o, 0);
	rma_progress(c);
}

/* --- cancelling --- */

static bool op_cancel(struct verbs_op *o)
{
	struct verbs_conn *c = o->conn;

	op_unqueue(o);
	if (c && !c->queue[RMA_WRITE].head)
		c->behind_waits = false; /* with others left, what it waits for brings their turn */
	o->cancelled = true;
	o->announce = c && o->under_way > 0 && (peer_ends_connection(o->peer) || memory_revoke(&o->memory));
	if (o->announce)
		return true;
	op_end(o);
	return false;
}

int verbs_cancel(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;
	bool follows = rkey_cancel(v, peer, cookie);

	for (uint32_t i = 0; i < v->op_room; i++) {
		struct verbs_op *o = v->ops[i];

		if (o && !o->cancelled && o->cookie == cookie && o->peer->rank == peer)
			follows = op_cancel(o) || follows;
	}
	return follows ? -EINPROGRESS : 0;
}

static void op_poll(struct verbs *v, struct verbs_op *o)
{
	const struct transport_sink *sink = &v->env.sink;

	if (o->cancelled) {
		int rank = o->peer->rank;
		uint64_t cookie = o->cookie;
		bool announce = o->unreachable && o->announce;

		o->announce = o->announce && !announce;
		op_maybe_free(v, o);
		if (announce)
			sink->on_cancelled(sink->core, rank, cookie);
	} else if (o->memory.err) {
		memory_warn(&o->memory, v, o->memory.err);
		op_finish(v, o, error_sys(o->memory.err, "registering memory of a message"));
	} else if (o->conn && o->peer->state == PEER_UP) {
		op_queue(o);
		rma_progress(o->conn);
	}
}

int rma_poll(struct verbs *v)
{
	int events = rkey_events_poll(v);

	for (; v->op_events; events++) {
		struct verbs_op *o = v->op_events;

		v->op_events = o->next_event;
		o->event = false;
		atomic_fetch_sub(&v->chores, 1);
		op_poll(v, o);
	}
	return events;
}

void rma_on_freed(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;

	for (uint32_t i = 0; i < v->op_room; i++) {
		struct verbs_op *o = v->ops[i];

		if (!o || o->conn != c)
			continue;
		o->conn = NULL;
		o->queued = false;
		if (o->cancelled)
			op_end(o);
		else
			memory_release(&o->memory); /* an abort: nobody asks */
	}
	rkey_on_freed(c->peer);
}

void rma_close(struct verbs *v)
{
	rkey_close(v);
	for (uint32_t i = 0; i < v->op_room; i++) {
		if (v->ops[i])
			op_free(v, v->ops[i]);
	}
	free(v->ops);
	v->ops = NULL;
	v->op_room = 0;
}
