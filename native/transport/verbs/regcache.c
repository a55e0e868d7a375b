/* SPDX-License-Identifier: MIT */
#include "transport/verbs/regcache.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define REGCACHE_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* --- registered ranges --- */

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
		return error_set(-EFBIG, "a buffer of %zu bytes is more than verbs_cache_bytes (%llu) and verbs_cache_entries (%u) allow",
				 bytes, (unsigned long long)r->bytes_max, r->count_max);
	if (r->count >= r->count_max || bytes > r->bytes_max - r->bytes)
		return error_set(-ENOSPC,
				 "%u buffers of %llu bytes are registered, and one of %zu more would be too many: "
				 "release some, or raise verbs_cache_entries or verbs_cache_bytes",
				 r->count, (unsigned long long)r->bytes, bytes);
	return 0;
}

int regcache_range_add(struct regcache_ranges *r, void *base, size_t bytes)
{
	struct regcache_range *known = ranges_find(r, base, bytes);
	uint32_t at;
	int rc;

	if (known) {
		known->users++;
		return 1;
	}
	rc = ranges_admit(r, bytes);
	if (rc < 0)
		return rc;
	if (ranges_grow(r) < 0)
		return -ENOMEM;
	at = ranges_upto(r, base);
	memmove(r->range + at + 1, r->range + at, (r->count - at) * sizeof(*r->range));
	r->range[at] = (struct regcache_range){.base = base, .bytes = bytes, .users = 1};
	r->count++;
	r->bytes += bytes;
	return 1;
}

