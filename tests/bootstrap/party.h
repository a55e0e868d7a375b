/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TESTS_PARTY_H
#define IBVX_TESTS_PARTY_H
/*
 * party: several ranks of one job in one process, each on its thread, or in forked processes.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"

#define PARTY_MAX 8
#define PARTY_TEXT 1024

struct member {
	int rank;
	const char *conf; /* or */
	const char *const *peers;
	int size;
	const char *settings[6]; /* "name=value", NULL ends */
	int delay_ms;            /* before the join */
	/* What to do after the join, with the endpoint still open; NULL: allgather twice and leave. Returns
	 * what counts as the member's result. */
	int (*act)(struct member *m);
	void *arg;
	const struct log *log; /* NULL: off */

	struct bootstrap *b; /* while act runs */
	int joined_size;
	char job_id[33];
	int result;
	char text[PARTY_TEXT]; /* error_text() if result < 0 */
	pthread_t thread;
};

/* Opens, joins, acts, closes; fills result and text. */
void member_run(struct member *m);
/* What act does by default: two allgathers whose content is checked, watch, leave. */
int member_gather(struct member *m, int times);

void party_start(struct member *members, int count);
void party_wait(struct member *members, int count);
static inline void party_run(struct member *members, int count)
{
	party_start(members, count);
	party_wait(members, count);
}

/* Milliseconds of sleep. */
void party_sleep(int ms);
/* A port of 127.0.0.1 on which nobody listens, below the ephemeral range, another one each time. */
int party_port(void);
/* Writes a conf file for `size` ranks that meet at port; returns its name (unlink with party_forget). */
const char *party_conf(int size, int port);
/* Writes any text to a fresh temporary file. */
const char *party_file(const char *text);
void party_forget(const char *path);
/* A client that connects to 127.0.0.1:port, waiting until somebody listens; -1 if nobody does for 10 s. */
int party_connect(int port);

#endif
