/* SPDX-License-Identifier: MIT */
#include "transport/verbs/rkey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/memory.h"

struct verbs_rkey {
	struct verbs_rkey *next, *next_event;
	struct verbs_peer *peer;
	uint64_t cookie;
	bool event;       /* in verbs.rkey_events */
	bool cancelled;   /* released, cancelled or refused: not found any more */
	bool unreachable; /* cancelled, and no adapter reaches the memory through it */
	bool announce;    /* on_cancelled is to follow */
	struct rma_memory memory;
};

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

/* May this memory be transferred by RDMA, as the setting has it? */
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

int verbs_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2], const size_t len[2],
		    void *desc)
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

bool rkey_cancel(struct verbs *v, int peer, uint64_t cookie)
{
	struct verbs_rkey *k = rkey_find(v, peer, cookie);
	bool known = k && k->memory.pending == 0; /* to the peer, perhaps */

	if (!k)
		return false;
	k->cancelled = true;
	k->announce = known && (peer_ends_connection(k->peer) || memory_revoke(&k->memory));
	if (k->announce)
		return true;
	rkey_end(v, k);
	return false;
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

int rkey_events_poll(struct verbs *v)
{
	int events = 0;

	for (; v->rkey_events; events++) {
		struct verbs_rkey *k = v->rkey_events;

		v->rkey_events = k->next_event;
		k->event = false;
		atomic_fetch_sub(&v->chores, 1);
		rkey_poll(v, k);
	}
	return events;
}

void rkey_on_freed(const struct verbs_peer *p)
{
	struct verbs *v = p->verbs;

	for (unsigned i = 0; i < VERBS_RKEY_BUCKETS; i++) {
		for (struct verbs_rkey *k = v->rkeys[i]; k; k = k->next) {
			if (k->peer != p || !k->announce)
				continue;
			k->unreachable = true;
			memory_release(&k->memory);
			rkey_event(k);
		}
	}
}

void rkey_close(struct verbs *v)
{
	for (unsigned i = 0; i < VERBS_RKEY_BUCKETS; i++) {
		while (v->rkeys[i])
			rkey_free(v, v->rkeys[i]);
	}
}
