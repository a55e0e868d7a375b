/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

struct fake *fake_of(struct transport *base)
{
	return (struct fake *)base;
}

static const struct fake *fake_of_const(const struct transport *base)
{
	return (const struct fake *)base;
}

static _Thread_local char thread_mark;

/* Two threads at once would mean that the core's lock was not held. */
void fake_enter(struct fake *t, const char *what)
{
	int me = (int)((uintptr_t)&thread_mark >> 4) | 1;
	int was = 0;

	if (!atomic_compare_exchange_strong(&t->inside, &was, me) && was != me) {
		pthread_mutex_lock(&t->f->lock);
		fabric_violate(t->f, "rank %d: %s while another thread is inside", t->rank, what);
		pthread_mutex_unlock(&t->f->lock);
		while (was = 0, !atomic_compare_exchange_strong(&t->inside, &was, me))
			usleep(10);
	}
	t->depth++;
	pthread_mutex_lock(&t->f->lock);
	if (t->open_peer >= 0 && strcmp(what, "commit") != 0 && strcmp(what, "discard") != 0 && strcmp(what, "pack_rkey") != 0 &&
	    strcmp(what, "lease open") != 0)
		fabric_violate(t->f, "rank %d: %s while the slot for rank %d is open", t->rank, what, t->open_peer);
}

void fake_leave(struct fake *t)
{
	pthread_mutex_unlock(&t->f->lock);
	if (--t->depth == 0)
		atomic_store(&t->inside, 0);
}

static bool peer_valid(struct fake *t, int peer, const char *what)
{
	if (peer >= 0 && peer < t->f->cfg.size && (peer != t->rank || t->f->cfg.carries_self))
		return true;
	fabric_violate(t->f, "rank %d: %s names rank %d", t->rank, what, peer);
	return false;
}

/* The peer is looked after when the core has released its lock. */
static void wake_later(struct fake *t, int peer)
{
	struct node *n = &t->f->nodes[peer];
	struct transport_wakeups *b = t->wakeups;

	for (int i = 0; i < b->count; i++)
		if (b->peer[i].owner == &t->base && b->peer[i].doorbell == n)
			return;
	if (b->count == TRANSPORT_WAKEUPS_MAX) {
		if (atomic_load(&n->armed))
			fabric_wake(n);
		return;
	}
	b->peer[b->count].owner = &t->base;
	b->peer[b->count].doorbell = n;
	b->peer[b->count].flag = NULL;
	b->peer[b->count].urgent = true;
	b->count++;
}

/* --- life --- */

static bool fake_awaits(const struct transport *base, int peer)
{
	const struct fake *t = fake_of_const(base);
	const struct link *l = fabric_link(t->f, peer, t->rank);
	bool more;

	pthread_mutex_lock(&t->f->lock);
	more = !l->forgotten && (l->head || (l->down && !l->down_reported));
	pthread_mutex_unlock(&t->f->lock);
	return more;
}

static int fake_describe(const struct settings *settings, char *out, size_t size)
{
	(void)settings;
	snprintf(out, size, "  a network that exists in this process only\n");
	return 0;
}

static void never(void *arg)
{
	struct fake *t = arg;

	fabric_violate(t->f, "rank %d: called for a descriptor that has nothing", t->rank);
}

/* What a transport with descriptors of its own does, where the endpoint has a monitor. */
static int watch_something(struct fake *t)
{
	t->watched = eventfd(0, EFD_CLOEXEC);
	if (t->watched < 0)
		return error_sys(-errno, "eventfd");
	return t->watch.add(t->watch.monitor, t->watched, never, t);
}

static void watch_nothing(struct fake *t)
{
	if (t->watched < 0)
		return;
	t->watch.remove(t->watch.monitor, t->watched);
	/* it came off the monitor and could go back: the monitor is still there */
	if (t->watch.add(t->watch.monitor, t->watched, never, t) < 0)
		fabric_violate(t->f, "rank %d: closed after its monitor", t->rank);
	t->watch.remove(t->watch.monitor, t->watched);
	close(t->watched);
}

