/* SPDX-License-Identifier: MIT */
#include "bootstrap/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/bootstrap_state.h"

int bootstrap_open(struct bootstrap **out, const struct bootstrap_config *cfg, int *size)
{
	struct bootstrap *b;
	int err;

	*out = NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_set(-ENOMEM, "no memory");
	b->net.epoll_fd = b->net.timer_fd = -1;
	b->settings = cfg->settings;
	err = launch_open(&b->launch, cfg);
	if (err) {
		bootstrap_close(b);
		return err;
	}
	b->rank = launch_rank(b->launch);
	b->size = launch_size(b->launch);
	*size = b->size;
	*out = b;
	return 0;
}

int bootstrap_rank(const struct bootstrap *b)
{
	return b->rank;
}

void bootstrap_early_name(const struct bootstrap *b, int rank, char *out, size_t size)
{
	const struct conf_host *host = launch_host(b->launch, rank);

	if (host && host->host && host->port)
		snprintf(out, size, "rank %d (%.100s:%d)", rank, host->host, host->port);
	else if (host && host->host)
		snprintf(out, size, "rank %d (%.100s)", rank, host->host);
	else
		snprintf(out, size, "rank %d", rank);
}

const char *bootstrap_peer_name(struct bootstrap *b, int rank)
{
	if (rank < 0 || rank >= b->size)
		snprintf(b->name, sizeof(b->name), "rank %d", rank);
	else if (b->tree)
		tree_name(b->tree, rank, b->name, sizeof(b->name));
	else
		bootstrap_early_name(b, rank, b->name, sizeof(b->name));
	return b->name;
}

int bootstrap_peer_pid(const struct bootstrap *b, int rank)
{
	return tree_pid(b->tree, rank);
}

bool bootstrap_peer_local(const struct bootstrap *b, int rank)
{
	return rank == b->rank || tree_same_node(b->tree, b->rank, rank);
}

const char *bootstrap_node_id(const struct bootstrap *b)
{
	return b->node;
}

void bootstrap_close(struct bootstrap *b)
{
	if (!b)
		return;
	net_close_all(&b->net);
	tree_free(b->tree);
	launch_close(b->launch);
	free(b);
}
