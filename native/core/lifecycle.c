/* SPDX-License-Identifier: MIT */
/* Opening an endpoint: settings, bootstrap, transports, in that order (ibvx.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/agree.h"
#include "core/core.h"
#include "core/failure.h"
#include "core/lifecycle.h"
#include "core/monitor.h"
#include "core/peer.h"
#include "core/progress.h"
#include "core/wait.h"

#define LIFE_ADDRESS_MAX 8192u
/* Polls that empty what a rank has left behind before its end is believed. */
#define LIFE_DRAIN_POLLS 100000
/* Of these in one holding of the lock. */
#define LIFE_DRAIN_HOLD 16

struct life_control {
	struct bootstrap *b;
	int fd;
};

struct life {
	struct settings *settings;
	struct bootstrap *bootstrap;
	struct log log;
	struct life_control *controls;
	int size;
};

static int life_set_all(struct settings *s, enum settings_layer layer, const char *const *pairs, const char *origin)
{
	int rc = 0;

	for (int i = 0; pairs && pairs[i] && rc == 0; i++)
		rc = settings_set_pair(s, layer, pairs[i], origin);
	return rc;
}

int life_settings(struct settings **out, const struct ibvx_config *cfg)
{
	struct settings *s = settings_new();
	int rc;

	*out = NULL;
	if (!s)
		return error_set(-ENOMEM, "no memory for the settings");
	rc = life_set_all(s, SETTINGS_EMBEDDER, cfg->defaults, "default of the embedding layer");
	if (rc == 0)
		rc = settings_set_environment(s);
	if (rc == 0)
		rc = life_set_all(s, SETTINGS_CALLER, cfg->settings, cfg->settings_origin ? cfg->settings_origin : "caller");
	if (rc < 0) {
		settings_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* What a rank that has ended sent before still counts: deliver it first. */
static void life_drain(struct ibvx *ep)
{
	for (int i = 1; i < LIFE_DRAIN_POLLS && progress_run(ep) > 0; i++) {
		if (i % LIFE_DRAIN_HOLD)
			continue;
		core_unlock(ep); /* other threads wait for it, perhaps with a collector behind them */
		core_lock(ep);
	}
}

static void life_on_lost(void *arg, int rank, const char *why)
{
	struct ibvx *ep = arg;
	char named[512];

	life_drain(ep);
	snprintf(named, sizeof(named), "%s died: %s", bootstrap_peer_name(ep->bootstrap, rank), why);
	peer_died(&ep->peers[rank], named);
}

static void life_on_left(void *arg, int rank)
{
	struct ibvx *ep = arg;

	life_drain(ep);
	peer_left(&ep->peers[rank]);
}

static void life_on_tree(void *arg)
{
	struct life_control *control = arg;

	bootstrap_on_readable(control->b, control->fd);
}

static int life_watch_tree(struct ibvx *ep, struct life *life)
{
	struct bootstrap_events events = {ep, life_on_lost, life_on_left};
	int *fds = calloc((size_t)ep->size, sizeof(*fds));
	int rc = 0, n;

	life->controls = calloc((size_t)ep->size, sizeof(*life->controls));
	if (!fds || !life->controls) {
		free(fds);
		return error_set(-ENOMEM, "no memory for %d connections", ep->size);
	}
	core_lock(ep);
	bootstrap_watch(ep->bootstrap, &events);
	n = bootstrap_fds(ep->bootstrap, fds, ep->size);
	for (int i = 0; i < n && rc == 0; i++) {
		life->controls[i] = (struct life_control){ep->bootstrap, fds[i]};
		rc = monitor_add(ep->monitor, fds[i], life_on_tree, &life->controls[i]);
	}
	core_unlock(ep);
	free(fds);
	return rc;
}

/* Everybody's addresses: infos[size] point into all, where they are packed in rank order. */
static int life_gather(struct ibvx *ep, struct life *life, unsigned char *all, uint32_t *lengths, struct core_peer_info *infos)
{
	unsigned char mine[LIFE_ADDRESS_MAX];
	int rc = core_address(ep, mine, sizeof(mine));
	size_t at = 0;

	if (rc >= 0)
		rc = bootstrap_allgather(life->bootstrap, mine, (size_t)rc, all, (size_t)ep->size * LIFE_ADDRESS_MAX, lengths);
	for (int r = 0; rc == 0 && r < ep->size; r++) {
		infos[r] = (struct core_peer_info){bootstrap_peer_local(life->bootstrap, r), all + at, lengths[r]};
		at += lengths[r];
	}
	return rc;
}

static int life_exchange(struct ibvx *ep, struct life *life, const struct core_config *cc)
{
	unsigned char *all = malloc((size_t)ep->size * LIFE_ADDRESS_MAX);
	uint32_t *lengths = calloc((size_t)ep->size, sizeof(*lengths));
	struct core_peer_info *infos = calloc((size_t)ep->size, sizeof(*infos));
	int rc = all && lengths && infos ? life_gather(ep, life, all, lengths, infos)
					 : error_set(-ENOMEM, "no memory for %d addresses", ep->size);

	if (rc == 0 && core_incomplete(ep, infos)) {
		rc = core_open_rest(ep, cc);
		if (rc == 0)
			rc = life_gather(ep, life, all, lengths, infos);
	}
	if (rc == 0)
		rc = core_attach(ep, infos);
	free(all);
	free(lengths);
	free(infos);
	return rc;
}

/* Everybody has attached, and both ends of each pair know what reaches the other. */
static int life_agree(struct ibvx *ep, struct life *life)
{
	size_t most = agree_reach_max(ep->size), room = most * (size_t)ep->size, at = 0;
	unsigned char *mine = malloc(most), *all = malloc(room);
	uint32_t *lengths = calloc((size_t)ep->size, sizeof(*lengths));
	int rc = mine && all && lengths ? core_reach(ep, mine, most) : error_set(-ENOMEM, "no memory for %d ranks", ep->size);

	if (rc >= 0)
		rc = bootstrap_allgather(life->bootstrap, mine, (size_t)rc, all, room, lengths);
	for (int r = 0; rc == 0 && r < ep->size; r++) {
		rc = core_agree(ep, r, all + at, lengths[r]);
		at += lengths[r];
	}
	free(mine);
	free(all);
	free(lengths);
	return rc;
}

static bool life_one_node(const struct life *life)
{
	for (int r = 0; r < life->size; r++) {
		if (!bootstrap_peer_local(life->bootstrap, r))
			return false;
	}
	return true;
}

/* From a job id to an endpoint that may communicate. */
static int life_connect(struct ibvx **out, struct life *life, int rank, const char *job_id)
{
	struct core_config cc = {.rank = rank,
				 .size = life->size,
				 .job_id = job_id,
				 .settings = life->settings,
				 .transports = transport_all,
				 .monitor = true,
				 .one_node = life_one_node(life)};
	struct ibvx *ep;
	int rc = core_open(&ep, &cc);

	if (rc < 0)
		return rc;
	rc = life_exchange(ep, life, &cc);
	if (rc == 0)
		rc = life_agree(ep, life);
	if (rc == 0)
		rc = core_attached(ep);
	if (rc == 0) {
		ep->bootstrap = life->bootstrap;
		rc = life_watch_tree(ep, life);
	}
	if (rc < 0) {
		core_free(ep);
		return rc;
	}
	ep->life = life;
	*out = ep;
	return 0;
}

static void life_free(struct life *life)
{
	if (!life)
		return;
	bootstrap_close(life->bootstrap);
	log_close(&life->log);
	settings_free(life->settings);
	free(life->controls);
	free(life);
}

static int life_begin(struct life *life, const struct ibvx_config *cfg, char job_id[33])
{
	struct bootstrap_config bc = {.rank = cfg->rank, .conf = cfg->conf, .peers = cfg->peers, .size = cfg->size};
	int rc = life_settings(&life->settings, cfg);

	if (rc < 0)
		return rc;
	bc.settings = life->settings;
	rc = bootstrap_open(&life->bootstrap, &bc, &life->size);
	if (rc == 0)
		rc = log_open(&life->log, (enum log_level)settings_int(life->settings, SETTING_LOG),
			      settings_text(life->settings, SETTING_LOG_FILE), bootstrap_rank(life->bootstrap));
	if (rc == 0)
		rc = bootstrap_join(life->bootstrap, &life->log, job_id);
	return rc;
}

int ibvx_open(struct ibvx **out, const struct ibvx_config *cfg)
{
	struct life *life = calloc(1, sizeof(*life));
	char job_id[33] = "";
	int rc;

	*out = NULL;
	if (!life)
		return error_set(-ENOMEM, "no memory for an endpoint");
	life->log.fd = -1;
	rc = life_begin(life, cfg, job_id);
	if (rc == 0)
		rc = life_connect(out, life, bootstrap_rank(life->bootstrap), job_id);
	if (rc < 0) {
		int rank = life->bootstrap ? bootstrap_rank(life->bootstrap) : cfg->rank;

		life_free(life);
		if (rank < 0)
			return error_prefix(rc, "this rank cannot join the job");
		return error_prefix(rc, "rank %d cannot join the job", rank);
	}
	log_info(&(*out)->log, "rank %d of %d in job %s on node %s", (*out)->rank, (*out)->size, job_id,
		 bootstrap_node_id(life->bootstrap));
	return 0;
}

void life_leave(struct ibvx *ep)
{
	if (ep->bootstrap)
		bootstrap_leave(ep->bootstrap);
}

void life_end(struct ibvx *ep)
{
	struct life *life = ep->life;

	core_free(ep);
	life_free(life);
}
