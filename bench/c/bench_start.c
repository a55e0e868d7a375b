/* SPDX-License-Identifier: MIT */
/*
 * bench_start: how long the start of a job of many ranks takes on one machine.
 *
 *   bench_start [--bootstrap [--nodes N]] RANKS [ROUNDS]
 *
 * Forks RANKS processes, which wait until all exist, then start at the same moment and form one job; prints one line a
 * round: milliseconds from that moment until the last rank has started, and until the last process has ended.
 * Without an option a start is ibvx_open, with --bootstrap it is what lies below it: the join, an allgather of 200
 * bytes of each rank, and a barrier.  --nodes gives rank 0 another loopback address for each N-th part of the ranks, which
 * makes them nodes to the bootstrap, with leaders that come by TCP.  Exit status 1 if any rank failed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "ibvx.h"

#define START_RECORD_BYTES 200u

/* Shared by all processes of a round. */
struct start {
	int ranks, nodes, port; /* nodes 0: as it is */
	int64_t began_ns;
	int64_t done_ns[];
};

static int start_conf(char *path, size_t size, int ranks, int port)
{
	int fd;
	FILE *f;

	snprintf(path, size, "/tmp/bench_start-XXXXXX");
	fd = mkstemp(path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		return -errno;
	fprintf(f, "%d\n131072\n", ranks);
	for (int r = 0; r < ranks; r++)
		fprintf(f, "localhost@%d@%d@%d@0\n", port, port + 1, r);
	return fclose(f) == 0 ? 0 : -errno;
}

/* Rank 0's address, and the hosts, under names of this rank's node. */
static const char **start_peers(const struct start *s, int rank)
{
	const char **peers = calloc((size_t)s->ranks, sizeof(*peers));
	char(*text)[32] = calloc((size_t)s->ranks, sizeof(*text));

	for (int r = 0; peers && text && r < s->ranks; r++) {
		int node = (int)((int64_t)(r ? r : rank) * s->nodes / s->ranks);

		snprintf(text[r], sizeof(text[r]), "127.%d.%d.%d:%d", r ? 2 : 1, node / 250, 1 + node % 250, s->port);
		peers[r] = text[r];
	}
	return text ? peers : NULL;
}

static int start_bootstrap(const struct start *s, const char *conf, int rank, int64_t *done_ns)
{
	static const struct log silence = {.level = LOG_OFF, .fd = -1};
	static const struct bootstrap_events none = {0};
	struct settings *settings = settings_new();
	struct bootstrap_config cfg = {.rank = rank, .settings = settings};
	unsigned char mine[START_RECORD_BYTES] = {1}, *all = NULL;
	uint32_t *lengths = NULL;
	struct bootstrap *b = NULL;
	char job_id[33];
	int size = 0, err = settings ? settings_set_environment(settings) : -ENOMEM;

	if (s->nodes) {
		cfg.peers = start_peers(s, rank);
		cfg.size = s->ranks;
	} else {
		cfg.conf = conf;
	}
	if (!err)
		err = bootstrap_open(&b, &cfg, &size);
	if (!err)
		err = bootstrap_join(b, &silence, job_id);
	all = malloc((size_t)size * sizeof(mine) + 1);
	lengths = calloc((size_t)size + 1, sizeof(*lengths));
	if (!err && (!all || !lengths))
		err = -ENOMEM;
	if (!err)
		err = bootstrap_allgather(b, mine, sizeof(mine), all, (size_t)size * sizeof(mine), lengths);
	if (!err)
		err = bootstrap_allgather(b, NULL, 0, NULL, 0, lengths);
	*done_ns = clock_now_ns();
	if (err)
		fprintf(stderr, "bench_start: rank %d: %s\n", rank, error_text());
	else
		bootstrap_watch(b, &none);
	if (!err)
		bootstrap_leave(b);
	bootstrap_close(b);
	settings_free(settings);
	free(all);
	free(lengths);
	return err ? 1 : 0;
}

static int start_endpoint(const char *conf, int rank, int64_t *done_ns)
{
	struct ibvx_config cfg = {.rank = rank, .conf = conf};
	struct ibvx *ep;
	int err = ibvx_open(&ep, &cfg);

	*done_ns = clock_now_ns();
	if (err == 0)
		err = ibvx_close(ep);
	if (err)
		fprintf(stderr, "bench_start: rank %d: %s\n", rank, ibvx_error());
	return err ? 1 : 0;
}

static int start_fork(struct start *s, const char *conf, int ranks, int bootstrap_only, const int gate[2])
{
	int failed = 0, status;

	for (int r = 0; r < ranks; r++) {
		pid_t pid = fork();
		char byte;

		if (pid < 0)
			return 1;
		if (pid > 0)
			continue;
		close(gate[1]);
		if (read(gate[0], &byte, 1) < 0) /* the end of the pipe is the signal */
			_exit(1);
		_exit(bootstrap_only ? start_bootstrap(s, conf, r, &s->done_ns[r]) : start_endpoint(conf, r, &s->done_ns[r]));
	}
	usleep(1000 * (useconds_t)(200 + ranks / 2)); /* until all have come to the gate */
	s->began_ns = clock_now_ns();
	close(gate[1]);
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

static int start_round(int ranks, int bootstrap_only, int nodes, int port)
{
	size_t bytes = sizeof(struct start) + (size_t)ranks * sizeof(int64_t);
	struct start *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char conf[64];
	int gate[2], failed;
	int64_t last = 0, ended;

	if (s == MAP_FAILED || pipe(gate) < 0 || start_conf(conf, sizeof(conf), ranks, port) < 0) {
		perror("bench_start");
		return 1;
	}
	s->ranks = ranks;
	s->nodes = nodes;
	s->port = port;
	failed = start_fork(s, conf, ranks, bootstrap_only, gate);
	ended = clock_now_ns();
	for (int r = 0; r < ranks; r++)
		last = s->done_ns[r] > last ? s->done_ns[r] : last;
	printf("%s %d ranks: started %.1f ms, ended %.1f ms%s\n", bootstrap_only ? "bootstrap" : "ibvx", ranks,
	       (double)(last - s->began_ns) / 1e6, (double)(ended - s->began_ns) / 1e6, failed ? " (failed)" : "");
	fflush(stdout);
	close(gate[0]);
	unlink(conf);
	munmap(s, bytes);
	return failed;
}

int main(int argc, char **argv)
{
	int at = 1, bootstrap_only = 0, nodes = 0, failed = 0, ranks, rounds;

	if (at < argc && strcmp(argv[at], "--bootstrap") == 0) {
		bootstrap_only = 1;
		at++;
	}
	if (bootstrap_only && at + 1 < argc && strcmp(argv[at], "--nodes") == 0) {
		nodes = atoi(argv[at + 1]);
		at += 2;
	}
	ranks = at < argc ? atoi(argv[at]) : 0;
	rounds = at + 1 < argc ? atoi(argv[at + 1]) : 1;
	if (ranks < 1 || nodes < 0 || nodes > ranks) {
		fprintf(stderr, "usage: bench_start [--bootstrap [--nodes N]] RANKS [ROUNDS]\n");
		return 2;
	}
	for (int i = 0; i < rounds; i++)
		failed |= start_round(ranks, bootstrap_only, nodes, 21000 + (int)(getpid() % 9000) + i);
	return failed;
}
