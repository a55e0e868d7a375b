/* SPDX-License-Identifier: MIT */
#include "core/match_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

#define MATCH_BUCKETS_FIRST 64u

int match_table_init(struct match_table *t)
{
	*t = (struct match_table){0};
	t->buckets = calloc(MATCH_BUCKETS_FIRST, sizeof(struct match_node *));
	if (!t->buckets)
		return error_set(-ENOMEM, "no memory for a matching table");
	t->bucket_count = MATCH_BUCKETS_FIRST;
	return 0;
}

void match_table_fini(struct match_table *t)
{
	free(t->buckets);
	*t = (struct match_table){0};
}

static uint32_t match_hash(struct match_key k)
{
	uint64_t h = ((uint64_t)(uint32_t)k.tag << 32 | (uint32_t)k.source) * 0x9e3779b97f4a7c15ull;

	h ^= (uint64_t)(uint32_t)k.context * 0xc2b2ae3d27d4eb4full;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(h >> 32);
}

static bool match_same(const struct match_key *a, const struct match_key *b)
{
	return a->tag == b->tag && a->source == b->source && a->context == b->context;
}

static void match_link(struct match_table *t, struct match_node *node)
{
	struct match_node **bucket = &t->buckets[node->hash & (t->bucket_count - 1)];

	node->bucket_next = *bucket;
	if (*bucket)
		(*bucket)->bucket_link = &node->bucket_next;
	node->bucket_link = bucket;
	*bucket = node;
}

static void match_unlink(struct match_node *node)
{
	*node->bucket_link = node->bucket_next;
	if (node->bucket_next)
		node->bucket_next->bucket_link = node->bucket_link;
	node->bucket_link = NULL;
	node->bucket_next = NULL;
}

static void match_grow(struct match_table *t)
{
	uint32_t old_count = t->bucket_count;
	struct match_node **old = t->buckets;
	struct match_node **fresh;

	if (old_count >= 1u << 30)
		return;
	fresh = calloc((size_t)old_count * 2, sizeof(*fresh));
	if (!fresh)
		return;
	t->buckets = fresh;
	t->bucket_count = old_count * 2;
	for (uint32_t i = 0; i < old_count; i++) {
		for (struct match_node *n = old[i], *next; n; n = next) {
			next = n->bucket_next;
			match_link(t, n);
		}
	}
	free(old);
}

static struct match_node *match_find(struct match_table *t, const struct match_key *key, uint32_t hash)
{
	struct match_node *n = t->buckets[hash & (t->bucket_count - 1)];

	for (; n; n = n->bucket_next) {
		t->step_count++;
		if (n->hash == hash && match_same(&n->key, key))
			return n;
	}
	return NULL;
}

struct match_node *match_first(struct match_table *t, struct match_key key)
{
	return match_find(t, &key, match_hash(key));
}

void match_append(struct match_table *t, struct match_node *node, struct match_key key, uint64_t order)
{
	uint32_t hash = match_hash(key);
	struct match_node *first = match_find(t, &key, hash);

	node->key = key;
	node->hash = hash;
	node->order = order;
	t->entry_count++;
	if (first) {
		node->bucket_link = NULL;
		node->bucket_next = NULL;
		node->next = first;
		node->prev = first->prev;
		first->prev->next = node;
		first->prev = node;
		return;
	}
	node->next = node;
	node->prev = node;
	match_link(t, node);
	if (++t->queue_count > t->bucket_count)
		match_grow(t);
}

void match_remove(struct match_table *t, struct match_node *node)
{
	struct match_node *heir = node->next;

	if (!heir)
		return;
	t->entry_count--;
	if (heir == node) {
		match_unlink(node);
		t->queue_count--;
		node->next = NULL;
		return;
	}
	node->prev->next = heir;
	heir->prev = node->prev;
	if (node->bucket_link) { /* the first: the next one inherits the place in the bucket */
		heir->bucket_next = node->bucket_next;
		heir->bucket_link = node->bucket_link;
		*heir->bucket_link = heir;
		if (heir->bucket_next)
			heir->bucket_next->bucket_link = &heir->bucket_next;
		node->bucket_link = NULL;
		node->bucket_next = NULL;
	}
	node->next = NULL;
}
