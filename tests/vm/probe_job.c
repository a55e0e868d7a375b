/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "traffic.h"
#include "vm_job.h"

static double probe_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void probe_job_big(const struct job *j, struct ibvx *ep, int rank)
{
	struct traffic_config cfg = {.seed = j->seed, .ranks = j->ranks, .replay = "vm-job --big"};
	char *out = malloc(j->bytes), *in = malloc(j->bytes);
	ibvx_req req;

	if (!out || !in)
		job_fail(rank, "no memory");
	for (int i = 0; i < 2 * j->ranks; i++) {
		int to = (rank + i) % j->ranks, from = (rank - i % j->ranks + j->ranks) % j->ranks;
		struct ibvx_sbuf s = {
			.head = out, .head_bytes = j->bytes / 3, .body = out + j->bytes / 3, .body_bytes = j->bytes - j->bytes / 3};
		struct ibvx_rbuf r = {.base = in, .capacity_bytes = j->bytes};

		pattern_fill(&cfg, (uint64_t)(rank * 1000 + i), 0, out, j->bytes);
		memset(in, 0, j->bytes);
		if (ibvx_irecv(ep, &r, from, i, 5, &req) || ibvx_send(ep, &s, to, i, 5) || ibvx_wait(ep, &req, NULL))
			job_fail(rank, "big message");
		if (!pattern_holds(&cfg, (uint64_t)(from * 1000 + i), 0, in, j->bytes))
			job_fail(rank, "big message: wrong bytes");
	}
	free(out);
	free(in);
}

