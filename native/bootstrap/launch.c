/* SPDX-License-Identifier: MIT */
/*
 * launch: which launcher it is.
 */
#include "bootstrap/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/launch_row.h"

/* In the order in which they are looked for.  The last one is found, or explains why it must not be assumed. */
static const struct launch_row *const launch_rows[] = {&launch_pmix, &launch_pmi, &launch_slurm, &launch_single, NULL};

static bool launch_is_auto(const struct bootstrap_config *cfg)
{
	return !cfg->peers && (!cfg->conf || strcmp(cfg->conf, "auto") == 0);
}

static int launch_choose_named(const char *named, const char *origin, const struct launch_row **out)
{
	char why[LAUNCH_WHY_BYTES];

	for (int i = 0; launch_rows[i]; i++) {
		if (strcmp(launch_rows[i]->name, named) != 0)
			continue;
		if (launch_rows[i] != &launch_single && !launch_rows[i]->found(why))
			return error_set(-EINVAL, "launcher=%s (%s), but %s", named, origin, why);
		*out = launch_rows[i];
		return 0;
	}
	return error_set(-EINVAL, "launcher=%s (%s), but no conf was named", named, origin);
}

static int launch_choose(const struct bootstrap_config *cfg, const struct launch_row **out)
{
	const char *named = settings_text(cfg->settings, SETTING_LAUNCHER);
	const char *origin = settings_origin(cfg->settings, SETTING_LAUNCHER);
	bool automatic = strcmp(named, "auto") == 0;
	char why[LAUNCH_WHY_BYTES] = "";

	if (cfg->conf && cfg->peers)
		return error_set(-EINVAL, "give either a conf or a list of peers");
	*out = &launch_conf;
	if (!launch_is_auto(cfg) && !automatic && strcmp(named, "conf") != 0)
		return error_set(-EINVAL,
				 "launcher=%s (%s), but the program names the conf %.200s; name the conf auto, "
				 "or leave the launcher to auto",
				 named, origin, cfg->conf ? cfg->conf : "by a list of peers");
	if (!launch_is_auto(cfg))
		return 0;
	if (!automatic)
		return launch_choose_named(named, origin, out);
	for (int i = 0; launch_rows[i]; i++) {
		*out = launch_rows[i];
		if ((*out)->found(why))
			return 0;
	}
	return error_set(-EINVAL, "%s", why);
}

static int launch_check(const struct launch *l, const struct bootstrap_config *cfg)
{
	if (cfg->rank >= 0 && cfg->rank != l->rank)
		return error_set(-EINVAL,
				 "rank %d was given, but %s reports that this is rank %d of %d; give the rank -1 to "
				 "take its word",
				 cfg->rank, l->row->title, l->rank, l->size);
	if (cfg->size != 0 && cfg->size != l->size)
		return error_set(-EINVAL, "size %d was given, but %s reports that there are %d ranks; give 0 to take its word", cfg->size,
				 l->row->title, l->size);
	return 0;
}

static int launch_open_row(struct launch *l, const struct bootstrap_config *cfg)
{
	int64_t deadline = deadline_after_ms(settings_int(cfg->settings, SETTING_START_TIMEOUT_MS));
	int err = l->row->engine ? launch_engine_open(l, cfg, deadline) : l->row->open(l, cfg, deadline);

	return err ? err : launch_check(l, cfg);
}

int launch_open(struct launch **out, const struct bootstrap_config *cfg)
{
	struct launch *l;
	int err;

	*out = NULL;
	if (!cfg->settings)
		return error_set(-EINVAL, "no settings");
	l = calloc(1, sizeof(*l));
	if (!l)
		return error_set(-ENOMEM, "no memory");
	l->settings = cfg->settings;
	err = launch_choose(cfg, &l->row);
	if (!err)
		err = launch_open_row(l, cfg);
	if (err) {
		launch_close(l);
		return err;
	}
	*out = l;
	return 0;
}

static void report_addresses(const struct settings *settings, FILE *out)
{
	struct address_list list;
	const char *comma = "";

	fprintf(out, "addresses:   ");
	if (interfaces_find(&list, settings) < 0) {
		fprintf(out, "%s\n", error_text());
		return;
	}
	for (int i = 0; i < list.count; i++) {
		char text[ADDRESS_TEXT_BYTES];

		address_numeric(&list.at[i], text);
		fprintf(out, "%s%s", comma, text);
		comma = ", ";
	}
	fprintf(out, " (net=%s, %s)\n", settings_text(settings, SETTING_NET), settings_origin(settings, SETTING_NET));
}

void launch_report(const struct settings *settings, FILE *out)
{
	struct bootstrap_config cfg = {.rank = -1, .conf = "auto", .settings = (struct settings *)(uintptr_t)settings};
	const struct launch_row *row = NULL;
	int err = launch_choose(&cfg, &row);

	fprintf(out, "launchers, in the order in which they are looked for:\n");
	for (int i = 0; launch_rows[i]; i++) {
		char why[LAUNCH_WHY_BYTES];
		bool found = launch_rows[i]->found(why);

		/* What single finds in the environment matters only where nothing else was found. */
		if (launch_rows[i] == &launch_single && row && row != &launch_single && !err)
			snprintf(why, sizeof(why), "not looked for, as another was found");
		fprintf(out, "  %-8s %s: %s\n", launch_rows[i]->name, found ? "found" : "not found", why);
	}
	if (err)
		fprintf(out, "chosen:      none: %s\n", error_text());
	else
		fprintf(out, "chosen:      %s (launcher=%s, %s)\n", row->name, settings_text(settings, SETTING_LAUNCHER),
			settings_origin(settings, SETTING_LAUNCHER));
	report_addresses(settings, out);
}

int launch_rank(const struct launch *l)
{
	return l->rank;
}

int launch_size(const struct launch *l)
{
	return l->size;
}

const char *launch_name(const struct launch *l)
{
	return l->row->name;
}

const struct conf_host *launch_host(const struct launch *l, int rank)
{
	return l->conf.hosts ? &l->conf.hosts[rank] : NULL;
}

int launch_listen(struct launch *l, struct address_listener *listener, const struct log *log, int64_t deadline)
{
	return l->row->engine ? launch_engine_listen(l, listener, deadline) : l->row->listen(l, listener, log, deadline);
}

int launch_publish(struct launch *l, struct card *card, const struct address_listener *listener, int64_t deadline)
{
	return l->row->engine ? launch_engine_publish(l, card, listener, deadline) : l->row->publish(l, card, listener, deadline);
}

int launch_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	return l->row->engine ? launch_engine_fetch(l, card, deadline) : l->row->fetch(l, card, deadline);
}

void launch_where(const struct launch *l, char out[LAUNCH_WHERE_BYTES])
{
	snprintf(out, LAUNCH_WHERE_BYTES, "%s", l->where);
}

int launch_done(struct launch *l, int64_t deadline)
{
	return l->row->engine ? launch_engine_done(l, deadline) : 0;
}

void launch_abort(struct launch *l)
{
	if (l->row->engine)
		launch_engine_close(l);
}

void launch_close(struct launch *l)
{
	if (!l)
		return;
	if (l->row && l->row->engine)
		launch_engine_close(l);
	else if (l->row && l->row->close)
		l->row->close(l);
	free(l);
}
