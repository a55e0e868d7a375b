/* SPDX-License-Identifier: MIT */
/* How messages travel: truncation, split receives, synchronous sends, credit, and gets that fail. */
#include "directed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PSL 4000

static const size_t sizes[] = {8, 3000, 60000}; /* eager, fragmented (packets of 512), rendezvous */

static void truncation(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (int how = 0; how < 16; how++) {
			bool sync = how & 1, early = how & 2, split = how & 4;
			struct world_config cfg = calm(2, 512);
			struct text t = text_of(3, sizes[kind]), next = text_of(4, 20);
			struct ibvx_sbuf buf = {t.bytes, split ? t.len : t.len / 2, t.bytes + t.len / 2, split ? 0 : t.len - t.len / 2, 3};
			char mem[60000], mem2[20], sizes_text[2][24];
			struct ibvx_rbuf into = {mem, t.len - 1, split};
			struct ibvx_status s;
			ibvx_req send[2], recv[2];
			struct world w;

			cfg.ops = how & 8 ? &fake_plain_ops : &fake_ops;
			begin(&w, cfg, "psl=4000", NULL);
			memset(mem, 0x77, sizeof(mem));
			if (early)
				assert_int_equal(ibvx_irecv(w.ep[1], &into, 0, 1, CTX, &recv[0]), 0);
			assert_int_equal(
				sync ? ibvx_issend(w.ep[0], &buf, 1, 1, CTX, &send[0]) : ibvx_isend(w.ep[0], &buf, 1, 1, CTX, &send[0]), 0);
			send[1] = put(&w, 0, 1, 1, next, 4, false);
			settle(&w);
			if (!early)
				assert_int_equal(ibvx_irecv(w.ep[1], &into, 0, 1, CTX, &recv[0]), 0);
			recv[1] = take(&w, 1, 0, 1, mem2, sizeof(mem2));
			assert_int_equal(finish(&w, 1, &recv[0], &s), -EMSGSIZE);
			snprintf(sizes_text[0], sizeof(sizes_text[0]), "%zu", t.len);
			snprintf(sizes_text[1], sizeof(sizes_text[1]), "%zu", t.len - 1);
			assert_non_null(strstr(ibvx_error(), sizes_text[0]));
			assert_non_null(strstr(ibvx_error(), sizes_text[1]));
			assert_int_equal(s.error, -EMSGSIZE);
			assert_int_equal(s.head_bytes + s.body_bytes, t.len);
			assert_int_equal(s.user, 3);
			assert_null(s.body);
			for (size_t i = 0; i < t.len; i++)
				assert_int_equal(mem[i], 0x77);
			assert_int_equal(finish(&w, 1, &recv[1], &s), 0);
			assert_text(mem2, 4, 20);
			assert_int_equal(finish(&w, 0, &send[0], NULL), 0);
			assert_int_equal(finish(&w, 0, &send[1], NULL), 0);
			assert_int_equal(fabric_registrations(w.fabric, 0), 0);
			end(&w);
			text_free(t);
			text_free(next);
		}
}

/* The head goes to the caller's memory, the body, however long, to memory of its own. */
static void split_receives(void **state)
{
	static const size_t bodies[] = {0, 1, 5000, 200000};

	(void)state;
	for (int how = 0; how < 16; how++) {
		struct world_config cfg = calm(2, how & 4 ? 512 : 8192);
		size_t body = bodies[how & 3];
		struct text t = text_of(9, 100 + body);
		struct ibvx_sbuf buf = {t.bytes, 100, t.bytes + 100, body, 9};
		char mem[100], *whole;
		struct ibvx_rbuf into = {mem, sizeof(mem), 1};
		struct ibvx_status s;
		ibvx_req send, recv;
		struct world w;

		cfg.ops = how & 8 ? &fake_plain_ops : &fake_ops;
		begin(&w, cfg, "psl=4000", NULL);
		assert_int_equal(ibvx_isend(w.ep[0], &buf, 1, 1, CTX, &send), 0);
		assert_int_equal(ibvx_irecv(w.ep[1], &into, 0, 1, CTX, &recv), 0);
		assert_int_equal(finish(&w, 1, &recv, &s), 0);
		assert_int_equal(s.head_bytes, 100);
		assert_int_equal(s.body_bytes, body);
		assert_text(mem, 9, 100);
		if (body)
			assert_non_null(s.body);
		whole = malloc(100 + body);
		memcpy(whole, mem, 100);
		if (body)
			memcpy(whole + 100, s.body, body);
		assert_text(whole, 9, 100 + body);
		free(whole);
		ibvx_free(s.body);
		assert_int_equal(finish(&w, 0, &send, NULL), 0);
		end(&w);
		text_free(t);
	}
}