/* The last rank is gone without a word; the rest must get an error that names it. */
void probe_job_killed(const struct job *j, struct ibvx *ep, int rank)
{
	char name[24];
	int victim = j->ranks - 1, rc;
	struct ibvx_rbuf in = {.base = NULL, .capacity_bytes = 0};

	probe_job_big(j, ep, rank);
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

/* Ranks are cut off or ended from outside: the ranks that are left get an error that names one, and can finish.  Half of
 * the ranks send while they wait, half do nothing. */
void probe_job_lost(const struct job *j, struct ibvx *ep, int rank)
{
	int other = (rank + j->ranks / 2) % j->ranks, rc = 0, fd;
	struct ibvx_rbuf in = {.base = NULL, .capacity_bytes = 0};
	struct ibvx_sbuf out = {.head = "", .head_bytes = 0};
	double began;

	probe_job_big(j, ep, rank);
	job_barrier(ep, rank, j->ranks);
	if (rank == 0 && j->ready) {
		fd = open(j->ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || close(fd) < 0)
			job_fail(rank, "--ready");
	}
	began = probe_now();
	for (int i = 0; rc == 0 && rank % 2 == 0; i++) {
		rc = ibvx_send(ep, &out, other, i, 7);
		usleep(100000);
	}
	if (rc == 0)
		rc = ibvx_recv(ep, &in, other, 1, 9, NULL);
	if (rc == 0 || !strstr(ibvx_error(), "rank ")) {
		fprintf(stderr, "vm-job: rank %d: rank %d is lost, and the error is: %d: %s\n", rank, other, rc, ibvx_error());
		exit(1);
	}
	printf("rank %d: after %.1f s: %s\n", rank, probe_now() - began, ibvx_error());
	fflush(stdout);
}

/* A token round the ring: all have come here, over no connection but those of neighbours. */
static void probe_token(const struct job *j, struct ibvx *ep, int rank, int tag)
{
	int left = (rank + j->ranks - 1) % j->ranks, right = (rank + 1) % j->ranks;
	struct ibvx_sbuf out = {.head = "", .head_bytes = 0};
	struct ibvx_rbuf in = {.base = NULL, .capacity_bytes = 0};

	if ((rank == 0 && ibvx_send(ep, &out, right, tag, JOB_CONTEXT)) || ibvx_recv(ep, &in, left, tag, JOB_CONTEXT, NULL) ||
	    (rank != 0 && ibvx_send(ep, &out, right, tag, JOB_CONTEXT)))
		job_fail(rank, "token");
}

void probe_job_ring(const struct job *j, struct ibvx *ep, int rank)
{
	int left = (rank + j->ranks - 1) % j->ranks, right = (rank + 1) % j->ranks;
	size_t bytes = j->bytes ? j->bytes : 8;
	struct traffic_config cfg = {.seed = j->seed, .ranks = j->ranks, .replay = "vm-job --ring"};
	ibvx_req *sends = calloc(j->count, sizeof(*sends));
	char *out = malloc(bytes * j->count), *in = malloc(bytes);
	uint64_t pairs;

	if (!sends || !out || !in)
		job_fail(rank, "no memory");
	/* all at once, to a rank without connection: what piles up goes out in one burst */
	for (unsigned i = 0; i < j->count; i++) {
		struct ibvx_sbuf s = {.head = out + i * bytes, .head_bytes = bytes};

		pattern_fill(&cfg, (uint64_t)rank << 32 | i, 0, out + i * bytes, bytes);
		if (ibvx_isend(ep, &s, right, (int)i, 5, &sends[i]))
			job_fail(rank, "ring: isend");
	}
	for (unsigned i = 0; i < j->count; i++) {
		struct ibvx_rbuf r = {.base = in, .capacity_bytes = bytes};

		if (ibvx_recv(ep, &r, left, (int)i, 5, NULL))
			job_fail(rank, "ring: recv");
		if (!pattern_holds(&cfg, (uint64_t)left << 32 | i, 0, in, bytes))
			job_fail(rank, "ring: wrong bytes");
	}
	for (unsigned i = 0; i < j->count; i++)
		if (ibvx_wait(ep, &sends[i], NULL))
			job_fail(rank, "ring: wait");
	probe_token(j, ep, rank, 0);
	pairs = job_counter(ep, rank, -1, "verbs_queue_pairs");
	if (rank == 0 || pairs != (uint64_t)(j->ranks > 2 ? 2 : 1))
		printf("rank %d of %d: %llu queue pairs, %llu bytes of buffers\n", rank, j->ranks, (unsigned long long)pairs,
		       (unsigned long long)job_counter(ep, rank, -1, "verbs_buffer_bytes"));
	if (pairs != (uint64_t)(j->ranks > 2 ? 2 : 1)) {
		fprintf(stderr, "vm-job: rank %d has connections to other ranks than its neighbours\n", rank);
		exit(1);
	}
	probe_token(j, ep, rank, 1);
	free(sends);
	free(out);
	free(in);
}

/* One way, then the same again: a registration serves twice. */
static void probe_stale_round(const struct traffic_config *cfg, struct ibvx *ep, int rank, unsigned i, char *mem, size_t bytes)
{
	struct ibvx_sbuf s = {.body = mem, .body_bytes = bytes};
	struct ibvx_rbuf r = {.base = mem, .capacity_bytes = bytes};
	int other = rank ^ 1;
	bool sends = (i % 2 == 0) == (rank % 2 == 0); /* in turns: both ends of a transfer are tried */

	for (uint64_t again = 0; again < 2; again++) {
		uint64_t user = again << 40 | (uint64_t)(sends ? rank : other) << 32 | i;

		if (sends) {
			pattern_fill(cfg, user, 0, mem, bytes);
			if (ibvx_send(ep, &s, other, (int)i, 5))
				job_fail(rank, "stale: send");
			continue;
		}
		if (ibvx_recv(ep, &r, other, (int)i, 5, NULL))
			job_fail(rank, "stale: recv");
		if (!pattern_holds(cfg, user, 0, mem, bytes)) {
			fprintf(stderr, "vm-job: rank %d: round %u: wrong bytes\n", rank, i);
			exit(1);
		}
	}
}

/* Memory at one address, each time another mapping with other bytes, in two rounds of three registered by its owner: a registration that
 * outlived its memory would show. */
void probe_job_stale(const struct job *j, struct ibvx *ep, int rank)
{
	struct traffic_config cfg = {.seed = j->seed, .ranks = j->ranks, .replay = "vm-job --stale"};
	size_t bytes = j->bytes ? j->bytes : 65536;
	void *at = NULL;
	int other = rank ^ 1;
	unsigned changed = 0;

	for (unsigned i = 0; i < j->count && other < j->ranks; i++) {
		char *mem = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
		int kept = 0;

		if (mem == MAP_FAILED) { /* somebody else has the address now */
			at = NULL;
			changed++;
			if (changed > j->count / 10)
				job_fail(rank, "stale: the memory is not to be had again");
			i--;
			continue;
		}
		at = mem;
		if (i % 3)
			kept = ibvx_buffer_register(ep, mem, bytes);
		if (kept < 0)
			job_fail(rank, "stale: registering");
		probe_stale_round(&cfg, ep, rank, i, mem, bytes);
		if (kept > 0 && ibvx_buffer_release(ep, mem, bytes))
			job_fail(rank, "stale: releasing");
		munmap(mem, bytes);
	}
	job_barrier(ep, rank, j->ranks);
	if (rank == 0)
		printf("%u rounds with memory that came and went\n", j->count);
}

#define PROBE_HEAD_MAX 40u
#define PROBE_BODY 3000u

/* One message whose head has `before` bytes in front of the end of a page. */
static void probe_head(const struct traffic_config *cfg, struct ibvx *ep, int rank, char *mem, size_t head, size_t before)
{
	char *at = mem + 4096 - before;
	uint64_t user = head << 8 | before;
	struct ibvx_sbuf s = {.head = at, .head_bytes = head, .body = mem + 2 * 4096, .body_bytes = PROBE_BODY};
	struct ibvx_rbuf r = {.base = mem, .capacity_bytes = head + PROBE_BODY};

	memset(mem, 0, 3 * 4096);
	if (rank == 0) {
		pattern_fill(cfg, user, 0, at, head);
		pattern_fill(cfg, user, head, mem + 2 * 4096, PROBE_BODY);
		if (ibvx_send(ep, &s, 1, 1, 5))
			job_fail(rank, "heads: send");
	} else if (ibvx_recv(ep, &r, 0, 1, 5, NULL)) {
		job_fail(rank, "heads: recv");
	} else if (!pattern_holds(cfg, user, 0, mem, head + PROBE_BODY)) {
		fprintf(stderr, "vm-job: wrong bytes: a head of %zu bytes, %zu of them before the end of a page\n", head, before);
		exit(1);
	}
}

/* What an adapter reads or writes for a head lies on two pages. */
void probe_job_heads(const struct job *j, struct ibvx *ep, int rank)
{
	struct traffic_config cfg = {.seed = j->seed, .ranks = j->ranks, .replay = "vm-job --heads"};
	char *mem = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned messages = 0;

	if (mem == MAP_FAILED)
		job_fail(rank, "no memory");
	for (size_t head = 1; head <= PROBE_HEAD_MAX && rank < 2; head++)
		for (size_t before = 1; before <= head; before++, messages++)
			probe_head(&cfg, ep, rank, mem, head, before);
	job_barrier(ep, rank, j->ranks);
	if (rank == 1 && job_counter(ep, rank, 0, "gets") + job_counter(ep, rank, 0, "puts_in") < messages) {
		fprintf(stderr, "vm-job: not all of %u messages went by RDMA\n", messages);
		exit(1);
	}
	munmap(mem, 3 * 4096);
}
