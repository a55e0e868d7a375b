/* SPDX-License-Identifier: MIT */
/*
 * random_proto: random programs of collective operations over the fake transport, a thread for each rank.
 *
 *   coll-random [--seeds N] [--seed FIRST] [--operations N] [--kind K]
 *
 * A failure prints its seed.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algorithms.h"
#include "program.h"
#include "world.h"

#define LARGEST 20000

struct rank {
	pthread_t thread;
	struct program program;
	struct ibvx *ep;
	_Atomic int *running; /* ranks whose program has not ended */
};

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	if (program_run(&r->program, r->ep)) {
		fprintf(stderr, "seed %llu failed\n", (unsigned long long)r->program.seed);
		exit(1); /* the other ranks wait for this one */
	}
	/* Without a progress thread nothing leaves a rank that does not call the library: others may wait for a packet that had no
	 * credit yet. */
	atomic_fetch_sub(r->running, 1);
	while (atomic_load(r->running) > 0) {
		ibvx_iprobe(r->ep, IBVX_ANY_SOURCE, 0, 0, NULL);
		usleep(50);
	}
	return NULL;
}

/* 0, or an error: the world did not open or close. */
static int run_seed(uint64_t seed, int operations, int kind)
{
	struct rng rng = rng_seed(seed, 77);
	char chosen[ALGORITHM_SETTINGS][64];
	const char *settings[4 + ALGORITHM_SETTINGS + 1] = {"spin_us=0", "yield_us=0", "psl=4000",
							    rng_percent(&rng, 50) ? "progress_thread=1" : "progress_thread=0"};
	struct world_config cfg = {.net = {.size = (int)rng_range(&rng, 1, WORLD_RANKS_MAX)}, .settings = settings};
	struct rank ranks[WORLD_RANKS_MAX];
	_Atomic int running;
	struct world w;

	algorithms_choose(&rng, chosen, settings + 4);
	fabric_config_random(&cfg.net, seed);
	if (world_open(&w, &cfg))
		return -1;
	fabric_clock_start(w.fabric, 50);
	atomic_init(&running, w.size);
	for (int r = 0; r < w.size; r++) {
		ranks[r] = (struct rank){.program = {seed, operations, LARGEST, kind}, .ep = w.ep[r], .running = &running};
		pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]);
	}
	for (int r = 0; r < w.size; r++)
		pthread_join(ranks[r].thread, NULL);
	return world_close(&w);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seeds", 1, NULL, 'n'}, {"seed", 1, NULL, 's'}, {"operations", 1, NULL, 'o'}, {"kind", 1, NULL, 'k'}, {0}};
	uint64_t first = 1, count = 20;
	int operations = 40, kind = -1, option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'n')
			count = strtoull(optarg, NULL, 0);
		else if (option == 's')
			first = strtoull(optarg, NULL, 0);
		else if (option == 'o')
			operations = atoi(optarg);
		else if (option == 'k')
			kind = atoi(optarg);
		else
			return 2;
	}
	for (uint64_t seed = first; seed < first + count; seed++) {
		if (run_seed(seed, operations, kind)) {
			fprintf(stderr, "seed %llu failed\n", (unsigned long long)seed);
			return 1;
		}
	}
	return 0;
}