static int open_any(struct transport **out, const struct transport_env *env, const struct transport_ops *ops)
{
	struct fabric *f = env->test;
	struct fake *t;

	*out = NULL;
	if (!f)
		return error_set(-ENODEV, "the fake transport needs a fabric");
	if (env->size != f->cfg.size || env->rank < 0 || env->rank >= env->size)
		return error_set(-EINVAL, "rank %d of %d does not fit a fabric of %d", env->rank, env->size, f->cfg.size);
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, "no memory for a fake transport");
	t->f = f;
	t->rank = env->rank;
	t->sink = env->sink;
	t->open_peer = -1;
	t->base.ops = ops;
	t->wakeups = env->wakeups;
	t->watch = env->watch;
	t->watched = -1;
	if (t->watch.monitor && watch_something(t) < 0) {
		free(t);
		return -EIO;
	}
	fake_enter(t, "open");
	f->nodes[t->rank].open = true;
	fake_leave(t);
	*out = &t->base;
	return 0;
}

static int fake_open(struct transport **out, const struct transport_env *env)
{
	return open_any(out, env, &fake_ops);
}

static int fake_open_plain(struct transport **out, const struct transport_env *env)
{
	return open_any(out, env, &fake_plain_ops);
}

static int fake_address(struct transport *base, void *out, size_t size)
{
	struct fake *t = fake_of(base);

	return (int)fabric_address(t->f, t->rank, out, size);
}

static int fake_attach(struct transport *base, const struct transport_peer_info *peers)
{
	struct fake *t = fake_of(base);

	for (int p = 0; p < t->f->cfg.size; p++) {
		char expected[64];
		size_t len = fabric_address(t->f, p, expected, sizeof(expected));

		if (peers[p].address_bytes != len || memcmp(peers[p].address, expected, len) != 0)
			return error_set(-EPROTO, "rank %d's address is not the one that it published", p);
	}
	return 0;
}

static void fake_depart(struct transport *base)
{
	struct fake *t = fake_of(base);

	fake_enter(t, "leave");
	t->f->nodes[t->rank].left = true;
	fake_leave(t);
}

static void fake_close(struct transport *base)
{
	struct fake *t = fake_of(base);
	struct fabric *f;
	struct node *n;

	if (!base)
		return;
	f = t->f;
	n = &f->nodes[t->rank];
	fake_enter(t, "close");
	if (n->registrations) {
		bool wanted = false;

		for (struct registration *e = n->registrations; e; e = e->next)
			wanted |= !e->revoked && !fabric_link(f, e->peer, t->rank)->forgotten;
		if (wanted)
			fabric_violate(f, "rank %d: closed with memory registered", t->rank);
	}
	fabric_drop_registrations(f, t->rank, -1);
	fabric_drop_gets(f, t->rank, -1);
	fabric_drop_cancelled(f, t->rank);
	fabric_source_gone(f, t->rank, !n->left);
	n->open = false;
	atomic_store(&n->armed, false);
	watch_nothing(t);
	fake_leave(t);
	free(t);
	fabric_step(f, 0);
}

static bool fake_reaches(const struct transport *base, int peer)
{
	const struct fake *t = fake_of_const(base);

	return peer != t->rank || t->f->cfg.carries_self;
}

/* --- packets --- */

static size_t fake_payload_max(const struct transport *base, int peer)
{
	const struct fake *t = fake_of_const(base);

	return fabric_link(t->f, t->rank, peer)->payload_max; /* never changes */
}

static int reserve_refused(struct fake *t, struct link *l, int peer, size_t len)
{
	struct fabric *f = t->f;

	if (f->nodes[t->rank].dead || l->refuses)
		return error_set(-ECONNRESET, "rank %d has died (the fake link is gone)", peer);
	if (!l->connecting) {
		l->connecting = true;
		l->up_at = f->now + rng_below(&f->rng, (uint64_t)f->cfg.connect_max + 1);
	}
	if (f->now >= l->lacked_until && rng_percent(&f->rng, f->cfg.refuse_percent))
		l->lacked_until = f->now + rng_range(&f->rng, 1, 20);
	if (!fabric_link_has_room(f, l, len)) {
		l->lacked = true;
		return -EAGAIN;
	}
	l->lacked = false;
	return 0;
}