/* A synchronous send is open until a receive has matched, whatever carries it. */
static void synchronous(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (int to_self = 0; to_self < 2; to_self++) {
			struct text t = text_of(2, sizes[kind]);
			char mem[60000];
			struct ibvx_status s;
			ibvx_req send, recv;
			struct world w;
			int dst = to_self ? 0 : 1;

			begin(&w, calm(2, 512), "psl=4000", NULL);
			send = put(&w, 0, dst, 1, t, 2, true);
			assert_true(stays_open(&w, 0, &send));
			assert_int_equal(ibvx_iprobe(w.ep[dst], 0, 1, CTX, &s), 1);
			assert_true(stays_open(&w, 0, &send)); /* a probe does not match */
			recv = take(&w, dst, 0, 1, mem, sizeof(mem));
			assert_int_equal(finish(&w, dst, &recv, &s), 0);
			assert_text(mem, 2, t.len);
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
			end(&w);
			text_free(t);
		}
}

/* Up to the switch limit a standard send ends without its receiver; above, it does not. */
static void switch_limit(void **state)
{
	static const size_t len[] = {0, PSL - 1, PSL, PSL + 1};
	char mem[PSL + 1];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct text t = text_of(5, len[i]);
		struct world w;
		ibvx_req send, recv;

		begin(&w, calm(2, 512), "psl=4000", NULL);
		send = put(&w, 0, 1, 1, t, 5, false);
		assert_int_equal(stays_open(&w, 0, &send), len[i] > PSL);
		assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_RTS), len[i] > PSL);
		recv = take(&w, 1, 0, 1, mem, sizeof(mem));
		assert_int_equal(finish(&w, 1, &recv, NULL), 0);
		assert_text(mem, 5, len[i]);
		if (len[i] > PSL)
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
		end(&w);
		text_free(t);
	}
}

/* An announcement without descriptors brings the first packet's worth along, while there is credit for it: then one
 * DATA packet less is sent. A receive too short for the whole takes nothing of it. */
static void first_bytes(void **state)
{
	enum { LEN = 60000, PACKET = 512, FIRST = PACKET - (int)sizeof(struct wire_long), COUNT = 100 };
	static char mem[COUNT][LEN];
	struct text t = text_of(6, LEN);

	(void)state;
	for (int early = 0; early < 2; early++) {
		struct world_config cfg = calm(2, PACKET);
		ibvx_req send[COUNT], recv[COUNT];
		int64_t carried = 0, rest = 0;
		struct world w;

		cfg.ops = &fake_plain_ops;
		begin(&w, cfg, "psl=4000", "eager_window=64k", NULL);
		for (int i = 0; early && i < COUNT; i++)
			recv[i] = take(&w, 1, 0, 1, mem[i], LEN);
		for (int i = 0; i < COUNT; i++)
			send[i] = put(&w, 0, 1, 1, t, 6, false);
		settle(&w);
		for (int i = 0; !early && i < COUNT; i++)
			recv[i] = take(&w, 1, 0, 1, mem[i], LEN);
		for (int i = 0; i < COUNT; i++) {
			assert_int_equal(finish(&w, 1, &recv[i], NULL), 0);
			assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
			assert_text(mem[i], 6, LEN);
		}
		/* what the announcements carried is missing from the DATA packets */
		rest = (int64_t)fabric_sent(w.fabric, 0, 1, WIRE_DATA);
		carried = (int64_t)COUNT * ((LEN + PACKET - 1) / PACKET) - rest;
		assert_true(carried > 10);
		/* unreceived ones may bring no more than the credit window allows */
		assert_true(early || carried <= 64 * 1024 / FIRST);
		end(&w);
	}
	text_free(t);
}

