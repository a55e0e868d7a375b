/* SPDX-License-Identifier: MIT */
/*
 * kill_shm: operations of all kinds without an end over shared memory, in which a random rank is killed at a random moment.
 * Every other rank must end with an error, also where only the requests that need the dead rank fail (fault_scope=peer).
 * In every second round all have joined by that moment. In the others it lies in the start of the job, which may then
 * fail on any rank. Rank 0 waits start_timeout_ms for a rank that dies before it has reported to it.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ibvx_coll.h"
#include "proto/rng.h"
#include "shm/job.h"

#define ROUNDS 24
#define START_LIMIT_S 60
#define LIMIT_S 60
#define MEMBERS 5
#define PART 40000

/* Of the round: the ranks whose first operations are over. */
static _Atomic int *running;

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
		if (rc == 0 && i == 0)
			atomic_fetch_add(running, 1);
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

static bool others_ended_well(const struct job *job, int victim, bool early)
{
	for (int r = 0; r < MEMBERS; r++) {
		int status = job->status[r];

		if (r == victim ? !WIFSIGNALED(status) && !early : status != 0 && !(early && WIFEXITED(status) && WEXITSTATUS(status) == 3))
			return false;
	}
	return true;
}

static int round_run(uint64_t round)
{
	bool early = round % 2;
	const char *settings[] = {round % 3 ? "fault_scope=peer" : "fault_scope=job", early ? "start_timeout_ms=3000" : NULL, NULL};
	struct rng rng = rng_seed(round, 3);
	int victim = (int)rng_below(&rng, MEMBERS);
	struct job job;

	atomic_store(running, 0);
	if (job_start(&job, MEMBERS, settings, operations, NULL))
		return 1;
	for (int64_t until = job_now_ms() + START_LIMIT_S * 1000; !early && atomic_load(running) < MEMBERS && job_now_ms() < until;)
		usleep(1000);
	usleep((useconds_t)rng_below(&rng, early ? 200000 : 100000));
	kill(job.pid[victim], SIGKILL);
	job_wait(&job, LIMIT_S);
	if (others_ended_well(&job, victim, early))
		return 0;
	fprintf(stderr, "round %llu: rank %d was killed; status", (unsigned long long)round, victim);
	for (int r = 0; r < MEMBERS; r++)
		fprintf(stderr, " %#x", (unsigned)job.status[r]);
	fprintf(stderr, "\n");
	return 1;
}

int main(void)
{
	int failed = 0;

	running = mmap(NULL, sizeof(*running), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (running == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (uint64_t round = 1; round <= ROUNDS && !failed; round++)
		failed = round_run(round);
	return failed;
}
