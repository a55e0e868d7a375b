/* SPDX-License-Identifier: MIT */
/* Leased gets: one copy between two pinnable buffers, and what happens when one side does not come. */
#include "caller.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/lease.h"

#define LONG_NS 20000000000 /* each side comes in time */
#define BYTES (2 * (size_t)LEASE_BYTES + 777)

static struct world_config leased(struct world_config cfg, int64_t lease_offer_ns)
{
	cfg.monitor = false;
	cfg.lease_offer_ns = lease_offer_ns;
	return cfg;
}

static void start(struct world *w, struct world_config cfg)
{
	begin(w, cfg, "spin_us=0", "yield_us=0", "psl=4000", NULL);
	fabric_clock_start(w->fabric, 50);
}

/* A message from rank 1 to rank 0, which has to arrive. */
static void exchange(struct world *w, struct caller *from, struct caller *to, int tag)
{
	assert_int_equal(ended(to), 0);
	assert_int_equal(to->status.body_bytes, to->bytes);
	assert_text(to->m.at, (uint64_t)tag, to->bytes);
	assert_int_equal(ended_with(from, w), 0);
	assert_text(from->m.at, (uint64_t)tag, from->bytes);
	caller_free(from);
	caller_free(to);
}

/* Both wait: all of it by leases, nothing bounced and nothing streamed, in either order. */
static void both_wait(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++)
		for (int sync = 0; sync < 2; sync++) {
			struct caller from, to;
			struct world w;

			start(&w, leased(calm(2, 4096), LONG_NS));
			call_prepare(&from, &w, 1, true, 0, 5, BYTES);
			from.sync = sync;
			if (first)
				call_start(&from);
			usleep(first ? 2000 : 0);
			call(&to, &w, 0, false, first ? 1 : IBVX_ANY_SOURCE, 5, BYTES);
			if (!first)
				call_start(&from);
			exchange(&w, &from, &to, 5);
			assert_int_equal(world_counter(w.ep[1], 0, "leased_segments"), 3);
			assert_int_equal(world_counter(w.ep[1], 0, "leases_revoked"), 0);
			assert_int_equal(world_counter(w.ep[0], -1, "bounced_bytes"), 0);
			assert_int_equal(world_counter(w.ep[0], 1, "bytes_in"), BYTES);
			assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_SEGMENT), 3);
			assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_DATA), 0);
			end(&w);
		}
}

/* A matched probe that is received by a call that waits. */
static void matched_probe(void **state)
{
	const struct ibvx_want want = {1, 5, CTX, BYTES, 0, 0, NULL};
	struct ibvx_status s;
	struct caller from;
	struct fake_array m;
	struct world w;
	ibvx_req message = IBVX_REQ_NULL;

	(void)state;
	start(&w, leased(calm(2, 4096), LONG_NS));
	call(&from, &w, 1, true, 0, 5, BYTES);
	while (ibvx_improbe(w.ep[0], 1, 5, CTX, &message, &s) == 0)
		usleep(100);
	fake_array_init(&m, calloc(1, BYTES), BYTES, 3);
	assert_int_equal(ibvx_pin_mrecv(w.ep[0], &message, &m.pinnable, &want, &s), 0);
	fake_array_bring(&m);
	assert_text(m.at, 5, BYTES);
	assert_int_equal(ended_with(&from, &w), 0);
	assert_int_equal(world_counter(w.ep[1], 0, "leased_segments"), 3);
	caller_free(&from);
	free(m.at);
	end(&w);
}

/* Only one of them waits in the call, or has pinnable memory: the pipeline. */
static void one_waits(void **state)
{
	const struct ibvx_want want = {1, 5, CTX, 60000, 0, 0, NULL};
	struct text t = text_of(5, 60000);
	struct ibvx_status s;
	struct caller one;
	struct fake_array m;
	ibvx_req req;
	struct world w;

	(void)state;
	start(&w, leased(calm(2, 4096), LONG_NS));
	/* matched while nobody waits for the receive */
	assert_int_equal(ibvx_pin_irecv(w.ep[0], &want, &req), 0);
	call(&one, &w, 1, true, 0, 5, 60000);
	while (fabric_sent(w.fabric, 0, 1, WIRE_CTS) == 0)
		world_turn(&w, 1);
	fake_array_init(&m, calloc(1, 60000), 60000, 3);
	assert_int_equal(ibvx_pin_wait(w.ep[0], &req, &m.pinnable, &s, -1), 0);
	fake_array_bring(&m);
	assert_text(m.at, 5, 60000);
	assert_int_equal(ended_with(&one, &w), 0);
	caller_free(&one);
	/* a send from ordinary memory */
	call(&one, &w, 0, false, 1, 5, 60000);
	req = put(&w, 1, 0, 5, t, 5, false);
	assert_int_equal(ended_with(&one, &w), 0);
	assert_int_equal(finish(&w, 1, &req, NULL), 0);
	assert_text(one.m.at, 5, 60000);
	caller_free(&one);
	/* a receive in ordinary memory */
	memset(m.at, 0, 60000);
	req = take(&w, 0, 1, 5, m.at, 60000);
	call(&one, &w, 1, true, 0, 5, 60000);
	assert_int_equal(ended_with(&one, &w), 0);
	assert_int_equal(finish(&w, 0, &req, NULL), 0);
	assert_text(m.at, 5, 60000);
	caller_free(&one);
	assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_SEGMENT), 0);
	free(m.at);
	text_free(t);
	end(&w);
}

