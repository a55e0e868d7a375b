/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "traffic.h"
#include "vm_job.h"

#define TRAFFIC_RUNNERS (2 * TRAFFIC_CHANNELS_MAX)
/* An emulated guest may be slow; one that does nothing for so long hangs. */
#define TRAFFIC_STUCK_S 100

/* Many small and few large messages: their shares (of 1000) and largest sizes. */
static const struct {
	unsigned share;
	size_t size_max;
	unsigned messages, ops;
} classes[] = {
	{650, 300, 400, 60}, {290, 10 << 10, 400, 30}, {55, 70 << 10, 100, 12}, {4, 1 << 20, 20, 6}, {1, 8 << 20, 5, 4},
};

struct traffic_watch {
	const struct traffic_rank *t;
	struct ibvx *ep;
	atomic_bool stop;
};

/* What everybody is at, before a hang is ended: the counters report what the transport waits for. */
static void traffic_stuck(const struct traffic_watch *w)
{
	struct ibvx_counter c[64];

	traffic_rank_print(w->t);
	for (int r = -1; r < w->t->cfg->ranks; r++) {
		int n = ibvx_counters(w->ep, r, c, 64);

		fprintf(stderr, "rank %d: counters of %d:", w->t->rank, r);
		for (int i = 0; i < n && i < 64; i++)
			if (c[i].value)
				fprintf(stderr, " %s=%llu", c[i].name, (unsigned long long)c[i].value);
		fprintf(stderr, "\n");
	}
	traffic_fail(w->t->cfg, "rank %d: no progress for %d s", w->t->rank, TRAFFIC_STUCK_S);
}

static void *traffic_watch_main(void *arg)
{
	struct traffic_watch *w = arg;
	unsigned long last = 0;
	time_t since = time(NULL);

	while (!atomic_load(&w->stop)) {
		unsigned long now = 0;

		usleep(50000);
		for (int i = 0; i < w->t->actor_count; i++)
			now += atomic_load(&w->t->actors[i].successes);
		if (now != last)
			since = time(NULL);
		last = now;
		if (time(NULL) - since > TRAFFIC_STUCK_S)
			traffic_stuck(w);
	}
	return NULL;
}

static void *traffic_actor(void *arg)
{
	struct actor *a = arg;

	while (!actor_step(a))
		if (a->idle > 2)
			sched_yield();
	return NULL;
}

static void traffic_round(struct traffic_rank *t, bool threads)
{
	pthread_t thread[TRAFFIC_RUNNERS];
	bool done[TRAFFIC_RUNNERS] = {false};
	int left = t->actor_count;

	for (int i = 0; threads && i < t->actor_count; i++)
		if (pthread_create(&thread[i], NULL, traffic_actor, &t->actors[i]))
			job_fail(t->rank, "pthread_create");
	for (int i = 0; threads && i < t->actor_count; i++)
		pthread_join(thread[i], NULL);
	while (!threads && left > 0) {
		for (int i = 0; i < t->actor_count; i++) {
			if (done[i] || !actor_step(&t->actors[i]))
				continue;
			done[i] = true;
			left--;
		}
	}
}

static struct traffic_rank *traffic_run(const struct traffic_config *cfg, struct ibvx *ep, int rank)
{
	struct traffic_rank *t = traffic_rank_new(cfg, ep, rank);
	struct traffic_watch w = {.t = t, .ep = ep};
	pthread_t watcher;

	if (!t)
		job_fail(rank, "no memory");
	if (pthread_create(&watcher, NULL, traffic_watch_main, &w))
		job_fail(rank, "pthread_create");
	for (int round = 0; round < cfg->rounds; round++) {
		traffic_rank_begin(t, round);
		job_barrier(ep, rank, cfg->ranks);
		traffic_round(t, cfg->blocking);
		job_barrier(ep, rank, cfg->ranks);
		traffic_rank_check(t);
		job_barrier(ep, rank, cfg->ranks);
	}
	atomic_store(&w.stop, true);
	pthread_join(watcher, NULL);
	return t;
}

static void traffic_edges(struct traffic_config *cfg)
{
	/* payload of a packet, inline, the protocol switch limit, the least that is read */
	memcpy(cfg->edges, ((size_t[TRAFFIC_EDGES]){8160, 32, 256, 131072, 32768, 480, 16320, 65536}), sizeof(cfg->edges));
}

void *traffic_job_random(const struct job *j, struct ibvx *ep, int rank, uint64_t seed)
{
	static struct traffic_config cfg;
	static char replay[160];

	traffic_config_random(&cfg, seed, j->ranks, j->messages);
	cfg.seed = seed;
	cfg.blocking = j->threads;
	cfg.replay = replay;
	traffic_edges(&cfg);
	snprintf(replay, sizeof(replay), "vm-job --ranks %d --seed %llu --messages %u%s", j->ranks, (unsigned long long)seed, j->messages,
		 j->threads ? " --threads" : "");
	return traffic_run(&cfg, ep, rank);
}

int traffic_job_classes(void)
{
	return (int)(sizeof(classes) / sizeof(classes[0]));
}

void *traffic_job_class(const struct job *j, struct ibvx *ep, int rank, int class)
{
	static struct traffic_config cfg;
	static char replay[160];
	unsigned long want = j->total * classes[class].share / 1000, one;

	cfg = (struct traffic_config){.seed = j->seed + (uint64_t) class,
				      .ranks = j->ranks,
				      .channels = 2,
				      .rounds = 1,
				      .tags = 5,
				      .messages = classes[class].messages,
				      .ops = classes[class].ops,
				      .size_max = classes[class].size_max,
				      .blocking = true,
				      .halves = true,
				      .replay = replay};
	one = (unsigned long)(cfg.ranks * cfg.channels) * cfg.messages;
	if (want > one)
		cfg.rounds = (int)((want + one - 1) / one);
	else
		cfg.messages = (unsigned)(want / (unsigned long)(cfg.ranks * cfg.channels)) + 1;
	traffic_edges(&cfg);
	snprintf(replay, sizeof(replay), "vm-job --ranks %d --seed %llu --total %lu", j->ranks, (unsigned long long)j->seed, j->total);
	if (rank == 0)
		printf("%lu messages of at most %zu bytes\n", (unsigned long)(cfg.ranks * cfg.channels * cfg.rounds) * cfg.messages,
		       cfg.size_max);
	return traffic_run(&cfg, ep, rank);
}

void traffic_job_free(void *kept)
{
	traffic_rank_free(kept);
}
