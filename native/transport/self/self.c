/* SPDX-License-Identifier: MIT */
#include "transport/self/self.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define SELF_PAYLOAD_MAX (64u << 10)
#define SELF_QUEUED_MAX (1u << 20)

struct self_packet {
	struct self_packet *next;
	struct wire_hdr hdr;
	uint64_t payload[]; /* aligned as users expect */
};

struct self_get {
	struct self_get *next;
	uint64_t cookie;
};

struct self {
	struct transport base;
	struct transport_env env;
	struct self_packet *head, **tail;
	struct self_get *gets, **gets_tail;
	struct self_packet *spare; /* one small packet kept for reuse */
	size_t queued_bytes;
	_Atomic int pending; /* packets and gets waiting for poll() */
};

#define SELF_SPARE_BYTES 256u

/* What pack_rkey() writes: this process can use addresses as they are. */
struct self_desc {
	const void *base[2];
	size_t len[2];
};
static_assert(sizeof(struct self_desc) <= WIRE_RMA_MAX, "descriptor fits");

static int self_describe(const struct settings *settings, char *out, size_t size)
{
	(void)settings;
	if (size > 0)
		out[0] = '\0';
	return 0;
}

static int self_open(struct transport **out, const struct transport_env *env)
{
	struct self *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(-ENOMEM, "no memory for the transport self");
	s->base.ops = &transport_self_ops;
	s->env = *env;
	s->tail = &s->head;
	s->gets_tail = &s->gets;
	*out = &s->base;
	return 0;
}

static int self_address(struct transport *t, void *out, size_t size)
{
	(void)t;
	(void)out;
	(void)size;
	return 0;
}

static int self_attach(struct transport *t, const struct transport_peer_info *peers)
{
	(void)t;
	(void)peers;
	return 0;
}

static void self_nothing(struct transport *t)
{
	(void)t;
}

static void self_close(struct transport *t)
{
	struct self *s = (struct self *)t;

	if (!s)
		return;
	while (s->head) {
		struct self_packet *p = s->head;

		s->head = p->next;
		free(p);
	}
	while (s->gets) {
		struct self_get *g = s->gets;

		s->gets = g->next;
		free(g);
	}
	free(s->spare);
	free(s);
}

static bool self_reaches(const struct transport *t, int peer)
{
	return peer == ((const struct self *)t)->env.rank;
}

static size_t self_payload_max(const struct transport *t, int peer)
{
	(void)t;
	(void)peer;
	return SELF_PAYLOAD_MAX;
}

static int self_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot)
{
	struct self *s = (struct self *)t;
	struct self_packet *p;

	(void)peer;
	if (s->queued_bytes > SELF_QUEUED_MAX)
		return -EAGAIN;
	if (s->spare && len <= SELF_SPARE_BYTES) {
		p = s->spare;
		s->spare = NULL;
	} else {
		p = malloc(sizeof(*p) + (len > SELF_SPARE_BYTES ? len : SELF_SPARE_BYTES));
		if (!p)
			return -EAGAIN;
	}
	slot->hdr = &p->hdr;
	slot->payload = p->payload;
	slot->private = (uint64_t)(uintptr_t)p;
	return 0;
}

static void self_commit(struct transport *t, int peer, struct transport_slot *slot)
{
	struct self *s = (struct self *)t;
	struct self_packet *p = (struct self_packet *)(uintptr_t)slot->private;

	(void)peer;
	p->next = NULL;
	*s->tail = p;
	s->tail = &p->next;
	s->queued_bytes += p->hdr.len;
	atomic_fetch_add_explicit(&s->pending, 1, memory_order_relaxed);
}

static void self_discard(struct transport *t, int peer, struct transport_slot *slot)
{
	(void)t;
	(void)peer;
	free((void *)(uintptr_t)slot->private);
}

static void self_release(struct self *s, struct self_packet *p)
{
	if (!s->spare && p->hdr.len <= SELF_SPARE_BYTES)
		s->spare = p;
	else
		free(p);
}

