/* SPDX-License-Identifier: MIT */
#include "transport/verbs/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* What pack_rkey() writes: where two pieces of memory are, and the key to each. */
struct rma_desc {
	struct {
		uint64_t addr;
		uint32_t rkey, pad;
	} piece[2];
};
static_assert(sizeof(struct rma_desc) <= WIRE_RMA_MAX, "fits an announcement");

/* Up to two pieces of local memory, being registered or registered. */
struct rma_memory {
	struct regcache *regs;
	struct regcache_use use[2];
	int pending;             /* registrations, or ends of them, that are awaited */
	int err;
};

struct verbs_rkey {
	struct verbs_rkey *next, *next_event;
	struct verbs_peer *peer;
	uint64_t cookie;
	bool event;              /* in verbs.rkey_events */
	bool cancelled;          /* released, cancelled or refused: not found any more */
	bool unreachable;        /* cancelled, and no adapter reaches the memory through it */
	bool announce;           /* on_cancelled is to follow */
	struct rma_memory memory;
};

/* A get or put. Cancelled ones stay until the adapter has given back what was posted. */
struct verbs_op {
	struct verbs_op *next, *next_event; /* next: in the connection's queue, while something is left to post */
	struct verbs_conn *conn; /* NULL: freed */
	struct verbs_peer *peer;
	enum rma_direction way;
	uint32_t index;          /* in verbs.ops */
	uint64_t cookie;
	bool queued, event, cancelled, unreachable, announce; /* as for a remote key */
	uint32_t under_way;
	int piece;               /* where to go on */
	size_t at;
	struct {
		uint64_t remote;
		uint32_t rkey;
		char *local;
		size_t len;
	} seg[2];
	struct rma_memory memory;
	struct wire_hdr behind;  /* a put: goes out after the last write */
};

/* --- memory --- */

static void memory_warn(const struct rma_memory *m, struct verbs *v, int err)
{
	size_t bytes = m->use[0].len + m->use[1].len;

	if (err == -ENOMEM || err == -EAGAIN)
		device_warn_memory(v, bytes);
	else
		log_info(v->env.log, "verbs: memory of %zu bytes cannot be registered: %s", bytes, strerror(-err));
}

/* Registers up to two pieces, as one if they touch.  0; -EINPROGRESS: ready() of the uses follows, m->pending times; -ENOMEM. */
static int memory_register(struct rma_memory *m, struct regcache *regs, void *const base[2], const size_t len[2], int access,
			   void (*ready)(struct regcache_use *use, int err), void *owner)
{
	bool joined = len[0] && len[1] && (char *)base[0] + len[0] == base[1];
	int rc = 0;

	m->regs = regs;
	for (int i = 0; i < 2 && rc == 0; i++) {
		m->use[i] = (struct regcache_use){.ready = ready, .owner = owner};
		if (!len[i])
			continue;
		rc = regcache_use(regs, &m->use[i], joined ? base[0] : base[i], joined ? len[0] + len[1] : len[i], access);
		m->pending += rc == -EINPROGRESS;
		rc = rc == -EINPROGRESS ? 0 : rc;
	}
	if (rc == 0)
		return m->pending > 0 ? -EINPROGRESS : 0;
	for (int i = 0; i < 2; i++)
		regcache_unuse(regs, &m->use[i]);
	return rc;
}

static void memory_release(struct rma_memory *m)
{
	for (int i = 0; i < 2; i++)
		regcache_unuse(m->regs, &m->use[i]);
	m->pending = 0;
}

/* False: no adapter reaches it now. */
static bool memory_revoke(struct rma_memory *m)
{
	m->pending = 0;
	for (int i = 0; i < 2; i++)
		m->pending += regcache_revoke(m->regs, &m->use[i]);
	return m->pending > 0;
}

/* --- remote keys --- */

static struct verbs_rkey **rkey_bucket(struct verbs *v, uint64_t cookie)
{
	return &v->rkeys[(cookie ^ cookie >> 8) % VERBS_RKEY_BUCKETS];
}

static struct verbs_rkey *rkey_find(struct verbs *v, int peer, uint64_t cookie)
{
	struct verbs_rkey *k = *rkey_bucket(v, cookie);

	while (k && (k->cookie != cookie || k->cancelled || k->peer->rank != peer))
		k = k->next;
	return k;
}

static void rkey_free(struct verbs *v, struct verbs_rkey *k)
{
	struct verbs_rkey **at = rkey_bucket(v, k->cookie);

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	memory_release(&k->memory);
	free(k);
}

static void rkey_event(struct verbs_rkey *k)
{
	struct verbs *v = k->peer->verbs;

	if (k->event)
		return;
	k->event = true;
	k->next_event = v->rkey_events;
	v->rkey_events = k;
	atomic_fetch_add(&v->chores, 1);
}

static void rkey_ready(struct regcache_use *use, int err)
{
	struct verbs_rkey *k = use->owner;

	if (err && !k->cancelled)
		k->memory.err = err;
	if (--k->memory.pending > 0)
		return;
	k->unreachable = k->cancelled;
	rkey_event(k);
}