/* All has been consumed: the largest eager message goes again without its receive. */
static void assert_buffers_again(struct world *w)
{
	static char mem[32000];
	struct text t = text_of(9, sizeof(mem));
	ibvx_req send = put(w, 0, 1, 5, t, 9, false), recv;

	assert_int_equal(finish(w, 0, &send, NULL), 0);
	recv = take(w, 1, 0, 5, mem, sizeof(mem));
	assert_int_equal(finish(w, 1, &recv, NULL), 0);
	assert_text(mem, 9, sizeof(mem));
	text_free(t);
}

/* A fast sender and a receiver that first wants the last message: everything comes, memory stays bounded,
 * and what does not fit is not read before its turn. */
static void flood(void **state)
{
	enum { COUNT = 10000, LEN = 1000 };
	static char mem[LEN];
	static ibvx_req send[COUNT + 1];
	struct text t = text_of(1, LEN), late = text_of(50, LEN), last = text_of(7, 10);
	struct ibvx_status s;
	struct world w;
	ibvx_req recv;
	int open = 0;

	(void)state;
	begin(&w, calm(2, 4096), "eager_window=64k", NULL);
	for (int i = 0; i < COUNT; i++)
		send[i] = put(&w, 0, 1, 1, i == COUNT - 1 ? late : t, (uint64_t)i, false);
	send[COUNT] = put(&w, 0, 1, 2, last, COUNT, false);
	settle(&w);
	assert_true(fabric_sent(w.fabric, 0, 1, WIRE_EAGER) * LEN <= 65536);
	for (int i = 0; i < COUNT; i++)
		open += ibvx_test(w.ep[0], &send[i], NULL) == 0;
	assert_true(open > COUNT - 200);
	/* unread: what we write now is what arrives */
	for (size_t i = 0; i < LEN; i++)
		late.bytes[i] = t.bytes[i];
	recv = take(&w, 1, 0, 2, mem, sizeof(mem));
	assert_int_equal(finish(&w, 1, &recv, &s), 0);
	assert_int_equal(s.user, COUNT);
	assert_text(mem, 7, 10);
	/* envelopes came, payload did not */
	assert_true(fabric_sent(w.fabric, 0, 1, WIRE_EAGER) * LEN <= 2 * 65536);
	assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_DATA), 0);
	for (int i = 0; i < COUNT; i++) {
		recv = take(&w, 1, 0, i % 2 ? 1 : IBVX_ANY_TAG, mem, sizeof(mem));
		assert_int_equal(finish(&w, 1, &recv, &s), 0);
		assert_int_equal(s.user, i);
		assert_text(mem, 1, LEN);
	}
	for (int i = 0; i <= COUNT; i++)
		assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
	assert_buffers_again(&w);
	end(&w);
	text_free(t);
	text_free(late);
	text_free(last);
}

/* The same through probes alone: a probe asks for a message that lies behind a full credit window. */
static void flood_probed(void **state)
{
	enum { COUNT = 2000, LEN = 300 };
	static ibvx_req send[COUNT];
	struct text t = text_of(1, LEN);
	struct ibvx_status s;
	struct world w;
	char mem[LEN];
	int found = 0;

	(void)state;
	begin(&w, calm(3, 4096), "eager_window=64k", NULL);
	for (int i = 0; i < COUNT; i++)
		send[i] = put(&w, 0, 1, i == COUNT - 1 ? 2 : 1, t, (uint64_t)i, false);
	for (int i = 0; i < 200000 && !found; i++) {
		found = ibvx_iprobe(w.ep[1], IBVX_ANY_SOURCE, 2, CTX, &s);
		world_turn(&w, 1);
	}
	assert_int_equal(found, 1);
	assert_int_equal(s.user, COUNT - 1);
	for (int i = 0; i < COUNT; i++) {
		ibvx_req recv = take(&w, 1, IBVX_ANY_SOURCE, IBVX_ANY_TAG, mem, sizeof(mem));

		assert_int_equal(finish(&w, 1, &recv, &s), 0);
		assert_int_equal(s.user, i);
		assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
	}
	assert_buffers_again(&w);
	end(&w);
	text_free(t);
}

