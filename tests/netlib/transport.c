/* SPDX-License-Identifier: MIT */
/* A transport over a double of its library: connecting, order, bounded memory, silence, and every method of failing. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "pair.h"

static int opening_calls(void)
{
	int n = 0;

	while (double_opening[n])
		n++;
	return n;
}

static void test_connects_when_first_used(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_true(OPS.reaches(p.side[0].t, 1));
	assert_false(OPS.reaches(p.side[0].t, 0));
	pair_run(&p);
	assert_int_equal(double_faults.calls, 2 * opening_calls()); /* nobody has talked: no endpoint */
	pair_connect(&p);
	assert_int_equal(double_faults.calls, 2 * (opening_calls() + 1));
	for (uint64_t v = 2; v < 200; v++) {
		size_t len = v * 997 % (OPS.payload_max(p.side[0].t, 1) + 1);

		assert_int_equal(pair_send(&p, 0, v, len), 0);
		assert_int_equal(pair_send(&p, 1, v, v % 40), 0);
		if (v % 3 == 0)
			pair_run(&p);
	}
	pair_run(&p);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(p.side[r].packets, 199);
		assert_true(p.side[r].in_order && p.side[r].whole);
		assert_int_equal(p.side[r].downs, 0);
	}
	pair_close(&p);
}

static void test_early_packets_wait(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	double_faults.shuffle = true;
	for (uint64_t v = 2; v < 2000; v++) {
		assert_int_equal(pair_send(&p, 0, v, v % 700), 0);
		assert_int_equal(pair_send(&p, 1, v, v * 31 % 60000), 0);
		if (v % 16 == 0)
			pair_run(&p);
	}
	pair_run(&p);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(p.side[r].packets, 1999);
		assert_true(p.side[r].in_order && p.side[r].whole);
		assert_true(pair_peer(&p, r)->order.early_count > 100);
		assert_int_equal(pair_peer(&p, r)->order.held_bytes, 0);
	}
	pair_close(&p);
}

/* A library that keeps packets does not make us keep more of them, and room comes back in whatever order it gives them back. */
static void test_bounded_memory(void **state)
{
	int large = 0, small = 0;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	double_faults.hold = true;
	while (pair_send(&p, 0, 2, PAYLOAD / 2) == 0)
		large++;
	while (pair_send(&p, 0, 2, 0) == 0) /* credit and control go on for a while */
		small++;
	assert_int_equal(large, netlib_of(p.side[0].t)->large_slots);
	assert_int_equal(small, NETLIB_SMALL_SLOTS);
	double_faults.hold = false;
	double_release();
	pair_run(&p);
	assert_int_equal(pair_send(&p, 0, 3, PAYLOAD / 2), 0);
	assert_int_equal(pair_send(&p, 0, 3, 0), 0);
	assert_int_equal(netlib_of(p.side[0].t)->slot_count[1], netlib_of(p.side[0].t)->large_slots);
	pair_close(&p);
}

/* drained() waits for the acknowledgement of the other rank, not for the library. */
static void test_drained(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_true(OPS.drained(p.side[0].t));
	pair_connect(&p);
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	assert_false(OPS.drained(p.side[0].t));
	for (int i = 0; i < 10; i++)
		assert_int_equal(side_step(&p.side[0]), 0); /* nobody has taken it in */
	assert_false(OPS.drained(p.side[0].t));
	pair_run(&p);
	assert_true(OPS.drained(p.side[0].t));
	pair_close(&p);
}

static void lose_rank_0(struct pair *p, int status)
{
	double_fail(0, status);
	if (!double_reports_ends)
		assert_int_equal(pair_send(p, 1, 2, 8), 0);
}

static void test_leaving_is_no_death(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	OPS.leave(p.side[0].t);
	assert_true(OPS.awaits(p.side[1].t, 0));
	lose_rank_0(&p, double_losses[0].status);
	pair_run(&p);
	assert_int_equal(p.side[1].downs, 1);
	assert_int_equal(p.side[1].down_error, -EPIPE);
	assert_false(OPS.awaits(p.side[1].t, 0));
	pair_close(&p);
}

