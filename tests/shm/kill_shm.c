/* SPDX-License-Identifier: MIT */
/*
 * kill_shm: kills a random rank at a random moment, round after round.
 *
 *   kill-shm [--rounds N] [--seed N]
 *
 * Everybody else must end with an error.  With fault_scope=job the error names the rank
 * that was killed, however soon the others give up after it.  With fault_scope=peer it may also name a
 * survivor that gave up before and that this rank waited for.  The time that it took is printed; the limit is generous, because
 * the machine may be busy.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "proto/rng.h"

#define RANKS 4
#define LIMIT_S 30
#define BIG 300000

struct plan {
	uint64_t seed;
	int victim;
	bool job_scope;
	int pipe[2];
};

/* Distinguished by exit status: 0 is an error that names the victim. */
enum { WRONG_TEXT = 10, NO_ERROR = 11 };

static int one_error(struct ibvx **ep, const struct plan *p, int rank, int err)
{
	char name[16] = "rank ";

	if (p->job_scope)
		snprintf(name, sizeof(name), "rank %d", p->victim);
	if (err == -ECONNRESET && strstr(ibvx_error(), name)) {
		ibvx_abort(*ep);
		*ep = NULL;
		return 0;
	}
	fprintf(stderr, "rank %d: %d (%s) does not name %s\n", rank, err, ibvx_error(), name);
	return WRONG_TEXT;
}

/* All pairs exchange messages of all sizes, without an end; each rank in its own style of waiting. */
static int exchange(struct ibvx **ep, int rank, void *arg)
{
	struct plan *p = arg;
	struct rng r = rng_seed(p->seed, (uint64_t)rank);
	static char out[BIG], in[RANKS][BIG];
	char ready = 1;

	for (unsigned round = 0; round < 100000000; round++) {
		ibvx_req reqs[2 * RANKS] = {0};
		/* the size is a function of the round, so that all agree */
		size_t len = (size_t)(rng_mix(p->seed + round) % (round % 3 ? 2000 : BIG));
		int count = 0, err = 0;
		bool from_anybody = rng_percent(&r, 30); /* all or none: one would steal what another names */

		for (int i = 0; i < RANKS && !err; i++) {
			struct ibvx_rbuf rb = {in[i], BIG, 0};

			if (i != rank)
				err = ibvx_irecv(*ep, &rb, from_anybody ? IBVX_ANY_SOURCE : i, (int)round, 1, &reqs[count++]);
		}
		for (int i = 0; i < RANKS && !err; i++) {
			struct ibvx_sbuf sb = {NULL, 0, out, len, round};

			if (i != rank)
				err = ibvx_isend(*ep, &sb, i, (int)round, 1, &reqs[count++]);
		}
		for (int i = 0; i < count && !err; i++)
			err = ibvx_wait(*ep, &reqs[i], NULL);
		if (err < 0)
			return one_error(ep, p, rank, err);
		if (round == 0 && write(p->pipe[1], &ready, 1) != 1)
			return 5;
	}
	return NO_ERROR;
}

static int round_run(uint64_t seed, int64_t *longest_ms)
{
	struct rng r = rng_seed(seed, 99);
	struct plan p = {.seed = seed, .victim = (int)rng_below(&r, RANKS), .job_scope = seed % 2};
	static const char *const scope[2][2] = {{"fault_scope=peer", NULL}, {"fault_scope=job", NULL}};
	int64_t killed;
	struct job j;
	char ready;
	int failed = 0;

	/* before the first exchange is through, too */
	bool early = rng_percent(&r, 30);

	if (pipe(p.pipe) || job_start(&j, RANKS, scope[p.job_scope], exchange, &p))
		return 1;
	close(p.pipe[1]);
	for (int i = 0; i < (early ? 1 : RANKS); i++)
		if (read(p.pipe[0], &ready, 1) != 1) {
			fprintf(stderr, "seed %llu: the job ended by itself\n", (unsigned long long)seed);
			return 1;
		}
	usleep((useconds_t)rng_below(&r, early ? 2000 : 60000));
	killed = job_now_ms();
	kill(j.pid[p.victim], SIGKILL);
	job_wait(&j, LIMIT_S);
	killed = job_now_ms() - killed;
	if (killed > *longest_ms)
		*longest_ms = killed;
	for (int i = 0; i < RANKS; i++)
		if (i != p.victim && j.status[i] != 0) {
			fprintf(stderr, "seed %llu: rank %d was killed, rank %d ended with status %#x\n", (unsigned long long)seed,
				p.victim, i, j.status[i]);
			failed = 1;
		}
	close(p.pipe[0]);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"rounds", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	unsigned rounds = 10;
	uint64_t seed = 1;
	int64_t longest_ms = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		switch (c) {
		case 'n': rounds = (unsigned)strtoul(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		default: fprintf(stderr, "usage: %s [--rounds N] [--seed N]\n", argv[0]); return 2;
		}
	for (unsigned i = 0; i < rounds; i++)
		if (round_run(seed + i, &longest_ms)) {
			fprintf(stderr, "FAILED: replay with kill-shm --seed %llu\n", (unsigned long long)(seed + i));
			return 1;
		}
	printf("%u kills: the last survivor ended at most %lld ms later\n", rounds, (long long)longest_ms);
	return 0;
}