/* A get that cannot be: the message streams. Other errors: never a hang, never wrong bytes. */
static void failing_gets(void **state)
{
	static const int errors[] = {-EPERM, -ENOSYS, -EIO, -EFAULT};
	static char mem[60000];

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct world_config cfg = calm(2, 4096);
		struct text t = text_of(2, 60000);
		struct world w;

		cfg.net.put_min = SIZE_MAX;
		cfg.net.get_fail_percent = 100;
		cfg.net.get_errno = errors[k];
		cfg.net.get_delay_max = 50;
		begin(&w, cfg, "psl=4000", NULL);
		for (int i = 0; i < 3; i++) {
			ibvx_req send = put(&w, 0, 1, 1, t, 2, i % 2), recv = take(&w, 1, 0, 1, mem, sizeof(mem));

			memset(mem, 0, sizeof(mem));
			assert_int_equal(finish(&w, 1, &recv, NULL), 0);
			assert_text(mem, 2, t.len);
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
		}
		assert_true(fabric_sent(w.fabric, 0, 1, WIRE_DATA) > 0);
		assert_int_equal(fabric_registrations(w.fabric, 0), 0);
		end(&w);
		text_free(t);
	}
}

static void good_gets(void **state)
{
	static char mem[60000];
	struct world_config cfg = calm(2, 4096);
	struct text t = text_of(2, 60000);
	struct world w;
	ibvx_req send, recv;

	(void)state;
	cfg.net.get_delay_max = 500;
	begin(&w, cfg, "psl=4000", NULL);
	send = put(&w, 0, 1, 1, t, 2, false);
	recv = take(&w, 1, 0, 1, mem, sizeof(mem));
	assert_int_equal(finish(&w, 1, &recv, NULL), 0);
	assert_text(mem, 2, t.len);
	assert_int_equal(finish(&w, 0, &send, NULL), 0);
	assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_DATA), 0);
	assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_FIN), 1);
	end(&w);
	text_free(t);
}

/* Where no get carries it: the receiver offers its memory, the sender writes. Head and body apart, too. */
static void good_puts(void **state)
{
	static char mem[60000], whole[60000];

	(void)state;
	for (int split = 0; split < 2; split++) {
		struct world_config cfg = calm(2, 4096);
		struct text t = text_of(2, 60000);
		struct ibvx_sbuf buf = {t.bytes, 1000, t.bytes + 1000, t.len - 1000, 2};
		struct ibvx_rbuf into = {mem, sizeof(mem), split};
		struct ibvx_status s;
		struct world w;
		ibvx_req send, recv;

		cfg.net.get_min = SIZE_MAX;
		cfg.net.get_delay_max = 500;
		begin(&w, cfg, "psl=4000", NULL);
		assert_int_equal(ibvx_isend(w.ep[0], &buf, 1, 1, CTX, &send), 0);
		assert_int_equal(ibvx_irecv(w.ep[1], &into, 0, 1, CTX, &recv), 0);
		assert_int_equal(finish(&w, 1, &recv, &s), 0);
		memcpy(whole, mem, split ? 1000 : t.len);
		if (split)
			memcpy(whole + 1000, s.body, t.len - 1000);
		assert_text(whole, 2, t.len);
		ibvx_free(s.body);
		assert_int_equal(finish(&w, 0, &send, NULL), 0);
		assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_DATA), 0);
		assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_DONE), 1);
		assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_CTS), 1);
		assert_int_equal(fabric_registrations(w.fabric, 1), 0);
		end(&w);
		text_free(t);
	}
}

/* A put that cannot be: the message streams. A get that fails first is followed by a put. */
static void failing_puts(void **state)
{
	static char mem[60000];

	(void)state;
	for (int how = 0; how < 4; how++) {
		struct world_config cfg = calm(2, 4096);
		struct text t = text_of(2, 60000);
		struct world w;

		cfg.net.get_min = how & 1 ? 0 : SIZE_MAX;
		cfg.net.get_fail_percent = 100;
		cfg.net.put_fail_percent = how & 2 ? 100 : 0;
		cfg.net.get_delay_max = 50;
		begin(&w, cfg, "psl=4000", NULL);
		for (int i = 0; i < 3; i++) {
			ibvx_req send = put(&w, 0, 1, 1, t, 2, i % 2), recv = take(&w, 1, 0, 1, mem, sizeof(mem));

			memset(mem, 0, sizeof(mem));
			assert_int_equal(finish(&w, 1, &recv, NULL), 0);
			assert_text(mem, 2, t.len);
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
		}
		assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_DATA) > 0, how & 2 ? 1 : 0);
		assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_DONE), how & 2 ? 0 : 3);
		assert_int_equal(fabric_registrations(w.fabric, 0) + fabric_registrations(w.fabric, 1), 0);
		end(&w);
		text_free(t);
	}
}

