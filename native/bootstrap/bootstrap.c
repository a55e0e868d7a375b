/* SPDX-License-Identifier: MIT */
#include "bootstrap/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/conf.h"
#include "bootstrap/star.h"

static int open_peers(struct bootstrap *b, const struct bootstrap_config *cfg)
{
	if (cfg->size < 1 || cfg->size > CONF_RANKS_MAX)
		return error_set(-EINVAL, "size %d; with a list of peers give a size from 1 to %d", cfg->size,
				 CONF_RANKS_MAX);
	b->conf.psl_bytes = -1;
	b->conf.size = cfg->size;
	b->conf.hosts = calloc((size_t)cfg->size, sizeof(*b->conf.hosts));
	if (!b->conf.hosts)
		return error_set(-ENOMEM, "no memory for %d ranks", cfg->size);
	for (int i = 0; i < cfg->size; i++) {
		struct conf_host *host = &b->conf.hosts[i];
		int err = cfg->peers[i] ? address_split(cfg->peers[i], &host->host, &host->port)
					: error_set(-EINVAL, "no address");

		if (err)
			return error_prefix(err, "peer %d", i);
	}
	return 0;
}

static int open_settings(struct bootstrap *b, struct settings *settings)
{
	char origin[512], number[32];
	int err = 0;

	if (b->conf.psl_bytes >= 0) {
		snprintf(number, sizeof(number), "%lld", (long long)b->conf.psl_bytes);
		if (b->conf.psl_line)
			snprintf(origin, sizeof(origin), "conf file %.400s line %d", b->conf_text,
				 b->conf.psl_line);
		else
			snprintf(origin, sizeof(origin), "conf string");
		err = settings_set(settings, SETTINGS_CONF_FILE, "psl", number, origin);
	}
	for (int i = 0; !err && b->conf.settings && b->conf.settings[i]; i++) {
		snprintf(origin, sizeof(origin), "conf file %.400s line %d", b->conf_text,
			 b->conf.settings_lines[i]);
		err = settings_set_pair(settings, SETTINGS_CONF_FILE, b->conf.settings[i], origin);
	}
	return err;
}

static int open_check(const struct bootstrap *b, const struct bootstrap_config *cfg)
{
	const char *what = cfg->conf ? cfg->conf : "the list of peers";

	if (cfg->conf && cfg->size != 0 && cfg->size != b->conf.size)
		return error_set(-EINVAL, "size %d, but %.200s says %d processes; give the same or 0",
				 cfg->size, what, b->conf.size);
	if (cfg->rank < 0 || cfg->rank >= b->conf.size)
		return error_set(-EINVAL, "rank %d, but %.200s has %d processes: ranks are 0 to %d",
				 cfg->rank, what, b->conf.size, b->conf.size - 1);
	return 0;
}

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
	if (!cfg->settings || !cfg->conf == !cfg->peers)
		return error_set(-EINVAL, "give either a conf or a list of peers");
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_set(-ENOMEM, "no memory");
	b->epoll_fd = -1;
	b->settings = cfg->settings;
	b->rank = cfg->rank;
	b->conf_text = strdup(cfg->conf ? cfg->conf : "");
	if (!b->conf_text)
		err = error_set(-ENOMEM, "no memory");
	else
		err = cfg->conf ? conf_read(&b->conf, cfg->conf) : open_peers(b, cfg);
	if (!err)
		err = open_check(b, cfg);
	if (!err)
		err = open_settings(b, cfg->settings);
	b->size = b->conf.size;
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
	free(b->conf_text);
	conf_fini(&b->conf);
	free(b);
}