static int fake_reserve(struct transport *base, int peer, size_t len, struct transport_slot *slot)
{
	struct fake *t = fake_of(base);
	struct link *l;
	struct packet *p = NULL;
	int err = -EINVAL;

	fake_enter(t, "reserve");
	if (!peer_valid(t, peer, "reserve"))
		goto out;
	l = fabric_link(t->f, t->rank, peer);
	if (len > l->payload_max)
		fabric_violate(t->f, "rank %d: reserve of %zu bytes, payload_max is %zu", t->rank, len, l->payload_max);
	err = reserve_refused(t, l, peer, len);
	if (err)
		goto out;
	err = -ENOMEM;
	p = calloc(1, sizeof(*p));
	if (!p)
		goto out;
	p->wire = malloc(sizeof(*p->wire) + len);
	if (!p->wire) {
		free(p);
		goto out;
	}
	memset(p->wire, 0xa5, sizeof(*p->wire) + len);
	p->reserved = len;
	t->open_peer = peer;
	slot->hdr = p->wire;
	slot->payload = p->wire + 1;
	slot->private = (uintptr_t)p;
	err = 0;
out:
	fake_leave(t);
	return err;
}

static void fake_commit(struct transport *base, int peer, struct transport_slot *slot)
{
	struct fake *t = fake_of(base);
	struct packet *p = (struct packet *)(uintptr_t)slot->private;
	struct fabric *f = t->f;
	struct wire_hdr *fit;

	fake_enter(t, "commit");
	if (t->open_peer != peer)
		fabric_violate(f, "rank %d: commit for rank %d without a slot", t->rank, peer);
	t->open_peer = -1;
	if (p->wire->len > p->reserved) {
		fabric_violate(f, "rank %d: commit of %u bytes, %zu reserved", t->rank, p->wire->len, p->reserved);
		p->wire->len = (uint32_t)p->reserved;
	}
	if (p->wire->kind == WIRE_NONE || p->wire->kind >= WIRE_KIND_COUNT)
		fabric_violate(f, "rank %d: commit of a packet of kind %u", t->rank, p->wire->kind);
	fit = realloc(p->wire, sizeof(*fit) + p->wire->len);
	if (fit)
		p->wire = fit;
	p->wire->stamp = (uint16_t)rng_next(&f->rng);
	if (peer != t->rank && (!f->nodes[peer].open || f->nodes[peer].dead)) {
		fabric_packet_free(p); /* nobody is there to receive it */
	} else {
		fabric_push(f, t->rank, peer, p);
		wake_later(t, peer);
	}
	fake_leave(t);
}

static void fake_discard(struct transport *base, int peer, struct transport_slot *slot)
{
	struct fake *t = fake_of(base);

	fake_enter(t, "discard");
	if (t->open_peer != peer)
		fabric_violate(t->f, "rank %d: discard for rank %d without a slot", t->rank, peer);
	t->open_peer = -1;
	fabric_packet_free((struct packet *)(uintptr_t)slot->private);
	fake_leave(t);
}

/* --- polling --- */

static bool deliver_packet(struct fake *t, int peer)
{
	struct fabric *f = t->f;
	struct link *l = fabric_link(f, peer, t->rank);
	struct packet *p;

	if (!l->head || l->head->due > f->now)
		return false;
	p = fabric_pop(l);
	if (l->forgotten) {
		fabric_packet_free(p);
		return true;
	}
	pthread_mutex_unlock(&f->lock);
	t->sink.on_packet(t->sink.core, peer, p->wire, p->wire->len ? (void *)(p->wire + 1) : NULL);
	fabric_packet_free(p);
	pthread_mutex_lock(&f->lock);
	if (l->lacked)
		wake_later(t, peer);
	return true;
}

