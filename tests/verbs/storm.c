/* SPDX-License-Identifier: MIT */
/*
 * Connection storms: all ranks of a job of 1,024 connect to one, one connects to all, all to all.
 *
 *   verbs-storm [--seed N] [--seeds COUNT] [--only TEST]
 *
 * The seed decides which rank acts when, how late and in what order events come, and which attempts fail.  The waits between
 * repeated attempts take real time, so that a seed brings the same storm again, but not to the last step.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "crowd.h"
#include "transport/verbs/route.h"

#define STORM_RANKS 1024
#define STORM_PACKETS 6
/* Rounds of a millisecond in which nothing happens: longer than any wait between two attempts. */
#define STORM_IDLE 20000
/* Ranks that are transports, all in this process. */
#define STORM_SIDES 32
#define STORM_SIDES_TCP 12

static uint64_t first_seed = 1;
static unsigned seeds = 1;

struct counted {
	uint64_t queue_pairs, buffer_bytes;
};

static void count(void *arg, const char *name, uint64_t value)
{
	struct counted *c = arg;

	if (strcmp(name, "verbs_queue_pairs") == 0)
		c->queue_pairs = value;
	if (strcmp(name, "verbs_buffer_bytes") == 0)
		c->buffer_bytes = value;
}

static void expect_counters(const struct side *s, int connections)
{
	struct counted c = {0, 0};

	OPS.counters(s->t, -1, count, &c);
	assert_int_equal(c.queue_pairs, connections);
	assert_in_range(c.buffer_bytes, 1, 64u << 20);
}

static void expect_no_end(const struct side *s)
{
	if (s->downs > 0)
		print_error("%s\n", s->why);
	assert_int_equal(s->downs, 0);
}

/* The next packet for this rank. False: there is no room, or no connection yet. */
static bool send_next(struct side *s, int to, uint64_t *sent)
{
	uint64_t value = *sent + 1;
	struct transport_slot slot;
	size_t len = (size_t)(value * 11 % 120);
	int rc = OPS.reserve(s->t, to, len, &slot);

	if (rc == -EAGAIN)
		return false;
	assert_int_equal(rc, 0);
	*slot.hdr = (struct wire_hdr){.kind = WIRE_CTS, .len = (uint32_t)len, .ctl = {.value = value}};
	for (size_t i = 0; i < len; i++)
		((unsigned char *)slot.payload)[i] = pair_byte(value, i);
	OPS.commit(s->t, to, &slot);
	*sent = value;
	return true;
}

/* --- one transport, 1,023 ranks around it --- */

struct storm {
	struct settings *settings;
	struct log log;
	struct side side;
	struct crowd crowd;
	uint64_t *sent; /* [size], by the transport */
	int idle;
};

static void storm_open(struct storm *s, uint64_t seed, int size, int me, int backlog)
{
	adapter_reset();
	adapter_faults.backlog = backlog;
	*s = (struct storm){.settings = settings_new(), .log = {.level = LOG_OFF, .fd = -1}};
	s->sent = calloc((size_t)size, sizeof(*s->sent));
	adapter_faults.iwarp = seed % 4 == 3;
	crowd_open(&s->crowd, &s->side, size, me, seed, s->settings, &s->log);
}

static void storm_close(struct storm *s)
{
	struct crowd *c = &s->crowd;

	assert_true(s->side.in_order);
	assert_true(s->side.whole);
	crowd_close(c);
	settings_free(s->settings);
	free(s->sent);
	free(s);
	assert_int_equal(adapter_live(), 0);
}

/* A few steps of everybody. */
static void storm_step(struct storm *s)
{
	struct crowd *c = &s->crowd;
	uint64_t before = c->actions;
	int events;

	for (int i = 0; i < 100; i++) {
		int r = crowd_draw(c);

		crowd_step(c);
		if (s->sent[r] < c->ranks[r].to_get && !(s->side.downs && c->ranks[r].never))
			send_next(&s->side, r, &s->sent[r]);
	}
	events = adapter_deliver((int)rng_below(&c->rng, 50));
	events += side_step(&s->side);
	if (events > 0 || c->actions != before) {
		s->idle = 0;
		return;
	}
	assert_in_range(s->idle++, 0, STORM_IDLE);
	usleep(1000);
}

static void storm_run(struct storm *s)
{
	while (!crowd_done(&s->crowd)) {
		storm_step(s);
		expect_no_end(&s->side);
	}
}

