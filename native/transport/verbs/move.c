/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* A get or put under way. Cancelled ones stay until the adapter has given back what was posted. */
struct verbs_move {
	struct verbs_move *next; /* in the link's queue while something is left to post */
	struct verbs_link *link;
	enum verbs_direction way;
	uint32_t index;         /* in verbs.moves */
	uint64_t cookie;
	bool cancelled, queued;
	uint32_t under_way;
	int piece;              /* where to go on */
	size_t at;
	struct {
		uint64_t remote;
		uint32_t rkey;
		char *local;
		size_t len;
	} seg[2];
	struct regcache_entry *reg[2];
	struct wire_hdr behind; /* a put: goes out after the last write */
};

/* The memory may be used by others from now on: what the adapter still moves there is cut off. */
static void move_release(struct verbs_move *m)
{
	for (int i = 0; i < 2; i++) {
		regcache_put(&m->link->device->regs, m->reg[i]);
		m->reg[i] = NULL;
	}
}

static void move_free(struct verbs *v, struct verbs_move *m)
{
	move_release(m);
	v->moves[m->index] = NULL;
	free(m);
}

static void move_queue(struct verbs_move *m)
{
	struct verbs_queue *q = &m->link->queue[m->way];

	*q->tail = m;
	q->tail = &m->next;
	m->queued = true;
}

static void move_unqueue(struct verbs_move *m)
{
	struct verbs_queue *q = &m->link->queue[m->way];

	for (struct verbs_move **at = &q->head; m->queued && *at; at = &(*at)->next) {
		if (*at != m)
			continue;
		*at = m->next;
		if (q->tail == &m->next)
			q->tail = at;
		m->queued = false;
		return;
	}
}

static bool move_all_posted(struct verbs_move *m)
{
	while (m->piece < 2 && m->at == m->seg[m->piece].len) {
		m->piece++;
		m->at = 0;
	}
	return m->piece == 2;
}

static int move_post(struct verbs_link *l, struct verbs_move *m)
{
	size_t left = m->seg[m->piece].len - m->at;
	size_t n = left < l->device->max_move ? left : l->device->max_move;
	struct ibv_sge sge = {(uint64_t)(uintptr_t)(m->seg[m->piece].local + m->at), (uint32_t)n, m->reg[m->piece]->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_MOVE, l->number, m->index),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = m->way == VERBS_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = m->seg[m->piece].remote + m->at, .rkey = m->seg[m->piece].rkey}},
			   *bad;
	int err = l->verbs->api->post_send(l->qp, &wr, &bad);

	if (err) {
		peer_end(l->peer, -err, "rank %d: the adapter takes no more work: %s", l->peer->rank, strerror(err));
		return -err;
	}
	m->at += n;
	m->under_way++;
	l->queue[m->way].under_way++;
	l->peer->moves[m->way]++;
	l->peer->move_bytes[m->way] += n;
	return 0;
}

/* All that this move has to post is posted, and done. */
static void move_finish(struct verbs_link *l, struct verbs_move *m)
{
	const struct transport_sink *sink = &l->verbs->env.sink;
	enum verbs_direction way = m->way;
	uint64_t cookie = m->cookie;

	move_free(l->verbs, m);
	if (!l->peer || l->peer->state == VERBS_DOWN)
		return;
	if (way == VERBS_READ)
		sink->on_get(sink->core, l->peer->rank, cookie, 0);
	else
		sink->on_put(sink->core, l->peer->rank, cookie, 0);
}

/* The next step of the first move in the queue. False: it has to wait. */
static bool move_step(struct verbs_link *l, struct verbs_queue *q)
{
	struct verbs_move *m = q->head;

	if (!move_all_posted(m))
		return q->under_way < q->max && move_post(l, m) == 0;
	l->behind_waits = m->way == VERBS_WRITE && !post_behind(l, &m->behind);
	if (l->behind_waits || l->peer->state != VERBS_UP)
		return false;
	move_unqueue(m);
	if (!m->under_way)
		move_finish(l, m);
	return true;
}

void move_pump(struct verbs_link *l)
{
	for (int way = 0; way < VERBS_DIRECTIONS; way++) {
		/* an upcall may end the peer, and with it the link */
		while (l->peer && l->peer->state == VERBS_UP && l->queue[way].head && move_step(l, &l->queue[way]))
			;
	}
}

