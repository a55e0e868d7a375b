/* SPDX-License-Identifier: MIT */
/*
 * traffic: random traffic between ranks of this process over the fake transport.
 *
 *   proto-traffic [--seed N] [--seeds COUNT] [--ranks N] [--messages N] [--threads] [--verbose]
 *
 * Without --threads one thread steps everything, and a seed brings the very same run again.  With --threads every
 * actor has a thread, calls block and sleep, and the seed brings the same traffic in another interleaving.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "traffic.h"
#include "world.h"

#define STUCK_S 60
#define STUCK_STEPS 20000000ul

struct options {
	uint64_t seed;
	unsigned seeds, messages;
	int ranks;
	bool threads, verbose;
};

struct run {
	const struct options *o;
	struct traffic_config cfg;
	struct world world;
	struct world_config world_cfg;
	struct traffic_rank *rank[WORLD_RANKS_MAX];
	char replay[200];
	char settings[4][64];
	const char *pairs[5];
	atomic_int running;
};

static void run_configure(struct run *r, uint64_t seed)
{
	static const size_t psls[] = {0, 1, 32, 100, 256, 1000, 4096, 20000, 131072};
	static const size_t credit_windows[] = {65536, 65536, 70000, 131072, 4194304};
	struct rng rng = rng_seed(seed, 3);
	size_t psl = psls[rng_below(&rng, 9)], credit_window = credit_windows[rng_below(&rng, 5)];
	int ranks = r->o->ranks             ? r->o->ranks
		    : rng_percent(&rng, 6)  ? 1
		    : rng_percent(&rng, 80) ? (int)rng_range(&rng, 2, 4)
					    : (int)rng_range(&rng, 5, WORLD_RANKS_MAX);

	traffic_config_random(&r->cfg, seed, ranks, r->o->messages);
	r->world_cfg.net.size = ranks;
	fabric_config_random(&r->world_cfg.net, seed);
	r->cfg.seed = seed;
	r->cfg.replay = r->replay;
	r->cfg.blocking = r->o->threads;
	r->cfg.halves = r->o->threads && rng_percent(&rng, 50);
	if (r->cfg.halves && r->cfg.channels > 2)
		r->cfg.channels = 2;
	if (r->o->threads && rng_percent(&rng, 20))
		r->cfg.channels = 1;
	r->cfg.shared = r->cfg.shared && r->cfg.channels > 1;
	memcpy(r->cfg.edges, ((size_t[TRAFFIC_EDGES]){psl, 32, 256, credit_window / 4, credit_window / 2, 4096, 8192, 65536}),
	       sizeof(r->cfg.edges));
	snprintf(r->settings[0], sizeof(r->settings[0]), "psl=%zu", psl);
	snprintf(r->settings[1], sizeof(r->settings[1]), "eager_window=%zu", credit_window);
	snprintf(r->settings[2], sizeof(r->settings[2]), "progress_thread=%d", r->o->threads && rng_percent(&rng, 15));
	snprintf(r->settings[3], sizeof(r->settings[3]), "spin_us=%d", rng_percent(&rng, 50) ? 0 : (int)rng_below(&rng, 30));
	for (int i = 0; i < 4; i++)
		r->pairs[i] = r->settings[i];
	r->world_cfg.settings = r->pairs;
	r->world_cfg.lease_offer_ns = r->o->threads && rng_percent(&rng, 75) ? rng_range(&rng, 1, 3000000) : 0;
	r->world_cfg.ops = rng_percent(&rng, 25) ? &fake_plain_ops : &fake_ops;
	snprintf(r->replay, sizeof(r->replay), "proto-traffic --seed %llu%s --messages %u%s%.0d", (unsigned long long)seed,
		 r->o->threads ? " --threads" : "", r->o->messages, r->o->ranks ? " --ranks " : "", r->o->ranks);
}

static void run_print(struct run *r)
{
	for (int i = 0; i < r->cfg.ranks; i++)
		traffic_rank_print(r->rank[i]);
	fprintf(stderr, "%u packets under way\n", fabric_in_flight(r->world.fabric));
}

static void contract_check(struct run *r)
{
	const char *text;

	if (fabric_violations(r->world.fabric, &text))
		traffic_fail(&r->cfg, "the seam's contract was broken: %s", text);
}

/* All is quiet: what each sender may still send is what its receiver keeps for it (PROTOCOL.md, flow control). */
static void credit_check(struct run *r)
{
	for (int i = 0; i < 2000 || fabric_in_flight(r->world.fabric); i++)
		world_turn(&r->world, 1);
	for (int a = 0; a < r->cfg.ranks; a++)
		for (int b = 0; b < r->cfg.ranks; b++) {
			const struct peer *out = &r->world.ep[a]->peers[b], *in = &r->world.ep[b]->peers[a];
			int64_t there = out->credit + (int64_t)(in->freed + in->pending_credit);

			if (there != out->credit_window + (int64_t)in->emergency)
				traffic_fail(&r->cfg,
					     "rank %d to %d: credit %lld, freed %llu: not credit window %lld + emergency credit %llu", a, b,
					     (long long)out->credit, (unsigned long long)in->freed, (long long)out->credit_window,
					     (unsigned long long)in->emergency);
			if (out->envelope_credit != (int64_t)(in->emergency + in->emergency_repaid))
				traffic_fail(&r->cfg,
					     "rank %d to %d: the sender has %lld bytes of emergency credit, the receiver gave %llu + %llu",
					     a, b, (long long)out->envelope_credit, (unsigned long long)in->emergency,
					     (unsigned long long)in->emergency_repaid);
		}
}

