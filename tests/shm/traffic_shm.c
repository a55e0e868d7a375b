/* SPDX-License-Identifier: MIT */
/*
 * traffic_shm: the random traffic of tests/proto, between processes over shared memory.
 *
 *   traffic-shm [--ranks N] [--messages TOTAL] [--seed N]
 *
 * Runs jobs of different shapes until the total is reached; each checks every message.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job.h"
#include "proto/traffic.h"

#define BARRIER_CONTEXT 0x7ffffff1
#define STUCK_S 60

struct shape {
	struct traffic_config cfg;
	char psl[32], credit_window[32];
	const char *settings[10]; /* ends with NULL */
	char replay[160];
};

static void fail_if(const struct shape *s, int err, const char *what)
{
	if (err < 0)
		traffic_fail(&s->cfg, "%s: %s", what, ibvx_error());
}

/* Dissemination: in log2(N) rounds everybody has heard of everybody. */
static void barrier(const struct shape *s, struct ibvx *ep, int rank)
{
	struct ibvx_sbuf out = {0};
	struct ibvx_rbuf in = {0};

	for (int step = 1; step < s->cfg.ranks; step *= 2) {
		ibvx_req send, recv;

		fail_if(s, ibvx_irecv(ep, &in, (rank + s->cfg.ranks - step) % s->cfg.ranks, step, BARRIER_CONTEXT, &recv), "barrier");
		fail_if(s, ibvx_isend(ep, &out, (rank + step) % s->cfg.ranks, step, BARRIER_CONTEXT, &send), "barrier");
		fail_if(s, ibvx_wait(ep, &recv, NULL), "barrier");
		fail_if(s, ibvx_wait(ep, &send, NULL), "barrier");
	}
}

static void *actor_main(void *arg)
{
	struct actor *a = arg;

	while (!actor_step(a))
		if (a->idle > 2)
			sched_yield();
	return NULL;
}

struct watch {
	struct traffic_rank *t;
	atomic_bool stop;
};

static void *watch_main(void *arg)
{
	struct watch *w = arg;
	unsigned long last = 0;
	time_t since = time(NULL);

	while (!atomic_load(&w->stop)) {
		unsigned long now = 0;

		usleep(20000);
		for (int i = 0; i < w->t->actor_count; i++)
			now += atomic_load(&w->t->actors[i].successes);
		if (now != last)
			since = time(NULL);
		last = now;
		if (time(NULL) - since > STUCK_S) {
			traffic_rank_print(w->t);
			traffic_fail(w->t->cfg, "rank %d: no progress for %d s", w->t->rank, STUCK_S);
		}
	}
	return NULL;
}

static int rank_run(struct ibvx **ep, int rank, void *arg)
{
	struct shape *s = arg;
	struct watch w = {.t = traffic_rank_new(&s->cfg, *ep, rank)};
	pthread_t watcher, threads[2 * TRAFFIC_CHANNELS_MAX];

	if (!w.t || pthread_create(&watcher, NULL, watch_main, &w))
		return 5;
	for (int round = 0; round < s->cfg.rounds; round++) {
		traffic_rank_begin(w.t, round);
		barrier(s, *ep, rank);
		for (int i = 1; i < w.t->actor_count; i++)
			if (pthread_create(&threads[i], NULL, actor_main, &w.t->actors[i]))
				return 5;
		actor_main(&w.t->actors[0]);
		for (int i = 1; i < w.t->actor_count; i++)
			pthread_join(threads[i], NULL);
		/* everybody has everything: whatever is still here is one too many */
		barrier(s, *ep, rank);
		traffic_rank_check(w.t);
		barrier(s, *ep, rank);
	}
	atomic_store(&w.stop, true);
	pthread_join(watcher, NULL);
	if (ibvx_close(*ep)) {
		fprintf(stderr, "rank %d: close: %s\n", rank, ibvx_error());
		return 4;
	}
	*ep = NULL;
	traffic_rank_free(w.t);
	return 0;
}

