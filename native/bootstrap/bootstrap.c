/* SPDX-License-Identifier: MIT */
#include "bootstrap/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/launch.h"
#include "bootstrap/star.h"

static int open_tables(struct bootstrap *b)
{
	b->conn_count = b->rank == 0 ? b->size : 1;
	b->peers = calloc((size_t)b->size, sizeof(*b->peers));
	b->conns = calloc((size_t)b->conn_count, sizeof(*b->conns));
	b->polls = calloc(2 * (size_t)b->conn_count, sizeof(*b->polls));
	if (!b->peers || !b->conns || !b->polls)
		return error_set(-ENOMEM, "no memory for %d ranks", b->size);
	for (int i = 0; i < b->conn_count; i++)
		b->conns[i].fd = -1;
	for (int i = 0; i < b->size; i++)
		star_name_peer(b, i);
	return 0;
}

int bootstrap_open(struct bootstrap **out, const struct bootstrap_config *cfg, int *size)
{
	struct bootstrap *b;
	int err;

	*out = NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_set(-ENOMEM, "no memory");
	b->epoll_fd = -1;
	b->settings = cfg->settings;
	err = launch_open(&b->launch, cfg);
	if (!err) {
		b->rank = launch_rank(b->launch);
		b->size = launch_size(b->launch);
	}
	if (!err)
		err = open_tables(b);
	if (err) {
		bootstrap_close(b);
		return err;
	}
	*size = b->size;
	*out = b;
	return 0;
}

int bootstrap_rank(const struct bootstrap *b)
{
	return b->rank;
}

const char *bootstrap_peer_name(struct bootstrap *b, int rank)
{
	if (rank >= 0 && rank < b->size)
		return b->peers[rank].name;
	snprintf(b->unknown_name, sizeof(b->unknown_name), "rank %d", rank);
	return b->unknown_name;
}

int bootstrap_peer_pid(const struct bootstrap *b, int rank)
{
	return b->peers[rank].who.pid;
}

bool bootstrap_peer_local(const struct bootstrap *b, int rank)
{
	return strcmp(b->peers[rank].who.node, b->peers[b->rank].who.node) == 0;
}

const char *bootstrap_node_id(const struct bootstrap *b)
{
	return b->peers[b->rank].who.node;
}

void bootstrap_close(struct bootstrap *b)
{
	if (!b)
		return;
	for (int i = 0; b->conns && i < b->conn_count; i++)
		conn_close(&b->conns[i]);
	for (int i = 0; b->peers && i < b->size; i++)
		free(b->peers[i].hearsay);
	if (b->epoll_fd >= 0)
		close(b->epoll_fd);
	free(b->peers);
	free(b->conns);
	free(b->polls);
	launch_close(b->launch);
	free(b);
}