/* The receiver's collector keeps it from its memory: the offer is taken back, the message streamed, to the bounce buffer meanwhile. */
static void nobody_comes(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		struct caller from, to;
		struct world w;

		start(&w, leased(calm(2, 4096), 1000000));
		call_prepare(&to, &w, 0, false, 1, 5, BYTES);
		to.m.refuse = later ? 5 : 1u << 30;
		call_start(&to);
		call(&from, &w, 1, true, 0, 5, BYTES);
		exchange(&w, &from, &to, 5);
		if (!later) {
			assert_int_equal(world_counter(w.ep[1], 0, "leased_segments"), 0);
			assert_int_equal(world_counter(w.ep[1], 0, "leases_revoked"), 1);
			assert_int_equal(to.m.pins, 0);
		}
		end(&w);
	}
}

/* The memory cannot be read: this message is streamed, and if it never can be, no more leases are asked for. */
static void unreadable(void **state)
{
	(void)state;
	for (int never = 0; never < 2; never++) {
		struct world_config cfg = leased(calm(2, 4096), LONG_NS);
		struct world w;

		cfg.net.lease_fail_percent = 100;
		cfg.net.get_errno = never ? -EPERM : -EFAULT;
		start(&w, cfg);
		for (int tag = 1; tag <= 3; tag++) {
			struct caller from, to;

			call(&to, &w, 0, false, 1, tag, BYTES);
			call(&from, &w, 1, true, 0, tag, BYTES);
			exchange(&w, &from, &to, tag);
		}
		assert_int_equal(world_counter(w.ep[1], 0, "leased_segments"), 0);
		assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_SEGMENT), never ? 1 : 3);
		end(&w);
	}
}

/* A message from rank 1 to rank 0 is in the middle of its first leased segment. */
static void begin_lease(struct world *w, struct caller *from, struct caller *to)
{
	fabric_clock_start(w->fabric, 50);
	fabric_hold_leases(w->fabric, true);
	call(to, w, 0, false, 1, 5, BYTES);
	call(from, w, 1, true, 0, 5, BYTES);
	while (!fabric_lease_held(w->fabric))
		usleep(100);
}

/* The receiver that has claimed takes too long: the lease is abandoned, and the message streamed when it is asked for once more. */
static void too_slow(void **state)
{
	struct caller from, to;
	struct world w;

	(void)state;
	begin(&w, leased(calm(2, 4096), LONG_NS), "spin_us=0", "yield_us=0", "psl=4000", NULL);
	begin_lease(&w, &from, &to);
	fabric_expire_leases(w.fabric);
	while (world_counter(w.ep[1], 0, "leases_revoked") == 0)
		world_turn(&w, 1);
	assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_DATA), 0); /* not before it is asked for */
	fabric_hold_leases(w.fabric, false);
	exchange(&w, &from, &to, 5);
	assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_CTS), 2);
	assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_SEGMENT), 1);
	assert_int_equal(world_counter(w.ep[1], 0, "leased_segments"), 0);
	end(&w);
}

/* Another rank dies while a copy is under way, and with it, by job scope, the receive: the lease is settled where it was opened. */
static void ended_by_another(void **state)
{
	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct world_config cfg = leased(calm(3, 4096), LONG_NS);
		struct caller from, to;
		const char *text;
		struct world w;

		cfg.net.lease_fail_percent = fails ? 100 : 0;
		begin(&w, cfg, "spin_us=0", "yield_us=0", "psl=4000", "fault_scope=job", NULL);
		begin_lease(&w, &from, &to);
		fabric_kill(w.fabric, 2, true);
		while (world_counter(w.ep[0], -1, "open_peers") == 2)
			world_turn(&w, 1);
		fabric_hold_leases(w.fabric, false);
		assert_int_equal(ended(&to), -ECONNRESET);
		assert_non_null(strstr(to.text, "rank 2"));
		assert_int_equal(ended_with(&from, &w), -ECONNRESET);
		assert_int_equal(world_counter(w.ep[1], 0, "leased_segments"), 0);
		assert_int_equal(fabric_violations(w.fabric, &text), 0);
		caller_free(&from);
		caller_free(&to);
		for (int r = 0; r < 3; r++) {
			ibvx_abort(w.ep[r]);
			w.ep[r] = NULL;
		}
		end(&w);
	}
}

