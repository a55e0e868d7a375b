/* SPDX-License-Identifier: MIT */
/*
 * idle_shm: what waiting costs.  Ranks that wait in recv, probe, waitany and peek for ten seconds (--seconds)
 * use less than a hundredth of that in processor time; and more ranks than processors get through an exchange.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "job.h"

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int wait_idly(struct ibvx *ep, int rank)
{
	char mem[8];
	struct ibvx_rbuf in = {mem, sizeof(mem), 0};
	struct ibvx_status s;
	ibvx_req r, shown;
	int err;

	if (rank == 1)
		return ibvx_recv(ep, &in, 0, 1, 1, &s);
	if (rank == 2) {
		err = ibvx_probe(ep, IBVX_ANY_SOURCE, IBVX_ANY_TAG, 1, &s);
		return err ? err : ibvx_recv(ep, &in, 0, 1, 1, &s);
	}
	err = ibvx_irecv(ep, &in, 0, 1, 1, &r);
	if (err)
		return err;
	if (rank == 3) {
		err = ibvx_waitany(ep, 1, &r, &s);
		return err < 0 ? err : s.error;
	}
	err = ibvx_peek(ep, &shown);
	return err ? err : ibvx_wait(ep, &r, &s);
}

static int idle(struct ibvx **ep, int rank, void *arg)
{
	double limit = *(int *)arg / 100.0, before = cpu_s(), used;
	struct ibvx_sbuf out = {NULL, 0, "12345678", 8, 0};

	if (rank == 0) {
		sleep((unsigned)*(int *)arg);
		for (int i = 1; i < ibvx_size(*ep); i++)
			if (ibvx_send(*ep, &out, i, 1, 1))
				return 6;
		return 0;
	}
	if (wait_idly(*ep, rank)) {
		fprintf(stderr, "rank %d: %s\n", rank, ibvx_error());
		return 7;
	}
	used = cpu_s() - before;
	printf("rank %d: %d s of waiting took %.4f s of processor time\n", rank, *(int *)arg, used);
	return used < limit ? 0 : 8;
}

/* Recursive doubling over 8 ranks, many times: everybody waits for everybody. */
static int allreduce(struct ibvx **ep, int rank, void *arg)
{
	for (int round = 0; round < *(int *)arg; round++) {
		long sum = rank + round, expected = 0;

		for (int i = 0; i < ibvx_size(*ep); i++)
			expected += i + round;
		for (int step = 1; step < ibvx_size(*ep); step *= 2) {
			long other = 0;
			struct ibvx_sbuf out = {NULL, 0, &sum, sizeof(sum), 0};
			struct ibvx_rbuf in = {&other, sizeof(other), 0};
			ibvx_req send;

			if (ibvx_isend(*ep, &out, rank ^ step, step, 1, &send) || ibvx_recv(*ep, &in, rank ^ step, step, 1, NULL) ||
			    ibvx_wait(*ep, &send, NULL)) {
				fprintf(stderr, "rank %d: %s\n", rank, ibvx_error());
				return 6;
			}
			sum += other;
		}
		if (sum != expected) {
			fprintf(stderr, "rank %d round %d: %ld, expected %ld\n", rank, round, sum, expected);
			return 7;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int seconds = argc == 3 && strcmp(argv[1], "--seconds") == 0 ? atoi(argv[2]) : 10, rounds = 2000;
	static const char *const progress[] = {"progress_thread=1", NULL};
	struct job j;

	for (int i = 0; i < 2; i++)
		if (job_start(&j, 5, i ? progress : NULL, idle, &seconds) || job_wait(&j, seconds + 60))
			return 1;
	if (job_start(&j, 8, NULL, allreduce, &rounds) || job_wait(&j, 120))
		return 1;
	printf("8 ranks: %d rounds of an allreduce\n", rounds);
	return 0;
}
