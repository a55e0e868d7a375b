/* SPDX-License-Identifier: MIT */
#include "transport/verbs/regcache.h"

#include <errno.h>
#include <stdlib.h>

static struct regcache_entry **regcache_bucket(struct regcache *c, const void *addr)
{
	uint64_t h = (uint64_t)(uintptr_t)addr * 0x9e3779b97f4a7c15u;

	return &c->bucket[h >> 56];
}

struct regcache_entry *regcache_get(struct regcache *c, void *addr, size_t len, int access)
{
	struct regcache_entry **bucket = regcache_bucket(c, addr), *e;

	for (e = *bucket; e; e = e->next) {
		if (e->addr != addr || e->len != len || e->access != access)
			continue;
		e->users++;
		c->shared_count++;
		return e;
	}
	e = c->bytes_max && c->bytes + len > c->bytes_max ? NULL : malloc(sizeof(*e));
	if (!e) {
		c->refused_count++;
		errno = ENOMEM;
		return NULL;
	}
	*e = (struct regcache_entry){.next = *bucket, .addr = addr, .len = len, .access = access, .users = 1};
	e->mr = c->api->reg_mr(c->pd, addr, len, access);
	if (!e->mr) {
		int err = errno;

		free(e);
		c->refused_count++;
		errno = err;
		return NULL;
	}
	*bucket = e;
	c->registered_count++;
	c->bytes += len;
	if (c->bytes > c->bytes_peak)
		c->bytes_peak = c->bytes;
	return e;
}

void regcache_put(struct regcache *c, struct regcache_entry *e)
{
	if (!e || --e->users > 0)
		return;
	for (struct regcache_entry **at = regcache_bucket(c, e->addr); *at; at = &(*at)->next) {
		if (*at == e) {
			*at = e->next;
			break;
		}
	}
	c->bytes -= e->len;
	c->api->dereg_mr(e->mr);
	free(e);
}

void regcache_close(struct regcache *c)
{
	for (unsigned i = 0; i < REGCACHE_BUCKETS; i++) {
		while (c->bucket[i]) {
			struct regcache_entry *e = c->bucket[i];

			c->bucket[i] = e->next;
			c->api->dereg_mr(e->mr);
			free(e);
		}
	}
}
