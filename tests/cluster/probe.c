/* SPDX-License-Identifier: MIT */
/*
 * cluster-probe: a C program that an engine starts as it is: it gives ibvx_open() no rank and no conf.
 *
 *   cluster-probe report WORD...       a message around the ring, then one line: rank, size, node, what it was given
 *   cluster-probe again                opens, closes, opens, closes
 *   cluster-probe fail RANK STATUS     that rank ends with the status after a barrier and prints nothing; the others wait for it
 *   cluster-probe exchange ROUNDS      messages of many sizes between all pairs, checked, and one line
 *   cluster-probe hang FOLDER          makes FOLDER/pid.RANK, then waits for a message that nobody sends
 *
 * report shows what rank 0 reads from standard input, and CLUSTER_WORD.  Exit status: 0; 1 after an error, which it prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ibvx.h"

static int failed(const char *what)
{
	fprintf(stderr, "cluster-probe: %s: %s\n", what, ibvx_error());
	return 1;
}

static struct ibvx *opened(void)
{
	static const char *const defaults[] = {"fault_scope=job", NULL};
	struct ibvx_config cfg = {.rank = -1, .defaults = defaults};
	struct ibvx *ep;

	if (ibvx_open(&ep, &cfg) < 0) {
		failed("open");
		return NULL;
	}
	return ep;
}

/* Each rank's number to its right neighbour. */
static int ring(struct ibvx *ep)
{
	int rank = ibvx_rank(ep), size = ibvx_size(ep), left = (rank + size - 1) % size, got = -1;
	struct ibvx_sbuf out = {.body = &rank, .body_bytes = sizeof(rank)};
	struct ibvx_rbuf in = {.base = &got, .capacity_bytes = sizeof(got)};
	ibvx_req req;

	if (ibvx_irecv(ep, &in, left, 7, 0, &req) < 0 || ibvx_send(ep, &out, (rank + 1) % size, 7, 0) < 0 || ibvx_wait(ep, &req, NULL) < 0)
		return failed("ring");
	if (got != left) {
		fprintf(stderr, "cluster-probe: rank %d got %d from its left neighbour %d\n", rank, got, left);
		return 1;
	}
	return 0;
}

/* Nobody returns before all have come, so that a rank that dies next is missed by nobody's ring. */
static int barrier(struct ibvx *ep)
{
	struct ibvx_sbuf out = {.body = NULL};
	struct ibvx_rbuf in = {.base = NULL};

	for (int r = 1; r < ibvx_size(ep) && ibvx_rank(ep) == 0; r++)
		if (ibvx_recv(ep, &in, r, 9, 0, NULL) < 0)
			return failed("barrier");
	for (int r = 1; r < ibvx_size(ep) && ibvx_rank(ep) == 0; r++)
		if (ibvx_send(ep, &out, r, 9, 0) < 0)
			return failed("barrier");
	if (ibvx_rank(ep) > 0 && (ibvx_send(ep, &out, 0, 9, 0) < 0 || ibvx_recv(ep, &in, 0, 9, 0, NULL) < 0))
		return failed("barrier");
	return 0;
}

#define EXCHANGE_MAX 400000
#define EXCHANGE_RANKS 16

