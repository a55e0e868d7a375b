/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SHM_JOB_H
#define TESTS_SHM_JOB_H
/*
 * job: forked processes that open one job over real shared memory, with the real bootstrap.
 * Call from a process that has only one thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ibvx.h"

#define JOB_RANKS_MAX 16
#define JOB_SETTINGS_MAX 8

struct job {
	int size;
	pid_t pid[JOB_RANKS_MAX]; /* 0: has been waited for */
	int status[JOB_RANKS_MAX];
	char id[33];
	char address[JOB_RANKS_MAX][32];
	const char *peers[JOB_RANKS_MAX];
	char id_setting[48];
	const char *settings[JOB_SETTINGS_MAX + 2];
};

/* What a rank does; its return value is the exit status.  It may close the endpoint itself and set *ep to NULL;
 * otherwise a good result is followed by ibvx_close(). */
typedef int (*job_fn)(struct ibvx **ep, int rank, void *arg);

/* Starts size processes. settings: NULL-terminated, or NULL. 0, or -1 (text on stderr). */
int job_start(struct job *j, int size, const char *const *settings, job_fn fn, void *arg);

/* Waits for all, at most timeout_s, then kills those left.  The number of ranks that did not exit with 0. */
int job_wait(struct job *j, int timeout_s);

int64_t job_now_ms(void);

#endif