/* What the dead rank had sent comes first; the control tree has some time for its own report. */
static void test_lost_connection(void **state)
{
	(void)state;
	for (unsigned i = 0; double_losses[i].status; i++) {
		struct pair p;

		double_reset();
		double_faults.slow_close = i % 2;
		pair_open(&p, NULL);
		pair_connect(&p);
		for (uint64_t v = 2; v < 12; v++)
			assert_int_equal(pair_send(&p, 0, v, 8), 0);
		lose_rank_0(&p, double_losses[i].status);
		pair_run(&p);
		assert_int_equal(p.side[1].packets, 11);
		assert_int_equal(p.side[1].downs, 0);
		assert_int_equal(pair_send(&p, 1, 2, 8), -EAGAIN);
		for (unsigned n = 0; n < NETLIB_GRACE; n++)
			side_tick(&p.side[1]);
		pair_run(&p);
		assert_int_equal(p.side[1].downs, 1);
		assert_int_equal(p.side[1].down_error, double_losses[i].code);
		assert_non_null(strstr(p.side[1].why, "rank 0"));
		assert_int_equal(pair_send(&p, 1, 2, 8), -ECONNRESET);
		pair_run(&p);
		assert_int_equal(p.side[1].downs, 1);
		pair_close(&p);
		assert_int_equal(double_live(), 0);
	}
}

static void test_failing_send(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	double_faults.send = double_losses[0].status;
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	assert_int_equal(pair_send(&p, 0, 3, 8), -EAGAIN);
	for (unsigned n = 0; n <= NETLIB_GRACE; n++)
		side_tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 1);
	pair_close(&p);
}

/* The core gives the peer up while the library has packets: it keeps their memory until it calls back, whenever that is. */
static void test_late_callbacks(void **state)
{
	(void)state;
	for (int at_close = 0; at_close < 2; at_close++) {
		struct pair p;

		double_reset();
		pair_open(&p, NULL);
		pair_connect(&p);
		double_faults.hold = double_faults.slow_close = true;
		for (uint64_t v = 2; v < 10; v++)
			assert_int_equal(pair_send(&p, 0, v, v * 1000), 0);
		OPS.forget(p.side[0].t, 1);
		assert_false(OPS.drained(p.side[0].t));
		if (!at_close)
			pair_run(&p);
		assert_true(at_close || OPS.drained(p.side[0].t));
		assert_int_equal(pair_send(&p, 0, 10, 8), -ECONNRESET);
		assert_int_equal(p.side[0].downs, 0);
		pair_close(&p);
		assert_int_equal(double_live(), 0);
	}
}

static void test_silence(void **state)
{
	unsigned ticks;
	struct pair p;

	(void)state;
	pair_open(&p, "timeout_ms=8000");
	pair_connect(&p);
	ticks = netlib_of(p.side[0].t)->heartbeat.ticks_until_lost;
	assert_int_equal(ticks, 32);
	for (unsigned n = 0; n < 5 * ticks; n++) { /* nobody sends, both live */
		side_tick(&p.side[0]);
		side_tick(&p.side[1]);
		pair_run(&p);
	}
	assert_int_equal(p.side[0].downs + p.side[1].downs, 0);
	assert_true(pair_peer(&p, 0)->beats >= 15);
	double_faults.lose = true;
	for (unsigned n = 0; n < ticks - ticks / 4 - 2; n++)
		side_tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 0);
	for (unsigned n = 0; n < ticks / 2; n++)
		side_tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -ECONNRESET);
	assert_non_null(strstr(p.side[0].why, "_timeout_ms)"));
	pair_close(&p);
}

static void test_silence_is_allowed(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, "timeout_ms=0");
	pair_connect(&p);
	double_faults.lose = true;
	for (unsigned n = 0; n < 10000; n++)
		side_tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 0);
	assert_int_equal(pair_peer(&p, 0)->beats, 0);
	pair_close(&p);
}