/* No adapter reaches the memory. */
static void rkey_end(struct verbs *v, struct verbs_rkey *k)
{
	k->cancelled = k->unreachable = true;
	if (k->event) /* rma_poll() frees it */
		memory_release(&k->memory);
	else
		rkey_free(v, k);
}

/* May this memory be moved by RDMA, as the setting has it? */
static bool rma_wanted(const struct verbs *v, enum transport_access access, size_t bytes)
{
	if ((v->rendezvous == VERBS_RENDEZVOUS_READ && access != TRANSPORT_GET) ||
	    (v->rendezvous == VERBS_RENDEZVOUS_WRITE && access != TRANSPORT_PUT))
		return false;
	return bytes >= v->get_min;
}

bool verbs_prefers_get(const struct transport *t, int peer, size_t bytes)
{
	(void)peer;
	return rma_wanted((const struct verbs *)t, TRANSPORT_GET, bytes);
}

bool verbs_prefers_put(const struct transport *t, int peer, size_t bytes)
{
	(void)peer;
	return rma_wanted((const struct verbs *)t, TRANSPORT_PUT, bytes);
}

/* Registered or refused: what pack_rkey() answers. */
static int rkey_answer(struct verbs *v, struct verbs_rkey *k, const void *base[2], void *desc)
{
	struct rma_desc out = {0};

	if (k->memory.pending > 0)
		return -EAGAIN;
	if (k->memory.err) {
		memory_warn(&k->memory, v, k->memory.err);
		rkey_end(v, k);
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		if (!k->memory.use[i].entry)
			continue;
		out.piece[i].addr = (uint64_t)(uintptr_t)base[i];
		out.piece[i].rkey = k->memory.use[i].entry->mr->rkey;
	}
	memcpy(desc, &out, sizeof(out));
	return (int)sizeof(out);
}

int verbs_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2],
		    const size_t len[2], void *desc)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_peer *p = &v->peers[peer];
	struct verbs_rkey *k = rkey_find(v, peer, cookie), **bucket = rkey_bucket(v, cookie);
	void *memory[2] = {(void *)(uintptr_t)base[0], (void *)(uintptr_t)base[1]};
	int flags = access == TRANSPORT_GET ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int rc;

	if (k)
		return rkey_answer(v, k, base, desc);
	if (p->state != PEER_UP || !rma_wanted(v, access, len[0] + len[1]))
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return 0;
	k->peer = p;
	k->cookie = cookie;
	rc = memory_register(&k->memory, &p->conn->device->regs, memory, len, flags, rkey_ready, k);
	if (rc < 0 && rc != -EINPROGRESS) {
		free(k);
		return 0;
	}
	k->next = *bucket;
	*bucket = k;
	return rkey_answer(v, k, base, desc);
}

void verbs_release_rkey(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_rkey *k = rkey_find(v, peer, cookie);

	if (k)
		rkey_end(v, k);
}

/* --- operations --- */

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
	struct rma_queue *q = &o->conn->queue[o->way];

	*q->tail = o;
	q->tail = &o->next;
	o->queued = true;
}

