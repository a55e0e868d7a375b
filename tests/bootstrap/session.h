/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TESTS_SESSION_H
#define IBVX_TESTS_SESSION_H
/*
 * session: ranks that an engine has started, each a process of its own, as an engine's session serves one process once.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "party.h"

#define SESSION_TEXT 512

struct session_rank {
	int rank;                 /* what the program gives as its rank; -1: none */
	const char *settings[6];  /* "name=value", NULL ends */
	const char *variables[8]; /* "NAME=value" of the environment, NULL ends */
	int fd;                   /* inherited, for PMI_FD; else -1 */
	int rounds;               /* open, join, allgather twice, leave, close: so often */
	/* Results, after session_wait. */
	int result; /* of the last round */
	int rounds_done;
	bool fd_open; /* fd was still open when all rounds were over */
	int joined_rank, joined_size;
	char job_ids[4][33];
	char text[SESSION_TEXT];       /* error_text() of the last round that failed, */
	char first_text[SESSION_TEXT]; /* and of the first */
	/* Inside: */
	pid_t pid;
	int pipe_fd;
};

/* Forks one process that does what `r` describes. */
void session_start(struct session_rank *r);
/* Waits for its end, which must be one by exit. */
void session_wait(struct session_rank *r);
/* Removes every variable by which an engine makes itself known from this process. */
void session_forget_engines(void);

#endif
