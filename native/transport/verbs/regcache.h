/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_REGCACHE_H
#define IBVX_TRANSPORT_VERBS_REGCACHE_H
/*
 * regcache: registrations of user memory on one device.
 *
 * A registration is valid as long as its pages stay mapped.  Nobody tells us when a user unmaps memory, so a
 * registration outlives its messages only where somebody vouches for the memory: a *kept* range (ibvx_buffer_register),
 * behind which stands a reference to a Java buffer or a promise of a C caller.  Everything else lives from the first get() to the last
 * put() of its range: during that time the messages themselves oblige the user to keep the memory.
 *
 * A kept range is registered as a whole, once, for every kind of access, and exactly as asked for where that is refused (read-only
 * memory, or more than may be registered).  Registrations without users are dropped, the least recently used first, when there are too many of
 * them, when they hold too many bytes, and when the system refuses another one; all those of a range when it is kept no more.
 *
 * The caller holds the core's lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/provider.h"

#define REGCACHE_BUCKETS 256u

/* Memory that stays mapped; one list for all devices. */
struct regcache_range {
	char *base;
	size_t bytes;
	uint32_t holds;          /* how often it was kept */
	bool partial;            /* as a whole it cannot be registered */
};

struct regcache_ranges {
	struct regcache_range *range; /* sorted by base */
	uint32_t count, room;
	uint64_t bytes;
	uint32_t count_max;
	uint64_t bytes_max;
};

/* Keeps a range. 1; -ENOSPC: too much is kept; -EFBIG: more than may ever be; -ENOMEM; with text. */
int regcache_keep(struct regcache_ranges *r, void *base, size_t bytes);
/* Exactly this range is kept once less. 1: no longer at all; 0: still; -EINVAL: it was not kept (text). */
int regcache_unkeep(struct regcache_ranges *r, const void *base, size_t bytes);
/* The range that holds all of this memory, or NULL. */
struct regcache_range *regcache_range_of(const struct regcache_ranges *r, const void *addr, size_t len);

struct regcache_entry {
	struct regcache_entry *next;          /* of the bucket */
	struct regcache_entry *newer, *older; /* without users: by last use */
	char *addr;
	size_t len;
	int access;
	uint32_t users;
	bool kept;
	bool lost;                            /* no longer kept and still in use: not to be shared */
	struct ibv_mr *mr;
};

struct regcache {
	const struct verbs_provider *api;
	struct ibv_pd *pd;
	struct regcache_ranges *ranges;
	int always;            /* access flags that every registration gets: relaxed ordering, on-demand paging */
	size_t len_max;        /* of one registration; 0: no limit */
	uint64_t bytes_max;    /* registered at a time; 0: as the system allows */
	struct regcache_entry *bucket[REGCACHE_BUCKETS]; /* by address of the range, or of the memory itself */
	struct regcache_entry *newest, *oldest;
	uint32_t idle_count;
	uint64_t bytes, idle_bytes, bytes_peak;
	uint64_t registered_count, shared_count, refused_count, evicted_count;
};

/* Registers the memory or shares a registration that covers it. NULL: errno says why (ENOMEM also beyond
 * bytes_max). */
struct regcache_entry *regcache_get(struct regcache *c, void *addr, size_t len, int access);
/* NULL allowed. The last user's put() deregisters what is not kept. */
void regcache_put(struct regcache *c, struct regcache_entry *e);
/* The range is no longer kept: what has no users is deregistered before this returns, the rest by its last put(). */
void regcache_drop(struct regcache *c, const void *base, size_t bytes);
/* Deregisters everything, in use or not. */
void regcache_close(struct regcache *c);

#endif