/* The size is a function of the round, so that all agree; every pair has bytes of its own. */
static int exchange(struct ibvx *ep, int rounds)
{
	static unsigned char out[EXCHANGE_RANKS][EXCHANGE_MAX], in[EXCHANGE_RANKS][EXCHANGE_MAX];
	static const size_t sizes[] = {0, 8, 100, 4000, 16384, 63000, 64001, 130000, EXCHANGE_MAX};
	int rank = ibvx_rank(ep), size = ibvx_size(ep);

	for (int round = 0; round < rounds && size <= EXCHANGE_RANKS; round++) {
		size_t bytes = sizes[(size_t)round % (sizeof(sizes) / sizeof(sizes[0]))];
		ibvx_req reqs[2 * EXCHANGE_RANKS];
		int count = 0;

		for (int r = 0; r < size; r++) {
			struct ibvx_rbuf rb = {.base = in[r], .capacity_bytes = bytes};

			if (ibvx_irecv(ep, &rb, r, round, 0, &reqs[count++]) < 0)
				return failed("exchange");
		}
		for (int r = 0; r < size; r++) {
			struct ibvx_sbuf sb = {.body = out[r], .body_bytes = bytes};

			memset(out[r], rank * 16 + r + round, bytes);
			if (ibvx_isend(ep, &sb, r, round, 0, &reqs[count++]) < 0)
				return failed("exchange");
		}
		for (int i = 0; i < count; i++) {
			if (ibvx_wait(ep, &reqs[i], NULL) < 0)
				return failed("exchange");
		}
		for (int r = 0; r < size; r++) {
			for (size_t i = 0; i < bytes; i++) {
				if (in[r][i] == (unsigned char)(r * 16 + rank + round))
					continue;
				fprintf(stderr, "cluster-probe: round %d: byte %zu from rank %d is wrong\n", round, i, r);
				return 1;
			}
		}
	}
	printf("rank %d exchanged\n", rank);
	return 0;
}

static void report(struct ibvx *ep, char **words)
{
	const char *word = getenv("CLUSTER_WORD");
	char host[64] = "", line[1024];
	size_t used, input = 0;

	gethostname(host, sizeof(host) - 1);
	while (ibvx_rank(ep) == 0 && !getenv("CLUSTER_NO_INPUT") && getchar() != EOF) /* some engines leave the others' open for ever */
		input++;
	used = (size_t)snprintf(line, sizeof(line), "rank %d of %d on %s: env %s, input %zu, words", ibvx_rank(ep), ibvx_size(ep), host,
				word ? word : "none", input);
	for (; *words && used < sizeof(line); words++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, " [%s]", *words);
	puts(line); /* one write: engines mix the lines of ranks, not what is in them */
}

static int wait_for_nobody(struct ibvx *ep, int source)
{
	struct ibvx_rbuf in = {.base = NULL, .capacity_bytes = 0};

	return ibvx_recv(ep, &in, source, 8, 0, NULL) < 0 ? failed("waiting") : 0;
}

static int hang(struct ibvx *ep, const char *folder)
{
	char path[512], ready[520];
	FILE *f;

	snprintf(path, sizeof(path), "%s/pid.%d", folder, ibvx_rank(ep));
	snprintf(ready, sizeof(ready), "%s.new", path);
	f = fopen(ready, "w");
	if (!f || fprintf(f, "%ld\n", (long)getpid()) < 0 || fclose(f) || rename(ready, path)) {
		perror(path);
		return 1;
	}
	return wait_for_nobody(ep, (ibvx_rank(ep) + 1) % ibvx_size(ep));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct ibvx *ep = opened();
	int status;

	if (!ep)
		return 1;
	status = ring(ep);
	if (!status)
		status = barrier(ep);
	if (!status && !strcmp(mode, "report"))
		report(ep, argv + 2);
	else if (!status && !strcmp(mode, "exchange") && argc == 3)
		status = exchange(ep, atoi(argv[2]));
	else if (!status && !strcmp(mode, "hang") && argc == 3)
		status = hang(ep, argv[2]);
	else if (!status && !strcmp(mode, "fail") && argc == 4 && ibvx_rank(ep) == atoi(argv[2]))
		_exit(atoi(argv[3]));
	else if (!status && !strcmp(mode, "fail") && argc == 4)
		status = wait_for_nobody(ep, atoi(argv[2]));
	if (status)
		sleep(1); /* the engine is to see first which rank failed first */
	if (ibvx_close(ep) < 0)
		return failed("close");
	if (strcmp(mode, "again") || status)
		return status;
	ep = opened();
	if (!ep || ring(ep))
		return 1;
	printf("rank %d of %d again\n", ibvx_rank(ep), ibvx_size(ep));
	return ibvx_close(ep) < 0 ? failed("close") : 0;
}
