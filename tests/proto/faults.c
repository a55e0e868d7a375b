/* SPDX-License-Identifier: MIT */
/* Ranks that die, hang, or send nonsense: requests end with an error that names the rank, nothing else is touched. */
#include "directed.h"

#include <errno.h>
#include <stdio.h>

#include "core/flow_control.h"
#include "fake_array.h"
#include "ibvx_pin.h"
#include "rng.h"

#define BIG 60000

static char mem[4][BIG];

static void named(int err, int code, const char *rank)
{
	assert_int_equal(err, code);
	if (!strstr(ibvx_error(), rank))
		fail_msg("\"%s\" does not name \"%s\"", ibvx_error(), rank);
}

/* Ranks 0 and 2 have nothing to do with the dead one. */
static void others_go_on(struct world *w, int a, int b)
{
	struct text t = text_of(11, 9000);
	struct ibvx_status s;
	struct ibvx_sbuf out = {NULL, 0, t.bytes, t.len, 11};
	struct ibvx_rbuf in = {mem[3], BIG, 0};
	ibvx_req send, recv;

	assert_int_equal(ibvx_issend(w->ep[a], &out, b, 77, CTX + 9, &send), 0);
	assert_int_equal(ibvx_irecv(w->ep[b], &in, a, 77, CTX + 9, &recv), 0);
	assert_int_equal(finish(w, b, &recv, &s), 0);
	assert_text(mem[3], 11, t.len);
	assert_int_equal(finish(w, a, &send, NULL), 0);
	text_free(t);
}

/* Over the seeds of a test both outcomes must occur, or it does not meet the moments that it is for. */
struct outcomes {
	unsigned failed, good;
};

static void sender_dies_in_rendezvous(void **state)
{
	struct outcomes seen = {0, 0};

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct text t = text_of(1, BIG);
		struct world_config cfg = ugly(3, seed);
		struct world w;
		struct ibvx_status s;
		ibvx_req recv;
		int err;

		cfg.ops = seed % 2 ? &fake_ops : &fake_plain_ops;
		begin(&w, cfg, "psl=4000", NULL);
		recv = take(&w, 0, 1, 1, mem[0], BIG);
		(void)put(&w, 1, 0, 1, t, 1, false);
		for (uint64_t i = 0; i < seed * 3; i++)
			world_turn(&w, 1);
		world_kill(&w, 1, seed % 3 == 0);
		err = finish(&w, 0, &recv, &s);
		if (err)
			named(err, -ECONNRESET, "rank 1");
		else
			assert_text(mem[0], 1, BIG);
		seen.failed += err != 0;
		seen.good += err == 0;
		settle(&w);
		recv = IBVX_REQ_NULL;
		err = ibvx_irecv(w.ep[0], &(struct ibvx_rbuf){mem[0], BIG, 0}, 1, 1, CTX, &recv);
		named(err ? err : finish(&w, 0, &recv, &s), -ECONNRESET, "rank 1");
		others_go_on(&w, 0, 2);
		end(&w);
		text_free(t);
	}
	assert_true(seen.failed > 0 && seen.good > 0);
}

static void receiver_dies_in_rendezvous(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct text t = text_of(1, BIG);
		struct world_config cfg = ugly(3, seed);
		struct world w;
		struct ibvx_sbuf buf = {NULL, 0, t.bytes, 8, 0};
		ibvx_req send[3], late = IBVX_REQ_NULL;
		int err;

		cfg.ops = seed % 2 ? &fake_ops : &fake_plain_ops;
		begin(&w, cfg, "psl=4000", NULL);
		for (int i = 0; i < 3; i++)
			send[i] = put(&w, 0, 1, 1, t, 1, i == 1);
		if (seed % 4)
			(void)take(&w, 1, 0, 1, mem[0], BIG);
		for (uint64_t i = 0; i < seed * 3; i++)
			world_turn(&w, 1);
		world_kill(&w, 1, false);
		for (int i = 0; i < 3; i++) {
			err = finish(&w, 0, &send[i], NULL);
			if (err || i > 0) /* one may have been received */
				named(err, -ECONNRESET, "rank 1");
		}
		err = ibvx_isend(w.ep[0], &buf, 1, 1, CTX, &late);
		named(err ? err : finish(&w, 0, &late, NULL), -ECONNRESET, "rank 1");
		assert_int_equal(fabric_registrations(w.fabric, 0), 0);
		others_go_on(&w, 2, 0);
		end(&w);
		text_free(t);
	}
}

