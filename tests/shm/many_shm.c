/* SPDX-License-Identifier: MIT */
/*
 * many-shm: many ranks on one node.  A rank that has heard from all of them polls the rings of those alone that talk; what
 * comes from the others later is noticed all the same, by a rank that polls and by one that sleeps.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ibvx.h"
#include "job.h"

#define RANKS 12
#define ROUNDS 3
#define EXCHANGES 3000
#define POLLED_MAX 4 /* SHM_POLLED_MIN */

enum { TAG_HELLO = 1, TAG_PAIR, TAG_GO, TAG_ANSWER, CONTEXT = 1 };

static int send_to(struct ibvx *ep, int rank, int tag, int value)
{
	struct ibvx_sbuf out = {.body = &value, .body_bytes = sizeof(value)};

	return ibvx_send(ep, &out, rank, tag, CONTEXT);
}

static int recv_from(struct ibvx *ep, int rank, int tag, int value)
{
	struct ibvx_rbuf in = {.base = &(int){0}, .capacity_bytes = sizeof(int)};
	struct ibvx_status s;
	int err = ibvx_recv(ep, &in, rank, tag, CONTEXT, &s);

	if (err)
		return err;
	if (*(int *)in.base != value) {
		fprintf(stderr, "%d from rank %d, expected %d\n", *(int *)in.base, rank, value);
		return 20;
	}
	return 0;
}

static int polled(struct ibvx *ep)
{
	struct ibvx_counter c[64];
	int n = ibvx_counters(ep, -1, c, 64);

	for (int i = 0; i < n && i < 64; i++)
		if (strcmp(c[i].name, "shm_rings_polled") == 0)
			return (int)c[i].value;
	return -1;
}

/* Ranks 0 and 1 alone, until all other rings have been idle for long. */
static int exchange(struct ibvx *ep, int rank)
{
	for (int i = 0; i < EXCHANGES; i++) {
		int err = 0;

		if (rank == 0)
			err = send_to(ep, 1, TAG_PAIR, i);
		if (err || recv_from(ep, 1 - rank, TAG_PAIR, i) || (rank == 1 && send_to(ep, 0, TAG_PAIR, i)))
			return 10;
	}
	return 0;
}

static int first_rank(struct ibvx *ep)
{
	for (int r = 1; r < RANKS; r++)
		if (recv_from(ep, r, TAG_HELLO, r))
			return 5;
	for (int round = 0; round < ROUNDS; round++) {
		if (exchange(ep, 0))
			return 6;
		if (polled(ep) < 1 || polled(ep) > POLLED_MAX) {
			fprintf(stderr, "round %d: %d rings are polled\n", round, polled(ep));
			return 7;
		}
		for (int r = 2; r < RANKS; r++)
			if (send_to(ep, r, TAG_GO, round))
				return 8;
		for (int r = RANKS - 1; r >= 2; r--)
			for (int i = 0; i < 3; i++)
				if (recv_from(ep, r, TAG_ANSWER, round * 10 + i))
					return 9;
	}
	return 0;
}

static int other_rank(struct ibvx *ep, int rank)
{
	if (send_to(ep, 0, TAG_HELLO, rank))
		return 5;
	for (int round = 0; round < ROUNDS; round++) {
		if (rank == 1) {
			if (exchange(ep, 1))
				return 6;
			continue;
		}
		if (recv_from(ep, 0, TAG_GO, round))
			return 8;
		if (round > 0) /* long enough for rank 0 to fall asleep */
			usleep(20000 * (useconds_t)rank);
		for (int i = 0; i < 3; i++)
			if (send_to(ep, 0, TAG_ANSWER, round * 10 + i))
				return 9;
	}
	return 0;
}

static int many(struct ibvx **ep, int rank, void *arg)
{
	(void)arg;
	return rank ? other_rank(*ep, rank) : first_rank(*ep);
}

int main(void)
{
	struct job j;

	return job_start(&j, RANKS, NULL, many, NULL) || job_wait(&j, 120);
}