/* Of the other ranks so many percent call, and so many percent are sent something at first, all in the end. */
static void storm(uint64_t seed, int me, unsigned call_percent, unsigned send_percent, int backlog, struct adapter_weather weather)
{
	struct storm *s = calloc(1, sizeof(*s));
	struct crowd *c = &s->crowd;

	storm_open(s, seed, STORM_RANKS, me, backlog);
	adapter_set_weather(weather);
	c->trouble_percent = weather.trouble_percent;
	c->most = 2;
	for (int r = 0; r < STORM_RANKS; r++) {
		struct crowd_rank *f = &c->ranks[r];

		f->calls = rng_percent(&c->rng, call_percent);
		if (rng_percent(&c->rng, send_percent))
			f->to_get = STORM_PACKETS;
		f->to_send = f->calls || f->to_get ? STORM_PACKETS : 0;
	}
	storm_run(s);
	for (int r = 0; r < STORM_RANKS; r++)
		c->ranks[r].to_send = c->ranks[r].to_get = 2 * STORM_PACKETS;
	storm_run(s);
	for (int r = 0; r < STORM_RANKS; r++)
		assert_int_equal(s->side.from[r], r == me ? 0 : 2 * STORM_PACKETS);
	assert_int_equal(s->side.packets, 2 * STORM_PACKETS * (STORM_RANKS - 1));
	expect_counters(&s->side, STORM_RANKS - 1);
	assert_in_range(adapter_requests, 0, STORM_RANKS - 1 + c->troubles + adapter_troubles);
	print_message("seed %llu, rank %d: %u requests, %u crossed, %u found the backlog full, %u went wrong\n", (unsigned long long)seed,
		      me, adapter_requests, c->crossed, c->full, c->troubles + adapter_troubles);
	storm_close(s);
}

static int storm_rank(uint64_t seed)
{
	static const int ranks[] = {0, STORM_RANKS - 1, STORM_RANKS / 2};

	return ranks[seed % 3 == 1 ? 0 : seed % 3 == 2 ? 1 : 2];
}

/* All at once, and the transport sends to some of them at the same moment. */
static void test_all_call_one(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		storm(seed, storm_rank(seed), 100, 40, 0, (struct adapter_weather){.seed = seed, .late = true});
}

/* The monitor does not keep up with a short backlog, and requests are given up before and after they are accepted. */
static void test_all_call_one_again(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		storm(seed, storm_rank(seed + 1), 100, 40, 16,
		      (struct adapter_weather){.seed = seed, .late = true, .trouble_percent = 20, .most = 1});
}

static void test_one_calls_all(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		storm(seed, storm_rank(seed), 0, 100, 0, (struct adapter_weather){.seed = seed, .late = true});
}

static void test_one_calls_all_again(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		storm(seed, storm_rank(seed + 1), 0, 100, 0,
		      (struct adapter_weather){.seed = seed, .late = true, .trouble_percent = 50, .most = 1});
}

/* Two ranks never answer: attempts have an end, and the others are connected. */
static void test_two_never_answer(void **state)
{
	struct storm *s = calloc(1, sizeof(*s));
	struct crowd *c = &s->crowd;

	(void)state;
	storm_open(s, first_seed, STORM_RANKS, 0, 0);
	for (int r = 1; r < 20; r++) {
		c->ranks[r].to_get = STORM_PACKETS;
		c->ranks[r].never = r == 6 || r == 7;
	}
	while (s->side.downs < 2 || !crowd_done(c))
		storm_step(s);
	while (side_step(&s->side) > 0) /* ends them */
		;
	assert_int_equal(s->side.downs, 2);
	assert_int_equal(c->ranks[6].troubles, 1 + 8);
	assert_int_equal(c->ranks[7].troubles, 1 + 3);
	assert_int_equal(adapter_requests, 17 + 9 + 4);
	assert_non_null(strstr(s->side.why, "rank 6 refused")); /* the silent one has ended before */
	expect_counters(&s->side, 17);
	storm_close(s);
}

/* The lower rank may find our request after we have given it up, and then closes its own: that one must not be accepted meanwhile. */
static void test_unanswered_request_stands(void **state)
{
	struct storm *s = calloc(1, sizeof(*s));
	struct crowd_rank *f;

	(void)state;
	storm_open(s, first_seed, 3, 2, 0);
	f = &s->crowd.ranks[1];
	f->to_get = STORM_PACKETS;
	f->never = true;
	while (f->troubles == 0)
		storm_step(s);
	while (side_step(&s->side) > 0)
		;
	f->never = false;
	f->calls = true;
	storm_run(s);
	assert_int_equal(s->crowd.crossed, 1);
	assert_int_equal(adapter_requests, f->troubles + 1);
	storm_close(s);
}

/* --- all of them transports --- */

struct sides {
	struct settings *settings;
	struct log log;
	struct side *side;
	uint64_t *sent; /* [count * count] */
	int count;
	struct rng rng;
};