static void sender_dies_in_fragments(void **state)
{
	struct outcomes seen = {0, 0};

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct text t = text_of(1, 3500);
		struct world_config cfg = calm(3, 256);
		struct world w;
		struct ibvx_status s;
		ibvx_req recv, send;
		int err, found;

		cfg.net.seed = seed;
		cfg.net.delay_max = 20;
		cfg.net.room_packets = seed % 2 ? 0 : 3;
		begin(&w, cfg, "psl=4000", NULL);
		if (seed % 3 == 0)
			recv = take(&w, 0, 1, 1, mem[0], BIG);
		send = put(&w, 1, 0, 1, t, 1, seed % 5 == 0);
		(void)send;
		for (uint64_t i = 0; i < seed % 20 + 2; i++)
			world_turn(&w, 1);
		world_kill(&w, 1, false);
		settle(&w);
		if (seed % 3) {
			/* it may lie here in part, or in whole */
			found = ibvx_iprobe(w.ep[0], 1, 1, CTX, &s);
			recv = IBVX_REQ_NULL;
			err = ibvx_irecv(w.ep[0], &(struct ibvx_rbuf){mem[0], BIG, 0}, 1, 1, CTX, &recv);
			err = err ? err : finish(&w, 0, &recv, &s);
			if (found <= 0)
				assert_int_not_equal(err, 0);
		} else {
			err = finish(&w, 0, &recv, &s);
		}
		seen.failed += err != 0;
		seen.good += err == 0;
		if (err)
			named(err, -ECONNRESET, "rank 1");
		else
			assert_text(mem[0], 1, t.len);
		others_go_on(&w, 0, 2);
		end(&w);
		text_free(t);
	}
	assert_true(seen.failed > 0 && seen.good > 0);
}

/* What had come in whole before the death is received after it. */
static void complete_messages_of_the_dead(void **state)
{
	struct text t = text_of(1, 100);
	struct ibvx_status s;
	struct world w;
	ibvx_req send, recv;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int i = 0; i < 3; i++) {
		send = put(&w, 1, 0, i, t, (uint64_t)i, false);
		assert_int_equal(finish(&w, 1, &send, NULL), 0);
	}
	settle(&w);
	world_kill(&w, 1, true);
	settle(&w);
	for (int i = 2; i >= 0; i--) {
		recv = take(&w, 0, i == 1 ? IBVX_ANY_SOURCE : 1, i, mem[0], BIG);
		assert_int_equal(finish(&w, 0, &recv, &s), 0);
		assert_int_equal(s.user, i);
		assert_text(mem[0], 1, 100);
	}
	end(&w);
	text_free(t);
}

/* A receive from anybody cannot know whether its message died with the rank. */
static void any_source(void **state)
{
	struct ibvx_status s;
	struct world w;
	ibvx_req recv, named_one, other;

	(void)state;
	begin(&w, calm(3, 0), NULL);
	recv = take(&w, 0, IBVX_ANY_SOURCE, 1, mem[0], BIG);
	named_one = take(&w, 0, 1, 1, mem[1], BIG);
	other = take(&w, 0, 2, 1, mem[2], BIG);
	world_kill(&w, 1, false);
	named(finish(&w, 0, &recv, &s), -ECONNRESET, "rank 1");
	named(finish(&w, 0, &named_one, &s), -ECONNRESET, "rank 1");
	assert_true(stays_open(&w, 0, &other));
	/* the death was reported; from now on wildcards are good again for the living ranks */
	recv = take(&w, 0, IBVX_ANY_SOURCE, 77, mem[0], BIG);
	assert_true(stays_open(&w, 0, &recv));
	assert_int_equal(ibvx_cancel(w.ep[0], recv), 0);
	assert_int_equal(finish(&w, 0, &recv, &s), -ECANCELED);
	assert_int_equal(ibvx_cancel(w.ep[0], other), 0);
	assert_int_equal(finish(&w, 0, &other, &s), -ECANCELED);
	others_go_on(&w, 0, 2);
	end(&w);
}

static void whole_job(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct text t = text_of(1, BIG);
		struct ibvx_status s;
		struct world w;
		struct ibvx_sbuf buf = {NULL, 0, t.bytes, 8, 0};
		ibvx_req recv[2], send, late = IBVX_REQ_NULL;
		int err;

		begin(&w, ugly(3, seed), "fault_scope=job", "psl=4000", NULL);
		recv[0] = take(&w, 0, 2, 1, mem[0], BIG);
		recv[1] = take(&w, 0, IBVX_ANY_SOURCE, 2, mem[1], BIG);
		send = put(&w, 0, 2, 5, t, 1, true);
		for (uint64_t i = 0; i < seed * 4; i++)
			world_turn(&w, 1);
		world_kill(&w, 1, false);
		named(finish(&w, 0, &recv[0], &s), -ECONNRESET, "rank 1");
		named(finish(&w, 0, &recv[1], &s), -ECONNRESET, "rank 1");
		named(finish(&w, 0, &send, &s), -ECONNRESET, "rank 1");
		err = ibvx_isend(w.ep[0], &buf, 2, 1, CTX, &late);
		named(err ? err : finish(&w, 0, &late, NULL), -ECONNRESET, "rank 1");
		assert_int_equal(fabric_registrations(w.fabric, 0), 0);
		settle(&w);
		end(&w);
		text_free(t);
	}
}

