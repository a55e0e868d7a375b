/* SPDX-License-Identifier: MIT */
#include "transport/verbs/regcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define REGCACHE_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* --- what is kept --- */

/* The number of ranges that begin at or before addr. */
static uint32_t ranges_upto(const struct regcache_ranges *r, const void *addr)
{
	uint32_t low = 0, high = r->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((uintptr_t)r->range[middle].base <= (uintptr_t)addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct regcache_range *ranges_find(const struct regcache_ranges *r, const void *base, size_t bytes)
{
	for (uint32_t i = ranges_upto(r, base); i > 0 && r->range[i - 1].base == base; i--) {
		if (r->range[i - 1].bytes == bytes)
			return &r->range[i - 1];
	}
	return NULL;
}

static int ranges_grow(struct regcache_ranges *r)
{
	uint32_t room = r->room ? 2 * r->room : 16;
	struct regcache_range *range;

	if (r->count < r->room)
		return 0;
	range = realloc(r->range, room * sizeof(*range));
	if (!range)
		return error_set(-ENOMEM, "no memory to keep a buffer");
	r->range = range;
	r->room = room;
	return 0;
}

/* Is there room for one more by the limits? 0, or -errno with text. */
static int ranges_admit(const struct regcache_ranges *r, size_t bytes)
{
	if (bytes > r->bytes_max || r->count_max == 0)
		return error_set(-EFBIG, "a buffer of %zu bytes is more than verbs_cache_bytes (%llu) and verbs_cache_entries (%u) allow", bytes,
				 (unsigned long long)r->bytes_max, r->count_max);
	if (r->count >= r->count_max || bytes > r->bytes_max - r->bytes)
		return error_set(-ENOSPC, "%u buffers of %llu bytes are kept registered, and one of %zu more would be too many: "
				 "release some, or raise verbs_cache_entries or verbs_cache_bytes", r->count,
				 (unsigned long long)r->bytes, bytes);
	return 0;
}

int regcache_keep(struct regcache_ranges *r, void *base, size_t bytes)
{
	struct regcache_range *known = ranges_find(r, base, bytes);
	uint32_t at;
	int rc;

	if (known) {
		known->holds++;
		return 1;
	}
	rc = ranges_admit(r, bytes);
	if (rc < 0)
		return rc;
	if (ranges_grow(r) < 0)
		return -ENOMEM;
	at = ranges_upto(r, base);
	memmove(r->range + at + 1, r->range + at, (r->count - at) * sizeof(*r->range));
	r->range[at] = (struct regcache_range){.base = base, .bytes = bytes, .holds = 1};
	r->count++;
	r->bytes += bytes;
	return 1;
}

int regcache_unkeep(struct regcache_ranges *r, const void *base, size_t bytes)
{
	struct regcache_range *known = ranges_find(r, base, bytes);

	if (!known)
		return error_set(-EINVAL, "no buffer of %zu bytes is registered at %p", bytes, base);
	if (--known->holds > 0)
		return 0;
	r->count--;
	r->bytes -= bytes;
	memmove(known, known + 1, (size_t)(r->range + r->count - known) * sizeof(*known));
	return 1;
}

struct regcache_range *regcache_range_of(const struct regcache_ranges *r, const void *addr, size_t len)
{
	/* ranges may overlap: the nearest that begins before is tried first */
	for (uint32_t i = ranges_upto(r, addr); i > 0; i--) {
		struct regcache_range *k = &r->range[i - 1];
		size_t in = (size_t)((const char *)addr - k->base);

		if (in <= k->bytes && len <= k->bytes - in)
			return k;
	}
	return NULL;
}

/* --- registrations --- */

static struct regcache_entry **regcache_bucket(struct regcache *c, const void *addr)
{
	uint64_t h = (uint64_t)(uintptr_t)addr * 0x9e3779b97f4a7c15u;

	return &c->bucket[h >> 56];
}

static void idle_remove(struct regcache *c, struct regcache_entry *e)
{
	*(e->newer ? &e->newer->older : &c->newest) = e->older;
	*(e->older ? &e->older->newer : &c->oldest) = e->newer;
	e->newer = e->older = NULL;
	c->idle_count--;
	c->idle_bytes -= e->len;
}

static void idle_add(struct regcache *c, struct regcache_entry *e)
{
	e->older = c->newest;
	e->newer = NULL;
	*(c->newest ? &c->newest->newer : &c->oldest) = e;
	c->newest = e;
	c->idle_count++;
	c->idle_bytes += e->len;
}

/* Out of the cache, and out of the adapter. */
static void regcache_end(struct regcache *c, struct regcache_entry *e)
{
	struct regcache_entry **at = regcache_bucket(c, e->addr);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	if (e->users == 0 && e->kept)
		idle_remove(c, e);
	c->bytes -= e->len;
	c->api->dereg_mr(e->mr);
	free(e);
}

/* Makes room. False: nothing is left to give up. */
static bool regcache_evict(struct regcache *c)
{
	if (!c->oldest)
		return false;
	c->evicted_count++;
	regcache_end(c, c->oldest);
	return true;
}

static bool regcache_fits(struct regcache *c, size_t len)
{
	if (c->len_max && len > c->len_max) {
		errno = EMSGSIZE;
		return false;
	}
	if (!c->bytes_max)
		return true;
	if (len > c->bytes_max)
		return false;
	while (c->bytes + len > c->bytes_max) {
		if (!regcache_evict(c))
			return false;
	}
	return true;
}

static struct ibv_mr *regcache_register(struct regcache *c, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;

	errno = ENOMEM;
	if (!regcache_fits(c, len))
		return NULL;
	do {
		mr = c->api->reg_mr(c->pd, addr, len, access | c->always);
	} while (!mr && (errno == ENOMEM || errno == EAGAIN) && regcache_evict(c));
	return mr;
}

static struct regcache_entry *regcache_add(struct regcache *c, char *addr, size_t len, int access, bool kept)
{
	struct regcache_entry *e = malloc(sizeof(*e)), **bucket = regcache_bucket(c, addr);
	int err;

	if (!e) {
		errno = ENOMEM;
		return NULL;
	}
	*e = (struct regcache_entry){.addr = addr, .len = len, .access = access, .users = 1, .kept = kept};
	e->mr = regcache_register(c, addr, len, access);
	if (!e->mr) {
		err = errno;
		free(e);
		errno = err;
		return NULL;
	}
	e->next = *bucket;
	*bucket = e;
	c->registered_count++;
	c->bytes += len;
	if (c->bytes > c->bytes_peak)
		c->bytes_peak = c->bytes;
	return e;
}

/* An entry at this address that covers the memory and allows the access.  What is not kept must be the very same memory: of a
 * longer entry only the part that messages use is certain to be mapped still. */
static struct regcache_entry *regcache_find(struct regcache *c, const char *at, const char *addr, size_t len, int access)
{
	for (struct regcache_entry *e = *regcache_bucket(c, at); e; e = e->next) {
		if (e->lost || e->addr != at || (e->access & access) != access)
			continue;
		if (e->kept ? (size_t)(addr - at) + len > e->len : addr != at || len != e->len)
			continue;
		if (e->users++ == 0)
			idle_remove(c, e);
		c->shared_count++;
		return e;
	}
	return NULL;
}

struct regcache_entry *regcache_get(struct regcache *c, void *addr, size_t len, int access)
{
	struct regcache_range *k = regcache_range_of(c->ranges, addr, len);
	struct regcache_entry *e = k ? regcache_find(c, k->base, addr, len, access) : NULL;

	if (!e)
		e = regcache_find(c, addr, addr, len, access);
	if (!e && k && !k->partial) {
		e = regcache_add(c, k->base, k->bytes, REGCACHE_ALL, true);
		k->partial = !e;
	}
	if (!e)
		e = regcache_add(c, addr, len, access, k != NULL);
	if (!e)
		c->refused_count++;
	return e;
}

void regcache_put(struct regcache *c, struct regcache_entry *e)
{
	if (!e || --e->users > 0)
		return;
	if (!e->kept) {
		regcache_end(c, e);
		return;
	}
	idle_add(c, e);
	while (c->idle_count > c->ranges->count_max || c->idle_bytes > c->ranges->bytes_max)
		regcache_evict(c);
}

void regcache_drop(struct regcache *c, const void *base, size_t bytes)
{
	for (unsigned i = 0; i < REGCACHE_BUCKETS; i++) {
		struct regcache_entry *next;

		for (struct regcache_entry *e = c->bucket[i]; e; e = next) {
			next = e->next;
			if (!e->kept || (uintptr_t)e->addr >= (uintptr_t)base + bytes ||
			    (uintptr_t)e->addr + e->len <= (uintptr_t)base || regcache_range_of(c->ranges, e->addr, e->len))
				continue; /* elsewhere, or another range vouches for it */
			e->lost = e->users > 0;
			if (e->lost)
				e->kept = false;
			else
				regcache_end(c, e);
		}
	}
}

void regcache_close(struct regcache *c)
{
	for (unsigned i = 0; i < REGCACHE_BUCKETS; i++) {
		while (c->bucket[i])
			regcache_end(c, c->bucket[i]);
	}
}