/* DONE for a receive that has offered nothing is no completion. */
static void stray_done(void **state)
{
	struct text t = text_of(2, 60000);
	struct wire_hdr done = {.kind = WIRE_DONE};
	static char mem[60000];
	struct world_config cfg = calm(2, 4096);
	struct world w;
	ibvx_req send, recv;

	(void)state;
	cfg.net.get_min = cfg.net.put_min = SIZE_MAX;
	cfg.net.delay_max = 20;
	begin(&w, cfg, "psl=4000", NULL);
	recv = take(&w, 1, 0, 1, mem, sizeof(mem));
	send = put(&w, 0, 1, 1, t, 2, false);
	while (fabric_sent(w.fabric, 1, 0, WIRE_CTS) == 0)
		world_turn(&w, 1);
	done.ctl.id = (uint32_t)recv - 1u + ((uint32_t)(recv >> 32) << 24);
	assert_int_equal(fabric_inject(w.fabric, 0, 1, &done, NULL), 0);
	assert_int_equal(finish(&w, 1, &recv, NULL), -EPROTO);
	assert_non_null(strstr(ibvx_error(), "DONE"));
	(void)send;
	for (int r = 0; r < 2; r++) {
		ibvx_abort(w.ep[r]);
		w.ep[r] = NULL;
	}
	(void)world_close(&w);
	text_free(t);
}

/* Gets from the first byte on, and whether they are used is learned. */
static struct world_config learning(void)
{
	struct world_config cfg = calm(2, 4096);

	cfg.net.learns_gets = true;
	cfg.net.get_min = 1;
	cfg.net.put_min = SIZE_MAX;
	return cfg;
}

/* Where the method is learned, both methods are used and measured. */
static void learned_methods(void **state)
{
	struct text t = text_of(2, 60000);
	static char mem[60000];
	struct world w;

	(void)state;
	begin(&w, learning(), "psl=4000", NULL);
	for (int i = 0; i < 100; i++) {
		ibvx_req recv = take(&w, 1, 0, 1, mem, sizeof(mem)), send = put(&w, 0, 1, 1, t, 2, i % 2);

		memset(mem, 0, sizeof(mem));
		assert_int_equal(finish(&w, 1, &recv, NULL), 0);
		assert_text(mem, 2, t.len);
		assert_int_equal(finish(&w, 0, &send, NULL), 0);
	}
	assert_in_range(world_counter(w.ep[1], 0, "gets"), 1, 99);
	assert_in_range(world_counter(w.ep[1], 0, "pipelines_in"), 1, 99);
	assert_true(world_counter(w.ep[1], 0, "learned_32k_ring_ns") > 0);
	assert_true(world_counter(w.ep[1], 0, "learned_32k_get_ns") > 0);
	end(&w);
	text_free(t);
}

/* Up to the switch limit a standard send completes before it is received, also where the method of long messages is learned. */
static void head_to_head(void **state)
{
	struct text t = text_of(2, 60000);
	static char mem[60000];
	struct world w;

	(void)state;
	begin(&w, learning(), "psl=64k", NULL);
	for (int i = 0; i < 30; i++) {
		for (int r = 0; r < 2; r++) {
			ibvx_req send = put(&w, r, 1 - r, 1, t, 2, false);

			assert_int_equal(finish(&w, r, &send, NULL), 0);
		}
		for (int r = 0; r < 2; r++) {
			ibvx_req recv = take(&w, r, 1 - r, 1, mem, sizeof(mem));

			assert_int_equal(finish(&w, r, &recv, NULL), 0);
			assert_text(mem, 2, t.len);
		}
	}
	end(&w);
	text_free(t);
}

