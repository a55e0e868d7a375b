/* SPDX-License-Identifier: MIT */
/*
 * kill_shm: operations of all kinds without an end over shared memory, in which a random rank is killed at a random moment.
 * Every other rank must end with an error, also where only the requests that need the dead rank fail (fault_scope=peer).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ibvx_coll.h"
#include "proto/rng.h"
#include "shm/job.h"

#define ROUNDS 12
#define LIMIT_S 30
#define MEMBERS 5
#define PART 40000

static int operations(struct ibvx **ep, int rank, void *arg)
{
	static char in[MEMBERS * PART], out[MEMBERS * PART];
	static const enum ibvx_coll_kind kinds[] = {IBVX_ALLTOALL, IBVX_ALLREDUCE, IBVX_BARRIER, IBVX_ALLGATHER, IBVX_REDUCE_SCATTER};
	struct ibvx_comm *world;
	int rc = ibvx_comm_world(&world, *ep, 0);

	(void)arg;
	for (unsigned i = 0; rc == 0; i++) {
		size_t bytes = i / 5 % 2 ? 16 : PART;
		struct ibvx_parts parts = {.base = in, .bytes = bytes, .stride_bytes = (ptrdiff_t)bytes};
		struct ibvx_coll coll = {.kind = kinds[i % 5],
					 .in = parts,
					 .out = parts,
					 .source = in,
					 .target = out,
					 .count = bytes / 8,
					 .type = IBVX_INT64};

		coll.out.base = out;
		rc = ibvx_coll_run(world, &coll);
	}
	if (rc != -ECONNRESET) {
		fprintf(stderr, "rank %d ended with %d (%s)\n", rank, rc, ibvx_error());
		return 1;
	}
	ibvx_comm_free(world);
	ibvx_abort(*ep);
	*ep = NULL;
	return 0;
}

int main(void)
{
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		const char *settings[] = {round % 3 ? "fault_scope=peer" : "fault_scope=job", NULL};
		struct rng rng = rng_seed(round, 3);
		int victim = (int)rng_below(&rng, MEMBERS), failed;
		struct job job;

		if (job_start(&job, MEMBERS, settings, operations, NULL))
			return 1;
		usleep((useconds_t)(150000 + rng_below(&rng, 100000)));
		kill(job.pid[victim], SIGKILL);
		failed = job_wait(&job, LIMIT_S);
		if (failed != 1 || !WIFSIGNALED(job.status[victim])) {
			fprintf(stderr, "round %llu: %d ranks failed, the one that was killed included\n", (unsigned long long)round,
				failed);
			return 1;
		}
	}
	return 0;
}