static void sides_open(struct sides *all, int count, uint64_t seed, const char *setting)
{
	struct transport_peer_info *info = calloc((size_t)count, sizeof(*info));
	struct route_blob *blobs = calloc((size_t)count, sizeof(*blobs));

	adapter_reset();
	*all = (struct sides){.settings = settings_new(), .log = {.level = LOG_OFF, .fd = -1}, .count = count, .rng = rng_seed(seed, 3)};
	if (setting)
		assert_int_equal(settings_set_pair(all->settings, SETTINGS_CALLER, setting, "test"), 0);
	all->side = calloc((size_t)count, sizeof(*all->side));
	all->sent = calloc((size_t)(count * count), sizeof(*all->sent));
	for (int r = 0; r < count; r++) {
		struct side *s = &all->side[r];
		int bytes = side_open(s, r, count, all->settings, &all->log, &blobs[r], sizeof(blobs[r]));

		assert_true(bytes > 0);
		s->from = calloc((size_t)count, sizeof(*s->from));
		info[r] = (struct transport_peer_info){.address = &blobs[r], .address_bytes = (size_t)bytes};
	}
	for (int r = 0; r < count; r++)
		assert_int_equal(OPS.attach(all->side[r].t, info), 0);
	adapter_locked = true;
	free(info);
	free(blobs);
}

static void sides_close(struct sides *all)
{
	for (int r = 0; r < all->count; r++) {
		side_close(&all->side[r]);
		free(all->side[r].from);
	}
	adapter_locked = false;
	settings_free(all->settings);
	free(all->side);
	free(all->sent);
	assert_int_equal(adapter_live(), 0);
}

static bool sides_done(const struct sides *all)
{
	for (int r = 0; r < all->count; r++) {
		if (all->side[r].packets < STORM_PACKETS * (all->count - 1))
			return false;
	}
	return true;
}

/* A random side sends to a random other one, and lives on for a moment. */
static int sides_step(struct sides *all)
{
	int from = (int)rng_below(&all->rng, (uint64_t)all->count), to = (int)rng_below(&all->rng, (uint64_t)all->count);
	uint64_t *sent = &all->sent[from * all->count + to];
	struct side *next = &all->side[rng_below(&all->rng, (uint64_t)all->count)];
	int events = 0;

	if (from != to && *sent < STORM_PACKETS)
		events = send_next(&all->side[from], to, sent);
	events += adapter_deliver((int)rng_below(&all->rng, 8));
	events += side_step(next);
	expect_no_end(next);
	return events;
}

static void all_call_all(int count, uint64_t seed, const char *setting, struct adapter_weather weather)
{
	struct sides all;
	int idle = 0, pairs = count * (count - 1);

	sides_open(&all, count, seed, setting);
	adapter_faults.iwarp = !setting && seed % 4 == 3;
	adapter_set_weather(weather);
	while (!sides_done(&all)) {
		int events = 0;

		for (int i = 0; i < 20 * count; i++)
			events += sides_step(&all);
		assert_in_range(idle, 0, STORM_IDLE);
		idle = events > 0 ? 0 : idle + 1;
		if (idle)
			usleep(1000);
	}
	for (int r = 0; r < count; r++) {
		const struct side *s = &all.side[r];

		expect_good(s, STORM_PACKETS * (count - 1));
		for (int i = 0; i < count; i++)
			assert_int_equal(s->from[i], i == r ? 0 : STORM_PACKETS);
		expect_counters(s, count - 1);
	}
	assert_in_range(adapter_requests, 0, (unsigned)pairs + 2 * adapter_troubles);
	print_message("seed %llu, %d transports: %u requests for %d pairs, %u went wrong\n", (unsigned long long)seed, count,
		      adapter_requests, pairs / 2, adapter_troubles);
	sides_close(&all);
}

static void test_all_call_all(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		all_call_all(STORM_SIDES, seed, NULL, (struct adapter_weather){.seed = seed, .late = true});
}

static void test_all_call_all_again(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		all_call_all(STORM_SIDES, seed, NULL,
			     (struct adapter_weather){.seed = seed, .late = true, .trouble_percent = 30, .most = 3});
}

static void test_all_call_all_by_tcp(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
		all_call_all(STORM_SIDES_TCP, seed, "verbs_connect=tcp", (struct adapter_weather){.seed = seed});
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"seed", required_argument, NULL, 's'},
					      {"seeds", required_argument, NULL, 'n'},
					      {"only", required_argument, NULL, 'o'},
					      {NULL, 0, NULL, 0}};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_call_one),        cmocka_unit_test(test_all_call_one_again),
		cmocka_unit_test(test_one_calls_all),       cmocka_unit_test(test_one_calls_all_again),
		cmocka_unit_test(test_two_never_answer),    cmocka_unit_test(test_unanswered_request_stands),
		cmocka_unit_test(test_all_call_all),        cmocka_unit_test(test_all_call_all_again),
		cmocka_unit_test(test_all_call_all_by_tcp),
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 's') {
			first_seed = strtoull(optarg, NULL, 0);
		} else if (c == 'n') {
			seeds = (unsigned)strtoul(optarg, NULL, 0);
		} else if (c == 'o') {
			cmocka_set_test_filter(optarg);
		} else {
			fprintf(stderr, "usage: %s [--seed N] [--seeds COUNT] [--only TEST]\n", argv[0]);
			return 2;
		}
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