/* A receive has offered its memory to rank 1 when rank 2 dies and takes the job along: the memory is withdrawn from
 * rank 1, its destination, before the receive ends. */
static void offered_to_another(void **state)
{
	struct world_config cfg = calm(3, 4096);
	struct text t = text_of(1, BIG);
	struct world w;
	ibvx_req recv;

	(void)state;
	cfg.net.get_min = SIZE_MAX;
	cfg.net.get_delay_max = 1000000;
	begin(&w, cfg, "psl=4000", "fault_scope=job", NULL);
	recv = take(&w, 0, 1, 1, mem[0], BIG);
	put(&w, 1, 0, 1, t, 1, false);
	for (int i = 0; i < 300 && !fabric_registrations(w.fabric, 0); i++)
		world_turn(&w, 1);
	assert_int_equal(fabric_registrations(w.fabric, 0), 1);
	world_kill(&w, 2, false);
	assert_int_equal(finish(&w, 0, &recv, NULL), -ECONNRESET);
	assert_int_equal(fabric_registrations(w.fabric, 0), 0);
	for (int r = 0; r < 2; r++) {
		ibvx_abort(w.ep[r]);
		w.ep[r] = NULL;
	}
	(void)world_close(&w);
	text_free(t);
}

/* A get, or a put from the peer, is under way when another rank dies and takes the job along. The adapter may reach the
 * memory until it reports the cancelled operation: the request ends with that report and not before. */
static void ends_after_its_adapter(void **state)
{
	(void)state;
	for (int put_offered = 0; put_offered < 2; put_offered++) {
		struct world_config cfg = calm(3, 4096);
		struct text t = text_of(1, BIG);
		struct ibvx_status s;
		struct world w;
		ibvx_req recv;

		cfg.net.get_min = put_offered ? SIZE_MAX : 0;
		cfg.net.get_delay_max = cfg.net.cancel_delay_max = 1u << 30;
		begin(&w, cfg, "psl=4000", "fault_scope=job", NULL);
		recv = take(&w, 0, 1, 1, mem[0], BIG);
		put(&w, 1, 0, 1, t, 1, false);
		for (int i = 0; i < 300; i++)
			world_turn(&w, 0);
		assert_int_equal(fabric_registrations(w.fabric, 1 - put_offered), 1);
		world_kill(&w, 2, false);
		for (int i = 0; i < 300; i++)
			world_turn(&w, 0);
		assert_int_equal(fabric_cancelling(w.fabric, 0), 1);
		assert_int_equal(ibvx_test(w.ep[0], &recv, &s), 0);
		assert_int_equal(fabric_registrations(w.fabric, 0), 0);
		fabric_step(w.fabric, 1u << 31);
		named(finish(&w, 0, &recv, &s), -ECONNRESET, "rank 2");
		assert_int_equal(fabric_cancelling(w.fabric, 0), 0);
		memset(mem[0], 'x', BIG);
		settle(&w); /* nothing is written any more */
		for (int i = 0; i < BIG; i++)
			assert_int_equal(mem[0][i], 'x');
		for (int r = 0; r < 2; r++) {
			ibvx_abort(w.ep[r]);
			w.ep[r] = NULL;
		}
		(void)world_close(&w);
		text_free(t);
	}
}

/* A send that is about to start polls for credit, and by that learns that its peer has died: it ends once, and does not start. */
static void dies_while_a_send_starts(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct text t = text_of(1, 4000);
		struct ibvx_sbuf buf = {NULL, 0, t.bytes, t.len, 1};
		atomic_uint dropped = 0;
		struct world w;
		ibvx_req send;
		int err;

		begin(&w, calm(3, 4096), "eager_window=64k", NULL);
		while (flow_allows_eager(&w.ep[0]->peers[1], t.len))
			(void)put(&w, 0, 1, 1, t, 1, false);
		world_kill(&w, 1, true);
		if (kind == 0)
			err = ibvx_isend(w.ep[0], &buf, 1, 1, CTX, &send);
		else if (kind == 1)
			err = ibvx_pin_isend_copy(w.ep[0], NULL, &buf, 1, 1, CTX, false, &send);
		else
			err = ibvx_pin_isend(w.ep[0], fake_array_donate(text_of(1, t.len).bytes, t.len, 1, &dropped),
					     &(struct ibvx_sbuf){.body_bytes = t.len, .user = 1}, 1, 1, CTX, false, &send);
		assert_int_equal(err, 0);
		assert_int_equal(w.ep[0]->peers[1].state, PEER_FAILED);
		assert_true(list_empty(&w.ep[0]->peers[1].sends));
		named(finish(&w, 0, &send, NULL), -ECONNRESET, "rank 1");
		assert_int_equal(atomic_load(&dropped), kind == 2);
		others_go_on(&w, 0, 2);
		end(&w);
		text_free(t);
	}
}

