/* SPDX-License-Identifier: MIT */
/*
 * launch_conf: a conf file, MPJ Express's ";" string or a list of peers names the host of each rank.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/launch_row.h"
#include "bootstrap/starter.h"

/* A round that is ending may still hold the port for a moment. */
#define CONF_LISTEN_MS 2000
#define CONF_RESOLVE_MS 3000

static int conf_open_peers(struct launch *l, const struct bootstrap_config *cfg)
{
	if (cfg->size < 1 || cfg->size > CONF_RANKS_MAX)
		return error_set(-EINVAL, "size %d; with a list of peers give a size from 1 to %d", cfg->size, CONF_RANKS_MAX);
	l->conf.psl_bytes = -1;
	l->conf.size = cfg->size;
	l->conf.hosts = calloc((size_t)cfg->size, sizeof(*l->conf.hosts));
	if (!l->conf.hosts)
		return error_set(-ENOMEM, "no memory for %d ranks", cfg->size);
	for (int i = 0; i < cfg->size; i++) {
		struct conf_host *host = &l->conf.hosts[i];
		int err = cfg->peers[i] ? address_split(cfg->peers[i], &host->host, &host->port) : error_set(-EINVAL, "no address");

		if (err)
			return error_prefix(err, "peer %d", i);
	}
	return 0;
}

static int conf_open_settings(const struct launch *l, struct settings *settings)
{
	const struct conf *conf = &l->conf;
	char origin[512], number[32];
	int err = 0;

	if (conf->psl_bytes >= 0) {
		snprintf(number, sizeof(number), "%lld", (long long)conf->psl_bytes);
		if (conf->psl_line)
			snprintf(origin, sizeof(origin), "conf file %.400s line %d", l->conf_text, conf->psl_line);
		else
			snprintf(origin, sizeof(origin), "conf string");
		err = settings_set(settings, SETTINGS_CONF_FILE, "psl", number, origin);
	}
	for (int i = 0; !err && conf->settings && conf->settings[i]; i++) {
		snprintf(origin, sizeof(origin), "conf file %.400s line %d", l->conf_text, conf->settings_lines[i]);
		err = settings_set_pair(settings, SETTINGS_CONF_FILE, conf->settings[i], origin);
	}
	return err;
}

static int conf_open_check(const struct launch *l, const struct bootstrap_config *cfg)
{
	const char *what = cfg->conf ? cfg->conf : "the list of peers";

	if (cfg->conf && cfg->size != 0 && cfg->size != l->conf.size)
		return error_set(-EINVAL, "size %d, but %.200s has %d processes; give the same or 0", cfg->size, what, l->conf.size);
	if (cfg->rank < 0 || cfg->rank >= l->conf.size)
		return error_set(-EINVAL, "rank %d, but %.200s has %d processes: ranks are 0 to %d", cfg->rank, what, l->conf.size,
				 l->conf.size - 1);
	return 0;
}

static int conf_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline)
{
	int err;

	(void)deadline;
	l->conf_text = strdup(cfg->conf ? cfg->conf : "");
	if (!l->conf_text)
		return error_set(-ENOMEM, "no memory");
	err = cfg->conf ? conf_read(&l->conf, cfg->conf) : conf_open_peers(l, cfg);
	if (!err)
		err = conf_open_check(l, cfg);
	if (!err)
		err = conf_open_settings(l, cfg->settings);
	l->rank = cfg->rank;
	l->size = l->conf.size;
	return err;
}

/* Where rank 0 is, as errors call it. */
static void conf_set_where(struct launch *l)
{
	const struct conf_host *host = &l->conf.hosts[0];
	const char *format = strchr(host->host, ':') ? "[%.255s]:%d" : "%.255s:%d";
	int n = snprintf(l->where, sizeof(l->where), format, host->host, host->port);

	if (host->line && n > 0 && (size_t)n < sizeof(l->where))
		snprintf(l->where + n, sizeof(l->where) - (size_t)n, " (%s%.150s line %d)",
			 l->conf.derived_port ? "a port drawn from the content of " : "", l->conf_text, host->line);
}

/* Loopback is enough, and shuts the network out, if every rank names the same loopback host: list shrinks to that. */
static bool conf_is_local(const struct launch *l, struct address_list *list)
{
	for (int i = 1; i < l->size; i++)
		if (strcmp(l->conf.hosts[i].host, l->conf.hosts[0].host) != 0)
			return false;
	address_loopback(list, list);
	return list->count > 0;
}

static int conf_listen(struct launch *l, struct address_listener *listener, const struct log *log, int64_t deadline)
{
	static const struct timespec pause = {.tv_nsec = 20 * CLOCK_NS_PER_MS};
	int64_t patience = deadline_earlier(deadline, deadline_after_ms(CONF_LISTEN_MS));
	struct address_list list = {.count = 0};
	bool local;
	int err, port = l->conf.hosts ? l->conf.hosts[0].port : 0;

	if (!l->conf.hosts)
		return address_listen(listener, NULL, 0);
	conf_set_where(l);
	/* A name that only the others can resolve is no reason to fail. */
	err = address_resolve(&list, l->conf.hosts[0].host, port);
	if (err)
		log_warn(log, "bootstrap: %s; listening on every interface", error_text());
	local = !err && conf_is_local(l, &list);
	while ((err = address_listen(listener, local ? &list : NULL, port)) == -EADDRINUSE && deadline_left_ms(patience) > 0)
		nanosleep(&pause, NULL);
	if (err == -EADDRINUSE)
		return error_set(err,
				 "rank 0 cannot listen at %s: port %d is in use, perhaps by another job or "
				 "another rank 0 with "
				 "the same conf; end it, or give other ports",
				 l->where, port);
	return err;
}

static int conf_publish(struct launch *l, const struct card *card, const struct address_listener *listener, int64_t deadline)
{
	int err;

	(void)card;
	if (l->conf.hosts)
		return 0;
	err = starter_ask(&l->conf, 0, listener->port, deadline);
	if (!err)
		conf_set_where(l);
	return err;
}

static int conf_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	static const struct timespec pause = {.tv_nsec = 100 * CLOCK_NS_PER_MS};
	int64_t patience = deadline_earlier(deadline, deadline_after_ms(CONF_RESOLVE_MS));
	const struct conf_host *host;
	int err = l->conf.hosts ? 0 : starter_ask(&l->conf, l->rank, 0, deadline);

	if (err)
		return err;
	conf_set_where(l);
	host = &l->conf.hosts[0];
	memset(card, 0, sizeof(*card));
	snprintf(card->host, sizeof(card->host), "%s", host->host);
	while ((err = address_resolve(&card->addresses, host->host, host->port)) == -EAGAIN && deadline_left_ms(patience) > 0)
		nanosleep(&pause, NULL);
	return err == 0 ? 0 : error_prefix(-EHOSTUNREACH, "rank 0 at %s", l->where);
}

static void conf_close(struct launch *l)
{
	conf_fini(&l->conf);
	free(l->conf_text);
}

const struct launch_row launch_conf = {
	.name = "conf",
	.title = "the conf",
	.open = conf_open,
	.listen = conf_listen,
	.publish = conf_publish,
	.fetch = conf_fetch,
	.close = conf_close,
};
