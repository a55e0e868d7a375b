/* SPDX-License-Identifier: MIT */
#include "bootstrap/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bootstrap/launch_row.h"

int launch_open(struct launch **out, const struct bootstrap_config *cfg)
{
	struct launch *l;
	int err;

	*out = NULL;
	if (!cfg->settings || !cfg->conf == !cfg->peers)
		return error_set(-EINVAL, "give either a conf or a list of peers");
	l = calloc(1, sizeof(*l));
	if (!l)
		return error_set(-ENOMEM, "no memory");
	l->row = &launch_conf;
	err = l->row->open(l, cfg);
	if (err) {
		launch_close(l);
		return err;
	}
	*out = l;
	return 0;
}

int launch_rank(const struct launch *l)
{
	return l->rank;
}

int launch_size(const struct launch *l)
{
	return l->size;
}

const struct conf_host *launch_host(const struct launch *l, int rank)
{
	return l->conf.hosts ? &l->conf.hosts[rank] : NULL;
}

int launch_listen(struct launch *l, struct address_listener *listener, const struct log *log, int64_t deadline)
{
	return l->row->listen(l, listener, log, deadline);
}

int launch_publish(struct launch *l, struct card *card, const struct address_listener *listener, int64_t deadline)
{
	return l->row->publish(l, card, listener, deadline);
}

int launch_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	return l->row->fetch(l, card, deadline);
}

void launch_where(const struct launch *l, char out[LAUNCH_WHERE_BYTES])
{
	snprintf(out, LAUNCH_WHERE_BYTES, "%s", l->where);
}

int launch_done(struct launch *l, int64_t deadline)
{
	return l->row->done ? l->row->done(l, deadline) : 0;
}

void launch_abort(struct launch *l)
{
	if (l->row->abort)
		l->row->abort(l);
}

void launch_close(struct launch *l)
{
	if (!l)
		return;
	if (l->row->close)
		l->row->close(l);
	free(l);
}
