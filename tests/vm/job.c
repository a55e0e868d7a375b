/* SPDX-License-Identifier: MIT */
/*
 * vm-job: random traffic between processes that join as a job does (ibvx_open), over whatever transports the settings
 * allow.  In the guest of scripts/ibvdev-vm this is the Verbs transport on real kernel RDMA.
 *
 *   vm-job [--join ADDRESSES | --ranks N] [--seed N] [--seeds COUNT] [--messages N] [--threads] [--kill] [--big BYTES] [name=value...]
 *
 * --join HOST:PORT,...: this process is one rank of several, the one that IBVDEV_TEST_NODE says.
 * --kill: the last rank dies by SIGKILL in the middle; every other rank must get an error that names it.
 * --big: two messages of so many bytes each way between all pairs, instead of random traffic.
 * Exit status 0: all good.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "traffic.h"

#define JOB_RANKS_MAX 16
#define JOB_SETTINGS_MAX 16
#define JOB_CONTEXT 0x7ffffff1
#define JOB_RUNNERS (2 * TRAFFIC_LANES_MAX)

struct job {
	uint64_t seed;
	unsigned seeds, messages;
	int ranks;
	bool threads, kill;
	size_t big;
	char *join;
	const char *settings[JOB_SETTINGS_MAX + 1];
	char peer[JOB_RANKS_MAX][32];
};

static void job_fail(int rank, const char *what)
{
	fprintf(stderr, "vm-job: rank %d: %s: %s\n", rank, what, ibvx_error());
	exit(1);
}

/* Everybody has come here; also keeps answering those who have not. */
static void job_barrier(struct ibvx *ep, int rank, int ranks)
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

static void *job_actor(void *arg)
{
	struct actor *a = arg;

	while (!actor_step(a))
		if (a->idle > 2)
			sched_yield();
	return NULL;
}

static void job_round(struct traffic_rank *t, bool threads)
{
	pthread_t thread[JOB_RUNNERS];
	bool done[JOB_RUNNERS] = {false};
	int left = t->actor_count;

	for (int i = 0; threads && i < t->actor_count; i++)
		if (pthread_create(&thread[i], NULL, job_actor, &t->actors[i]))
			job_fail(t->rank, "pthread_create");
	for (int i = 0; threads && i < t->actor_count; i++)
		pthread_join(thread[i], NULL);
	while (!threads && left > 0) {
		for (int i = 0; i < t->actor_count; i++) {
			if (done[i] || !actor_step(&t->actors[i]))
				continue;
			done[i] = true;
			left--;
		}
	}
}

static void job_traffic(const struct job *j, struct ibvx *ep, int rank, uint64_t seed, void **kept)
{
	static struct traffic_config cfg;
	static char replay[160];
	struct traffic_rank *t;

	traffic_config_random(&cfg, seed, j->ranks, j->messages);
	cfg.seed = seed;
	cfg.blocking = j->threads;
	cfg.replay = replay;
	memcpy(cfg.edges, ((size_t[TRAFFIC_EDGES]){8160, 32, 256, 131072, 32768, 480, 16320, 65536}), sizeof(cfg.edges));
	snprintf(replay, sizeof(replay), "vm-job --ranks %d --seed %llu --messages %u%s", j->ranks, (unsigned long long)seed,
		 j->messages, j->threads ? " --threads" : "");
	t = traffic_rank_new(&cfg, ep, rank);
	if (!t)
		job_fail(rank, "no memory");
	for (int round = 0; round < cfg.rounds; round++) {
		traffic_rank_begin(t, round);
		job_barrier(ep, rank, j->ranks);
		job_round(t, j->threads);
		job_barrier(ep, rank, j->ranks);
		traffic_rank_check(t);
		job_barrier(ep, rank, j->ranks);
	}
	*kept = t;
}

static void job_big(const struct job *j, struct ibvx *ep, int rank)
{
	struct traffic_config cfg = {.seed = j->seed, .ranks = j->ranks, .replay = "vm-job --big"};
	char *out = malloc(j->big), *in = malloc(j->big);
	ibvx_req req;

	if (!out || !in)
		job_fail(rank, "no memory");
	for (int i = 0; i < 2 * j->ranks; i++) {
		int to = (rank + i) % j->ranks, from = (rank - i % j->ranks + j->ranks) % j->ranks;
		struct ibvx_sbuf s = {.head = out, .head_bytes = j->big / 3, .body = out + j->big / 3, .body_bytes = j->big - j->big / 3};
		struct ibvx_rbuf r = {.base = in, .capacity_bytes = j->big};

		pattern_fill(&cfg, (uint64_t)(rank * 1000 + i), 0, out, j->big);
		memset(in, 0, j->big);
		if (ibvx_irecv(ep, &r, from, i, 5, &req) || ibvx_send(ep, &s, to, i, 5) || ibvx_wait(ep, &req, NULL))
			job_fail(rank, "big message");
		if (!pattern_holds(&cfg, (uint64_t)(from * 1000 + i), 0, in, j->big))
			job_fail(rank, "big message: wrong bytes");
	}
	free(out);
	free(in);
}

