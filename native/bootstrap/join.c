/* SPDX-License-Identifier: MIT */
/*
 * join: everybody finds rank 0.  What happens there is in door.c and knock.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/deadline.h"
#include "bootstrap/door.h"
#include "bootstrap/knock.h"
#include "bootstrap/node.h"
#include "base/proof.h"
#include "bootstrap/star.h"
#include "bootstrap/starter.h"

/* A round that is ending may still hold the port for a moment. */
#define JOIN_LISTEN_MS 2000
#define JOIN_WHERE_BYTES 512

static int join_check_job_id(const char *id, const char *origin)
{
	size_t len = strlen(id);

	if (len != 0 && (len != MESSAGE_ID_BYTES || strspn(id, "0123456789abcdefABCDEF") != len))
		return error_set(-EINVAL, "job_id \"%.64s\" (%s) is not 32 hexadecimal digits", id, origin);
	return 0;
}

static int join_choose_job_id(struct bootstrap *b, const char *id)
{
	uint8_t drawn[MESSAGE_ID_BYTES / 2];
	int err;

	if (*id) {
		memcpy(b->job_id, id, MESSAGE_ID_BYTES);
		return 0;
	}
	err = proof_random(drawn, sizeof(drawn));
	for (size_t i = 0; !err && i < sizeof(drawn); i++)
		snprintf(b->job_id + 2 * i, 3, "%02x", drawn[i]);
	return err;
}

static int join_describe_self(struct bootstrap *b)
{
	struct message_rank *me = &b->peers[b->rank].who;

	me->rank = b->rank;
	me->size = b->size;
	me->pid = (int)getpid();
	if (gethostname(me->host, sizeof(me->host) - 1) < 0)
		snprintf(me->host, sizeof(me->host), "?");
	star_name_peer(b, b->rank);
	return node_id(me->node);
}

/* Where rank 0 is, as errors call it. */
static void join_where(const struct bootstrap *b, char *out, size_t size)
{
	const struct conf_host *host = &b->conf.hosts[0];
	const char *format = strchr(host->host, ':') ? "[%.255s]:%d" : "%.255s:%d";
	int n = snprintf(out, size, format, host->host, host->port);

	if (host->line && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " (%s%.150s line %d)",
			 b->conf.derived_port ? "a port drawn from the content of " : "", b->conf_text,
			 host->line);
}

/* Loopback is enough, and shuts the network out, if every rank names the same loopback host. */
static bool join_is_local(const struct bootstrap *b, const struct address_list *list)
{
	bool loopback = false;

	for (int i = 1; i < b->size; i++)
		if (strcmp(b->conf.hosts[i].host, b->conf.hosts[0].host) != 0)
			return false;
	for (int i = 0; i < list->count; i++)
		loopback = loopback || address_is_loopback(&list->at[i]);
	return loopback;
}

static int join_listen(struct bootstrap *b, struct address_listener *listener, int64_t deadline)
{
	static const struct timespec pause = {.tv_nsec = 20 * CLOCK_NS_PER_MS};
	int64_t patience = deadline_earlier(deadline, deadline_after_ms(JOIN_LISTEN_MS));
	struct address_list list = {.count = 0};
	char where[JOIN_WHERE_BYTES];
	bool local;
	int err, port = b->conf.hosts ? b->conf.hosts[0].port : 0;

	if (!b->conf.hosts) {
		err = address_listen(listener, &list, false, 0);
		return err ? error_prefix(err, "rank 0") : 0;
	}
	join_where(b, where, sizeof(where));
	/* A name that only the others can resolve is no reason to fail. */
	err = address_resolve(&list, b->conf.hosts[0].host, port);
	if (err)
		log_warn(b->log, "bootstrap: %s; listening on every interface", error_text());
	local = !err && join_is_local(b, &list);
	while ((err = address_listen(listener, &list, local, port)) == -EADDRINUSE &&
	       deadline_left_ms(patience) > 0)
		nanosleep(&pause, NULL);
	if (err == -EADDRINUSE)
		return error_set(err,
				 "rank 0 cannot listen at %s: port %d is in use, perhaps by another job or "
				 "another rank 0 with "
				 "the same conf; end it, or give other ports",
				 where, port);
	if (err == -EMFILE)
		err = star_no_descriptors("listening", b->size);
	return err ? error_prefix(err, "rank 0 at %s", where) : 0;
}

static int join_as_root(struct bootstrap *b, const char *secret, const char *job_id, int64_t deadline)
{
	struct address_listener listener = {.count = 0};
	int err = join_choose_job_id(b, job_id);

	if (err || b->size == 1)
		return err;
	err = join_listen(b, &listener, deadline);
	if (err)
		return err;
	log_debug(b->log, "bootstrap: listening on port %d", listener.port);
	if (!b->conf.hosts) {
		err = starter_ask(&b->conf, 0, listener.port, deadline);
		for (int i = 1; !err && i < b->size; i++)
			star_name_peer(b, i);
	}
	if (err) {
		address_unlisten(&listener);
		return err;
	}
	return door_meet(b, &listener, secret, job_id, deadline);
}

static int join_as_leaf(struct bootstrap *b, const char *secret, const char *job_id, int64_t deadline)
{
	char where[JOIN_WHERE_BYTES];

	if (!b->conf.hosts) {
		int err = starter_ask(&b->conf, b->rank, 0, deadline);

		if (err)
			return err;
		star_name_peer(b, 0);
	}
	join_where(b, where, sizeof(where));
	return knock(b, b->conf.hosts[0].host, b->conf.hosts[0].port, where, secret, job_id, deadline);
}

int bootstrap_join(struct bootstrap *b, const struct log *log, char job_id[33])
{
	const char *secret = settings_secret(b->settings);
	const char *id = settings_text(b->settings, SETTING_JOB_ID);
	int64_t deadline;
	int err;

	if (b->state != STAR_NEW)
		return error_set(-EINVAL, "a bootstrap joins once");
	b->log = log;
	b->timeout_ms = settings_int(b->settings, SETTING_START_TIMEOUT_MS);
	deadline = deadline_after_ms(b->timeout_ms);
	err = join_check_job_id(id, settings_origin(b->settings, SETTING_JOB_ID));
	if (!err)
		err = join_describe_self(b);
	if (!err)
		err = b->rank == 0 ? join_as_root(b, secret, id, deadline)
				   : join_as_leaf(b, secret, id, deadline);
	if (!err)
		err = watch_open(b);
	if (err)
		return star_fail(b, err);
	star_set_state(b, STAR_JOINED);
	memcpy(job_id, b->job_id, sizeof(b->job_id));
	return 0;
}