/* A rank that hangs holds its senders back, and nobody else. */
static void hanging(void **state)
{
	enum { COUNT = 3000 };
	static ibvx_req send[COUNT];
	struct text t = text_of(1, 500);
	struct ibvx_status s;
	struct world w;

	(void)state;
	begin(&w, calm(3, 4096), "eager_window=64k", NULL);
	fabric_freeze(w.fabric, 1, true);
	for (int i = 0; i < COUNT; i++)
		send[i] = put(&w, 0, 1, 1, t, (uint64_t)i, false);
	settle(&w);
	assert_int_equal(ibvx_test(w.ep[0], &send[COUNT - 1], NULL), 0);
	others_go_on(&w, 0, 2);
	fabric_freeze(w.fabric, 1, false);
	for (int i = 0; i < COUNT; i++) {
		ibvx_req recv = take(&w, 1, 0, 1, mem[0], BIG);

		assert_int_equal(finish(&w, 1, &recv, &s), 0);
		assert_int_equal(s.user, i);
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
	end(&w);
	text_free(t);
}

static void junk_packet(struct rng *r, struct wire_hdr *hdr, unsigned char *payload)
{
	unsigned char *raw = (unsigned char *)hdr;

	for (size_t i = 0; i < sizeof(*hdr); i++)
		raw[i] = (unsigned char)(rng_percent(r, 40) ? 0 : rng_percent(r, 30) ? 0xff : rng_next(r));
	if (rng_percent(r, 90))
		hdr->kind = (uint8_t)rng_range(r, 0, WIRE_KIND_COUNT);
	if (rng_percent(r, 60))
		hdr->msg.context = CTX; /* meet the receives that are posted */
	hdr->len = (uint32_t)(rng_percent(r, 40) ? rng_below(r, 20) : rng_below(r, 300));
	for (unsigned i = 0; i < hdr->len; i++)
		payload[i] = (unsigned char)(rng_percent(r, 50) ? 0 : rng_next(r));
}

/* Nonsense from rank 1 in the midst of real traffic with it: rank 1 may be lost, memory is not. */
static void corrupt_packets(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct rng r = rng_seed(seed, 12);
		struct text t = text_of(1, BIG);
		struct world w;
		ibvx_req open[6];
		int count = 0;

		begin(&w, ugly(3, seed), "psl=2000", NULL);
		open[count++] = take(&w, 0, IBVX_ANY_SOURCE, IBVX_ANY_TAG, mem[0], (size_t)rng_below(&r, BIG));
		open[count++] = take(&w, 0, 1, 3, mem[1], BIG);
		for (int i = 0; i < 2; i++)
			open[count++] = put(&w, 0, 1, 1, (struct text){t.bytes, (size_t)rng_below(&r, BIG)}, 1, i);
		for (int i = 0; i < 2; i++)
			(void)put(&w, 1, 0, 3, (struct text){t.bytes, (size_t)rng_below(&r, BIG)}, 1, i);
		for (int i = 0; i < 30; i++) {
			struct wire_hdr hdr;
			unsigned char payload[512];

			junk_packet(&r, &hdr, payload);
			assert_int_equal(fabric_inject(w.fabric, 1, 0, &hdr, payload), 0);
			for (uint64_t k = rng_below(&r, 4); k > 0; k--)
				world_turn(&w, 1);
		}
		settle(&w);
		others_go_on(&w, 0, 2);
		others_go_on(&w, 2, 0);
		for (int r2 = 0; r2 < 3; r2++) {
			ibvx_abort(w.ep[r2]);
			w.ep[r2] = NULL;
		}
		(void)open;
		(void)world_close(&w); /* frees it: a corrupt peer makes no promise about the seam */
		text_free(t);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sender_dies_in_rendezvous),
	cmocka_unit_test(receiver_dies_in_rendezvous),
	cmocka_unit_test(sender_dies_in_fragments),
	cmocka_unit_test(complete_messages_of_the_dead),
	cmocka_unit_test(any_source),
	cmocka_unit_test(whole_job),
	cmocka_unit_test(offered_to_another),
	cmocka_unit_test(ends_after_its_adapter),
	cmocka_unit_test(dies_while_a_send_starts),
	cmocka_unit_test(hanging),
	cmocka_unit_test(corrupt_packets),
};

int main(void)
{
	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
