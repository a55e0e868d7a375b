/* SPDX-License-Identifier: MIT */
/*
 * overlap-shm [--strong]: a rendezvous ends while the rank that posted its half of it computes and calls nothing.
 *
 * The order of events is asserted, not a time: the rank that computes goes on until its peer's blocking call has returned (a
 * flag in shared memory).  With progress_thread=0 that never happens, so there it calls the library after a while.  --strong leaves
 * that out, for transports that look at their peers by a timer.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ibvx.h"
#include "job.h"

#define BYTES (8u << 20)
#define LIMIT_MS 200000
#define ALONE_MS 300 /* how long the peer is given to return without a progress thread */

enum { TAG = 1, CONTEXT = 1 };

struct shared {
	_Atomic int posted, returned; /* rounds */
};

struct plan {
	struct shared *shared;
	bool computing_sends; /* else it receives */
	bool strong;          /* the peer is expected to return meanwhile */
};

/* What a long message holds at this place. */
static unsigned char pattern(size_t at, int round)
{
	return (unsigned char)(at * 31 + (at >> 12) + (size_t)round);
}

static int check(const unsigned char *memory, int round)
{
	for (size_t i = 0; i < BYTES; i++)
		if (memory[i] != pattern(i, round)) {
			fprintf(stderr, "byte %zu of round %d is wrong\n", i, round);
			return 10;
		}
	return 0;
}

static void fill(unsigned char *memory, int round)
{
	for (size_t i = 0; i < BYTES; i++)
		memory[i] = pattern(i, round);
}

/* No call into the library. 0: the peer has returned meanwhile. */
static int compute(const struct plan *p, int round)
{
	int64_t until = job_now_ms() + (p->strong ? LIMIT_MS : ALONE_MS);

	atomic_store(&p->shared->posted, round);
	while (atomic_load(&p->shared->returned) < round)
		if (job_now_ms() > until)
			return -1;
	return 0;
}

static int computing_rank(struct ibvx *ep, const struct plan *p, unsigned char *memory, int round)
{
	struct ibvx_rbuf in = {memory, BYTES, 0};
	struct ibvx_sbuf out = {.body = memory, .body_bytes = BYTES};
	struct ibvx_status s;
	ibvx_req r;
	int err;

	fill(memory, p->computing_sends ? round : -1);
	err = p->computing_sends ? ibvx_isend(ep, &out, 0, TAG, CONTEXT, &r) : ibvx_irecv(ep, &in, 0, TAG, CONTEXT, &r);
	if (err)
		return 5;
	if ((compute(p, round) == 0) != p->strong) {
		fprintf(stderr, "round %d: the peer %s while this rank computed\n", round, p->strong ? "did not return" : "returned");
		return 6;
	}
	if (ibvx_wait(ep, &r, &s))
		return 7;
	return p->computing_sends ? 0 : check(memory, round);
}

static int blocking_rank(struct ibvx *ep, const struct plan *p, unsigned char *memory, int round)
{
	struct ibvx_rbuf in = {memory, BYTES, 0};
	struct ibvx_sbuf out = {.body = memory, .body_bytes = BYTES};
	struct ibvx_status s;
	int err;

	fill(memory, p->computing_sends ? -1 : round);
	while (atomic_load(&p->shared->posted) < round)
		;
	err = p->computing_sends ? ibvx_recv(ep, &in, 1, TAG, CONTEXT, &s) : ibvx_send(ep, &out, 1, TAG, CONTEXT);
	atomic_store(&p->shared->returned, round);
	if (err)
		return 8;
	return p->computing_sends ? check(memory, round) : 0;
}

static int overlap(struct ibvx **ep, int rank, void *arg)
{
	const struct plan *p = arg;
	unsigned char *memory = malloc(BYTES);
	int ret = memory ? 0 : 9;

	for (int round = 1; round <= 3 && ret == 0; round++)
		ret = rank ? computing_rank(*ep, p, memory, round) : blocking_rank(*ep, p, memory, round);
	free(memory);
	return ret;
}

static int run(const char *const *settings, bool computing_sends, bool strong)
{
	struct plan p = {.computing_sends = computing_sends, .strong = strong};
	struct job j;
	int failed;

	p.shared = mmap(NULL, sizeof(*p.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p.shared == MAP_FAILED)
		return 1;
	failed = job_start(&j, 2, settings, overlap, &p) || job_wait(&j, 2 * LIMIT_MS / 1000);
	munmap(p.shared, sizeof(*p.shared));
	if (failed)
		fprintf(stderr, "%s, the %s computes\n", settings[0], computing_sends ? "sender" : "receiver");
	return failed;
}

int main(int argc, char **argv)
{
	static const char *const two_copies[] = {"cma=never", NULL};
	static const char *const one_copy[] = {"cma=always", NULL};
	static const char *const weak[] = {"progress_thread=0", "cma=never", NULL};

	if (run(two_copies, false, true) || run(two_copies, true, true) || run(one_copy, false, true))
		return 1;
	return (argc < 2 || strcmp(argv[1], "--strong") != 0) && (run(weak, false, false) || run(weak, true, false));
}