/* A HINT that makes no sense breaks the peer. */
static void stray_hints(void **state)
{
	static const struct wire_ctl bad[] = {
		{.id = COST_CLASSES, .from = COST_GET, .value = 1},
		{.id = 0, .from = COST_UNLEARNED, .value = 1},
		{.id = 0, .from = COST_GET, .value = 0},
		{.id = 0, .from = COST_GET, .value = UINT64_MAX},
	};
	static char mem[8];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wire_hdr hint = {.kind = WIRE_HINT, .ctl = bad[i]};
		struct world w;
		ibvx_req recv;

		begin(&w, calm(2, 4096), NULL);
		recv = take(&w, 1, 0, 1, mem, sizeof(mem));
		assert_int_equal(fabric_inject(w.fabric, 0, 1, &hint, NULL), 0);
		assert_int_equal(finish(&w, 1, &recv, NULL), -EPROTO);
		assert_non_null(strstr(ibvx_error(), "hint"));
		for (int r = 0; r < 2; r++) {
			ibvx_abort(w.ep[r]);
			w.ep[r] = NULL;
		}
		(void)world_close(&w);
	}
}

/* The memory of a get, or of a put, takes a while to be registered: the RTS or CTS waits for it, and what was sent behind it. */
static void registered_later(void **state)
{
	(void)state;
	for (int put_offered = 0; put_offered < 2; put_offered++) {
		struct world_config cfg = calm(2, 4096);
		struct text big = text_of(1, 50000), small = text_of(2, 100);
		static char in[50000], in2[100];
		ibvx_req send, behind, recv, recv2;
		struct ibvx_status s;
		struct world w;

		cfg.net.get_min = put_offered ? SIZE_MAX : 0;
		cfg.net.pack_delay_max = 1u << 30;
		begin(&w, cfg, "psl=4000", NULL);
		recv = take(&w, 1, 0, IBVX_ANY_TAG, in, sizeof(in));
		send = put(&w, 0, 1, 1, big, 1, false);
		behind = put(&w, 0, 1, 2, small, 2, false);
		for (int i = 0; i < 100; i++)
			world_turn(&w, 0);
		assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_RTS) + fabric_sent(w.fabric, 0, 1, WIRE_EAGER), 0);
		fabric_step(w.fabric, 1u << 31);
		for (int i = 0; i < 100 && put_offered; i++)
			world_turn(&w, 0);
		if (put_offered) { /* the RTS has left; now it is the receiver's memory */
			assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_RTS), 1);
			assert_int_equal(fabric_sent(w.fabric, 0, 1, WIRE_EAGER), 1);
			assert_int_equal(fabric_sent(w.fabric, 1, 0, WIRE_CTS), 0);
			fabric_step(w.fabric, 1u << 31);
		}
		assert_int_equal(finish(&w, 1, &recv, &s), 0);
		assert_int_equal(s.tag, 1);
		assert_text(in, 1, big.len);
		recv2 = take(&w, 1, 0, IBVX_ANY_TAG, in2, sizeof(in2));
		assert_int_equal(finish(&w, 1, &recv2, &s), 0);
		assert_text(in2, 2, small.len);
		assert_int_equal(finish(&w, 0, &send, NULL), 0);
		assert_int_equal(finish(&w, 0, &behind, NULL), 0);
		assert_int_equal(world_counter(w.ep[put_offered ? 0 : 1], put_offered ? 1 : 0, put_offered ? "puts" : "gets"), 1);
		end(&w);
		text_free(big);
		text_free(small);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(learned_methods), cmocka_unit_test(head_to_head),
	cmocka_unit_test(stray_hints),     cmocka_unit_test(registered_later),
	cmocka_unit_test(truncation),      cmocka_unit_test(split_receives),
	cmocka_unit_test(synchronous),     cmocka_unit_test(switch_limit),
	cmocka_unit_test(first_bytes),     cmocka_unit_test(flood),
	cmocka_unit_test(flood_probed),    cmocka_unit_test(failing_gets),
	cmocka_unit_test(good_gets),       cmocka_unit_test(good_puts),
	cmocka_unit_test(failing_puts),    cmocka_unit_test(stray_done),
};

int main(void)
{
	return cmocka_run_group_tests_name("protocols", tests, NULL, NULL);
}
