/* SPDX-License-Identifier: MIT */
/* random_shm: random programs of collective operations, a process for each rank over shared memory. */
#include <stdio.h>
#include <stdlib.h>

#include "algorithms.h"
#include "program.h"
#include "shm/job.h"

#define LARGEST 400000
#define LIMIT_S 600

static int rank_main(struct ibvx **ep, int rank, void *arg)
{
	const struct program *p = arg;

	(void)rank;
	return program_run(p, *ep);
}

int main(int argc, char **argv)
{
	static const int sizes[] = {1, 2, 3, 4, 5, 8};
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct rng rng = rng_seed(seed, (uint64_t)i);
			struct program p = {seed, 30, LARGEST, -1};
			char chosen[ALGORITHM_SETTINGS][64];
			const char *settings[ALGORITHM_SETTINGS + 1];
			struct job job;

			algorithms_choose(&rng, chosen, settings);
			if (job_start(&job, sizes[i], settings, rank_main, &p) || job_wait(&job, LIMIT_S)) {
				fprintf(stderr, "seed %llu with %d ranks failed\n", (unsigned long long)seed, sizes[i]);
				return 1;
			}
		}
	}
	return 0;
}
