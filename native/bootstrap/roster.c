/* SPDX-License-Identifier: MIT */
#include "bootstrap/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"

int roster_builder_init(struct roster_builder *r, int size)
{
	memset(r, 0, sizeof(*r));
	r->size = size;
	r->members = calloc((size_t)size, sizeof(*r->members));
	return r->members ? 0 : -ENOMEM;
}

void roster_builder_fini(struct roster_builder *r)
{
	free(r->members);
	free(r->node);
	free(r->hash);
	memset(r, 0, sizeof(*r));
}

static size_t roster_slot(const struct roster_builder *r, const struct roster_node *n)
{
	static const uint8_t key[16] = "roster of a job";
	uint64_t hash[2];
	size_t at;

	siphash128(key, n, sizeof(*n), (uint8_t *)hash);
	for (at = hash[0] % r->hash_room; r->hash[at]; at = (at + 1) % r->hash_room)
		if (memcmp(&r->node[r->hash[at] - 1], n, sizeof(*n)) == 0)
			break;
	return at;
}

static int roster_grow(struct roster_builder *r)
{
	int room = r->node_room ? 2 * r->node_room : 16;
	struct roster_node *node = realloc(r->node, (size_t)room * sizeof(*node));
	uint32_t *hash;

	if (!node)
		return -ENOMEM;
	r->node = node;
	hash = calloc(2 * (size_t)room, sizeof(*hash));
	if (!hash)
		return -ENOMEM;
	free(r->hash);
	r->hash = hash;
	r->hash_room = 2 * (size_t)room;
	r->node_room = room;
	for (int i = 0; i < r->nodes; i++)
		r->hash[roster_slot(r, &r->node[i])] = (uint32_t)i + 1;
	return 0;
}

int roster_add(struct roster_builder *r, const struct message_rank *member)
{
	struct roster_node n;
	size_t at;

	memset(&n, 0, sizeof(n));
	memcpy(n.node, member->node, strnlen(member->node, MESSAGE_NODE_BYTES));
	memcpy(n.host, member->host, strnlen(member->host, MESSAGE_HOST_BYTES));
	if (r->nodes == r->node_room && roster_grow(r) < 0)
		return -ENOMEM;
	at = roster_slot(r, &n);
	if (!r->hash[at]) {
		r->node[r->nodes++] = n;
		r->hash[at] = (uint32_t)r->nodes;
	}
	r->members[member->rank].pid = (uint32_t)member->pid;
	r->members[member->rank].node = r->hash[at] - 1;
	return 0;
}

struct frame *roster_pack(const struct roster_builder *r)
{
	size_t len = 8 + 8 * (size_t)r->size;
	struct frame *f;
	uint8_t *p;

	for (int i = 0; i < r->nodes; i++)
		len += MESSAGE_NODE_BYTES / 2 + 4 + strlen(r->node[i].host);
	f = frame_new(MESSAGE_WELCOME, NULL, len);
	if (!f)
		return NULL;
	p = f->bytes + sizeof(struct message_header);
	message_put32(p, (uint32_t)r->size);
	message_put32(p + 4, (uint32_t)r->nodes);
	p += 8;
	for (int i = 0; i < r->nodes; i++) {
		size_t host = strlen(r->node[i].host);

		message_put_node(p, r->node[i].node);
		message_put32(p + MESSAGE_NODE_BYTES / 2, (uint32_t)host);
		memcpy(p + MESSAGE_NODE_BYTES / 2 + 4, r->node[i].host, host);
		p += MESSAGE_NODE_BYTES / 2 + 4 + host;
	}
	for (int i = 0; i < r->size; i++, p += 8) {
		message_put32(p, r->members[i].pid);
		message_put32(p + 4, r->members[i].node);
	}
	return f;
}

static int roster_find_nodes(struct roster *r, const uint8_t *in, size_t len, size_t *at)
{
	for (int i = 0; i < r->nodes; i++) {
		uint32_t host;

		if (len - *at < MESSAGE_NODE_BYTES / 2 + 4)
			return -EPROTO;
		host = message_get32(in + *at + MESSAGE_NODE_BYTES / 2);
		if (host > MESSAGE_HOST_BYTES || len - *at - MESSAGE_NODE_BYTES / 2 - 4 < host)
			return -EPROTO;
		r->node_at[i] = (uint32_t)*at;
		*at += MESSAGE_NODE_BYTES / 2 + 4 + host;
	}
	return 0;
}

static int roster_parse(struct roster *r, const uint8_t *in, size_t len)
{
	size_t at = 8;

	if (roster_find_nodes(r, in, len, &at) < 0 || len - at != 8 * (size_t)r->size)
		return -EPROTO;
	r->members = in + at;
	for (int i = 0; i < r->size; i++)
		if (message_get32(r->members + 8 * (size_t)i + 4) >= (uint32_t)r->nodes)
			return -EPROTO;
	return 0;
}

int roster_set(struct roster *r, struct frame *welcome, int size)
{
	struct roster parsed = {.size = size};
	const uint8_t *in = frame_body(welcome);
	uint32_t nodes;

	if (welcome->len < 8 || message_get32(in) != (uint32_t)size)
		return -EPROTO;
	nodes = message_get32(in + 4);
	if (nodes < 1 || nodes > (uint32_t)size)
		return -EPROTO;
	parsed.nodes = (int)nodes;
	parsed.node_at = calloc(nodes, sizeof(*parsed.node_at));
	if (!parsed.node_at)
		return -ENOMEM;
	if (roster_parse(&parsed, in, welcome->len) < 0) {
		free(parsed.node_at);
		return -EPROTO;
	}
	roster_fini(r);
	parsed.frame = frame_ref(welcome);
	*r = parsed;
	return 0;
}

void roster_fini(struct roster *r)
{
	frame_unref(r->frame);
	free(r->node_at);
	memset(r, 0, sizeof(*r));
}

int roster_pid(const struct roster *r, int rank)
{
	return r->frame ? (int)(message_get32(r->members + 8 * (size_t)rank) & INT32_MAX) : 0;
}

static const uint8_t *roster_node(const struct roster *r, int rank)
{
	return frame_body(r->frame) + r->node_at[message_get32(r->members + 8 * (size_t)rank + 4)];
}

bool roster_same_node(const struct roster *r, int a, int b)
{
	return r->frame && memcmp(roster_node(r, a), roster_node(r, b), MESSAGE_NODE_BYTES / 2) == 0;
}

void roster_host(const struct roster *r, int rank, char host[MESSAGE_HOST_BYTES + 1])
{
	const uint8_t *node = roster_node(r, rank);

	message_get_chars(host, node + MESSAGE_NODE_BYTES / 2 + 4, message_get32(node + MESSAGE_NODE_BYTES / 2));
}