static bool deliver_down(struct fake *t, int peer)
{
	struct fabric *f = t->f;
	struct link *l = fabric_link(f, peer, t->rank);
	char why[80];
	bool left = f->nodes[peer].left;

	if (!l->down || l->down_reported || l->forgotten || l->head || l->down_at > f->now)
		return false;
	l->down_reported = true;
	snprintf(why, sizeof(why), "rank %d has died (the fake link broke)", peer);
	pthread_mutex_unlock(&f->lock);
	t->sink.on_down(t->sink.core, peer, left ? -EPIPE : -ECONNRESET, left ? "left" : why);
	pthread_mutex_lock(&f->lock);
	return true;
}

/* The memory is read, or written, here, while the registration is known to stand. */
static int rma_copy(struct fabric *f, const struct get *g, int rank)
{
	struct registration *e;

	if (g->err)
		return g->err;
	e = fabric_registration(f, g->peer, g->id);
	if (e && e->revoked)
		return -ECONNRESET;
	if (e && (e->access != g->access || e->peer != rank))
		fabric_violate(f, "rank %d: accesses memory of rank %d that is registered for other access", rank, g->peer);
	if (!e) {
		if (f->nodes[g->peer].open && !fabric_link(f, rank, g->peer)->forgotten)
			fabric_violate(f, "rank %d: released memory that rank %d was still transferring", g->peer, rank);
		return -ECONNRESET;
	}
	for (int i = 0; i < 2; i++)
		if (g->len[i] && g->access == TRANSPORT_GET)
			memcpy(g->base[i], e->base[i], g->len[i]);
		else if (g->len[i])
			memcpy((void *)(uintptr_t)e->base[i], g->base[i], g->len[i]);
	return 0;
}

/* The packet behind a put, whether or not the link has room. */
static int put_behind(struct fake *t, const struct get *g)
{
	struct packet *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->wire = malloc(sizeof(*p->wire));
	if (!p->wire) {
		free(p);
		return -ENOMEM;
	}
	*p->wire = g->behind;
	fabric_push(t->f, t->rank, g->peer, p);
	wake_later(t, g->peer);
	return 0;
}

static bool deliver_rma(struct fake *t)
{
	struct fabric *f = t->f;
	struct get **at = &f->nodes[t->rank].gets, *g;
	int err;

	while (*at && (*at)->due > f->now)
		at = &(*at)->next;
	g = *at;
	if (!g)
		return false;
	*at = g->next;
	err = rma_copy(f, g, t->rank);
	if (err == 0 && g->access == TRANSPORT_PUT)
		err = put_behind(t, g);
	pthread_mutex_unlock(&f->lock);
	if (err)
		error_set(err, "the fake rma operation failed");
	if (g->access == TRANSPORT_GET)
		t->sink.on_get(t->sink.core, g->peer, g->cookie, err);
	else
		t->sink.on_put(t->sink.core, g->peer, g->cookie, err);
	free(g);
	pthread_mutex_lock(&f->lock);
	return true;
}

static bool deliver_cancelled(struct fake *t)
{
	struct fabric *f = t->f;
	struct cancelled **at = &f->nodes[t->rank].cancelled, *c;

	while (*at && (*at)->due > f->now)
		at = &(*at)->next;
	c = *at;
	if (!c)
		return false;
	*at = c->next;
	for (int i = 0; i < 2; i++)
		if (c->len[i])
			memset(c->base[i], 0x5a, c->len[i]);
	pthread_mutex_unlock(&f->lock);
	t->sink.on_cancelled(t->sink.core, c->peer, c->cookie);
	free(c);
	pthread_mutex_lock(&f->lock);
	return true;
}

static bool deliver_one(struct fake *t)
{
	int size = t->f->cfg.size, first = (int)rng_below(&t->f->rng, (uint64_t)size + 1);

	if (first == size && deliver_rma(t))
		return true;
	for (int i = 0; i < size; i++) {
		int peer = (first + i) % size;

		if (deliver_packet(t, peer) || deliver_down(t, peer))
			return true;
	}
	return deliver_rma(t) || deliver_cancelled(t);
}

static int fake_poll(struct transport *base, int budget)
{
	struct fake *t = fake_of(base);
	struct fabric *f = t->f;
	struct node *n = &f->nodes[t->rank];
	int events = 0;

	fake_enter(t, "poll");
	f->now++;
	if (!n->frozen && !n->dead && !rng_percent(&f->rng, f->cfg.spurious_percent))
		while (events < budget && deliver_one(t)) {
			events++;
			if (rng_percent(&f->rng, f->cfg.spurious_percent))
				break;
		}
	fake_leave(t);
	return events;
}

