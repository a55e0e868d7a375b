/* SPDX-License-Identifier: MIT */
/*
 * join: from a launcher to a job: rank 0 listens, the others learn where, and the protocol engine does the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/proof.h"
#include "bootstrap/bootstrap_state.h"
#include "bootstrap/deadline.h"
#include "bootstrap/descriptors.h"
#include "bootstrap/gather.h"
#include "bootstrap/node.h"

/* How long a rank that is not the first of its host waits for a leader there before it asks rank 0. */
#define JOIN_LOCAL_MS 100
/* How long what a failed start still has to report may take. */
#define JOIN_VERDICT_MS 1000
#define JOIN_FAREWELL_MS 200

static int join_check_job_id(const char *id, const char *origin)
{
	if (*id && !message_is_job_id(id))
		return error_set(-EINVAL, "job_id \"%.64s\" (%s) is not 32 hexadecimal digits", id, origin);
	return 0;
}

static int join_draw_job_id(char out[MESSAGE_ID_BYTES + 1])
{
	uint8_t drawn[MESSAGE_ID_BYTES / 2];
	int err = proof_random(drawn, sizeof(drawn));

	for (size_t i = 0; !err && i < sizeof(drawn); i++)
		snprintf(out + 2 * i, 3, "%02x", drawn[i]);
	return err;
}

static int join_listen(struct bootstrap *b, int64_t deadline)
{
	struct address_listener *l = &b->net.listeners[MESSAGE_JOIN];
	int err = launch_listen(b->launch, l, b->log, deadline);

	if (err == -EMFILE && !descriptors_raise())
		err = descriptors_none("listening", b->size);
	else if (err == -EMFILE)
		err = launch_listen(b->launch, l, b->log, deadline);
	if (err)
		return error_prefix(err, "rank 0");
	log_debug(b->log, "bootstrap: listening on port %d", l->port);
	return 0;
}

/* The card's secret becomes that of the job, unless the user has set one. */
static int join_take_card(struct bootstrap *b, const struct card *card)
{
	return *card->secret ? settings_set(b->settings, SETTINGS_CONF_FILE, setting_info(SETTING_JOB_SECRET)->name, card->secret,
					    "rank 0's card")
			     : 0;
}

/* The name of this job's local listener, once the launcher has made rank 0 known. */
static void join_name_local(struct bootstrap *b, const char *id)
{
	const struct conf_host *root = launch_host(b->launch, 0);
	char where[512] = "";

	if (root && root->host)
		snprintf(where, sizeof(where), "%.400s:%d", root->host, root->port);
	local_make_name(&b->net.local_name, settings_secret(b->settings), where, id, b->size);
}

static bool join_is_loopback(const struct address_listener *l)
{
	struct address a = {.len = sizeof(a.addr)};

	return l->count > 0 && getsockname(l->fds[0], (struct sockaddr *)&a.addr, &a.len) == 0 && address_is_loopback(&a);
}

static int join_find_root(struct bootstrap *b, struct card *card, int64_t deadline)
{
	const struct conf_host *root = launch_host(b->launch, 0);
	int err;

	if (b->rank != 0)
		return launch_fetch(b->launch, card, deadline);
	if (b->size == 1)
		return 0;
	/* Ranks of this node may come from now on. */
	if (root && root->host && root->port) {
		join_name_local(b, settings_text(b->settings, SETTING_JOB_ID));
		net_listen_local(&b->net);
	}
	err = join_listen(b, deadline);
	return err ? err : launch_publish(b->launch, card, &b->net.listeners[MESSAGE_JOIN], deadline);
}

/* The first rank of each host in the conf leads, so the others wait for it. */
static int64_t join_local_ms(const struct bootstrap *b)
{
	const struct conf_host *me = launch_host(b->launch, b->rank);

	for (int r = 0; me && me->host && r < b->rank; r++)
		if (strcmp(launch_host(b->launch, r)->host, me->host) == 0)
			return JOIN_LOCAL_MS;
	return me && me->host ? 0 : b->rank % 64;
}

static void join_name(void *arg, int rank, char *out, size_t size)
{
	const struct net *n = arg;

	n->name(n->name_arg, rank, out, size);
}

static void join_early_name(void *arg, int rank, char *out, size_t size)
{
	bootstrap_early_name(arg, rank, out, size);
}

