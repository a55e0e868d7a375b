/* SPDX-License-Identifier: MIT */
/*
 * stopped: a rank that is stopped while another one sends to it.
 *
 *   stopped-netlib TRANSPORT
 *
 * Neither rank's memory grows without a limit, and all messages arrive when it goes on.  With a time limit for silence the stopped rank
 * is lost, and the error names it and the setting.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/job.h"

#define BYTES 4000
#define MESSAGES 40000 /* 160 MB */
#define ROUND 4000
#define LIMIT_KB (100 << 10)
#define TAG 7

static char data[BYTES];

static long peak_kb(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

static int bounded(int rank)
{
	long kb = peak_kb();

	if (kb > 0 && kb < LIMIT_KB)
		return 0;
	fprintf(stderr, "rank %d: %ld KB at the peak, at most %d are allowed\n", rank, kb, LIMIT_KB);
	return 3;
}

static int failed(int rank)
{
	fprintf(stderr, "rank %d: %s\n", rank, ibvx_error());
	return 2;
}

static int flood(struct ibvx **ep, int rank, void *arg)
{
	struct ibvx_sbuf out = {NULL, 0, data, BYTES, 0};
	struct ibvx_rbuf in = {data, BYTES, 0};
	int *stopped = arg;
	char go = 0;

	if (rank == 1) {
		for (int i = 0; i < MESSAGES; i++) {
			if (i == 10 && write(stopped[1], &go, 1) == 1)
				raise(SIGSTOP);
			if (ibvx_recv(*ep, &in, 0, TAG, 1, NULL))
				return failed(rank);
		}
		return bounded(rank);
	}
	for (int i = 0; i < MESSAGES; i += ROUND) {
		ibvx_req reqs[ROUND];

		for (int n = 0; n < ROUND; n++) {
			if (ibvx_isend(*ep, &out, 1, TAG, 1, &reqs[n]))
				return failed(rank);
		}
		for (int n = 0; n < ROUND; n++) {
			if (ibvx_wait(*ep, &reqs[n], NULL))
				return failed(rank);
		}
	}
	return bounded(rank);
}

/* The receiver is stopped for a while, and goes on. */
static int test_flood(const char *transport)
{
	char setting[64];
	const char *settings[] = {setting, NULL};
	int stopped[2];
	struct job j;
	char go;

	snprintf(setting, sizeof(setting), "%s_timeout_ms=0", transport);
	if (pipe(stopped) || job_start(&j, 2, settings, flood, stopped) || read(stopped[0], &go, 1) != 1)
		return 1;
	usleep(1500000);
	kill(j.pid[1], SIGCONT);
	return job_wait(&j, 60);
}

static int silence(struct ibvx **ep, int rank, void *arg)
{
	struct ibvx_rbuf in = {data, BYTES, 0};
	struct ibvx_sbuf out = {NULL, 0, data, BYTES, 0};
	const char *transport = arg;
	char text[64];

	/* Rank 0 answers, so that the message of rank 1 has arrived before that stops: a send is complete earlier. */
	if (rank == 1 && ibvx_send(*ep, &out, 0, TAG, 1))
		return failed(rank);
	if (ibvx_recv(*ep, &in, 1 - rank, TAG, 1, NULL) || (rank == 0 && ibvx_send(*ep, &out, 1, TAG, 1)))
		return failed(rank);
	if (rank == 1)
		raise(SIGSTOP);
	if (ibvx_recv(*ep, &in, 1 - rank, TAG, 1, NULL) == 0 || rank == 1)
		return 4;
	snprintf(text, sizeof(text), "rank 1 is silent for 1000 ms (setting %s_timeout_ms)", transport);
	if (!strstr(ibvx_error(), text))
		return failed(rank);
	ibvx_abort(*ep);
	*ep = NULL;
	return 0;
}

static int test_silence(char *transport)
{
	char setting[64];
	const char *settings[] = {setting, NULL};
	struct job j;
	int left;

	snprintf(setting, sizeof(setting), "%s_timeout_ms=1000", transport);
	if (job_start(&j, 2, settings, silence, transport))
		return 1;
	for (left = 300; left > 0 && kill(j.pid[0], 0) == 0 && waitpid(j.pid[0], &j.status[0], WNOHANG) == 0; left--)
		usleep(100000);
	kill(j.pid[1], SIGKILL);
	waitpid(j.pid[1], &j.status[1], 0);
	if (left > 0 && j.status[0] == 0)
		return 0;
	fprintf(stderr, "rank 0 ended with status %#x\n", j.status[0]);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s TRANSPORT\n", argv[0]);
		return 2;
	}
	return test_flood(argv[1]) || test_silence(argv[1]);
}