/* Rings that are always full, waiting that is always asleep, a thread that polls for the others. */
static void shape_draw_waiting(struct shape *s, struct rng *r)
{
	int n = 3;

	if (rng_percent(r, 40)) {
		s->settings[n++] = "shm_slots=16";
		s->settings[n++] = "shm_ring=16k";
		s->settings[n++] = "shm_chunk=1k";
	}
	if (rng_percent(r, 30)) {
		s->settings[n++] = "spin_us=0";
		s->settings[n++] = "yield_us=0";
	}
	if (rng_percent(r, 30))
		s->settings[n++] = rng_percent(r, 70) ? "shm_stores=streaming" : "shm_stores=cached";
	if (rng_percent(r, 20))
		s->settings[n] = "progress_thread=1";
}

static void shape_draw(struct shape *s, uint64_t seed, int ranks, unsigned long left)
{
	static const size_t psls[] = {0, 100, 4096, 16384, 131072};
	static const size_t credit_windows[] = {65536, 262144, 4194304};
	struct rng r = rng_seed(seed, 31);
	size_t psl = psls[rng_below(&r, 5)], credit_window = credit_windows[rng_below(&r, 3)];
	unsigned long per_message;

	memset(s, 0, sizeof(*s));
	s->cfg.seed = seed;
	traffic_config_random(&s->cfg, seed, ranks, 100);
	s->cfg.blocking = true;
	s->cfg.halves = rng_percent(&r, 40);
	if (s->cfg.channels > 2)
		s->cfg.channels = 2;
	s->cfg.shared = s->cfg.shared && s->cfg.channels > 1;
	s->cfg.messages = s->cfg.size_max > 100000 ? 60 : 400;
	per_message = (unsigned long)ranks * (unsigned long)s->cfg.channels * s->cfg.messages;
	s->cfg.rounds = s->cfg.size_max > 100000 ? 3 : s->cfg.size_max > 20000 ? 10 : 40;
	while (s->cfg.rounds > 1 && per_message * (unsigned long)s->cfg.rounds > left + per_message)
		s->cfg.rounds--;
	memcpy(s->cfg.edges, ((size_t[TRAFFIC_EDGES]){psl, 32, 24, 224, credit_window / 4, 16384, 8192, 65536}), sizeof(s->cfg.edges));
	snprintf(s->psl, sizeof(s->psl), "psl=%zu", psl);
	snprintf(s->credit_window, sizeof(s->credit_window), "eager_window=%zu", credit_window);
	s->settings[0] = s->psl;
	s->settings[1] = s->credit_window;
	s->settings[2] = rng_percent(&r, 30) ? "cma=always" : rng_percent(&r, 30) ? "cma=never" : "cma=auto";
	shape_draw_waiting(s, &r);
	s->cfg.replay = s->replay;
	snprintf(s->replay, sizeof(s->replay), "traffic-shm --seed %llu --ranks %d --messages %lu", (unsigned long long)seed, ranks, left);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"seed", required_argument, NULL, 's'},
		{"ranks", required_argument, NULL, 'r'},
		{"messages", required_argument, NULL, 'm'},
		{NULL, 0, NULL, 0},
	};
	unsigned long total = 50000, done = 0;
	uint64_t seed = 1;
	int ranks = 4, c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		switch (c) {
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'r': ranks = atoi(optarg); break;
		case 'm': total = strtoul(optarg, NULL, 0); break;
		default: fprintf(stderr, "usage: %s [--seed N] [--ranks N] [--messages TOTAL]\n", argv[0]); return 2;
		}
	if (ranks < 1 || ranks > JOB_RANKS_MAX)
		return 2;
	for (; done < total; seed++) {
		struct shape s;
		struct job j;

		shape_draw(&s, seed, ranks, total - done);
		if (job_start(&j, ranks, s.settings, rank_run, &s) || job_wait(&j, 300)) {
			fprintf(stderr, "FAILED: replay with %s\n", s.replay);
			return 1;
		}
		done += (unsigned long)ranks * (unsigned long)s.cfg.channels * s.cfg.messages * (unsigned long)s.cfg.rounds;
	}
	printf("%lu messages between %d processes: good\n", done, ranks);
	return 0;
}
