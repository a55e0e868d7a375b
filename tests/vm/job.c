/* SPDX-License-Identifier: MIT */
/*
 * vm-job: processes that join as a job does (ibvx_open), over whatever transports the settings allow, and check
 * every message.  In the guest of scripts/ibvdev-vm this is the Verbs transport on real kernel RDMA.
 *
 *   vm-job [--ranks N | --join HOST:PORT,...] [mode] [--seed N] [name=value...]
 *
 * --join: this process is some ranks of a job over several nodes: rank 0 .. on node 0, each node as many, the node as
 *         IBVDEV_TEST_NODE sets (of IBVDEV_TEST_NODES).
 * modes:
 *   [--seeds COUNT] [--messages N] [--threads]    random traffic (the default)
 *   --total N          N messages of 0 B to 8 MB, four threads a rank
 *   --big BYTES        two messages of so many bytes each way between all pairs
 *   --kill             the last rank dies by SIGKILL in the middle; every other rank must get an error that names it
 *   --lost FILE        rank 0 makes FILE when all have talked; then somebody cuts the network or ends a node
 *   --ring COUNT       COUNT messages to the right neighbour in one burst; two connections a rank, no more
 *   --stale COUNT      COUNT rounds with memory that is unmapped and mapped again at the same address
 *   --heads            messages from rank 0 to 1, all by RDMA, with short heads around the end of a page
 * --bytes N: message size of --ring, --stale, --kill and --lost.
 * Exit status 0: all good.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm_job.h"

void job_fail(int rank, const char *what)
{
	fprintf(stderr, "vm-job: rank %d: %s: %s\n", rank, what, ibvx_error());
	exit(1);
}

void job_barrier(struct ibvx *ep, int rank, int ranks)
{
	struct ibvx_sbuf out = {.head = "", .head_bytes = 0};
	struct ibvx_rbuf in = {.base = NULL, .capacity_bytes = 0};

	for (int r = 1; r < ranks && rank == 0; r++)
		if (ibvx_recv(ep, &in, r, 0, JOB_CONTEXT, NULL))
			job_fail(rank, "barrier");
	for (int r = 1; r < ranks && rank == 0; r++)
		if (ibvx_send(ep, &out, r, 0, JOB_CONTEXT))
			job_fail(rank, "barrier");
	if (rank > 0 && (ibvx_send(ep, &out, 0, 0, JOB_CONTEXT) || ibvx_recv(ep, &in, 0, 0, JOB_CONTEXT, NULL)))
		job_fail(rank, "barrier");
}

uint64_t job_counter(struct ibvx *ep, int rank, int peer, const char *name)
{
	struct ibvx_counter c[64];
	int n = ibvx_counters(ep, peer, c, 64);

	for (int i = 0; i < n && i < 64; i++)
		if (!strcmp(c[i].name, name))
			return c[i].value;
	fprintf(stderr, "vm-job: rank %d has no counter %s\n", rank, name);
	exit(1);
}

static void *job_work(const struct job *j, struct ibvx *ep, int rank, unsigned turn)
{
	switch (j->mode) {
	case JOB_TRAFFIC: return traffic_job_random(j, ep, rank, j->seed + turn);
	case JOB_TOTAL: return traffic_job_class(j, ep, rank, (int)turn);
	case JOB_BIG: probe_job_big(j, ep, rank); return NULL;
	case JOB_KILL: probe_job_killed(j, ep, rank); return NULL;
	case JOB_LOST: probe_job_lost(j, ep, rank); return NULL;
	case JOB_RING: probe_job_ring(j, ep, rank); return NULL;
	case JOB_STALE: probe_job_stale(j, ep, rank); return NULL;
	case JOB_HEADS: probe_job_heads(j, ep, rank); return NULL;
	}
	return NULL;
}

static void job_rank(const struct job *j, int rank, unsigned turn)
{
	const char *peers[JOB_RANKS_MAX];
	struct ibvx_config cfg = {.rank = rank, .peers = peers, .size = j->ranks, .settings = j->settings};
	struct ibvx *ep;
	void *kept;

	for (int r = 0; r < j->ranks; r++)
		peers[r] = j->peer[r];
	if (ibvx_open(&ep, &cfg))
		job_fail(rank, "open");
	kept = job_work(j, ep, rank, turn);
	/* after a failure close only has to come back */
	if (ibvx_close(ep) && j->mode != JOB_LOST)
		job_fail(rank, "close");
	traffic_job_free(kept);
	fflush(stdout);
	_exit(0); /* stdio of the parent is not ours to flush */
}

/* The ranks of this node. */
static void job_share(const struct job *j, int *first, int *count)
{
	const char *node = getenv("IBVDEV_TEST_NODE"), *nodes = getenv("IBVDEV_TEST_NODES");
	int all = nodes ? atoi(nodes) : 1;

	*first = 0;
	*count = j->ranks;
	if (!j->join || !node || all < 1)
		return;
	*count = j->ranks / all;
	*first = atoi(node) * *count;
}

