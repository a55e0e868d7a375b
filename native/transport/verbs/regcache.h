/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_REGCACHE_H
#define IBVX_TRANSPORT_VERBS_REGCACHE_H
/*
 * regcache: registrations of user memory on one device.
 *
 * A registration is valid as long as its pages stay mapped, and nothing reports that a user unmaps memory.  So a
 * registration outlives its messages only within a *registered range* (ibvx_buffer_register), for which a reference to a Java buffer
 * or the promise of a C caller stands.  Every other one lives from the first use of exactly this memory to the last: meanwhile
 * the messages oblige the user to keep the memory.
 *
 * A registered range is registered as a whole, once, with every kind of access; where that is refused (read-only
 * memory, or more than may be registered) each message registers its own part.  Registrations of registered ranges without uses are
 * dropped, the least recently used first, when there are too many of them, when they hold too many bytes, and when the
 * system refuses another one; all those of a range are dropped when it is released.
 *
 *   QUEUED --regcache_work()--> BUSY --registered--> READY --last use ends--> idle (in a registered range) or ENDING (deregistered by
 *   regcache_work(), freed).  QUEUED, without uses --> freed.  BUSY --refused--> its uses are notified, freed.
 *
 * The adapter is called in regcache_work() and regcache_drain() alone, with the lock released (work.h).  The caller of every
 * function holds the core's lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/provider.h"
#include "transport/work.h"

#define REGCACHE_BUCKETS 256u

/* Memory that stays mapped; one list for all devices. */
struct regcache_range {
	char *base;
	size_t bytes;
	uint32_t users; /* how often it was registered */
	bool partial;   /* as a whole it cannot be registered */
};

struct regcache_ranges {
	struct regcache_range *range; /* sorted by base */
	uint32_t count, room;
	uint64_t bytes;
	uint32_t count_max;
	uint64_t bytes_max;
};

/* Adds a range. 1; -ENOSPC: too many; -EFBIG: more than may ever be; -ENOMEM; with text. */
int regcache_range_add(struct regcache_ranges *r, void *base, size_t bytes);
/* Releases exactly this range once. 1: for the last time; 0: not; -EINVAL: it was not registered (text). */
int regcache_range_remove(struct regcache_ranges *r, const void *base, size_t bytes);
/* The range that holds all of this memory, or NULL. */
struct regcache_range *regcache_range_of(const struct regcache_ranges *r, const void *addr, size_t len);

enum regcache_state { REGCACHE_QUEUED, REGCACHE_BUSY, REGCACHE_READY, REGCACHE_ENDING };

struct regcache_entry {
	struct regcache_entry *next;          /* of the bucket */
	struct regcache_entry *newer, *older; /* idle: by last use */
	struct regcache_entry *queued;        /* of those to be registered, or deregistered */
	struct regcache_use *waiting;         /* for the registration; if lost, for its end */
	enum regcache_state state;
	char *addr;
	size_t len;
	int access;
	uint32_t uses;
	bool persistent;
	bool lost;         /* not to be shared any more */
	struct ibv_mr *mr; /* READY */
};

/* One use of registered memory, part of its owner's structure; zeroed before the first regcache_use(). */
struct regcache_use {
	struct regcache_use *next;
	struct regcache_entry *entry; /* NULL: none */
	/* After -EINPROGRESS: registered (0), or cannot be (-errno, entry is NULL).  After regcache_revoke(): -ECANCELED,
	 * deregistered.  Called by regcache_work(), lock held. */
	void (*ready)(struct regcache_use *use, int err);
	void *owner;
	char *addr;
	size_t len;
	int access;
	bool revoked;
};

struct regcache {
	const struct verbs_provider *api;
	struct work *work;
	struct ibv_pd *pd;
	struct regcache_ranges *ranges;
	int always;                                      /* access flags that every registration gets: relaxed ordering, on-demand paging */
	size_t len_max;                                  /* of one registration; 0: no limit */
	uint64_t bytes_max;                              /* registered at a time; 0: as the system allows */
	struct regcache_entry *bucket[REGCACHE_BUCKETS]; /* by address; not those that are ENDING */
	struct regcache_entry *newest, *oldest;
	struct regcache_entry *todo, *ending; /* to be registered, in order; to be deregistered */
	uint32_t idle_count, away;            /* away: calls of the adapter with the lock released */
	uint64_t bytes, idle_bytes, bytes_peak;
	uint64_t registered_count, shared_count, refused_count, evicted_count;
};

/* Registers the memory or shares a registration that covers it. 0: use->entry->mr is there; -EINPROGRESS: use->ready() follows;
 * -ENOMEM with text. */
int regcache_use(struct regcache *c, struct regcache_use *use, void *addr, size_t len, int access);
/* The use has ended; of use->entry only.  The last use outside of a registered range has it deregistered, later. */
void regcache_unuse(struct regcache *c, struct regcache_use *use);
/* The adapter must not reach the memory through this use's registration any more: no new use shares it, and it is deregistered
 * as soon as its other uses have ended or are revoked, in a registered range or not.  True: use->ready(-ECANCELED) follows then (unless
 * regcache_unuse() comes first); false: nothing is registered. */
bool regcache_revoke(struct regcache *c, struct regcache_use *use);
/* The range was released: registrations without uses are queued for their end, the others end with their last use. */
void regcache_drop(struct regcache *c, const void *base, size_t bytes);
/* Makes one call of the adapter that is due, on the monitor thread.  False: none is. */
bool regcache_work(struct regcache *c);
/* Returns when nothing is left to be deregistered.  Releases the lock; any thread. */
void regcache_drain(struct regcache *c);
/* Deregisters everything, in use or not.  work.single. */
void regcache_close(struct regcache *c);

#endif