/* Too long for the receive: it fails, and the sender is not blocked. */
static void truncated(void **state)
{
	struct caller from, to;
	struct world w;

	(void)state;
	start(&w, leased(calm(2, 4096), LONG_NS));
	call(&to, &w, 0, false, 1, 5, 60000);
	call(&from, &w, 1, true, 0, 5, 60001);
	assert_int_equal(ended(&to), -EMSGSIZE);
	assert_int_equal(ended_with(&from, &w), 0);
	assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_SEGMENT), 0);
	caller_free(&from);
	caller_free(&to);
	end(&w);
}

/* Two threads of a rank send, two receive, another polls; in a network that delays, refuses and fails by seed, with offers of any
 * length. */
static void crowd(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		static const int64_t offers_ns[] = {1, 200000, 5000000, LONG_NS};
		struct caller from[4], to[4];
		struct world w;

		begin(&w, leased(timed(seed), offers_ns[seed % 4]), "spin_us=0", "yield_us=0", "psl=4000", NULL);
		fabric_clock_start(w.fabric, 50);
		for (int i = 0; i < 4; i++) { /* two each way */
			call(&to[i], &w, i % 2, false, 1 - i % 2, i, BYTES >> (3 + (seed + (uint64_t)i) % 3));
			call(&from[i], &w, 1 - i % 2, true, i % 2, i, to[i].bytes);
		}
		for (int i = 0; i < 4; i++) {
			assert_int_equal(ended_with(&to[i], &w), 0);
			assert_text(to[i].m.at, (uint64_t)i, to[i].bytes);
			assert_int_equal(ended_with(&from[i], &w), 0);
			caller_free(&from[i]);
			caller_free(&to[i]);
		}
		end(&w);
	}
}

/* The other side dies while leases come and go: the call ends, and unpins. */
static void deaths(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world_config cfg = leased(timed(seed), 300000);

		cfg.net.get_min = 0;
		call_dies(cfg, seed, BYTES, (unsigned)(seed * 100));
	}
}

/* A segment that was not asked for, or that does not fit, breaks the peer and touches nothing. */
static void nonsense(void **state)
{
	static const struct {
		uint8_t waits;
		uint32_t id, len;
		uint64_t offset, value;
	} bad[] = {
		{0, 0, WIRE_LEASE_BYTES, 0, 100},
		{WIRE_LEASE, 1, WIRE_LEASE_BYTES, 0, 100},
		{WIRE_LEASE, 0, 0, 0, 100},
		{WIRE_LEASE, 0, WIRE_LEASE_BYTES + 8, 0, 100},
		{WIRE_LEASE, 0, WIRE_LEASE_BYTES, 8, 100},
		{WIRE_LEASE, 0, WIRE_LEASE_BYTES, 0, 0},
		{WIRE_LEASE, 0, WIRE_LEASE_BYTES, 0, 60001},
		{WIRE_LEASE, 0, WIRE_LEASE_BYTES, 0, LEASE_BYTES + 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct wire_long lng = {0, i + 1 < sizeof(bad) / sizeof(bad[0]) ? 60000 : BYTES};
		const char payload[WIRE_LEASE_BYTES + 8] = {0};
		struct wire_hdr rts = {
			.kind = WIRE_RTS, .flags = bad[i].waits, .len = sizeof(lng), .msg = {.context = CTX, .tag = 5, .user = 5}};
		struct wire_hdr hdr = {.kind = WIRE_SEGMENT, .len = bad[i].len};
		struct caller to;
		struct world w;

		begin(&w, leased(calm(2, 4096), LONG_NS), "spin_us=0", "yield_us=0", "psl=4000", "fault_scope=peer", NULL);
		fabric_clock_start(w.fabric, 50);
		call(&to, &w, 0, false, 1, 5, lng.body_bytes);
		assert_int_equal(fabric_inject(w.fabric, 1, 0, &rts, &lng), 0);
		while (fabric_sent(w.fabric, 0, 1, WIRE_CTS) == 0)
			usleep(100);
		/* the first request of the endpoint */
		hdr.ctl = (struct wire_ctl){.id = (1u << 24) + bad[i].id, .offset = bad[i].offset, .value = bad[i].value};
		assert_int_equal(fabric_inject(w.fabric, 1, 0, &hdr, payload), 0);
		assert_int_equal(ended(&to), -EPROTO);
		for (size_t at = 0; at < to.bytes; at++)
			assert_int_equal(to.m.at[at], 0);
		caller_free(&to);
		ibvx_abort(w.ep[1]);
		w.ep[1] = NULL;
		end(&w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_wait),        cmocka_unit_test(matched_probe), cmocka_unit_test(one_waits),
		cmocka_unit_test(nobody_comes),     cmocka_unit_test(unreadable),    cmocka_unit_test(too_slow),
		cmocka_unit_test(ended_by_another), cmocka_unit_test(truncated),     cmocka_unit_test(crowd),
		cmocka_unit_test(deaths),           cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
