/* SPDX-License-Identifier: MIT */
/* The transport ucx over a double of its library: connecting, order, bounded memory, silence, and every way in which it fails. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "double.h"
#include "transport/ucx/state.h"
#include "transport/ucx/ucx.h"

#define OPS transport_ucx_ops
#define WATCHES 8
#define PAYLOAD 70000

struct side {
	struct transport *t;
	struct transport_env env;
	struct transport_wakeups wakeups;
	struct {
		int fd;
		void (*fn)(void *arg);
		void *arg;
	} watch[WATCHES]; /* in the order of their coming: work, heartbeat, gate */
	int watch_count;
	int packets;
	uint64_t last;
	bool in_order, whole;
	int downs, down_error, packets_at_down;
	char why[512];
};
enum { WATCH_WORK, WATCH_BEAT, WATCH_GATE };

struct pair {
	struct settings *settings;
	struct log log;
	struct side side[2];
};

static unsigned char byte_of(uint64_t value, size_t i)
{
	return (unsigned char)(value * 31 + i);
}

static void on_packet(void *core, int peer, const struct wire_hdr *hdr, const void *payload)
{
	struct side *s = core;

	assert_int_equal(peer, 1 - s->env.rank);
	s->in_order = s->in_order && hdr->ctl.value == s->last + 1;
	for (uint32_t i = 0; i < hdr->len; i++)
		s->whole = s->whole && ((const unsigned char *)payload)[i] == byte_of(hdr->ctl.value, i);
	s->last = hdr->ctl.value;
	s->packets++;
}

