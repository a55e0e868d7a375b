/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_REGCACHE_H
#define IBVX_TRANSPORT_VERBS_REGCACHE_H
/*
 * regcache: registrations of user memory, shared while they are in use.
 *
 * A registration is valid as long as its pages stay mapped.  Nobody tells us when a user unmaps memory, so
 * an entry lives from the first get() to the last put() of its range and no longer: during that time
 * the messages themselves oblige the user to keep the memory.  Entries that outlive their messages need an
 * owner who vouches for the memory (a reference to a Java buffer, a promise of a C caller); they will stand here,
 * least recently used out first, once the seam names owners.
 */
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/provider.h"

#define REGCACHE_BUCKETS 256u

struct regcache_entry {
	struct regcache_entry *next;
	void *addr;
	size_t len;
	int access;
	uint32_t users;
	struct ibv_mr *mr;
};

struct regcache {
	const struct verbs_provider *api;
	struct ibv_pd *pd;
	uint64_t bytes_max; /* 0: as the system allows */
	struct regcache_entry *bucket[REGCACHE_BUCKETS];
	uint64_t bytes, bytes_peak, registered_count, shared_count, refused_count;
};

/* Registers the range or shares a registration of exactly this range. NULL: errno says why (ENOMEM also
 * beyond bytes_max). */
struct regcache_entry *regcache_get(struct regcache *c, void *addr, size_t len, int access);
/* The last user's put() deregisters. */
void regcache_put(struct regcache *c, struct regcache_entry *e);
/* Deregisters everything, in use or not. */
void regcache_close(struct regcache *c);

#endif