static int join_start(struct bootstrap *b, const char *id, int64_t deadline)
{
	struct card card = {.host = ""};
	char drawn[MESSAGE_ID_BYTES + 1] = "", host[MESSAGE_HOST_BYTES + 1] = "";
	struct tree_config cfg = {.rank = b->rank,
				  .size = b->size,
				  .pid = (int)getpid(),
				  .host = host,
				  .node = b->node,
				  .drawn_id = drawn,
				  .where = b->where,
				  .log = b->log,
				  .net = &net_ops,
				  .net_arg = &b->net,
				  .name = join_name};
	int err = node_id(b->node);

	if (gethostname(host, sizeof(host) - 1) < 0)
		snprintf(host, sizeof(host), "?");
	if (!err)
		err = *id ? (snprintf(drawn, sizeof(drawn), "%s", id), 0) : join_draw_job_id(drawn);
	if (!err)
		err = join_find_root(b, &card, deadline);
	if (!err)
		err = join_take_card(b, &card);
	if (err)
		return err;
	id = *id ? id : card.job_id;
	launch_where(b->launch, b->where);
	join_name_local(b, id);
	cfg.secret = settings_secret(b->settings);
	cfg.job_id = id;
	cfg.timeout_ms = deadline_left_ms(deadline);
	cfg.local_ms = join_local_ms(b);
	cfg.addresses = card.addresses.count;
	cfg.loopback = join_is_loopback(&b->net.listeners[MESSAGE_JOIN]);
	b->net.root = card.addresses;
	b->net.deadline = deadline;
	b->net.name = join_early_name;
	b->net.name_arg = b;
	err = tree_new(&b->tree, &cfg);
	b->net.tree = b->tree;
	if (err)
		return err;
	tree_start(b->tree, clock_now_ns());
	err = net_run(&b->net);
	if (!err && tree_state(b->tree) == TREE_FAILED) {
		net_drain(&b->net, JOIN_VERDICT_MS);
		err = tree_error(b->tree);
	}
	return err;
}

static int join_failed(struct bootstrap *b, int err)
{
	b->failure_code = err;
	snprintf(b->failure, sizeof(b->failure), "%s", error_text());
	return err;
}

int bootstrap_join(struct bootstrap *b, const struct log *log, char job_id[33])
{
	const char *id = settings_text(b->settings, SETTING_JOB_ID);
	int64_t deadline;
	int err;

	if (b->joins)
		return error_set(-EINVAL, "a bootstrap joins once");
	b->joins = true;
	b->log = log;
	deadline = deadline_after_ms(settings_int(b->settings, SETTING_START_TIMEOUT_MS));
	err = join_check_job_id(id, settings_origin(b->settings, SETTING_JOB_ID));
	if (!err)
		err = net_open(&b->net, b->rank, b->size, (int)settings_int(b->settings, SETTING_NODE_TIMEOUT_MS), log);
	if (!err)
		err = join_start(b, id, deadline);
	if (!err)
		err = launch_done(b->launch, deadline);
	if (err) {
		join_failed(b, err);
		launch_abort(b->launch);
		return error_set(b->failure_code, "%s", b->failure);
	}
	memcpy(job_id, tree_job_id(b->tree), MESSAGE_ID_BYTES + 1);
	return 0;
}

int bootstrap_allgather(struct bootstrap *b, const void *mine, size_t len, void *out, size_t out_size, uint32_t *lengths)
{
	const struct frame *f;
	int err;

	if (b->failure_code)
		return error_set(b->failure_code, "%s", b->failure);
	if (!b->tree || tree_state(b->tree) != TREE_JOINED)
		return error_set(-EINVAL, "allgather is possible only between join and watch");
	if (len > MESSAGE_GATHER_BYTES)
		return error_set(-EINVAL, "allgather of %zu bytes; a rank may give %u", len, MESSAGE_GATHER_BYTES);
	b->gathers++;
	err = tree_gather(b->tree, mine, len, clock_now_ns());
	if (!err)
		err = net_run(&b->net);
	if (!err && tree_state(b->tree) != TREE_JOINED) {
		net_drain(&b->net, JOIN_VERDICT_MS);
		err = tree_error(b->tree);
	}
	if (err)
		return join_failed(b, err);
	f = tree_gathered(b->tree);
	err = gather_unpack(frame_body(f), f->len, b->size, b->gathers, out, out_size, lengths);
	return err == -EPROTO ? join_failed(b, err) : err;
}

void bootstrap_watch(struct bootstrap *b, const struct bootstrap_events *events)
{
	tree_watch(b->tree, events);
	b->net.bounded = true;
	net_arm(&b->net);
}

int bootstrap_fds(const struct bootstrap *b, int *fds, int max)
{
	if (!b->tree || tree_state(b->tree) != TREE_WATCHED || max < 1)
		return 0;
	fds[0] = b->net.epoll_fd;
	return 1;
}

void bootstrap_on_readable(struct bootstrap *b, int fd)
{
	if (!b->tree || b->in_event || fd != b->net.epoll_fd || tree_state(b->tree) != TREE_WATCHED)
		return;
	b->in_event = true;
	net_turn(&b->net);
	b->in_event = false;
}

void bootstrap_report_lost(struct bootstrap *b, int rank, const char *why)
{
	if (!b->tree || tree_state(b->tree) != TREE_WATCHED)
		return;
	tree_report_lost(b->tree, rank, why, clock_now_ns());
	if (!b->in_event) /* else the turn that is under way does so */
		net_arm(&b->net);
}

void bootstrap_leave(struct bootstrap *b)
{
	if (!b->tree || tree_state(b->tree) == TREE_LEFT || tree_state(b->tree) == TREE_FAILED)
		return;
	if (tree_state(b->tree) == TREE_WATCHED) {
		/* The last news that the others would not get otherwise; nobody here wants to hear it. */
		tree_ignore(b->tree);
		net_turn(&b->net);
	}
	tree_leave(b->tree, clock_now_ns());
	net_run(&b->net);
	net_drain(&b->net, JOIN_FAREWELL_MS);
}