int regcache_range_remove(struct regcache_ranges *r, const void *base, size_t bytes)
{
	struct regcache_range *known = ranges_find(r, base, bytes);

	if (!known)
		return error_set(-EINVAL, "no buffer of %zu bytes is registered at %p", bytes, base);
	if (--known->users > 0)
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

static void bucket_remove(struct regcache *c, struct regcache_entry *e)
{
	struct regcache_entry **at = regcache_bucket(c, e->addr);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
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

/* A READY entry without uses, not idle: nobody finds it from now on. */
static void entry_end(struct regcache *c, struct regcache_entry *e)
{
	bucket_remove(c, e);
	e->state = REGCACHE_ENDING;
	e->queued = c->ending;
	c->ending = e;
	work_signal(c->work);
}

/* Makes room. False: nothing is left to give up. */
static bool regcache_evict(struct regcache *c)
{
	struct regcache_entry *e = c->oldest;

	if (!e)
		return false;
	c->evicted_count++;
	idle_remove(c, e);
	entry_end(c, e);
	return true;
}

/* The last use of a READY entry has ended. */
static void entry_unused(struct regcache *c, struct regcache_entry *e)
{
	if (!e->persistent) {
		entry_end(c, e);
		return;
	}
	idle_add(c, e);
	while (c->idle_count > c->ranges->count_max || c->idle_bytes > c->ranges->bytes_max)
		regcache_evict(c);
}

static struct regcache_entry *regcache_add(struct regcache *c, char *addr, size_t len, int access, bool persistent)
{
	struct regcache_entry *e = malloc(sizeof(*e)), **bucket = regcache_bucket(c, addr), **at;

	if (!e)
		return NULL;
	*e = (struct regcache_entry){.next = *bucket, .addr = addr, .len = len, .access = access, .persistent = persistent};
	*bucket = e;
	for (at = &c->todo; *at; at = &(*at)->queued)
		;
	*at = e;
	work_signal(c->work);
	return e;
}

/* An entry at this address that covers the memory and allows the access.  Outside of registered ranges it must be the very same memory: of a
 * longer entry only the part that messages use is certain to be mapped still. */
static struct regcache_entry *regcache_find(struct regcache *c, const char *at, const char *addr, size_t len, int access)
{
	for (struct regcache_entry *e = *regcache_bucket(c, at); e; e = e->next) {
		if (e->lost || e->addr != at || (e->access & access) != access)
			continue;
		if (e->persistent ? (size_t)(addr - at) + len > e->len : addr != at || len != e->len)
			continue;
		/* it was registered for a use that has ended: its memory may be another one by now */
		if (e->uses == 0 && e->state == REGCACHE_BUSY && !e->persistent)
			continue;
		if (e->uses == 0 && e->state == REGCACHE_READY)
			idle_remove(c, e);
		c->shared_count++;
		return e;
	}
	return NULL;
}

int regcache_use(struct regcache *c, struct regcache_use *use, void *addr, size_t len, int access)
{
	struct regcache_range *k = regcache_range_of(c->ranges, addr, len);
	struct regcache_entry *e = k ? regcache_find(c, k->base, addr, len, access) : NULL;

	if (!e)
		e = regcache_find(c, addr, addr, len, access);
	if (!e && k && !k->partial)
		e = regcache_add(c, k->base, k->bytes, REGCACHE_ALL, true);
	else if (!e)
		e = regcache_add(c, addr, len, access, k != NULL);
	use->entry = e;
	use->addr = addr;
	use->len = len;
	use->access = access;
	use->revoked = false;
	if (!e)
		return error_set(-ENOMEM, "no memory for a registration");
	e->uses++;
	if (e->state == REGCACHE_READY)
		return 0;
	use->next = e->waiting;
	e->waiting = use;
	return -EINPROGRESS;
}

static void waiting_remove(struct regcache_entry *e, const struct regcache_use *use)
{
	struct regcache_use **at = &e->waiting;

	while (*at && *at != use)
		at = &(*at)->next;
	if (*at)
		*at = use->next;
}

static void todo_remove(struct regcache *c, const struct regcache_entry *e)
{
	struct regcache_entry **at = &c->todo;

	while (*at != e)
		at = &(*at)->queued;
	*at = e->queued;
}

void regcache_unuse(struct regcache *c, struct regcache_use *use)
{
	struct regcache_entry *e = use->entry;

	if (!e)
		return;
	use->entry = NULL;
	waiting_remove(e, use);
	if (use->revoked || --e->uses > 0)
		return;
	if (e->state == REGCACHE_READY) {
		entry_unused(c, e);
	} else if (e->state == REGCACHE_QUEUED) {
		todo_remove(c, e);
		bucket_remove(c, e);
		free(e);
	} /* BUSY: the thread that registers it finds it unused */
}

bool regcache_revoke(struct regcache *c, struct regcache_use *use)
{
	struct regcache_entry *e = use->entry;

	if (!e || e->state != REGCACHE_READY) {
		regcache_unuse(c, use);
		return false;
	}
	e->lost = true;
	e->persistent = false;
	use->revoked = true;
	use->next = e->waiting;
	e->waiting = use;
	if (--e->uses == 0)
		entry_end(c, e);
	return true;
}

void regcache_drop(struct regcache *c, const void *base, size_t bytes)
{
	for (unsigned i = 0; i < REGCACHE_BUCKETS; i++) {
		struct regcache_entry *next;

		for (struct regcache_entry *e = c->bucket[i]; e; e = next) {
			next = e->next;
			if (!e->persistent || (uintptr_t)e->addr >= (uintptr_t)base + bytes ||
			    (uintptr_t)e->addr + e->len <= (uintptr_t)base || regcache_range_of(c->ranges, e->addr, e->len))
				continue; /* elsewhere, or another range stands for it */
			e->persistent = false;
			e->lost = true;
			if (e->uses > 0 || e->state != REGCACHE_READY)
				continue;
			idle_remove(c, e);
			entry_end(c, e);
		}
	}
}

/* --- with the lock released --- */

static void deregister_next(struct regcache *c)
{
	struct regcache_entry *e = c->ending;

	c->ending = e->queued;
	c->away++;
	work_unlock(c->work);
	c->api->dereg_mr(e->mr);
	work_lock(c->work);
	c->away--;
	c->bytes -= e->len;
	while (e->waiting) {
		struct regcache_use *use = e->waiting;

		e->waiting = use->next;
		use->entry = NULL;
		use->ready(use, -ECANCELED);
	}
	free(e);
}

/* A use of what cannot be registered: of a registered range it takes its own part instead. */
static void use_refused(struct regcache *c, struct regcache_use *use, bool whole, int err)
{
	int rc = -err;

	use->entry = NULL;
	if (whole)
		rc = regcache_use(c, use, use->addr, use->len, use->access);
	else
		c->refused_count++;
	if (rc != -EINPROGRESS)
		use->ready(use, rc);
}

static void entry_refused(struct regcache *c, struct regcache_entry *e, int err)
{
	struct regcache_range *k = e->persistent ? regcache_range_of(c->ranges, e->addr, e->len) : NULL;
	bool whole = k && !k->partial && e->access == REGCACHE_ALL;
	struct regcache_use *use = e->waiting, *next;

	if (whole)
		k->partial = true;
	bucket_remove(c, e);
	for (; use; use = next) {
		next = use->next;
		use_refused(c, use, whole, err);
	}
	free(e);
}

static void entry_ready(struct regcache *c, struct regcache_entry *e, struct ibv_mr *mr)
{
	struct regcache_use *use = e->waiting, *next;

	e->mr = mr;
	e->state = REGCACHE_READY;
	e->waiting = NULL;
	c->registered_count++;
	c->bytes += e->len;
	if (c->bytes > c->bytes_peak)
		c->bytes_peak = c->bytes;
	if (e->uses == 0)
		entry_unused(c, e);
	for (; use; use = next) {
		next = use->next;
		use->ready(use, 0);
	}
}

/* 0; -EAGAIN: when what was given up is deregistered; -ENOMEM; -EMSGSIZE. */
static int regcache_fits(struct regcache *c, size_t len)
{
	if (c->len_max && len > c->len_max)
		return -EMSGSIZE;
	if (!c->bytes_max || c->bytes + len <= c->bytes_max)
		return 0;
	if (len > c->bytes_max)
		return -ENOMEM;
	return regcache_evict(c) || c->ending || c->away ? -EAGAIN : -ENOMEM;
}

/* Another thread deregisters. */
static void regcache_yield(struct regcache *c)
{
	work_unlock(c->work);
	sched_yield();
	work_lock(c->work);
}

static void register_next(struct regcache *c)
{
	struct regcache_entry *e = c->todo;
	int err = -regcache_fits(c, e->len);
	struct ibv_mr *mr = NULL;

	if (err == EAGAIN) {
		if (!c->ending)
			regcache_yield(c);
		return;
	}
	c->todo = e->queued;
	if (!err) {
		e->state = REGCACHE_BUSY;
		c->away++;
		work_unlock(c->work);
		mr = c->api->reg_mr(c->pd, e->addr, e->len, e->access | c->always);
		err = mr ? 0 : errno;
		work_lock(c->work);
		c->away--;
	}
	if (mr) {
		entry_ready(c, e, mr);
	} else if (e->uses > 0 && (err == ENOMEM || err == EAGAIN) && regcache_evict(c)) {
		e->state = REGCACHE_QUEUED; /* once more, first of all */
		e->queued = c->todo;
		c->todo = e;
	} else {
		entry_refused(c, e, err);
	}
}

bool regcache_work(struct regcache *c)
{
	if (c->ending)
		deregister_next(c);
	else if (c->todo)
		register_next(c);
	else
		return false;
	return true;
}

void regcache_drain(struct regcache *c)
{
	while (c->ending || c->away) {
		if (c->ending)
			deregister_next(c);
		else
			regcache_yield(c);
	}
}

void regcache_close(struct regcache *c)
{
	for (unsigned i = 0; i < REGCACHE_BUCKETS; i++) {
		while (c->bucket[i]) {
			struct regcache_entry *e = c->bucket[i];

			c->bucket[i] = e->next;
			if (e->mr)
				c->api->dereg_mr(e->mr);
			free(e);
		}
	}
	for (struct regcache_entry *e = c->ending, *next; e; e = next) {
		next = e->queued;
		c->api->dereg_mr(e->mr);
		free(e);
	}
}