static void on_down(void *core, int peer, int err, const char *why)
{
	struct side *s = core;

	assert_int_equal(peer, 1 - s->env.rank);
	s->downs++;
	s->down_error = err;
	s->packets_at_down = s->packets;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static int watch_add(void *monitor, int fd, void (*fn)(void *arg), void *arg)
{
	struct side *s = monitor;

	assert_true(s->watch_count < WATCHES);
	s->watch[s->watch_count].fd = fd;
	s->watch[s->watch_count].fn = fn;
	s->watch[s->watch_count++].arg = arg;
	return 0;
}

static void watch_remove(void *monitor, int fd)
{
	struct side *s = monitor;

	for (int i = 0; i < s->watch_count; i++) {
		if (s->watch[i].fd == fd)
			s->watch[i].fn = NULL;
	}
}

static struct side *outside; /* the side whose monitor thread has released the lock */

static void watch_unlock(void *monitor)
{
	struct side *s = monitor;
	struct transport_slot slot;

	/* what other threads may do meanwhile comes to nothing, but breaks nothing */
	outside = s;
	assert_int_equal(OPS.poll(s->t, 32), 0);
	assert_int_not_equal(OPS.reserve(s->t, 1 - s->env.rank, 8, &slot), 0);
	assert_false(OPS.drained(s->t));
	OPS.arm(s->t);
	OPS.disarm(s->t);
	assert_true(double_locked);
	double_locked = false;
}

static void watch_lock(void *monitor)
{
	assert_ptr_equal(outside, monitor);
	assert_false(double_locked);
	double_locked = true;
}

static int side_open(struct side *s, int rank, const struct settings *settings, const struct log *log, void *blob, size_t size)
{
	s->in_order = s->whole = true;
	s->env = (struct transport_env){.rank = rank,
					.size = 2,
					.job_id = "0123456789abcdef0123456789abcdef",
					.settings = settings,
					.log = log,
					.sink = {.core = s, .on_packet = on_packet, .on_down = on_down},
					.watch = {s, watch_add, watch_remove, watch_unlock, watch_lock},
					.wakeups = &s->wakeups,
					.test = (void *)(uintptr_t)&double_library};
	assert_int_equal(OPS.open(&s->t, &s->env), 0);
	return OPS.address(s->t, blob, size);
}

static void pair_open(struct pair *p, const char *setting)
{
	struct transport_peer_info info[2] = {{0}};
	char blob[2][256];

	*p = (struct pair){.settings = settings_new(), .log = {.level = LOG_OFF, .fd = -1}};
	assert_non_null(p->settings);
	if (setting)
		assert_int_equal(settings_set_pair(p->settings, SETTINGS_CALLER, setting, "test"), 0);
	for (int r = 0; r < 2; r++) {
		info[r].address = blob[r];
		info[r].address_bytes = (size_t)side_open(&p->side[r], r, p->settings, &p->log, blob[r], sizeof(blob[r]));
	}
	for (int r = 0; r < 2; r++) {
		assert_int_equal(OPS.attach(p->side[r].t, info), 0);
		if (OPS.reaches(p->side[r].t, 1 - r))
			OPS.use(p->side[r].t, 1 - r);
	}
	double_locked = true;
}

static void side_close(struct side *s)
{
	double_locked = false;
	OPS.close(s->t);
	s->t = NULL;
	double_locked = true;
	for (int i = 0; i < s->watch_count; i++)
		assert_null(s->watch[i].fn);
}

static void pair_close(struct pair *p)
{
	for (int r = 0; r < 2; r++) {
		if (p->side[r].t)
			side_close(&p->side[r]);
	}
	double_locked = false;
	settings_free(p->settings);
}

static bool readable(const struct side *s, int watch)
{
	struct pollfd fd = {.fd = s->watch[watch].fd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

static int side_step(struct side *s)
{
	int events = 0;

	if (!s->t)
		return 0;
	if (readable(s, WATCH_WORK)) {
		s->watch[WATCH_WORK].fn(s->watch[WATCH_WORK].arg);
		events++;
	}
	return events + OPS.poll(s->t, 32);
}

static void tick(struct side *s)
{
	s->watch[WATCH_BEAT].fn(s->watch[WATCH_BEAT].arg);
	OPS.poll(s->t, 32);
}

static void run(struct pair *p)
{
	while (side_step(&p->side[0]) + side_step(&p->side[1]) > 0)
		;
}

static int send_one(struct pair *p, int from, uint64_t value, size_t len)
{
	struct transport *t = p->side[from].t;
	struct transport_slot slot;
	int rc = OPS.reserve(t, 1 - from, len, &slot);

	if (rc < 0)
		return rc;
	slot.hdr->kind = WIRE_CTS;
	slot.hdr->flags = 0;
	slot.hdr->len = (uint32_t)len;
	slot.hdr->ctl = (struct wire_ctl){.value = value};
	for (size_t i = 0; i < len; i++)
		((unsigned char *)slot.payload)[i] = byte_of(value, i);
	OPS.commit(t, 1 - from, &slot);
	return 0;
}

static void connect_both(struct pair *p)
{
	assert_int_equal(send_one(p, 0, 1, 8), -EAGAIN);
	run(p);
	assert_int_equal(send_one(p, 0, 1, 8), 0);
	run(p);
	assert_int_equal(send_one(p, 1, 1, 8), 0); /* rank 1 has an endpoint since the first packet */
	run(p);
	assert_int_equal(p->side[0].packets, 1);
	assert_int_equal(p->side[1].packets, 1);
}

static int setup(void **state)
{
	(void)state;
	double_reset();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return double_live() ? -1 : 0;
}

static void test_connects_when_first_used(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_true(OPS.reaches(p.side[0].t, 1));
	assert_false(OPS.reaches(p.side[0].t, 0));
	run(&p);
	assert_int_equal(double_faults.calls, 2 * 6); /* nobody has talked: no endpoint */
	connect_both(&p);
	assert_int_equal(double_faults.calls, 2 * 7);
	for (uint64_t v = 2; v < 200; v++) {
		size_t len = v * 997 % (OPS.payload_max(p.side[0].t, 1) + 1);

		assert_int_equal(send_one(&p, 0, v, len), 0);
		assert_int_equal(send_one(&p, 1, v, v % 40), 0);
		if (v % 3 == 0)
			run(&p);
	}
	run(&p);
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
	connect_both(&p);
	double_faults.shuffle = true;
	for (uint64_t v = 2; v < 2000; v++) {
		assert_int_equal(send_one(&p, 0, v, v % 700), 0);
		assert_int_equal(send_one(&p, 1, v, v * 31 % 60000), 0);
		if (v % 16 == 0)
			run(&p);
	}
	run(&p);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(p.side[r].packets, 1999);
		assert_true(p.side[r].in_order && p.side[r].whole);
		assert_true(ucx_of(p.side[r].t)->peers[1 - r].order.early_count > 100);
		assert_int_equal(ucx_of(p.side[r].t)->peers[1 - r].order.held_bytes, 0);
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
	connect_both(&p);
	double_faults.hold = true;
	while (send_one(&p, 0, 2, PAYLOAD / 2) == 0)
		large++;
	while (send_one(&p, 0, 2, 0) == 0) /* credit and control go on for a while */
		small++;
	assert_int_equal(large, UCX_LARGE_SLOTS);
	assert_int_equal(small, UCX_SMALL_SLOTS);
	double_release();
	assert_int_equal(send_one(&p, 0, 3, PAYLOAD / 2), 0);
	assert_int_equal(send_one(&p, 0, 3, 0), 0);
	assert_int_equal(ucx_of(p.side[0].t)->slot_count[1], UCX_LARGE_SLOTS);
	double_release();
	pair_close(&p);
}

/* drained() waits for the acknowledgement of the other rank, not for the library. */
static void test_drained(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_true(OPS.drained(p.side[0].t));
	connect_both(&p);
	assert_int_equal(send_one(&p, 0, 2, 8), 0);
	assert_false(OPS.drained(p.side[0].t));
	for (int i = 0; i < 10; i++)
		assert_int_equal(side_step(&p.side[0]), 0); /* nobody has taken it in */
	assert_false(OPS.drained(p.side[0].t));
	run(&p);
	assert_true(OPS.drained(p.side[0].t));
	pair_close(&p);
}

static void test_leaving_is_no_death(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	connect_both(&p);
	OPS.leave(p.side[0].t);
	assert_true(OPS.awaits(p.side[1].t, 0));
	double_fail(0, UCX_ERR_CONNECTION_RESET);
	run(&p);
	assert_int_equal(p.side[1].downs, 1);
	assert_int_equal(p.side[1].down_error, -EPIPE);
	assert_false(OPS.awaits(p.side[1].t, 0));
	pair_close(&p);
}

/* What the dead rank had sent comes first; the control tree has some time for its own report. */
static void test_lost_connection(void **state)
{
	static const struct {
		ucx_status status;
		int code;
	} cases[] = {{UCX_ERR_CONNECTION_RESET, -ECONNRESET}, {UCX_ERR_ENDPOINT_TIMEOUT, -ECONNRESET}, {UCX_ERR_UNREACHABLE, -EHOSTUNREACH},
		     {-3, -ECONNRESET}, {UCX_ERR_NO_MEMORY, -ENOMEM}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		double_reset();
		double_faults.slow_close = i % 2;
		pair_open(&p, NULL);
		connect_both(&p);
		for (uint64_t v = 2; v < 12; v++)
			assert_int_equal(send_one(&p, 0, v, 8), 0);
		double_fail(0, cases[i].status);
		run(&p);
		assert_int_equal(p.side[1].packets, 11);
		assert_int_equal(p.side[1].downs, 0);
		assert_int_equal(send_one(&p, 1, 2, 8), -EAGAIN);
		for (unsigned n = 0; n < UCX_GRACE; n++)
			tick(&p.side[1]);
		run(&p);
		assert_int_equal(p.side[1].downs, 1);
		assert_int_equal(p.side[1].down_error, cases[i].code);
		assert_non_null(strstr(p.side[1].why, "rank 0"));
		assert_int_equal(send_one(&p, 1, 2, 8), -ECONNRESET);
		run(&p);
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
	connect_both(&p);
	double_faults.send = UCX_ERR_CONNECTION_RESET;
	assert_int_equal(send_one(&p, 0, 2, 8), 0);
	assert_int_equal(send_one(&p, 0, 3, 8), -EAGAIN);
	for (unsigned n = 0; n <= UCX_GRACE; n++)
		tick(&p.side[0]);
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
		connect_both(&p);
		double_faults.hold = double_faults.slow_close = true;
		for (uint64_t v = 2; v < 10; v++)
			assert_int_equal(send_one(&p, 0, v, v * 1000), 0);
		OPS.forget(p.side[0].t, 1);
		assert_false(OPS.drained(p.side[0].t));
		if (!at_close)
			run(&p);
		assert_true(at_close || OPS.drained(p.side[0].t));
		assert_int_equal(send_one(&p, 0, 10, 8), -ECONNRESET);
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
	pair_open(&p, "ucx_timeout_ms=8000");
	connect_both(&p);
	ticks = ucx_of(p.side[0].t)->heartbeat.ticks_until_lost;
	assert_int_equal(ticks, 32);
	for (unsigned n = 0; n < 5 * ticks; n++) { /* nobody sends, both live */
		tick(&p.side[0]);
		tick(&p.side[1]);
		run(&p);
	}
	assert_int_equal(p.side[0].downs + p.side[1].downs, 0);
	assert_true(ucx_of(p.side[0].t)->peers[1].beats >= 15);
	double_faults.lose = true;
	for (unsigned n = 0; n < ticks - ticks / 4 - 2; n++)
		tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 0);
	for (unsigned n = 0; n < ticks / 2; n++)
		tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -ECONNRESET);
	assert_non_null(strstr(p.side[0].why, "ucx_timeout_ms"));
	pair_close(&p);
}

static void test_silence_is_allowed(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, "ucx_timeout_ms=0");
	connect_both(&p);
	double_faults.lose = true;
	for (unsigned n = 0; n < 10000; n++)
		tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 0);
	assert_int_equal(ucx_of(p.side[0].t)->peers[1].beats, 0);
	pair_close(&p);
}

