/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* What expose() writes: where two pieces of memory are, and the key to each. */
struct read_desc {
	struct {
		uint64_t addr;
		uint32_t rkey, pad;
	} piece[2];
};
static_assert(sizeof(struct read_desc) <= WIRE_RMA_MAX, "fits an announcement");

/* Exposed memory of a send, until unexpose(). */
struct read_exposed {
	struct read_exposed *next;
	uint64_t cookie;
	struct regcache *regs;
	struct regcache_entry *reg[2];
};

/* A get under way. Cancelled ones stay until the adapter has given back what was posted. */
struct verbs_get {
	struct verbs_get *next; /* in the link's list while something is left to post */
	struct verbs_link *link;
	uint32_t index;         /* in verbs.gets */
	uint64_t cookie;
	bool cancelled, queued;
	uint32_t under_way;
	int piece;              /* where to go on */
	size_t at;
	struct {
		uint64_t remote;
		uint32_t rkey;
		char *to;
		size_t len;
		struct regcache_entry *reg;
	} seg[2];
};

static struct read_exposed **read_bucket(struct verbs *v, uint64_t cookie)
{
	return &v->exposed[(cookie ^ cookie >> 8) % VERBS_EXPOSED_BUCKETS];
}

static struct verbs_device *read_device(struct verbs *v, int peer)
{
	struct verbs_peer *p = &v->peers[peer];

	return p->state == VERBS_UP ? p->link->device : NULL;
}

int verbs_expose(struct transport *t, int peer, uint64_t cookie, const void *base[2], const size_t len[2], void *desc)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_device *d = read_device(v, peer);
	struct read_exposed *e, **bucket;
	struct read_desc out = {0};

	if (!d || len[0] + len[1] < v->get_min)
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return 0;
	e->cookie = cookie;
	for (int i = 0; i < 2; i++) {
		if (!len[i])
			continue;
		e->reg[i] = regcache_get(&d->regs, (void *)(uintptr_t)base[i], len[i], IBV_ACCESS_REMOTE_READ);
		if (!e->reg[i]) {
			if (errno == ENOMEM || errno == EAGAIN)
				pool_warn_memory(v, len[i]);
			else
				log_info(v->env.log, "verbs: memory of %zu bytes cannot be registered (%s): it is streamed", len[i],
					 strerror(errno));
			regcache_put(&d->regs, e->reg[0]);
			free(e);
			return 0;
		}
		out.piece[i].addr = (uint64_t)(uintptr_t)base[i];
		out.piece[i].rkey = e->reg[i]->mr->rkey;
	}
	bucket = read_bucket(v, cookie);
	e->next = *bucket;
	e->regs = &d->regs;
	*bucket = e;
	memcpy(desc, &out, sizeof(out));
	return (int)sizeof(out);
}

void verbs_unexpose(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;

	(void)peer;
	for (struct read_exposed **at = read_bucket(v, cookie); *at; at = &(*at)->next) {
		struct read_exposed *e = *at;

		if (e->cookie != cookie)
			continue;
		*at = e->next;
		for (int i = 0; i < 2; i++)
			regcache_put(e->regs, e->reg[i]);
		free(e);
		return;
	}
}

bool verbs_get_pays(const struct transport *t, int peer, size_t bytes)
{
	(void)peer;
	return bytes >= ((const struct verbs *)t)->get_min;
}

/* The memory may be used by others from now on: what the adapter still moves there is cut off. */
static void read_release(struct verbs_get *g)
{
	for (int i = 0; i < 2; i++) {
		regcache_put(&g->link->device->regs, g->seg[i].reg);
		g->seg[i].reg = NULL;
	}
}

static void read_free(struct verbs *v, struct verbs_get *g)
{
	read_release(g);
	v->gets[g->index] = NULL;
	free(g);
}

static void read_unqueue(struct verbs_get *g)
{
	struct verbs_link *l = g->link;

	for (struct verbs_get **at = &l->gets; g->queued && *at; at = &(*at)->next) {
		if (*at != g)
			continue;
		*at = g->next;
		if (l->gets_tail == &g->next)
			l->gets_tail = at;
		g->queued = false;
		return;
	}
}

static bool read_all_posted(struct verbs_get *g)
{
	while (g->piece < 2 && g->at == g->seg[g->piece].len) {
		g->piece++;
		g->at = 0;
	}
	return g->piece == 2;
}

static int read_post(struct verbs_link *l, struct verbs_get *g)
{
	size_t left = g->seg[g->piece].len - g->at;
	size_t n = left < l->device->max_read ? left : l->device->max_read;
	struct ibv_sge sge = {(uint64_t)(uintptr_t)(g->seg[g->piece].to + g->at), (uint32_t)n,
			      g->seg[g->piece].reg->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = verbs_work_id(VERBS_WORK_READ, l->number, g->index),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = g->seg[g->piece].remote + g->at, .rkey = g->seg[g->piece].rkey}},
			   *bad;
	int err = l->verbs->api->post_send(l->qp, &wr, &bad);

	if (err) {
		peer_end(l->peer, -err, "rank %d: the adapter takes no more reads: %s", l->peer->rank, strerror(err));
		return -err;
	}
	g->at += n;
	g->under_way++;
	l->reads++;
	l->peer->reads++;
	l->peer->read_bytes += n;
	return 0;
}