static bool fake_ready(const struct transport *base)
{
	const struct fake *t = fake_of_const(base);
	bool ready;

	pthread_mutex_lock(&t->f->lock);
	t->f->now++;
	ready = fabric_due(t->f, t->rank) || rng_percent(&t->f->rng, t->f->cfg.spurious_percent);
	pthread_mutex_unlock(&t->f->lock);
	return ready;
}

/* --- sleeping --- */

static void fake_arm(struct transport *base)
{
	struct fake *t = fake_of(base);

	fake_enter(t, "arm");
	atomic_store(&t->f->nodes[t->rank].armed, true);
	fake_leave(t);
}

static void fake_disarm(struct transport *base)
{
	struct fake *t = fake_of(base);

	fake_enter(t, "disarm");
	atomic_store(&t->f->nodes[t->rank].armed, false);
	fake_leave(t);
}

/* A packet that is not due yet wakes nobody: the clock does, when its time has come. */
static void fake_wake(struct transport *base, void *doorbell, void *flag, bool urgent)
{
	struct fake *t = fake_of(base);
	struct fabric *f = t->f;
	struct node *n = doorbell;

	(void)flag;
	(void)urgent;
	pthread_mutex_lock(&f->lock);
	if (rng_percent(&f->rng, f->cfg.spurious_percent))
		fabric_wake(&f->nodes[rng_below(&f->rng, (uint64_t)f->cfg.size)]);
	if (atomic_load(&n->armed))
		fabric_wake(n);
	pthread_mutex_unlock(&f->lock);
}

static uint32_t *fake_doorbell(struct transport *base)
{
	struct fake *t = fake_of(base);

	return (uint32_t *)t->f->nodes[t->rank].doorbell;
}

/* --- rma operations --- */

struct fake_desc {
	uint64_t magic, id;
	uint64_t len[2];
};
static_assert(sizeof(struct fake_desc) <= WIRE_RMA_MAX, "a descriptor fits an RTS");

/* Memory that may be registered only after a while; NULL: no memory. */
static struct registration *fake_register(struct fake *t, int peer, uint64_t cookie, enum transport_access access, const void *from[2],
					  const size_t len[2])
{
	struct fabric *f = t->f;
	struct registration *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct registration){.next = f->nodes[t->rank].registrations,
				   .id = ++f->next_id,
				   .cookie = cookie,
				   .due = f->now + (f->cfg.pack_delay_max ? rng_below(&f->rng, f->cfg.pack_delay_max + 1u) : 0),
				   .peer = peer,
				   .access = access,
				   .base = {from[0], from[1]},
				   .len = {len[0], len[1]}};
	f->nodes[t->rank].registrations = e;
	return e;
}

static int fake_pack_rkey(struct transport *base, int peer, uint64_t cookie, enum transport_access access, const void *from[2],
			  const size_t len[2], void *desc)
{
	struct fake *t = fake_of(base);
	struct fabric *f = t->f;
	struct registration *e = NULL;
	struct fake_desc d = {.magic = FAKE_MAGIC};
	int ret = 0;

	fake_enter(t, "pack_rkey");
	if (!peer_valid(t, peer, "pack_rkey"))
		goto out;
	e = f->nodes[t->rank].registrations;
	while (e && (e->revoked || e->peer != peer || e->cookie != cookie))
		e = e->next;
	if (e && e->packed)
		fabric_violate(f, "rank %d: cookie %llu registered twice", t->rank, (unsigned long long)cookie);
	if (!e && rng_percent(&f->rng, f->cfg.pack_refuse_percent))
		goto out;
	if (!e)
		e = fake_register(t, peer, cookie, access, from, len);
	ret = !e ? -ENOMEM : e->due > f->now ? -EAGAIN : (int)sizeof(d);
	if (ret < 0)
		goto out;
	e->packed = true;
	d.id = e->id;
	d.len[0] = len[0];
	d.len[1] = len[1];
	memcpy(desc, &d, sizeof(d));
out:
	fake_leave(t);
	return ret;
}