/* Ends that come after n calls that create something. */
static void test_each_call_fails(void **state)
{
	static const char *const names[] = {"config_read", "init", "worker_create", "set_am_handler", "worker_get_efd", "worker_query"};

	(void)state;
	for (int n = 1; n <= 6; n++) {
		struct transport_peer_info info[2] = {{0}};
		struct settings *settings = settings_new();
		struct log log = {.level = LOG_OFF, .fd = -1};
		struct side s = {0};
		char blob[64];

		double_reset();
		double_faults.fail_call = n;
		s.env = (struct transport_env){.rank = 0, .size = 2, .job_id = "00", .settings = settings, .log = &log,
					       .watch = {&s, watch_add, watch_remove, watch_unlock, watch_lock},
					       .wakeups = &s.wakeups, .test = (void *)(uintptr_t)&double_library};
		if (n == 6) { /* no memory is an error of the start */
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
		assert_string_equal(double_faults.failed, names[n - 1]);
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
	assert_int_equal(send_one(&p, 0, 1, 8), -EAGAIN);
	run(&p);
	assert_string_equal(double_faults.failed, "ep_create");
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
	struct ucx_head good = {.job = 0x0123456789abcdef, .rank = 0, .number = 2, .ack = 1, .bytes = 4,
				.hdr = {.kind = WIRE_CTS, .len = 4, .ctl = {.value = 2}}};

	(void)state;
	for (int kind = 0; kind < 10; kind++) {
		struct ucx_head h = good;
		size_t head_bytes = sizeof(h), bytes = 4;
		bool foreign = kind < 4;
		struct pair p;

		double_reset();
		pair_open(&p, NULL);
		connect_both(&p);
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
		double_inject(1, &h, head_bytes, "abcd", bytes, kind == 9 ? UCX_AM_RECV_RNDV : 0);
		run(&p);
		assert_int_equal(p.side[1].packets, 1);
		assert_int_equal(p.side[1].downs, foreign ? 0 : 1);
		assert_int_equal(ucx_of(p.side[1].t)->foreign_count, foreign ? 1 : 0);
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
	connect_both(&p);
	assert_true(OPS.ready(s->t)); /* there is no look without the lock */
	double_faults.busy = true;
	OPS.arm(s->t);
	assert_true(OPS.ready(s->t));
	OPS.disarm(s->t);
	double_faults.busy = false;
	OPS.arm(s->t);
	assert_false(OPS.ready(s->t));
	assert_false(readable(s, WATCH_GATE));
	assert_int_equal(send_one(&p, 0, 2, 8), 0);
	assert_true(readable(s, WATCH_GATE));
	s->watch[WATCH_GATE].fn(s->watch[WATCH_GATE].arg);
	assert_false(readable(s, WATCH_GATE)); /* although the library's descriptor is */
	OPS.disarm(s->t);
	assert_true(OPS.ready(s->t));
	run(&p);
	assert_int_equal(s->packets, 2);
	/* news that came between two naps is not slept over */
	assert_int_equal(send_one(&p, 0, 3, 8), 0);
	OPS.arm(s->t);
	assert_true(OPS.ready(s->t));
	OPS.disarm(s->t);
	run(&p);
	assert_int_equal(s->packets, 3);
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
	connect_both(&p);
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
	assert_int_equal(send_one(&p, 0, 2, 8), 0);
	assert_int_equal(OPS.poll(s->t, 32), 1);
	for (int i = 0; i < 20; i++)
		assert_true(OPS.ready(s->t));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects_when_first_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_early_packets_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounded_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drained, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaving_is_no_death, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failing_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_callbacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence_is_allowed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_call_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_endpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_one_side_has_the_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_malformed_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sleeping, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quiet_polls, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
