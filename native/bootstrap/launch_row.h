/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_LAUNCH_ROW_H
#define IBVX_BOOTSTRAP_LAUNCH_ROW_H
/*
 * launch_row: what a launcher implements.
 */
#include "bootstrap/conf.h"
#include "bootstrap/launch.h"

#define LAUNCH_WHY_BYTES 256

struct launch_row {
	const char *name;  /* as the setting `launcher` has it */
	const char *title; /* as texts call it */
	/* Whether this process was started by it, judging by the environment alone; why, in any case, names what was found
	 * or is missing.  NULL: conf, which the caller names. */
	bool (*found)(char why[LAUNCH_WHY_BYTES]);
	/* Sets rank and size, and local_size where it is known (else 0). */
	int (*open)(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline);
	/* An engine's session can be used once in a process, and rank 0 listens on a port of the kernel's choice: that is
	 * the same for all of them (launch_engine.c).  Its row has no listen, and publish gets a complete card. */
	bool engine;
	int (*listen)(struct launch *l, struct address_listener *listener, const struct log *log, int64_t deadline);
	int (*publish)(struct launch *l, const struct card *card, const struct address_listener *listener, int64_t deadline);
	int (*fetch)(struct launch *l, struct card *card, int64_t deadline);
	int (*done)(struct launch *l, int64_t deadline); /* NULL: nothing to do */
	void (*close)(struct launch *l);                 /* NULL: nothing to do; also after a failed open */
};

struct launch {
	const struct launch_row *row;
	int rank, size;
	int local_size; /* ranks on this rank's node; 0: not known */
	char where[LAUNCH_WHERE_BYTES];
	const struct settings *settings;
	bool again;       /* the process remembers the card (launch.h, Sessions) */
	bool holds;       /* this is the one that has the engine's session */
	struct card card; /* engines: rank 0's, once it is known */
	void *session;    /* the row's own */
	/* conf: */
	struct conf conf;
	char *conf_text;
};

/* launch_engine.c: what is the same for all engines. */
int launch_engine_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline);
int launch_engine_listen(struct launch *l, struct address_listener *listener, int64_t deadline);
int launch_engine_publish(struct launch *l, struct card *card, const struct address_listener *listener, int64_t deadline);
int launch_engine_fetch(struct launch *l, struct card *card, int64_t deadline);
int launch_engine_done(struct launch *l, int64_t deadline);
void launch_engine_close(struct launch *l);
/* Where rank 0 is to be reached, by the setting net and by what is known of the nodes; *only: it listens nowhere else. */
int launch_engine_addresses(const struct launch *l, struct address_list *list, bool *only);
/* 127.0.0.1 and ::1 */
void launch_engine_loopback(struct address_list *list);
/* A number of the environment in [min, max]; -EINVAL with text names the variable, -ENOENT (no text): it is not set. */
int launch_variable(const char *name, int64_t min, int64_t max, int *out);

extern const struct launch_row launch_conf, launch_pmix, launch_pmi, launch_slurm, launch_single;

#endif