/* 0, or 1 as soon as one rank fails; the others are ended then. */
static int job_run(const struct job *j, unsigned turn)
{
	pid_t pid[JOB_RANKS_MAX];
	int bad = 0, status, first, count;

	job_share(j, &first, &count);
	fflush(stdout);
	for (int r = 0; r < count; r++) {
		pid[r] = fork();
		if (pid[r] == 0)
			job_rank(j, first + r, turn);
	}
	for (int left = count; left > 0; left--) {
		pid_t ended = wait(&status);
		bool victim = j->mode == JOB_KILL && first + count == j->ranks && ended == pid[count - 1];

		for (int r = 0; r < count; r++)
			if (pid[r] == ended)
				pid[r] = 0;
		if (victim || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		fprintf(stderr, "vm-job: seed %llu: a rank ended with status %#x\n", (unsigned long long)j->seed + turn, status);
		bad = 1;
		for (int r = 0; r < count; r++)
			if (pid[r] > 0)
				kill(pid[r], SIGTERM);
	}
	return bad;
}

static int job_addresses(struct job *j)
{
	int n = 0;

	for (char *a = strtok(j->join, ","); a && n < JOB_RANKS_MAX; a = strtok(NULL, ","))
		snprintf(j->peer[n++], sizeof(j->peer[0]), "%s", a);
	return n;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: vm-job [--ranks 1..%d | --join HOST:PORT,...] [--seed N] [--seeds N] [--messages N] [--threads] [--total N | "
		"--big BYTES | --kill | --lost FILE | --ring COUNT | --stale COUNT | --heads] [--bytes N] [name=value...]\n",
		JOB_RANKS_MAX);
	return 2;
}

static bool job_option(struct job *j, int c, char *text)
{
	switch (c) {
	case 'r': j->ranks = atoi(text); return true;
	case 's': j->seed = strtoull(text, NULL, 0); return true;
	case 'n': j->seeds = (unsigned)strtoul(text, NULL, 0); return true;
	case 'm': j->messages = (unsigned)strtoul(text, NULL, 0); return true;
	case 't': j->threads = true; return true;
	case 'j': j->join = text; return true;
	case 'B': j->bytes = strtoull(text, NULL, 0); return true;
	case 'T':
		j->mode = JOB_TOTAL;
		j->total = strtoul(text, NULL, 0);
		return true;
	case 'b':
		j->mode = JOB_BIG;
		j->bytes = strtoull(text, NULL, 0);
		return true;
	case 'k': j->mode = JOB_KILL; return true;
	case 'l':
		j->mode = JOB_LOST;
		j->ready = text;
		return true;
	case 'R':
		j->mode = JOB_RING;
		j->count = (unsigned)strtoul(text, NULL, 0);
		return true;
	case 'S':
		j->mode = JOB_STALE;
		j->count = (unsigned)strtoul(text, NULL, 0);
		return true;
	case 'H': j->mode = JOB_HEADS; return true;
	default: return false;
	}
}

static bool job_valid(struct job *j)
{
	if (j->ranks < 1 || j->ranks > JOB_RANKS_MAX || !j->messages || !j->seeds)
		return false;
	if ((j->mode == JOB_RING || j->mode == JOB_STALE) && !j->count)
		return false;
	if (j->mode == JOB_TOTAL && j->total < 1000)
		return false;
	if ((j->mode == JOB_KILL || j->mode == JOB_LOST) && !j->bytes)
		j->bytes = 300000;
	return true;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"ranks", required_argument, NULL, 'r'},    {"seed", required_argument, NULL, 's'}, {"seeds", required_argument, NULL, 'n'},
		{"messages", required_argument, NULL, 'm'}, {"threads", no_argument, NULL, 't'},    {"kill", no_argument, NULL, 'k'},
		{"big", required_argument, NULL, 'b'},      {"join", required_argument, NULL, 'j'}, {"total", required_argument, NULL, 'T'},
		{"lost", required_argument, NULL, 'l'},     {"ring", required_argument, NULL, 'R'}, {"stale", required_argument, NULL, 'S'},
		{"bytes", required_argument, NULL, 'B'},    {"heads", no_argument, NULL, 'H'},      {NULL, 0, NULL, 0},
	};
	struct job j = {.seed = 1, .seeds = 1, .messages = 60, .ranks = 2};
	int port, c, count = 0;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		if (!job_option(&j, c, optarg))
			return usage();
	if (j.join)
		j.ranks = job_addresses(&j);
	if (!job_valid(&j) || argc - optind > JOB_SETTINGS_MAX)
		return usage();
	while (optind < argc)
		j.settings[count++] = argv[optind++];
	if (j.mode == JOB_TOTAL)
		j.seeds = (unsigned)traffic_job_classes();
	for (unsigned i = 0; i < j.seeds; i++) {
		port = 12000 + (int)((unsigned)getpid() * 7 + i * JOB_RANKS_MAX) % 15000;
		for (int r = 0; r < j.ranks && !j.join; r++)
			snprintf(j.peer[r], sizeof(j.peer[r]), "127.0.0.1:%d", port + r);
		if (job_run(&j, i))
			return 1;
	}
	printf("%d ranks, %u seeds from %llu: good\n", j.ranks, j.seeds, (unsigned long long)j.seed);
	return 0;
}