/* Ends that come after n calls that create something. */
static void test_each_call_fails(void **state)
{
	int count = opening_calls();

	(void)state;
	for (int n = 1; n <= count; n++) {
		struct transport_peer_info info[2] = {{0}};
		struct settings *settings = settings_new();
		struct log log = {.level = LOG_OFF, .fd = -1};
		struct side s = {0};
		char blob[64];

		double_reset();
		double_faults.fail_call = n;
		s.env = (struct transport_env){.rank = 0,
					       .size = 2,
					       .job_id = "00",
					       .settings = settings,
					       .log = &log,
					       .watch = {&s, pair_watch_add, pair_watch_remove, NULL, NULL},
					       .wakeups = &s.wakeups,
					       .test = double_test};
		if (n == count) { /* no memory is an error of the start */
			assert_int_equal(OPS.open(&s.t, &s.env), -ENOMEM);
		} else {
			assert_int_equal(OPS.open(&s.t, &s.env), 0);
			assert_int_equal(OPS.address(s.t, blob, sizeof(blob)), 0);
			assert_int_equal(OPS.attach(s.t, info), 0);
			assert_false(OPS.reaches(s.t, 1));
			assert_int_equal(OPS.poll(s.t, 32), 0);
			assert_false(OPS.ready(s.t));
			OPS.arm(s.t);
			OPS.disarm(s.t);
			assert_true(OPS.drained(s.t));
			OPS.close(s.t);
		}
		assert_string_equal(double_faults.failed, double_opening[n - 1]);
		assert_int_equal(double_live(), 0);
		settings_free(settings);
	}
}

static void test_no_endpoint(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	double_faults.fail_call = 1;
	assert_int_equal(pair_send(&p, 0, 1, 8), -EAGAIN);
	pair_run(&p);
	assert_string_equal(double_faults.failed, double_connecting);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -EHOSTUNREACH);
	assert_non_null(strstr(p.side[0].why, "rank 1 cannot be connected to"));
	pair_close(&p);
}

static void test_only_one_side_has_the_library(void **state)
{
	struct pair p;

	(void)state;
	double_faults.fail_call = 2; /* rank 0's */
	pair_open(&p, NULL);
	assert_false(OPS.reaches(p.side[0].t, 1));
	assert_false(OPS.reaches(p.side[1].t, 0));
	pair_close(&p);
}

static void test_malformed_packets(void **state)
{
	struct netlib_head good = {.job = 0x0123456789abcdef,
				   .rank = 0,
				   .number = 2,
				   .ack = 1,
				   .bytes = 4,
				   .hdr = {.kind = WIRE_CTS, .len = 4, .ctl = {.value = 2}}};

	(void)state;
	for (int kind = 0; kind < 10; kind++) {
		struct netlib_head h = good;
		size_t head_bytes = sizeof(h), bytes = 4;
		bool foreign = kind < 4 || (kind == 9 && !double_reports_ends);
		struct pair p;

		double_reset();
		pair_open(&p, NULL);
		pair_connect(&p);
		switch (kind) {
		case 0: h.job++; break;
		case 1: h.rank = 2; break;
		case 2: h.rank = 1; break;
		case 3: head_bytes--; break;
		case 4: bytes--; break;
		case 5: h.hdr.len = 1 << 30; break;
		case 6: h.number = 1; break;
		case 7: h.ack = 100; break;
		case 8: h.hdr = (struct wire_hdr){.kind = WIRE_NONE, .len = 4, .ctl = {.id = 99}}; break;
		case 9: break;
		}
		double_inject(1, &h, head_bytes, "abcd", bytes, kind != 9);
		pair_run(&p);
		assert_int_equal(p.side[1].packets, 1);
		assert_int_equal(p.side[1].downs, foreign ? 0 : 1);
		assert_int_equal(netlib_of(p.side[1].t)->foreign_count, foreign ? 1 : 0);
		if (!foreign)
			assert_int_equal(p.side[1].down_error, -EPROTO);
		pair_close(&p);
		assert_int_equal(double_live(), 0);
	}
}