static void fake_release_rkey(struct transport *base, int peer, uint64_t cookie)
{
	struct fake *t = fake_of(base);
	struct registration **at;

	fake_enter(t, "release_rkey");
	at = &t->f->nodes[t->rank].registrations;
	while (*at && ((*at)->revoked || (*at)->peer != peer || (*at)->cookie != cookie))
		at = &(*at)->next;
	if (*at) {
		struct registration *e = *at;

		*at = e->next;
		free(e);
	} else if (!t->f->nodes[t->rank].dead) {
		fabric_violate(t->f, "rank %d: release of cookie %llu that is not registered for rank %d", t->rank,
			       (unsigned long long)cookie, peer);
	}
	fake_leave(t);
}

static bool fake_learns_get(const struct transport *base, int peer, size_t bytes)
{
	return fake_of_const(base)->f->cfg.learns_gets && fake_prefers_get(base, peer, bytes);
}

bool fake_prefers_get(const struct transport *base, int peer, size_t bytes)
{
	const struct fake *t = fake_of_const(base);

	(void)peer;
	return bytes >= t->f->cfg.get_min;
}

static bool fake_prefers_put(const struct transport *base, int peer, size_t bytes)
{
	const struct fake *t = fake_of_const(base);

	(void)peer;
	return bytes >= t->f->cfg.put_min;
}

static int rma_outcome(struct fabric *f, int peer, enum transport_access access)
{
	if (f->nodes[peer].dead || !f->nodes[peer].open)
		return -ESRCH;
	if (!rng_percent(&f->rng, access == TRANSPORT_GET ? f->cfg.get_fail_percent : f->cfg.put_fail_percent))
		return 0;
	if (f->cfg.get_errno)
		return f->cfg.get_errno;
	return rng_percent(&f->rng, 50) ? -EPERM : -ENOSYS;
}

static int rma_start(struct transport *base, int peer, enum transport_access access, const struct transport_rma *get,
		     const struct wire_hdr *behind)
{
	const char *what = access == TRANSPORT_GET ? "get" : "put";
	struct fake *t = fake_of(base);
	struct fabric *f = t->f;
	struct fake_desc d = {0};
	struct get *g;
	int err = -EINVAL;

	fake_enter(t, what);
	if (!peer_valid(t, peer, what))
		goto out;
	if (get->desc_bytes >= sizeof(d))
		memcpy(&d, get->desc, sizeof(d));
	if (d.magic != FAKE_MAGIC || get->desc_bytes != sizeof(d)) {
		error_set(err, "not a descriptor of the fake transport");
		goto out; /* a corrupt packet may bring such */
	}
	if (d.len[0] != get->local[0].len || d.len[1] != get->local[1].len)
		fabric_violate(f, "rank %d: %s of %zu + %zu bytes, registered are %llu + %llu", t->rank, what, get->local[0].len,
			       get->local[1].len, (unsigned long long)d.len[0], (unsigned long long)d.len[1]);
	if (rng_percent(&f->rng, f->cfg.refuse_percent)) {
		struct link *l = fabric_link(f, t->rank, peer);

		err = -EAGAIN;
		l->lacked = true;
		l->lacked_until = f->now + rng_range(&f->rng, 1, 20);
		goto out;
	}
	g = calloc(1, sizeof(*g));
	err = -ENOMEM;
	if (!g)
		goto out;
	*g = (struct get){.next = f->nodes[t->rank].gets,
			  .cookie = get->cookie,
			  .id = d.id,
			  .peer = peer,
			  .due = f->now + rng_below(&f->rng, (uint64_t)f->cfg.get_delay_max + 1),
			  .err = rma_outcome(f, peer, access),
			  .access = access,
			  .behind = *behind,
			  .base = {get->local[0].base, get->local[1].base},
			  .len = {get->local[0].len, get->local[1].len}};
	f->nodes[t->rank].gets = g;
	err = 0;
out:
	fake_leave(t);
	return err;
}