/* One thread, one random actor after the other. */
static void round_stepped(struct run *r)
{
	struct rng rng = rng_seed(r->cfg.seed, 9);
	struct actor *open[WORLD_RANKS_MAX * 2 * TRAFFIC_CHANNELS_MAX];
	unsigned long steps = 0;
	unsigned count = 0;

	for (int i = 0; i < r->cfg.ranks; i++)
		for (int k = 0; k < r->rank[i]->actor_count; k++)
			open[count++] = &r->rank[i]->actors[k];
	while (count) {
		unsigned i = (unsigned)rng_below(&rng, count);
		/* a rank that runs alone for a while brings other orders than strict turns */
		unsigned long burst = rng_percent(&rng, 10) ? rng_below(&rng, 60) : 1;

		while (burst-- && i < count)
			if (actor_step(open[i])) {
				/* a rank that has nothing more to do still answers: its peers may need it */
				world_turn(&r->world, 0);
				open[i] = open[--count];
				break;
			}
		if (steps++ % 16 == 0)
			world_turn(&r->world, 1);
		if (steps > STUCK_STEPS) {
			run_print(r);
			traffic_fail(&r->cfg, "no end after %lu steps", steps);
		}
	}
}

struct runner {
	pthread_t thread;
	struct run *run;
	struct actor *actor;
};

static void *runner_main(void *arg)
{
	struct runner *u = arg;

	while (!actor_step(u->actor))
		if (u->actor->idle > 2)
			sched_yield();
	atomic_fetch_sub(&u->run->running, 1);
	return NULL;
}

static unsigned long successes(struct run *r)
{
	unsigned long sum = 0;

	for (int i = 0; i < r->cfg.ranks; i++)
		for (int k = 0; k < r->rank[i]->actor_count; k++)
			sum += atomic_load(&r->rank[i]->actors[k].successes);
	return sum;
}

/* A rank that is done may have no thread inside: the others must still get their answers, so main turns. */
static void round_threaded(struct run *r)
{
	struct runner runners[WORLD_RANKS_MAX * 2 * TRAFFIC_CHANNELS_MAX];
	unsigned long last = 0;
	time_t since = time(NULL);
	int count = 0;

	atomic_store(&r->running, 0);
	for (int i = 0; i < r->cfg.ranks; i++)
		for (int k = 0; k < r->rank[i]->actor_count; k++) {
			struct runner *u = &runners[count++];

			u->run = r;
			u->actor = &r->rank[i]->actors[k];
			atomic_fetch_add(&r->running, 1);
			if (pthread_create(&u->thread, NULL, runner_main, u))
				traffic_fail(&r->cfg, "no thread");
		}
	while (atomic_load(&r->running)) {
		unsigned long now = successes(r);

		usleep(2000);
		world_turn(&r->world, 0);
		if (now != last)
			since = time(NULL);
		last = now;
		if (time(NULL) - since > STUCK_S) {
			run_print(r);
			traffic_fail(&r->cfg, "no progress for %d s", STUCK_S);
		}
	}
	for (int i = 0; i < count; i++)
		pthread_join(runners[i].thread, NULL);
}

static void run_seed(const struct options *o, uint64_t seed)
{
	struct run *r = calloc(1, sizeof(*r));

	r->o = o;
	run_configure(r, seed);
	if (o->verbose)
		printf("seed %llu: %d ranks, %d channels%s%s, %d rounds of %u, sizes to %zu, %s %s\n", (unsigned long long)seed,
		       r->cfg.ranks, r->cfg.channels, r->cfg.shared ? " shared" : "", r->cfg.halves ? " halved" : "", r->cfg.rounds,
		       r->cfg.messages, r->cfg.size_max, r->settings[0], r->settings[1]);
	fflush(stdout);
	if (world_open(&r->world, &r->world_cfg))
		traffic_fail(&r->cfg, "the world does not open");
	if (o->threads)
		fabric_clock_start(r->world.fabric, 100);
	for (int i = 0; i < r->cfg.ranks; i++)
		r->rank[i] = traffic_rank_new(&r->cfg, r->world.ep[i], i);
	for (int round = 0; round < r->cfg.rounds; round++) {
		for (int i = 0; i < r->cfg.ranks; i++)
			traffic_rank_begin(r->rank[i], round);
		if (o->threads)
			round_threaded(r);
		else
			round_stepped(r);
		for (int i = 0; i < r->cfg.ranks; i++)
			traffic_rank_check(r->rank[i]);
		contract_check(r);
		if (!o->threads)
			credit_check(r);
	}
	if (world_close(&r->world))
		traffic_fail(&r->cfg, "the world does not close");
	for (int i = 0; i < r->cfg.ranks; i++)
		traffic_rank_free(r->rank[i]);
	free(r);
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s [--seed N] [--seeds COUNT] [--ranks 1..%d] [--messages N] [--threads] [--verbose]\n", name,
		WORLD_RANKS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"ranks", required_argument, NULL, 'r'},
		{"messages", required_argument, NULL, 'm'},
		{"threads", no_argument, NULL, 't'},
		{"verbose", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.seed = 1, .seeds = 1, .messages = 60};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		switch (c) {
		case 's': o.seed = strtoull(optarg, NULL, 0); break;
		case 'n': o.seeds = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'r': o.ranks = atoi(optarg); break;
		case 'm': o.messages = (unsigned)strtoul(optarg, NULL, 0); break;
		case 't': o.threads = true; break;
		case 'v': o.verbose = true; break;
		default: return usage(argv[0]);
		}
	if (optind != argc || o.ranks < 0 || o.ranks > WORLD_RANKS_MAX || !o.messages)
		return usage(argv[0]);
	for (unsigned i = 0; i < o.seeds; i++)
		run_seed(&o, o.seed + i);
	printf("%u seeds from %llu: good\n", o.seeds, (unsigned long long)o.seed);
	return 0;
}
