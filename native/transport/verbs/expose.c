/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/verbs/verbs_state.h"

/* Exposed memory of a request, until release_rkey(). */
struct verbs_exposed {
	struct verbs_exposed *next;
	uint64_t cookie;
	struct regcache *regs;
	struct regcache_entry *reg[2];
};

static struct verbs_exposed **expose_bucket(struct verbs *v, uint64_t cookie)
{
	return &v->exposed[(cookie ^ cookie >> 8) % VERBS_EXPOSED_BUCKETS];
}

static int expose_failed(struct verbs *v, size_t bytes)
{
	int err = errno;

	if (err == ENOMEM || err == EAGAIN)
		pool_warn_memory(v, bytes);
	else
		log_info(v->env.log, "verbs: memory of %zu bytes cannot be registered: %s", bytes, strerror(err));
	return error_sys(-err, "registering %zu bytes of a message", bytes);
}

int expose_register(struct verbs_device *d, void *const base[2], const size_t len[2], int access,
		    struct regcache_entry *reg[2])
{
	bool joined = len[0] && len[1] && (char *)base[0] + len[0] == base[1];

	reg[0] = reg[1] = NULL;
	for (int i = 0; i < 2; i++) {
		size_t bytes = joined ? len[0] + len[1] : len[i];

		if (!len[i])
			continue;
		reg[i] = regcache_get(&d->regs, joined ? base[0] : base[i], bytes, access);
		if (reg[i])
			continue;
		int rc = expose_failed(d->verbs, bytes);

		regcache_put(&d->regs, reg[0]);
		reg[0] = NULL;
		return rc;
	}
	return 0;
}

/* May memory of this peer be moved so, as the setting has it? */
static bool expose_wanted(const struct verbs *v, enum transport_access access, size_t bytes)
{
	switch (v->rendezvous) {
	case VERBS_RENDEZVOUS_AUTO:
		break;
	case VERBS_RENDEZVOUS_READ:
		if (access != TRANSPORT_GET)
			return false;
		break;
	case VERBS_RENDEZVOUS_WRITE:
		if (access != TRANSPORT_PUT)
			return false;
		break;
	}
	return bytes >= v->get_min;
}

bool verbs_prefers_get(const struct transport *t, int peer, size_t bytes)
{
	(void)peer;
	return expose_wanted((const struct verbs *)t, TRANSPORT_GET, bytes);
}

bool verbs_prefers_put(const struct transport *t, int peer, size_t bytes)
{
	(void)peer;
	return expose_wanted((const struct verbs *)t, TRANSPORT_PUT, bytes);
}

int verbs_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2],
		 const size_t len[2], void *desc)
{
	struct verbs *v = (struct verbs *)t;
	struct verbs_peer *p = &v->peers[peer];
	void *memory[2] = {(void *)(uintptr_t)base[0], (void *)(uintptr_t)base[1]};
	struct verbs_desc out = {0};
	struct verbs_exposed *e, **bucket;

	if (p->state != VERBS_UP || !expose_wanted(v, access, len[0] + len[1]))
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return 0;
	if (expose_register(p->link->device, memory, len,
			    access == TRANSPORT_GET ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
			    e->reg) < 0) {
		free(e);
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		if (!e->reg[i])
			continue;
		out.piece[i].addr = (uint64_t)(uintptr_t)base[i];
		out.piece[i].rkey = e->reg[i]->mr->rkey;
	}
	e->cookie = cookie;
	e->regs = &p->link->device->regs;
	bucket = expose_bucket(v, cookie);
	e->next = *bucket;
	*bucket = e;
	memcpy(desc, &out, sizeof(out));
	return (int)sizeof(out);
}

void verbs_release_rkey(struct transport *t, int peer, uint64_t cookie)
{
	struct verbs *v = (struct verbs *)t;

	(void)peer;
	for (struct verbs_exposed **at = expose_bucket(v, cookie); *at; at = &(*at)->next) {
		struct verbs_exposed *e = *at;

		if (e->cookie != cookie)
			continue;
		*at = e->next;
		for (int i = 0; i < 2; i++)
			regcache_put(e->regs, e->reg[i]);
		free(e);
		return;
	}
}

int verbs_buffer_register(struct transport *t, void *base, size_t bytes)
{
	struct verbs *v = (struct verbs *)t;

	return v->local_count > 0 ? regcache_keep(&v->ranges, base, bytes) : 0;
}

int verbs_buffer_release(struct transport *t, const void *base, size_t bytes)
{
	struct verbs *v = (struct verbs *)t;
	int rc = regcache_unkeep(&v->ranges, base, bytes);

	for (struct verbs_device *d = atomic_load(&v->devices); rc > 0 && d; d = atomic_load(&d->next))
		regcache_drop(&d->regs, base, bytes);
	return rc < 0 ? rc : 0;
}

void expose_close(struct verbs *v)
{
	for (unsigned i = 0; i < VERBS_EXPOSED_BUCKETS; i++) {
		while (v->exposed[i])
			verbs_release_rkey(&v->base, -1, v->exposed[i]->cookie);
	}
}
