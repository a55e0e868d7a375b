/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_MATCH_TABLE_H
#define IBVX_CORE_MATCH_TABLE_H
/*
 * match: a hash table of first-in first-out queues, one queue per (context, source, tag).
 *
 * It serves both sides of MPI matching.  Wildcards have tables of their own, so that
 * every look-up is for an exact key:
 *   posted receives: each stands in the one table of its class; an arrival looks into the tables that are
 *     not empty and takes the earliest (order) of the heads found;
 *   unexpected messages: each stands in the table of every class in use; a receive looks into its own.
 * All operations are O(1) expected, whatever is queued; no memory is taken per entry.  The caller holds
 * the core's lock.
 */
#include <stdbool.h>
#include <stdint.h>

enum match_class { MATCH_EXACT = 0, MATCH_ANY_SOURCE = 1, MATCH_ANY_TAG = 2, MATCH_ANY_BOTH = 3, MATCH_CLASSES = 4 };

struct match_key {
	int32_t context;
	int32_t source;
	int32_t tag;
};

/* Embedded in what is queued.  The first entry of a queue also links the queue into its bucket. */
struct match_node {
	struct match_node *bucket_next;
	struct match_node **bucket_link; /* NULL: not the first of its queue */
	struct match_node *next, *prev;  /* circular; next == NULL: in no table */
	struct match_key key;
	uint32_t hash;
	uint64_t order;
};

struct match_table {
	struct match_node **buckets;
	uint32_t bucket_count; /* a power of two */
	uint32_t queue_count;
	uint64_t entry_count;
	uint64_t step_count; /* bucket entries looked at: what constant time is proven by */
};

/* 0 or -ENOMEM */
int match_table_init(struct match_table *t);
void match_table_fini(struct match_table *t);

/* The key under which class `c` files (context, source, tag): wildcarded fields become 0. */
static inline struct match_key match_key_of(enum match_class c, int context, int source, int tag)
{
	struct match_key k = {context, c & MATCH_ANY_SOURCE ? 0 : source, c & MATCH_ANY_TAG ? 0 : tag};

	return k;
}

static inline enum match_class match_class_of(bool any_source, bool any_tag)
{
	return (enum match_class)((any_source ? MATCH_ANY_SOURCE : 0) | (any_tag ? MATCH_ANY_TAG : 0));
}

/* Appends to the queue of the key. Never fails (a table that cannot grow becomes slower). */
void match_append(struct match_table *t, struct match_node *node, struct match_key key, uint64_t order);
/* The first of the key's queue, or NULL. */
struct match_node *match_first(struct match_table *t, struct match_key key);
/* Takes a node out, wherever in its queue it stands; nothing if it is in no table. */
void match_remove(struct match_table *t, struct match_node *node);

#endif
