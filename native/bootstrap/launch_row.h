/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_LAUNCH_ROW_H
#define IBVX_BOOTSTRAP_LAUNCH_ROW_H
/*
 * launch_row: what a launcher implements.  The contract of each function is that of launch.h.
 */
#include "bootstrap/conf.h"
#include "bootstrap/launch.h"

struct launch;

struct launch_row {
	const char *name;
	/* Sets rank and size. */
	int (*open)(struct launch *l, const struct bootstrap_config *cfg);
	int (*listen)(struct launch *l, struct address_listener *listener, const struct log *log, int64_t deadline);
	int (*publish)(struct launch *l, struct card *card, const struct address_listener *listener, int64_t deadline);
	int (*fetch)(struct launch *l, struct card *card, int64_t deadline);
	int (*done)(struct launch *l, int64_t deadline); /* NULL: nothing to do */
	void (*abort)(struct launch *l);                 /* NULL: nothing to do */
	void (*close)(struct launch *l);                 /* NULL: nothing to do; also after a failed open */
};

struct launch {
	const struct launch_row *row;
	int rank, size;
	char where[LAUNCH_WHERE_BYTES];
	/* conf: */
	struct conf conf;
	char *conf_text;
};

extern const struct launch_row launch_conf;

#endif
