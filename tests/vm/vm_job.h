/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VM_JOB_H
#define TESTS_VM_JOB_H
/*
 * vm-job: what its files share.  job.c: the command line and the processes; traffic_job.c: random traffic;
 * probe_job.c: what a rank does in each of the other modes.
 *
 * Everything here runs in a rank's process and ends it with status 1 and a line on stderr when something is wrong.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibvx.h"

#define JOB_RANKS_MAX 64
#define JOB_SETTINGS_MAX 16
#define JOB_CONTEXT 0x7ffffff1

enum job_mode {
	JOB_TRAFFIC, /* random traffic by seed */
	JOB_TOTAL,   /* random traffic of a given number of messages, 0 B to 8 MB, four threads a rank */
	JOB_BIG,     /* messages of one size between all pairs */
	JOB_KILL,    /* the last rank dies by SIGKILL */
	JOB_LOST,    /* something outside cuts ranks off or ends them */
	JOB_RING,    /* bursts to the right neighbour; none may open more than two connections */
	JOB_STALE,   /* memory that is freed, taken again and sent again */
	JOB_HEADS,   /* messages with short heads around the end of a page */
};

struct job {
	enum job_mode mode;
	uint64_t seed;
	unsigned seeds, messages;
	unsigned long total;
	int ranks;
	bool threads;
	size_t bytes;
	unsigned count;
	const char *ready; /* JOB_LOST: file that rank 0 makes when all have talked */
	char *join;
	const char *settings[JOB_SETTINGS_MAX + 1];
	char peer[JOB_RANKS_MAX][32];
};

void job_fail(int rank, const char *what) __attribute__((noreturn));
/* Everybody has come here; also keeps answering those that have not. Over rank 0. */
void job_barrier(struct ibvx *ep, int rank, int ranks);
/* The counter of this name of a peer, or of the endpoint (-1); ends the process if there is none. */
uint64_t job_counter(struct ibvx *ep, int rank, int peer, const char *name);

/* --- traffic_job.c --- */
/* Returns what traffic_job_free() frees once the endpoint is closed. */
void *traffic_job_random(const struct job *j, struct ibvx *ep, int rank, uint64_t seed);
/* One class of sizes: number `class` of traffic_job_classes(); the classes together make j->total messages. */
void *traffic_job_class(const struct job *j, struct ibvx *ep, int rank, int class);
int traffic_job_classes(void);
void traffic_job_free(void *kept);

/* --- probe_job.c --- */
void probe_job_big(const struct job *j, struct ibvx *ep, int rank);
void probe_job_killed(const struct job *j, struct ibvx *ep, int rank);
void probe_job_lost(const struct job *j, struct ibvx *ep, int rank);
void probe_job_ring(const struct job *j, struct ibvx *ep, int rank);
void probe_job_stale(const struct job *j, struct ibvx *ep, int rank);
void probe_job_heads(const struct job *j, struct ibvx *ep, int rank);

#endif