static int move_index(struct verbs *v, struct verbs_move *m)
{
	uint32_t room = v->move_room ? 2 * v->move_room : 64;
	struct verbs_move **moves;

	for (uint32_t i = 0; i < v->move_room; i++) {
		uint32_t at = (v->move_next + i) % v->move_room;

		if (v->moves[at])
			continue;
		m->index = at;
		v->moves[at] = m;
		v->move_next = at + 1;
		return 0;
	}
	moves = realloc(v->moves, room * sizeof(*moves));
	if (!moves)
		return error_set(-ENOMEM, "no memory for a move");
	memset(moves + v->move_room, 0, (room - v->move_room) * sizeof(*moves));
	m->index = v->move_room;
	moves[m->index] = m;
	v->moves = moves;
	v->move_room = room;
	v->move_next = m->index + 1;
	return 0;
}

static int move_access(const struct verbs_device *d, enum verbs_direction way)
{
	if (way == VERBS_WRITE)
		return 0;
	/* iWARP: the answer of a read is a write of the other side */
	return IBV_ACCESS_LOCAL_WRITE | (d->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static int move_start(struct verbs *v, int peer, enum verbs_direction way, const struct transport_rma *move,
		      const struct wire_hdr *behind)
{
	struct verbs_peer *p = &v->peers[peer];
	void *const base[2] = {move->local[0].base, move->local[1].base};
	const size_t len[2] = {move->local[0].len, move->local[1].len};
	struct verbs_desc desc;
	struct verbs_move *m;
	int rc;

	if (move->desc_bytes != sizeof(desc))
		return error_set(-EPROTO, "a descriptor of %zu bytes from rank %d", move->desc_bytes, peer);
	if (p->state != VERBS_UP || p->link->queue[way].max == 0)
		return error_set(-ENOSYS, "no moves from and to rank %d", peer);
	m = calloc(1, sizeof(*m));
	if (!m)
		return error_set(-ENOMEM, "no memory for a move");
	memcpy(&desc, move->desc, sizeof(desc));
	m->link = p->link;
	m->way = way;
	m->cookie = move->cookie;
	if (behind)
		m->behind = *behind;
	for (int i = 0; i < 2; i++) {
		m->seg[i].remote = desc.piece[i].addr;
		m->seg[i].rkey = desc.piece[i].rkey;
		m->seg[i].local = base[i];
		m->seg[i].len = len[i];
	}
	rc = expose_register(p->link->device, base, len, move_access(p->link->device, way), m->reg);
	if (rc == 0)
		rc = move_index(v, m);
	if (rc < 0) {
		move_release(m);
		free(m);
		return rc;
	}
	move_queue(m);
	move_pump(p->link);
	return 0;
}

int verbs_get(struct transport *t, int peer, const struct transport_rma *get)
{
	return move_start((struct verbs *)t, peer, VERBS_READ, get, NULL);
}

int verbs_put(struct transport *t, int peer, const struct transport_rma *put, const struct wire_hdr *behind)
{
	return move_start((struct verbs *)t, peer, VERBS_WRITE, put, behind);
}

void move_on_completion(struct verbs_link *l, uint32_t index, bool ok)
{
	struct verbs *v = l->verbs;
	struct verbs_move *m = index < v->move_room ? v->moves[index] : NULL;

	if (!m || m->link != l || !m->under_way)
		return;
	l->queue[m->way].under_way--;
	m->under_way--;
	if (m->cancelled) {
		if (!m->under_way)
			move_free(v, m);
	} else if (ok && !m->under_way && !m->queued) {
		move_finish(l, m);
	}
	move_pump(l);
}

void verbs_cancel(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;

	for (uint32_t i = 0; i < v->move_room; i++) {
		struct verbs_move *m = v->moves[i];
		struct verbs_link *l = m ? m->link : NULL;

		if (!m || m->cancelled || m->cookie != cookie || l->peer != &v->peers[peer])
			continue;
		move_unqueue(m);
		if (!l->queue[VERBS_WRITE].head)
			l->behind_waits = false; /* with others left, what it waits for brings their turn */
		m->cancelled = true;
		if (m->under_way)
			move_release(m);
		else
			move_free(v, m);
		return;
	}
}

void move_close(struct verbs *v)
{
	for (uint32_t i = 0; i < v->move_room; i++) {
		if (v->moves[i])
			move_free(v, v->moves[i]);
	}
	free(v->moves);
	v->moves = NULL;
	v->move_room = 0;
}