static void op_unqueue(struct verbs_op *o)
{
	struct rma_queue *q = o->conn ? &o->conn->queue[o->way] : NULL;

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

static int op_post(struct verbs_conn *c, struct verbs_op *o)
{
	size_t left = o->seg[o->piece].len - o->at;
	size_t n = left < c->device->max_rma ? left : c->device->max_rma;
	struct ibv_sge sge = {(uint64_t)(uintptr_t)(o->seg[o->piece].local + o->at), (uint32_t)n,
			      o->memory.use[o->piece].entry->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_RMA, c->number, o->index),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = o->way == RMA_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
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
	c->queue[o->way].under_way++;
	c->peer->ops[o->way]++;
	c->peer->op_bytes[o->way] += n;
	return 0;
}

/* The core is told. */
static void op_finish(struct verbs *v, struct verbs_op *o, int err)
{
	const struct transport_sink *sink = &v->env.sink;
	struct verbs_peer *p = o->peer;
	enum rma_direction way = o->way;
	uint64_t cookie = o->cookie;

	op_free(v, o);
	if (p->state == PEER_DOWN)
		return;
	(way == RMA_READ ? sink->on_get : sink->on_put)(sink->core, p->rank, cookie, err);
}

/* The next step of the first operation in the queue. False: it has to wait. */
static bool op_step(struct verbs_conn *c, struct rma_queue *q)
{
	struct verbs_op *o = q->head;

	if (!op_all_posted(o))
		return q->under_way < q->max && op_post(c, o) == 0;
	c->behind_waits = o->way == RMA_WRITE && !post_behind(c, &o->behind);
	if (c->behind_waits || c->peer->state != PEER_UP)
		return false;
	op_unqueue(o);
	if (!o->under_way)
		op_finish(c->verbs, o, 0);
	return true;
}

void rma_progress(struct verbs_conn *c)
{
	for (int way = 0; way < RMA_DIRECTIONS; way++) {
		/* an upcall may end the peer */
		while (connection_in(c, PEER_UP) && c->queue[way].head && op_step(c, &c->queue[way]))
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

static int op_access(const struct verbs_device *d, enum rma_direction way)
{
	if (way == RMA_WRITE)
		return 0;
	/* iWARP: the answer of a read is a write of the other side */
	return IBV_ACCESS_LOCAL_WRITE | (d->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static struct verbs_op *op_new(struct verbs_peer *p, enum rma_direction way, const struct transport_rma *rma,
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
	o->way = way;
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

static int op_start(struct verbs *v, int peer, enum rma_direction way, const struct transport_rma *rma,
		    const struct wire_hdr *behind)
{
	struct verbs_peer *p = &v->peers[peer];
	void *const base[2] = {rma->local[0].base, rma->local[1].base};
	const size_t len[2] = {rma->local[0].len, rma->local[1].len};
	struct verbs_op *o;
	int rc;

	if (rma->desc_bytes != sizeof(struct rma_desc))
		return error_set(-EPROTO, "a descriptor of %zu bytes from rank %d", rma->desc_bytes, peer);
	if (p->state != PEER_UP || p->conn->queue[way].max == 0)
		return error_set(-ENOSYS, "no RDMA from and to rank %d", peer);
	o = op_new(p, way, rma, behind);
	if (!o)
		return error_set(-ENOMEM, "no memory for an RDMA operation");
	rc = memory_register(&o->memory, &p->conn->device->regs, base, len, op_access(p->conn->device, way), op_ready, o);
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
	c->queue[o->way].under_way--;
	o->under_way--;
	if (o->cancelled && !o->under_way)
		op_end(o);
	else if (!o->cancelled && ok && !o->under_way && !o->queued)
		op_finish(v, o, 0);
	rma_progress(c);
}

/* --- cancelling --- */

/* The connection's end cuts its adapter off: what is registered for others too need not go. */
static bool rma_ends_with_peer(const struct verbs_peer *p)
{
	return p->conn && p->state == PEER_DOWN;
}

/* True: on_cancelled follows. */
static bool rkey_cancel(struct verbs *v, struct verbs_rkey *k)
{
	bool known = k->memory.pending == 0; /* to the peer, perhaps */

	k->cancelled = true;
	k->announce = known && (rma_ends_with_peer(k->peer) || memory_revoke(&k->memory));
	if (!k->announce)
		rkey_end(v, k);
	return known && k->announce;
}

static bool op_cancel(struct verbs_op *o)
{
	struct verbs_conn *c = o->conn;

	op_unqueue(o);
	if (c && !c->queue[RMA_WRITE].head)
		c->behind_waits = false; /* with others left, what it waits for brings their turn */
	o->cancelled = true;
	o->announce = c && o->under_way > 0 && (rma_ends_with_peer(o->peer) || memory_revoke(&o->memory));
	if (o->announce)
		return true;
	op_end(o);
	return false;
}

int verbs_cancel(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_rkey *k = rkey_find(v, peer, cookie);
	bool follows = k && rkey_cancel(v, k);

	for (uint32_t i = 0; i < v->op_room; i++) {
		struct verbs_op *o = v->ops[i];

		if (o && !o->cancelled && o->cookie == cookie && o->peer->rank == peer)
			follows = op_cancel(o) || follows;
	}
	return follows ? -EINPROGRESS : 0;
}

static void rkey_poll(struct verbs *v, struct verbs_rkey *k)
{
	const struct transport_sink *sink = &v->env.sink;
	int rank = k->peer->rank;
	uint64_t cookie = k->cookie;
	bool announce = k->announce;

	if (!k->unreachable)
		return; /* registered or refused: the core asks again */
	rkey_free(v, k);
	if (announce)
		sink->on_cancelled(sink->core, rank, cookie);
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
	int events = 0;

	for (; v->rkey_events; events++) {
		struct verbs_rkey *k = v->rkey_events;

		v->rkey_events = k->next_event;
		k->event = false;
		atomic_fetch_sub(&v->chores, 1);
		rkey_poll(v, k);
	}
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
	for (unsigned i = 0; i < VERBS_RKEY_BUCKETS; i++) {
		for (struct verbs_rkey *k = v->rkeys[i]; k; k = k->next) {
			if (k->peer != c->peer || !k->announce)
				continue;
			k->unreachable = true;
			memory_release(&k->memory);
			rkey_event(k);
		}
	}
}

void rma_close(struct verbs *v)
{
	for (unsigned i = 0; i < VERBS_RKEY_BUCKETS; i++) {
		while (v->rkeys[i])
			rkey_free(v, v->rkeys[i]);
	}
	for (uint32_t i = 0; i < v->op_room; i++) {
		if (v->ops[i])
			op_free(v, v->ops[i]);
	}
	free(v->ops);
	v->ops = NULL;
	v->op_room = 0;
}