static int self_poll(struct transport *t, int budget)
{
	struct self *s = (struct self *)t;
	int events = 0;

	if (!s->head && !s->gets)
		return 0;
	while (s->gets) {
		struct self_get *g = s->gets;
		uint64_t cookie = g->cookie;

		s->gets = g->next;
		if (!s->gets)
			s->gets_tail = &s->gets;
		free(g);
		atomic_fetch_sub_explicit(&s->pending, 1, memory_order_relaxed);
		s->env.sink.on_get(s->env.sink.core, s->env.rank, cookie, 0);
		events++;
	}
	while (s->head && events < budget) {
		struct self_packet *p = s->head;

		s->head = p->next;
		if (!s->head)
			s->tail = &s->head;
		s->queued_bytes -= p->hdr.len;
		atomic_fetch_sub_explicit(&s->pending, 1, memory_order_relaxed);
		s->env.sink.on_packet(s->env.sink.core, s->env.rank, &p->hdr, p->payload);
		self_release(s, p);
		events++;
	}
	return events;
}

static bool self_ready(const struct transport *t)
{
	const struct self *s = (const struct self *)t;

	return atomic_load_explicit(&s->pending, memory_order_relaxed) > 0;
}

static int self_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2],
			  const size_t len[2], void *desc)
{
	struct self_desc d = {{base[0], base[1]}, {len[0], len[1]}};

	(void)t;
	(void)peer;
	(void)cookie;
	(void)access;
	memcpy(desc, &d, sizeof(d));
	return (int)sizeof(d);
}

static void self_release_rkey(struct transport *t, int peer, uint64_t cookie)
{
	(void)t;
	(void)peer;
	(void)cookie;
}

static bool self_prefers_get(const struct transport *t, int peer, size_t bytes)
{
	(void)t;
	(void)peer;
	(void)bytes;
	return true;
}

static int self_get(struct transport *t, int peer, const struct transport_rma *get)
{
	struct self *s = (struct self *)t;
	struct self_desc d;
	struct self_get *g;

	(void)peer;
	if (get->desc_bytes != sizeof(d))
		return error_set(-EPROTO, "a descriptor of %zu bytes instead of %zu", get->desc_bytes, sizeof(d));
	g = malloc(sizeof(*g));
	if (!g)
		return -EAGAIN;
	memcpy(&d, get->desc, sizeof(d));
	for (int i = 0; i < 2; i++) {
		if (get->local[i].len)
			memmove(get->local[i].base, d.base[i], get->local[i].len);
	}
	g->next = NULL;
	g->cookie = get->cookie;
	*s->gets_tail = g;
	s->gets_tail = &g->next;
	atomic_fetch_add_explicit(&s->pending, 1, memory_order_relaxed);
	return 0;
}

static int self_cancel(struct transport *t, int peer, uint64_t cookie)
{
	struct self *s = (struct self *)t;

	(void)peer;
	for (struct self_get **at = &s->gets; *at; at = &(*at)->next) {
		struct self_get *g = *at;

		if (g->cookie != cookie)
			continue;
		*at = g->next;
		if (!g->next)
			s->gets_tail = at;
		free(g);
		atomic_fetch_sub_explicit(&s->pending, 1, memory_order_relaxed);
		return 0;
	}
	return 0;
}

static void self_forget(struct transport *t, int peer)
{
	(void)t;
	(void)peer;
}

const struct transport_ops transport_self_ops = {
	.name = "self",
	.describe = self_describe,
	.open = self_open,
	.address = self_address,
	.attach = self_attach,
	.close = self_close,
	.leave = self_nothing,
	.reaches = self_reaches,
	.payload_max = self_payload_max,
	.reserve = self_reserve,
	.commit = self_commit,
	.discard = self_discard,
	.poll = self_poll,
	.ready = self_ready,
	.arm = self_nothing,
	.disarm = self_nothing,
	.pack_rkey = self_pack_rkey,
	.release_rkey = self_release_rkey,
	.prefers_get = self_prefers_get,
	.get = self_get,
	.cancel = self_cancel,
	.forget = self_forget,
};
