/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_ROSTER_H
#define IBVX_BOOTSTRAP_ROSTER_H
/*
 * roster: process id and node of every rank, 8 bytes a rank and each node's name once.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/message.h"

/* What all ranks know: views into the body of WELCOME, which is shared. */
struct roster {
	int size, nodes;
	struct frame *frame;    /* NULL: nothing is known yet */
	const uint8_t *members; /* size pairs (pid, node), big-endian */
	uint32_t *node_at;      /* offsets of the nodes in the body */
};

/* What rank 0 collects. */
struct roster_builder {
	int size, nodes, node_room;
	struct roster_member {
		uint32_t pid; /* 0: not known */
		uint32_t node;
	} * members;
	struct roster_node {
		char node[MESSAGE_NODE_BYTES + 1];
		char host[MESSAGE_HOST_BYTES + 1];
	} * node;
	uint32_t *hash; /* index + 1 of a node; 0: free */
	size_t hash_room;
};

/* Takes a reference of the frame.  0; -EPROTO; -ENOMEM; without a text, and the roster is as it was. */
int roster_set(struct roster *r, struct frame *welcome, int size);
void roster_fini(struct roster *r);               /* zeroed ones too */
int roster_pid(const struct roster *r, int rank); /* 0: not known */
bool roster_same_node(const struct roster *r, int a, int b);
void roster_host(const struct roster *r, int rank, char host[MESSAGE_HOST_BYTES + 1]);

/* 0 or -ENOMEM without a text. */
int roster_builder_init(struct roster_builder *r, int size);
void roster_builder_fini(struct roster_builder *r); /* zeroed ones too */
/* member->rank is within the size.  0 or -ENOMEM without a text. */
int roster_add(struct roster_builder *r, const struct message_rank *member);
/* WELCOME.  NULL without memory. */
struct frame *roster_pack(const struct roster_builder *r);

#endif
