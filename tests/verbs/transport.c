/* SPDX-License-Identifier: MIT */
/* The transport verbs over doubles: connecting, credit, gets, and every failure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "transport/verbs/status.h"

static void test_connects_when_first_used(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_true(OPS.reaches(p.side[0].t, 1));
	assert_false(OPS.reaches(p.side[0].t, 0));
	pair_run(&p);
	assert_null(adapter_qp(0)); /* nobody has talked */
	assert_int_equal(pair_send(&p, 0, 1, 100), -EAGAIN);
	pair_run(&p);
	assert_int_equal(pair_send(&p, 0, 1, 100), 0);
	assert_int_equal(pair_send(&p, 1, 1, 0), 0);
	pair_run(&p);
	expect_good(&p.side[0], 1);
	expect_good(&p.side[1], 1);
	assert_int_equal(adapter_requests, 1);
	pair_close(&p);
}

/* Both connect; the request of the higher rank stands, in either order. */
static void test_two_calls_become_one_connection(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		int first = kind % 2;
		struct pair p;

		adapter_reset();
		adapter_faults.no_srq = kind / 2; /* then the receives of a refused call are flushed, and seen before the refusal */
		pair_open(&p, NULL);
		p.side[0].polls_first = p.side[1].polls_first = kind / 2;
		assert_int_equal(pair_send(&p, first, 1, 10), -EAGAIN);
		assert_int_equal(pair_send(&p, 1 - first, 1, 10), -EAGAIN);
		pair_run(&p);
		assert_int_equal(adapter_requests, 2);
		for (uint64_t v = 1; v <= 200; v++) {
			assert_true(pair_send_until(&p, 0, v, 10));
			assert_true(pair_send_until(&p, 1, v, 300));
		}
		pair_run(&p);
		expect_good(&p.side[0], 200);
		expect_good(&p.side[1], 200);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

static void test_streams_of_all_sizes(void **state)
{
	static const char *const variants[][4] = {{NULL},
						  {"verbs_srq=0", NULL},
						  {"verbs_slots=4", "verbs_chunk=512", NULL},
						  {"verbs_inline=0", "verbs_slots=8", NULL},
						  {"verbs_buffer_bytes=64k", NULL},
						  {"verbs_buffer_bytes=64k", "verbs_inline=0", "verbs_slots=64", NULL}};

	(void)state;
	for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct pair p;
		size_t max;

		adapter_reset();
		pair_open(&p, variants[i]);
		max = OPS.payload_max(p.side[0].t, 1);
		for (uint64_t v = 1; v <= 500; v++)
			assert_true(pair_send_until(&p, 1, v, v * 37 % (max + 1)));
		pair_run(&p);
		expect_good(&p.side[0], 500);
		assert_true(i == 3 || i == 5 ? adapter_inlined == 0 : adapter_inlined > 0);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* A receiver that does not poll stops the sender, and credit starts it again. */
static void test_credit_bounds_the_sender(void **state)
{
	static const char *const settings[] = {"verbs_slots=8", NULL};
	struct pair p;
	int sent = 1;

	(void)state;
	open_connected(&p, settings);
	for (uint64_t v = 2; pair_send(&p, 0, v, 8) == 0; v++) {
		sent++;
		assert_true(sent < 20);
		OPS.poll(p.side[0].t, 32); /* sends complete; nothing comes back */
	}
	assert_int_equal(p.side[1].packets, 1);
	pair_run(&p);
	assert_int_equal(p.side[1].packets, sent);
	assert_int_equal(pair_send(&p, 0, (uint64_t)sent + 1, 8), 0);
	pair_run(&p);
	expect_good(&p.side[1], sent + 1);
	pair_close(&p);
}

/* Send completions that do not come stop it, too, and drained() waits for them. */
static void test_full_send_queue(void **state)
{
	static const char *const settings[] = {"verbs_slots=8", NULL};
	struct pair p;
	uint64_t v = 1;

	(void)state;
	pair_open(&p, settings);
	assert_true(pair_send_until(&p, 0, v++, 8));
	pair_run(&p);
	adapter_faults.hold_sends = true;
	while (pair_send(&p, 0, v, 8) == 0) {
		v++;
		assert_true(v < 20);
		pair_run(&p);
	}
	assert_false(OPS.drained(p.side[0].t));
	adapter_release();
	pair_run(&p);
	assert_int_equal(pair_send(&p, 0, v++, 8), 0);
	for (int i = 0; i < 3 && !OPS.drained(p.side[0].t); i++)
		pair_run(&p);
	assert_true(OPS.drained(p.side[0].t));
	pair_run(&p);
	expect_good(&p.side[1], (int)v - 1);
	pair_close(&p);
}

static void test_post_error_ends_the_peer(void **state)
{
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	adapter_faults.post_error = ENOMEM;
	pair_send(&p, 0, 2, 8);
	pair_run(&p);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -EIO);
	assert_non_null(strstr(p.side[0].why, "rank 1"));
	assert_int_equal(p.side[1].downs, 1);
	pair_close(&p);
}

static void test_every_status_ends_the_peer_once(void **state)
{
	(void)state;
	for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; status++) {
		struct pair p;

		adapter_reset();
		open_connected(&p, NULL);
		/* what the other had sent before counts */
		for (uint64_t v = 1; v <= 5; v++)
			assert_int_equal(pair_send(&p, 1, v, 8), 0);
		adapter_faults.next_send = (enum ibv_wc_status)status;
		assert_int_equal(pair_send(&p, 0, 2, 8), 0);
		pair_run(&p);
		pair_run(&p);
		assert_int_equal(p.side[0].downs, 1);
		assert_int_equal(p.side[0].packets_at_down, 5);
		assert_non_null(strstr(p.side[0].why, "rank 1"));
		assert_non_null(strstr(p.side[0].why, status_text((enum ibv_wc_status)status)));
		assert_int_equal(p.side[1].downs, 1);
		assert_int_equal(pair_send(&p, 0, 3, 8), -ECONNRESET);
		assert_true(OPS.drained(p.side[0].t));
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* Each creation call fails in its turn: nothing leaks, nothing hangs, and the error names the reason. */
static void fail_in_turn(const char *const *settings, bool iwarp)
{
	bool failed = true;

	for (int n = 1; failed; n++) {
		struct pair p;
		bool sent;

		adapter_reset();
		adapter_faults.iwarp = iwarp;
		adapter_faults.fail_call = n;
		pair_open(&p, settings);
		sent = OPS.reaches(p.side[0].t, 1) && pair_send_until(&p, 0, 1, 8);
		pair_run(&p);
		failed = adapter_faults.failed != NULL;
		if (!sent && OPS.reaches(p.side[0].t, 1)) {
			assert_true(p.side[0].downs <= 1);
			assert_true(p.side[0].downs == 1 || pair_send(&p, 0, 1, 8) != -EAGAIN);
			if (p.side[0].downs)
				assert_non_null(strstr(p.side[0].why, "rank"));
		}
		if (sent && p.side[0].downs == 0 && p.side[1].downs == 0)
			assert_int_equal(p.side[1].packets, 1);
		assert_true(sent || failed);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

static void test_creation_calls_fail_in_turn(void **state)
{
	static const char *const small[] = {"verbs_slots=4", NULL}, *const no_srq[] = {"verbs_slots=4", "verbs_srq=0", NULL};

	(void)state;
	fail_in_turn(small, false);
	fail_in_turn(no_srq, true);
}

/* Short of locked memory: smaller pools, and it works all the same. */
static void test_buffers_shrink(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	adapter_faults.refuse_reg = 2;
	for (uint64_t v = 1; v <= 100; v++)
		assert_true(pair_send_until(&p, 0, v, 100));
	pair_run(&p);
	expect_good(&p.side[1], 100);
	pair_close(&p);
}

static void pack_and_get(struct pair *p, char *from, char *to, size_t head, size_t body, int expected)
{
	unsigned char desc[WIRE_RMA_MAX];
	const void *base[2] = {from, from + head};
	const size_t len[2] = {head, body};
	struct transport_rma get = {.cookie = 77, .desc = desc, .local = {{to, head}, {to + head, body}}};
	int n = pair_pack(p, 0, 5, TRANSPORT_GET, base, len, desc);

	assert_true(n > 0);
	get.desc_bytes = (size_t)n;
	assert_int_equal(OPS.get(p->side[1].t, 0, &get), expected);
	pair_run(p);
	OPS.release_rkey(p->side[0].t, 1, 5);
	pair_run(p);
}

static void test_gets(void **state)
{
	static char from[100000], to[100000];
	struct pair p;
	int live;

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 7);
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		adapter_reset();
		adapter_faults.iwarp = iwarp;
		open_connected(&p, NULL);
		live = adapter_live();
		memset(to, 0, sizeof(to));
		pack_and_get(&p, from, to, 33333, sizeof(from) - 33333, 0);
		assert_int_equal(p.side[1].gets, 1);
		assert_int_equal(p.side[1].get_error, 0);
		assert_int_equal(p.side[1].get_cookie, 77);
		assert_memory_equal(from, to, sizeof(from));
		assert_true(adapter_reads >= 10); /* the adapter transfers 10,000 bytes at a time */
		assert_int_equal(adapter_live(), live);
		pack_and_get(&p, from, to, 0, 50000, 0);
		pack_and_get(&p, from, to, 50000, 0, 0);
		assert_int_equal(p.side[1].gets, 3);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* Offers `to` of rank 1, writes there from rank 0; value is what the packet behind carries. */
static void offer_and_put(struct pair *p, char *from, char *to, size_t head, size_t body, uint64_t value)
{
	unsigned char desc[WIRE_RMA_MAX];
	const void *base[2] = {to, to + head};
	const size_t len[2] = {head, body};
	const struct wire_hdr behind = {.kind = WIRE_DONE, .ctl = {.value = value}};
	struct transport_rma put = {.cookie = 78, .desc = desc, .local = {{from, head}, {from + head, body}}};
	int n = pair_pack(p, 1, 6, TRANSPORT_PUT, base, len, desc);

	assert_true(n > 0);
	put.desc_bytes = (size_t)n;
	assert_int_equal(OPS.put(p->side[0].t, 1, &put, &behind), 0);
	pair_run(p);
	OPS.release_rkey(p->side[1].t, 0, 6);
	pair_run(p);
}

static void test_puts(void **state)
{
	static char from[100000], to[100000];
	struct pair p;
	int live;

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 7);
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		adapter_reset();
		adapter_faults.iwarp = iwarp;
		open_connected(&p, NULL);
		live = adapter_live();
		memset(to, 0, sizeof(to));
		offer_and_put(&p, from, to, 33333, sizeof(from) - 33333, 2);
		assert_int_equal(p.side[0].puts, 1);
		assert_int_equal(p.side[0].get_error, 0);
		assert_int_equal(p.side[0].get_cookie, 78);
		assert_memory_equal(from, to, sizeof(from));
		assert_true(adapter_writes >= 10); /* the adapter transfers 10,000 bytes at a time */
		assert_int_equal(adapter_live(), live);
		offer_and_put(&p, from, to, 0, 50000, 3);
		offer_and_put(&p, from, to, 50000, 0, 4);
		assert_int_equal(p.side[0].puts, 3);
		expect_good(&p.side[1], 4);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* soft-iWARP sends wrong bytes of short memory across the end of a page: the head of a message, or its body. */
static void test_short_memory_across_a_page(void **state)
{
	static const char *const settings[] = {"verbs_get_min=0", NULL};
	static _Alignas(4096) char from[3 * 4096], to[sizeof(from)];
	struct pair p;

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(1 + i % 127);
	adapter_faults.iwarp = true;
	open_connected(&p, settings);
	for (size_t bytes = 2; bytes <= 33; bytes++) {
		for (size_t first = 1; first < bytes; first++) {
			char *head = from + 4096 - first, *body = from + 2 * 4096 - first;

			memset(to, 0, sizeof(to));
			pack_and_get(&p, head, to, bytes, 4000, 0);
			assert_memory_equal(to, head, bytes + 4000);
			pack_and_get(&p, body - 4000, to, 4000, bytes, 0);
			assert_memory_equal(to, body - 4000, 4000 + bytes);
			memset(to, 0, sizeof(to));
			offer_and_put(&p, head, to, bytes, 4000, 2);
			assert_memory_equal(to, head, bytes + 4000);
		}
	}
	pair_close(&p);
}

/* Without credit the packet behind a put waits, ahead of the core's, and the put does not end before it is out. */
static void test_a_packet_behind_a_put_waits(void **state)
{
	static const char *const settings[] = {"verbs_slots=8", NULL};
	static char from[40000], to[40000];
	unsigned char desc[WIRE_RMA_MAX];
	const void *base[2] = {to, NULL};
	const size_t len[2] = {sizeof(to), 0};
	struct transport_rma put = {.cookie = 78, .desc = desc, .local = {{from, sizeof(from)}, {NULL, 0}}};
	struct wire_hdr behind = {.kind = WIRE_DONE};
	struct pair p;
	uint64_t v = 2;

	(void)state;
	open_connected(&p, settings);
	put.desc_bytes = (size_t)pair_pack(&p, 1, 6, TRANSPORT_PUT, base, len, desc);
	while (pair_send(&p, 0, v, 8) == 0)
		v++;
	behind.ctl.value = v;
	assert_int_equal(OPS.put(p.side[0].t, 1, &put, &behind), 0);
	for (int i = 0; i < 5; i++)
		OPS.poll(p.side[0].t, 32); /* the writes are done; nothing comes back */
	assert_int_equal(p.side[0].puts, 0);
	assert_int_equal(pair_send(&p, 0, v + 1, 8), -EAGAIN);
	pair_run(&p);
	assert_int_equal(p.side[0].puts, 1);
	assert_int_equal(pair_send(&p, 0, v + 1, 8), 0);
	pair_run(&p);
	expect_good(&p.side[1], (int)v + 1);
	OPS.release_rkey(p.side[1].t, 0, 6);
	pair_close(&p);
}

static void test_which_side_starts_rma(void **state)
{
	static const struct {
		const char *setting;
		bool get, put;
	} cases[] = {
		{"verbs_rendezvous=auto", true, true}, {"verbs_rendezvous=read", true, false}, {"verbs_rendezvous=write", false, true}};
	static char from[50000];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const char *const settings[] = {cases[i].setting, NULL};
		const void *base[2] = {from, NULL};
		const size_t len[2] = {sizeof(from), 0};
		unsigned char desc[WIRE_RMA_MAX];
		struct pair p;

		adapter_reset();
		open_connected(&p, settings);
		assert_int_equal(OPS.prefers_get(p.side[0].t, 1, sizeof(from)), cases[i].get);
		assert_int_equal(OPS.prefers_put(p.side[0].t, 1, sizeof(from)), cases[i].put);
		assert_false(OPS.prefers_get(p.side[0].t, 1, 10) || OPS.prefers_put(p.side[0].t, 1, 10));
		assert_int_equal(pair_pack(&p, 0, 5, TRANSPORT_GET, base, len, desc) > 0, cases[i].get);
		assert_int_equal(pair_pack(&p, 0, 6, TRANSPORT_PUT, base, len, desc) > 0, cases[i].put);
		OPS.release_rkey(p.side[0].t, 1, 5);
		OPS.release_rkey(p.side[0].t, 1, 6);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* 5 GB and 3 GB of addresses that nothing stands behind: the double checks each piece against the registrations. */
static void test_lengths_beyond_32_bits(void **state)
{
	const size_t head = (size_t)5 << 30, body = ((size_t)3 << 30) + 17;
	char *from = (char *)(uintptr_t)0x100000000000, *to = (char *)(uintptr_t)0x200000000000;
	struct pair p;

	(void)state;
	adapter_faults.no_copy = true;
	open_connected(&p, NULL);
	pack_and_get(&p, from, to, head, body, 0);
	assert_int_equal(p.side[1].gets, 1);
	assert_int_equal(adapter_rma_bytes, head + body);
	offer_and_put(&p, from, to, head, body, 2);
	assert_int_equal(p.side[0].puts, 1);
	assert_int_equal(adapter_rma_bytes, 2 * (head + body));
	assert_true(adapter_writes >= 128); /* pieces that let others pass */
	expect_good(&p.side[1], 2);
	pair_close(&p);
}

static void test_gets_without_memory(void **state)
{
	static char from[100000], to[100000];
	unsigned char desc[WIRE_RMA_MAX];
	const void *base[2] = {from, from + 50000};
	const size_t len[2] = {50000, 50000}, little[2] = {10, 0};
	struct pair p;
	int live;

	(void)state;
	open_connected(&p, NULL);
	live = adapter_live();
	adapter_faults.refuse_reg = 1;
	assert_int_equal(pair_pack(&p, 0, 5, TRANSPORT_GET, base, len, desc), 0);
	assert_int_equal(pair_pack(&p, 0, 5, TRANSPORT_GET, base, little, desc), 0);
	assert_int_equal(adapter_live(), live);
	adapter_faults.fail_call = 2; /* one at the sender, whose pieces touch, then the receiver's */
	adapter_faults.fail_errno = ENOMEM;
	pack_and_get(&p, from, to, 50000, 50000, 0);
	assert_int_equal(p.side[1].gets, 1); /* which the core then receives otherwise */
	assert_int_equal(p.side[1].get_error, -ENOMEM);
	assert_int_equal(adapter_live(), live);
	pair_close(&p);
}

/* A put is cancelled whose packet waits for credit: the packet is not sent, and nothing waits for it any more. */
static void test_a_cancelled_put_holds_up_nothing(void **state)
{
	static const char *const settings[] = {"verbs_slots=8", NULL};
	static char from[40000], to[40000];
	unsigned char desc[WIRE_RMA_MAX];
	const void *base[2] = {to, NULL};
	const size_t len[2] = {sizeof(to), 0};
	struct transport_rma put = {.cookie = 78, .desc = desc, .local = {{from, sizeof(from)}, {NULL, 0}}};
	struct wire_hdr behind = {.kind = WIRE_DONE};
	uint64_t v = 2;

	(void)state;
	for (int second = 0; second < 2; second++) {
		struct pair p;

		adapter_reset();
		open_connected(&p, settings);
		put.desc_bytes = (size_t)pair_pack(&p, 1, 6, TRANSPORT_PUT, base, len, desc);
		for (v = 2; pair_send(&p, 0, v, 8) == 0;)
			v++;
		for (int i = 0; i <= second; i++) { /* the second one waits behind the first */
			put.cookie = 78 + (uint64_t)i;
			behind.ctl.value = v + 1 - (uint64_t)i;
			assert_int_equal(OPS.put(p.side[0].t, 1, &put, &behind), 0);
		}
		for (int i = 0; i < 5; i++)
			OPS.poll(p.side[0].t, 32);
		OPS.cancel(p.side[0].t, 1, 78);
		pair_run(&p);
		assert_int_equal(p.side[0].puts, second);
		assert_int_equal(pair_send(&p, 0, v + (uint64_t)second, 8), 0);
		pair_run(&p);
		expect_good(&p.side[1], (int)v + second);
		OPS.release_rkey(p.side[1].t, 0, 6);
		pair_close(&p);
	}
}

static void test_cancelled_rma(void **state)
{
	static char from[200000], to[200000];
	unsigned char desc[WIRE_RMA_MAX];
	const void *base[2] = {from, NULL};
	const size_t len[2] = {sizeof(from), 0};
	struct transport_rma get = {.cookie = 9, .desc = desc, .local = {{to, sizeof(to)}, {NULL, 0}}};
	const struct wire_hdr behind = {.kind = WIRE_DONE};
	unsigned char offer[WIRE_RMA_MAX];
	struct transport_rma put = {.cookie = 10, .desc = offer, .local = {{to, sizeof(to)}, {NULL, 0}}};
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	get.desc_bytes = (size_t)pair_pack(&p, 0, 5, TRANSPORT_GET, base, len, desc);
	assert_int_equal(OPS.get(p.side[1].t, 0, &get), 0);
	OPS.cancel(p.side[1].t, 0, 9);
	pair_run(&p);
	assert_int_equal(p.side[1].gets, 0);
	/* and some that the end of the peer interrupts: the core cancels them */
	assert_int_equal(OPS.get(p.side[1].t, 0, &get), 0);
	put.desc_bytes = (size_t)pair_pack(&p, 0, 6, TRANSPORT_PUT, base, len, offer);
	assert_int_equal(OPS.put(p.side[1].t, 0, &put, &behind), 0);
	OPS.forget(p.side[1].t, 0);
	OPS.cancel(p.side[1].t, 0, 9);
	OPS.cancel(p.side[1].t, 0, 10);
	pair_run(&p);
	assert_int_equal(p.side[1].gets + p.side[1].puts, 0);
	assert_int_equal(p.side[0].packets, 0);
	assert_int_equal(p.side[1].downs, 0); /* the side that gave up gets no report */
	assert_int_equal(p.side[0].downs, 1);
	pair_close(&p);
}

/* The request of an operation that is under way ends while both ranks live, or as its peer is given up: its memory is not touched
 * once that is reported, though all of it lies in buffers that stay registered. */
static void test_cancelled_memory_is_out_of_reach(void **state)
{
	static char from[50000], to[50000];
	const struct wire_hdr behind = {.kind = WIRE_DONE};

	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		bool put = kind % 2, owner = kind / 2 == 1, forget = kind / 2 == 2;
		int mover = put ? 0 : 1, side = owner ? 1 - mover : mover;
		const void *base[2] = {put ? to : from, NULL};
		const size_t len[2] = {sizeof(from), 0};
		unsigned char desc[WIRE_RMA_MAX];
		struct transport_rma rma = {.cookie = 9, .desc = desc, .local = {{put ? from : to, sizeof(from)}, {NULL, 0}}};
		struct pair p;

		adapter_reset();
		pair_open(&p, NULL);
		for (int r = 0; r < 2; r++)
			assert_int_equal(
				OPS.buffer_register(p.side[r].t, from, sizeof(from)) + OPS.buffer_register(p.side[r].t, to, sizeof(to)), 2);
		assert_true(pair_send_until(&p, 0, 1, 8));
		pair_run(&p);
		adapter_faults.hold_rma = true;
		rma.desc_bytes = (size_t)pair_pack(&p, 1 - mover, 5, put ? TRANSPORT_PUT : TRANSPORT_GET, base, len, desc);
		assert_int_equal(put ? OPS.put(p.side[0].t, 1, &rma, &behind) : OPS.get(p.side[1].t, 0, &rma), 0);
		pair_run(&p);
		if (forget)
			OPS.forget(p.side[side].t, 1 - side);
		assert_int_equal(OPS.cancel(p.side[side].t, 1 - side, owner ? 5 : 9), -EINPROGRESS);
		assert_int_equal(p.side[side].cancels, 0);
		for (int i = 0; i < 5; i++)
			side_step(&p.side[side]);
		assert_int_equal(p.side[side].cancels, 1);
		memset(from, 1, sizeof(from));
		memset(to, 2, sizeof(to));
		adapter_release();
		pair_run(&p);
		for (size_t i = 0; i < sizeof(to); i++)
			assert_int_equal(to[i], 2);
		assert_int_equal(p.side[side].gets + p.side[side].puts, 0);
		assert_int_equal(p.side[side].cancels, 1);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

static void test_a_failed_read_ends_the_peer(void **state)
{
	static char from[50000], to[50000];
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	adapter_faults.next_send = IBV_WC_REM_ACCESS_ERR;
	pack_and_get(&p, from, to, sizeof(from), 0, 0);
	assert_int_equal(p.side[1].gets, 0);
	assert_int_equal(p.side[1].downs, 1);
	assert_non_null(strstr(p.side[1].why, status_text(IBV_WC_REM_ACCESS_ERR)));
	pair_close(&p);
}

static void test_nonsense_from_the_wire(void **state)
{
	static const struct wire_hdr packets[] = {
		{.kind = WIRE_EAGER, .len = 1000},      /* claims more than came */
		{.kind = WIRE_EAGER, .stamp = 5000},    /* more credit than there is */
		{.kind = WIRE_NONE, .ctl = {.id = 99}}, /* no such packet */
	};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct pair p;

		adapter_reset();
		open_connected(&p, NULL);
		/* queue pair 1 is the answering side's, rank 1 */
		adapter_inject(i < 3 ? (const void *)&packets[i] : "x", i < 3 ? sizeof(packets[i]) : 1, adapter_qp(1));
		pair_run(&p);
		assert_int_equal(p.side[1].downs, 1);
		assert_int_equal(p.side[1].down_error, -EPROTO);
		assert_int_equal(p.side[1].packets, 1);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

static void test_deaths_and_farewells(void **state)
{
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	adapter_disconnect_all();
	pair_run(&p);
	assert_int_equal(p.side[1].downs, 1);
	assert_int_equal(p.side[1].down_error, -ECONNRESET);
	assert_int_equal(p.side[1].packets_at_down, 2);
	pair_close(&p);
	assert_int_equal(adapter_live(), 0);

	adapter_reset();
	open_connected(&p, NULL);
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	OPS.leave(p.side[0].t);
	adapter_disconnect_all();
	pair_run(&p);
	assert_int_equal(p.side[1].packets_at_down, 2);
	assert_int_equal(p.side[1].downs, 1);
	assert_int_equal(p.side[1].down_error, -EPIPE);
	pair_close(&p);
}

static void test_events_of_the_device(void **state)
{
	static const enum ibv_event_type deadly[] = {IBV_EVENT_DEVICE_FATAL, IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR, IBV_EVENT_QP_FATAL};
	static const enum ibv_event_type harmless[] = {IBV_EVENT_PORT_ERR,    IBV_EVENT_PORT_ACTIVE, IBV_EVENT_LID_CHANGE,
						       IBV_EVENT_PKEY_CHANGE, IBV_EVENT_GID_CHANGE,  IBV_EVENT_CLIENT_REREGISTER,
						       IBV_EVENT_SM_CHANGE};

	(void)state;
	for (unsigned i = 0; i < 4 + sizeof(harmless) / sizeof(harmless[0]); i++) {
		struct pair p;

		adapter_reset();
		open_connected(&p, NULL);
		adapter_async(i < 4 ? deadly[i] : harmless[i - 4], 1);
		pair_run(&p);
		assert_int_equal(p.side[0].downs, i < 4 ? 1 : 0);
		assert_int_equal(p.side[1].downs, i < 4 ? 1 : 0);
		if (i < 4)
			assert_non_null(strstr(p.side[0].why, event_text(deadly[i])));
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* A port that stays down for longer than a packet would be tried ends even peers to which nothing is sent. */
static void test_a_port_that_stays_down(void **state)
{
	static const char *const settings[] = {"verbs_timeout_ms=20", NULL};

	(void)state;
	for (int back = 0; back < 2; back++) {
		struct pair p;

		adapter_reset();
		open_connected(&p, settings);
		adapter_async(IBV_EVENT_PORT_ERR, 1);
		pair_run(&p);
		adapter_async(IBV_EVENT_PORT_ERR, 2); /* carries nothing: it comes and goes meanwhile */
		pair_run(&p);
		adapter_async(IBV_EVENT_PORT_ACTIVE, 2);
		pair_run(&p);
		if (back)
			adapter_async(IBV_EVENT_PORT_ACTIVE, 1);
		pair_run(&p);
		for (int ms = 0; ms < (back ? 100 : 10000) && p.side[0].downs + p.side[1].downs < 2; ms++) {
			usleep(1000);
			pair_run(&p);
		}
		/* one side gets the event; the other one's connection ends */
		assert_int_equal(p.side[0].downs, !back);
		assert_int_equal(p.side[1].downs, !back);
		assert_true(back || strstr(p.side[0].why, "port 1 is down") || strstr(p.side[1].why, "port 1 is down"));
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* A sleeper is woken through the completion channel, and only when asked for. */
static void test_arming(void **state)
{
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	assert_false(OPS.ready(p.side[1].t));
	OPS.arm(p.side[1].t);
	assert_int_equal(pair_send(&p, 0, 2, 8), 0);
	assert_true(OPS.ready(p.side[1].t)); /* takes it into the stash */
	assert_int_equal(p.side[1].packets, 1);
	pair_run(&p);
	expect_good(&p.side[1], 2);
	pair_close(&p);
}

static void test_wanted_device(void **state)
{
	static const struct {
		const char *setting;
		bool there;
	} cases[] = {{"verbs_device=fake0", true}, {"verbs_device=fake0:1", true}, {"verbs_device=fake0:2", false},
		     {"verbs_device=fake", false}, {"verbs_device=fake01", false}, {"verbs_gid_index=1", true},
		     {"verbs_gid_index=0", false}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const settings[] = {cases[i].setting, NULL};
		struct pair p;

		adapter_reset();
		pair_open(&p, settings);
		assert_int_equal(OPS.reaches(p.side[0].t, 1), cases[i].there);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* The first burst over iWARP may use all the credit it gets and be overlooked: HELLO must still go out. */
static void test_an_overlooked_burst(void **state)
{
	static const char *const variants[][2] = {{NULL}, {"verbs_slots=16", NULL}};

	(void)state;
	for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct pair p;
		uint64_t sent = 0;

		adapter_reset();
		adapter_faults.iwarp = true;
		adapter_faults.overlook = true;
		pair_open(&p, variants[i]);
		assert_true(pair_send_until(&p, 0, ++sent, 8));
		while (pair_send(&p, 0, sent + 1, 8) == 0)
			sent++;
		pair_run(&p);
		assert_int_equal(p.side[1].packets, 0);
		adapter_faults.overlook = false;
		for (int ms = 0; ms < 20000 && p.side[1].packets < (int)sent; ms++) {
			usleep(1000);
			pair_run(&p);
		}
		expect_good(&p.side[1], (int)sent);
		assert_true(pair_send_until(&p, 0, sent + 1, 8));
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connects_when_first_used),
		TEST(test_two_calls_become_one_connection),
		TEST(test_streams_of_all_sizes),
		TEST(test_credit_bounds_the_sender),
		TEST(test_full_send_queue),
		TEST(test_post_error_ends_the_peer),
		TEST(test_every_status_ends_the_peer_once),
		TEST(test_creation_calls_fail_in_turn),
		TEST(test_buffers_shrink),
		TEST(test_gets),
		TEST(test_gets_without_memory),
		TEST(test_puts),
		TEST(test_short_memory_across_a_page),
		TEST(test_a_packet_behind_a_put_waits),
		TEST(test_which_side_starts_rma),
		TEST(test_lengths_beyond_32_bits),
		TEST(test_a_cancelled_put_holds_up_nothing),
		TEST(test_cancelled_rma),
		TEST(test_cancelled_memory_is_out_of_reach),
		TEST(test_a_failed_read_ends_the_peer),
		TEST(test_nonsense_from_the_wire),
		TEST(test_deaths_and_farewells),
		TEST(test_events_of_the_device),
		TEST(test_a_port_that_stays_down),
		TEST(test_arming),
		TEST(test_wanted_device),
		TEST(test_an_overlooked_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