/* As many reads as the other side answers at a time. */
static void read_pump(struct verbs_link *l)
{
	while (l->gets && l->reads < l->reads_max && l->peer->state == VERBS_UP) {
		struct verbs_get *g = l->gets;

		if (!read_all_posted(g) && read_post(l, g) < 0)
			return;
		if (read_all_posted(g))
			read_unqueue(g);
	}
}

static int read_index(struct verbs *v, struct verbs_get *g)
{
	uint32_t room = v->get_room ? 2 * v->get_room : 64;
	struct verbs_get **gets;

	for (uint32_t i = 0; i < v->get_room; i++) {
		uint32_t at = (v->get_next + i) % v->get_room;

		if (v->gets[at])
			continue;
		g->index = at;
		v->gets[at] = g;
		v->get_next = at + 1;
		return 0;
	}
	gets = realloc(v->gets, room * sizeof(*gets));
	if (!gets)
		return error_set(-ENOMEM, "no memory for a get");
	memset(gets + v->get_room, 0, (room - v->get_room) * sizeof(*gets));
	g->index = v->get_room;
	gets[g->index] = g;
	v->gets = gets;
	v->get_room = room;
	v->get_next = g->index + 1;
	return 0;
}

static int read_register(struct verbs *v, struct verbs_get *g)
{
	struct verbs_device *d = g->link->device;
	/* iWARP: the answer of a read is a write of the other side */
	int access = IBV_ACCESS_LOCAL_WRITE | (d->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);

	for (int i = 0; i < 2; i++) {
		if (!g->seg[i].len)
			continue;
		g->seg[i].reg = regcache_get(&d->regs, g->seg[i].to, g->seg[i].len, access);
		if (g->seg[i].reg)
			continue;
		if (errno == ENOMEM || errno == EAGAIN)
			pool_warn_memory(v, g->seg[i].len);
		return error_sys(-errno, "registering %zu bytes of a receive", g->seg[i].len);
	}
	return 0;
}

int verbs_get(struct transport *t, int peer, const struct transport_get *get)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_peer *p = &v->peers[peer];
	struct read_desc desc;
	struct verbs_get *g;
	int rc;

	if (get->desc_bytes != sizeof(desc))
		return error_set(-EPROTO, "a descriptor of %zu bytes from rank %d", get->desc_bytes, peer);
	if (p->state != VERBS_UP || p->link->reads_max == 0)
		return error_set(-ENOSYS, "no reads from rank %d", peer);
	g = calloc(1, sizeof(*g));
	if (!g)
		return error_set(-ENOMEM, "no memory for a get");
	memcpy(&desc, get->desc, sizeof(desc));
	g->link = p->link;
	g->cookie = get->cookie;
	for (int i = 0; i < 2; i++) {
		g->seg[i].remote = desc.piece[i].addr;
		g->seg[i].rkey = desc.piece[i].rkey;
		g->seg[i].to = get->local[i].base;
		g->seg[i].len = get->local[i].len;
	}
	rc = read_register(v, g);
	if (rc == 0)
		rc = read_index(v, g);
	if (rc < 0) {
		read_release(g);
		free(g);
		return rc;
	}
	*p->link->gets_tail = g;
	p->link->gets_tail = &g->next;
	g->queued = true;
	read_pump(p->link);
	return 0;
}

void read_on_completion(struct verbs_link *l, uint32_t index, bool ok)
{
	struct verbs *v = l->verbs;
	struct verbs_get *g = index < v->get_room ? v->gets[index] : NULL;

	if (!g || g->link != l || !g->under_way)
		return;
	l->reads--;
	g->under_way--;
	if (g->cancelled) {
		if (!g->under_way)
			read_free(v, g);
	} else if (ok && !g->under_way && !g->queued) {
		uint64_t cookie = g->cookie;

		read_free(v, g);
		if (l->peer && l->peer->state != VERBS_DOWN)
			v->env.sink.on_get(v->env.sink.core, l->peer->rank, cookie, 0);
	}
	if (l->peer)
		read_pump(l);
}

void verbs_get_cancel(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;

	for (uint32_t i = 0; i < v->get_room; i++) {
		struct verbs_get *g = v->gets[i];

		if (!g || g->cancelled || g->cookie != cookie || g->link->peer != &v->peers[peer])
			continue;
		read_unqueue(g);
		g->cancelled = true;
		if (g->under_way)
			read_release(g);
		else
			read_free(v, g);
		return;
	}
}

void read_close(struct verbs *v)
{
	for (uint32_t i = 0; i < v->get_room; i++) {
		if (v->gets[i])
			read_free(v, v->gets[i]);
	}
	free(v->gets);
	v->gets = NULL;
	v->get_room = 0;
	for (unsigned i = 0; i < VERBS_EXPOSED_BUCKETS; i++) {
		while (v->exposed[i])
			verbs_unexpose(&v->base, -1, v->exposed[i]->cookie);
	}
}