static int fake_get(struct transport *base, int peer, const struct transport_rma *get)
{
	static const struct wire_hdr none;

	return rma_start(base, peer, TRANSPORT_GET, get, &none);
}

static int fake_put(struct transport *base, int peer, const struct transport_rma *put, const struct wire_hdr *behind)
{
	return rma_start(base, peer, TRANSPORT_PUT, put, behind);
}

/* -EINPROGRESS: on_cancelled follows, and the memory of a get is written until then.  0: it is not. */
static int fake_cancel_later(struct fake *t, int peer, uint64_t cookie, const struct get *g)
{
	struct fabric *f = t->f;
	struct cancelled *c = f->cfg.cancel_delay_max ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return 0;
	*c = (struct cancelled){.next = f->nodes[t->rank].cancelled,
				.cookie = cookie,
				.peer = peer,
				.due = f->now + 1 + rng_below(&f->rng, f->cfg.cancel_delay_max)};
	for (int i = 0; g && g->access == TRANSPORT_GET && i < 2; i++) {
		c->base[i] = g->base[i];
		c->len[i] = g->len[i];
	}
	f->nodes[t->rank].cancelled = c;
	return -EINPROGRESS;
}

static int fake_cancel(struct transport *base, int peer, uint64_t cookie)
{
	struct fake *t = fake_of(base);
	struct registration *e;
	struct get **at;
	int rc = 0;

	fake_enter(t, "cancel");
	at = &t->f->nodes[t->rank].gets;
	while (*at && ((*at)->peer != peer || (*at)->cookie != cookie))
		at = &(*at)->next;
	if (*at) {
		struct get *g = *at;

		*at = g->next;
		rc = fake_cancel_later(t, peer, cookie, g);
		free(g);
	}
	e = t->f->nodes[t->rank].registrations;
	while (e && (e->revoked || e->peer != peer || e->cookie != cookie))
		e = e->next;
	if (e && (rc || fake_cancel_later(t, peer, cookie, NULL))) {
		e->revoked = true;
		rc = -EINPROGRESS;
	}
	fake_leave(t);
	return rc;
}

static void fake_forget(struct transport *base, int peer)
{
	struct fake *t = fake_of(base);

	fake_enter(t, "forget");
	if (peer_valid(t, peer, "forget")) {
		struct link *in = fabric_link(t->f, peer, t->rank);

		in->forgotten = true;
		fabric_drop(in, 0);
		wake_later(t, peer);
	}
	fake_leave(t);
}

static void fake_counters(const struct transport *base, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct fake *t = fake_of_const(base);
	uint64_t sum = 0;

	for (int p = 0; p < t->f->cfg.size; p++)
		for (int k = 0; k < WIRE_KIND_COUNT; k++)
			if (peer < 0 || p == peer)
				sum += fabric_sent(t->f, t->rank, p, (enum wire_kind)k);
	add(arg, "fake_packets", sum);
}

#define FAKE_COMMON                                                                                                                        \
	.describe = fake_describe, .address = fake_address, .attach = fake_attach, .close = fake_close, .awaits = fake_awaits,             \
	.reaches = fake_reaches, .payload_max = fake_payload_max, .reserve = fake_reserve, .commit = fake_commit, .discard = fake_discard, \
	.poll = fake_poll, .ready = fake_ready, .arm = fake_arm, .disarm = fake_disarm, .wake = fake_wake, .leave = fake_depart,           \
	.doorbell = fake_doorbell, .forget = fake_forget, .counters = fake_counters

#define FAKE_RMA                                                                                                                           \
	.name = "fake", .open = fake_open, .pack_rkey = fake_pack_rkey, .release_rkey = fake_release_rkey,                                 \
	.prefers_get = fake_prefers_get, .learns_get = fake_learns_get, .get = fake_get, .prefers_put = fake_prefers_put, .put = fake_put, \
	.cancel = fake_cancel

const struct transport_ops fake_ops = {
	FAKE_COMMON,
	FAKE_RMA,
	.lease = &fake_lease,
};

const struct transport_ops fake_plain_ops = {
	.name = "fakeplain",
	.open = fake_open_plain,
	FAKE_COMMON,
};