/* The last rank is gone without a word; the rest must be told, and by name. */
static void job_killed(const struct job *j, struct ibvx *ep, int rank)
{
	char name[24];
	int victim = j->ranks - 1, rc;
	struct ibvx_rbuf in = {.base = NULL, .capacity_bytes = 0};

	job_big(j, ep, rank);
	job_barrier(ep, rank, j->ranks);
	if (rank == victim)
		kill(getpid(), SIGKILL);
	rc = ibvx_recv(ep, &in, victim, 1, 7, NULL);
	snprintf(name, sizeof(name), "rank %d", victim);
	if (rc == 0 || !strstr(ibvx_error(), name)) {
		fprintf(stderr, "vm-job: rank %d: a receive from the dead ends with %d: %s\n", rank, rc, ibvx_error());
		exit(1);
	}
	printf("rank %d: %s\n", rank, ibvx_error());
}

static void job_rank(const struct job *j, int rank, uint64_t seed)
{
	const char *peers[JOB_RANKS_MAX];
	struct ibvx_config cfg = {.rank = rank, .peers = peers, .size = j->ranks, .settings = j->settings};
	struct ibvx *ep;
	void *kept = NULL;

	for (int r = 0; r < j->ranks; r++)
		peers[r] = j->peer[r];
	if (ibvx_open(&ep, &cfg))
		job_fail(rank, "open");
	if (j->kill)
		job_killed(j, ep, rank);
	else if (j->big)
		job_big(j, ep, rank);
	else
		job_traffic(j, ep, rank, seed, &kept);
	if (ibvx_close(ep))
		job_fail(rank, "close");
	traffic_rank_free(kept);
	exit(0);
}

/* 0, or 1 as soon as one rank fails; the others are ended then. */
static int job_run(const struct job *j, uint64_t seed)
{
	pid_t pid[JOB_RANKS_MAX];
	int bad = 0, status;

	for (int r = 0; r < j->ranks; r++) {
		fflush(stdout);
		pid[r] = fork();
		if (pid[r] == 0)
			job_rank(j, r, seed);
	}
	for (int left = j->ranks; left > 0; left--) {
		pid_t ended = wait(&status);
		bool victim = j->kill && ended == pid[j->ranks - 1];

		for (int r = 0; r < j->ranks; r++)
			if (pid[r] == ended)
				pid[r] = 0;
		if (victim || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		fprintf(stderr, "vm-job: seed %llu: a rank ended with status %#x\n", (unsigned long long)seed, status);
		bad = 1;
		for (int r = 0; r < j->ranks; r++)
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
	fprintf(stderr, "usage: vm-job [--ranks 1..%d | --join HOST:PORT,...] [--seed N] [--seeds N] [--messages N] [--threads] [--kill] "
			"[--big BYTES] [name=value...]\n", JOB_RANKS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"ranks", required_argument, NULL, 'r'},    {"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},    {"messages", required_argument, NULL, 'm'},
		{"threads", no_argument, NULL, 't'},	    {"kill", no_argument, NULL, 'k'},
		{"big", required_argument, NULL, 'b'},	    {"join", required_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	struct job j = {.seed = 1, .seeds = 1, .messages = 60, .ranks = 2};
	int port, c, count = 0;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		switch (c) {
		case 'r': j.ranks = atoi(optarg); break;
		case 's': j.seed = strtoull(optarg, NULL, 0); break;
		case 'n': j.seeds = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'm': j.messages = (unsigned)strtoul(optarg, NULL, 0); break;
		case 't': j.threads = true; break;
		case 'k': j.kill = true; break;
		case 'b': j.big = strtoull(optarg, NULL, 0); break;
		case 'j': j.join = optarg; break;
		default: return usage();
		}
	if (j.join)
		j.ranks = job_addresses(&j);
	if (j.ranks < 1 || j.ranks > JOB_RANKS_MAX || argc - optind > JOB_SETTINGS_MAX || !j.messages)
		return usage();
	if (j.kill && !j.big)
		j.big = 300000;
	while (optind < argc)
		j.settings[count++] = argv[optind++];
	if (j.join && getenv("IBVDEV_TEST_NODE"))
		job_rank(&j, atoi(getenv("IBVDEV_TEST_NODE")), j.seed);
	for (unsigned i = 0; i < j.seeds; i++) {
		port = 12000 + (int)((unsigned)getpid() * 7 + i * 16) % 15000;
		for (int r = 0; r < j.ranks; r++)
			snprintf(j.peer[r], sizeof(j.peer[r]), "127.0.0.1:%d", port + r);
		if (job_run(&j, j.seed + i))
			return 1;
	}
	printf("%d ranks, %u seeds from %llu: good\n", j.ranks, j.seeds, (unsigned long long)j.seed);
	return 0;
}