static void test_sleeping(void **state)
{
	struct pair p;
	struct side *s = &p.side[1];

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	assert_true(OPS.ready(s->t)); /* there is no look without the lock */
	double_faults.busy = true;
	OPS.arm(s->t);
	assert_true(OPS.ready(s->t));
	OPS.disarm(s->t);
	double_faults.busy = false;
	OPS.arm(s->t);
	assert_false(OPS.ready(s->t));
	assert_false(side_readable(s, WATCH_GATE));
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	assert_true(side_readable(s, WATCH_GATE));
	s->watch[WATCH_GATE].fn(s->watch[WATCH_GATE].arg);
	assert_false(side_readable(s, WATCH_GATE)); /* although the library's descriptor is */
	OPS.disarm(s->t);
	assert_true(OPS.ready(s->t));
	pair_run(&p);
	assert_int_equal(s->packets, 2);
	/* news that came between two naps is not slept over */
	assert_int_equal(pair_send(&p, 0, 3, 8), 0);
	OPS.arm(s->t);
	assert_true(OPS.ready(s->t));
	OPS.disarm(s->t);
	pair_run(&p);
	assert_int_equal(s->packets, 3);
	pair_close(&p);
}

/* A descriptor that is readable although nothing comes wakes us less and less often, and the first packet ends that. */
static void test_vain_events(void **state)
{
	struct pair p;
	struct side *s = &p.side[1];
	int64_t since;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	double_faults.loud = true;
	for (int round = 0; round < 2; round++) {
		int packets = s->packets;

		since = clock_now_ns();
		for (int i = 0; i < 4 + 6 + 10; i++) {
			struct pollfd gate = {.fd = s->watch[WATCH_GATE].fd, .events = POLLIN};

			OPS.arm(s->t);
			assert_false(OPS.ready(s->t)); /* it may sleep */
			assert_int_equal(poll(&gate, 1, 60000), 1);
			s->watch[WATCH_GATE].fn(s->watch[WATCH_GATE].arg);
			OPS.disarm(s->t);
			assert_int_equal(OPS.poll(s->t, 32), 0);
		}
		assert_true(clock_now_ns() - since >= (20 + 40 + 80 + 160 + 320 + 640 + 10 * 1280) * CLOCK_NS_PER_US);
		assert_int_equal(pair_send(&p, 0, 2 + (uint64_t)round, 8), 0);
		pair_run(&p);
		assert_int_equal(s->packets, packets + 1);
		assert_int_equal(netlib_of(s->t)->vain, 0);
	}
	double_faults.loud = false;
	pair_close(&p);
}

/* Many polls that find nothing make threads that spin poll less often, and the first packet ends that. */
static void test_quiet_polls(void **state)
{
	struct side *s;
	struct pair p;
	int looks = 0;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	s = &p.side[1];
	for (int i = 0; i < 5000; i++)
		assert_int_equal(OPS.poll(s->t, 32), 0);
	for (int i = 0; i < 800; i++)
		looks += OPS.ready(s->t);
	assert_int_equal(looks, 100);
	/* but a thread that could not arm does not sleep */
	double_faults.busy = true;
	OPS.arm(s->t);
	for (int i = 0; i < 20; i++)
		assert_true(OPS.ready(s->t));
	OPS.disarm(s->t);
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	assert_int_equal(OPS.poll(s->t, 32), 1);
	for (int i = 0; i < 20; i++)
		assert_true(OPS.ready(s->t));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects_when_first_used, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_early_packets_wait, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_bounded_memory, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_drained, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_leaving_is_no_death, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_lost_connection, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_failing_send, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_late_callbacks, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_silence, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_silence_is_allowed, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_each_call_fails, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_no_endpoint, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_only_one_side_has_the_library, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_malformed_packets, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_sleeping, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_vain_events, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_quiet_polls, pair_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
