/* SPDX-License-Identifier: MIT */
/* Pinnable memory: it is pinned only to transfer a piece, by the thread that waits, and nothing is touched otherwise. */
#include "caller.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define PSL 4000

static const size_t sizes[] = {0, 8, 3000, 60000}; /* empty, eager, fragmented (packets of 512), rendezvous */

/* Every size, both sides pinnable, in either order. */
static void both_sides(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		size_t bytes = seed % 6 == 5 ? 400000 : sizes[seed % 4];
		struct caller from, to;
		struct world w;

		begin(&w, timed(seed), "spin_us=0", "yield_us=0", "psl=4000", NULL);
		fabric_clock_start(w.fabric, 50);
		if (seed & 8)
			call(&to, &w, 0, false, seed & 16 ? 1 : IBVX_ANY_SOURCE, 5, bytes);
		call(&from, &w, 1, true, 0, 5, bytes);
		if (!(seed & 8)) {
			usleep(500);
			call(&to, &w, 0, false, 1, 5, bytes);
		}
		assert_int_equal(ended(&to), 0);
		assert_int_equal(to.status.body_bytes, bytes);
		assert_text(to.m.at, 5, bytes);
		assert_int_equal(ended_with(&from, &w), 0);
		assert_text(from.m.at, 5, bytes);
		caller_free(&from);
		caller_free(&to);
		end(&w);
	}
}

/* Another type, or a message too long: consumed, the memory as it was, the status filled; the next one is not affected. */
static void refused(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (int early = 0; early < 2; early++)
			for (int what = 0; what < (kind ? 2 : 1); what++) {
				struct ibvx_want want = {0, 1, CTX, sizes[kind] + 10, 0x107, 0xff, NULL};
				struct text t = text_of(6, sizes[kind]), next = text_of(7, 20);
				struct ibvx_status s;
				struct fake_array m;
				ibvx_req send[2], recv[2];
				struct world w;

				if (what) {
					want.user_mask = 0;
					want.capacity_bytes = sizes[kind] - 1;
				}
				begin(&w, calm(2, 512), "psl=4000", NULL);
				fake_array_init(&m, calloc(1, sizes[kind] + 10), sizes[kind] + 10, 3);
				if (early)
					assert_int_equal(ibvx_pin_irecv(w.ep[1], &want, &recv[0]), 0);
				send[0] = put(&w, 0, 1, 1, t, 6, false);
				send[1] = put(&w, 0, 1, 1, next, 7, false);
				settle(&w);
				if (!early)
					assert_int_equal(ibvx_pin_irecv(w.ep[1], &want, &recv[0]), 0);
				want.capacity_bytes = 20;
				want.user_mask = 0xff;
				assert_int_equal(ibvx_pin_irecv(w.ep[1], &want, &recv[1]), 0);
				assert_int_equal(finish(&w, 0, &send[0], NULL), 0);
				assert_int_equal(finish(&w, 0, &send[1], NULL), 0);
				settle(&w);
				assert_int_equal(ibvx_pin_wait(w.ep[1], &recv[0], &m.pinnable, &s, -1), what ? -EMSGSIZE : -EPROTOTYPE);
				assert_int_equal(s.user, 6);
				assert_int_equal(s.body_bytes, sizes[kind]);
				fake_array_bring(&m);
				for (size_t i = 0; i < m.bytes; i++)
					assert_int_equal(m.at[i], 0);
				assert_int_equal(ibvx_pin_wait(w.ep[1], &recv[1], NULL, &s, -1), 0);
				assert_text(s.body, 7, 20);
				ibvx_free(s.body);
				free(m.at);
				end(&w);
				text_free(t);
				text_free(next);
			}
}

/* Waits with a limit, whatever has arrived when the time is over: the request stays valid and nothing is lost. */
static void time_is_over(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct ibvx_want want = {0, 1, CTX, sizes[kind], 0, 0, NULL};
		struct text t = text_of(6, sizes[kind]);
		struct ibvx_status s;
		struct fake_array m;
		ibvx_req send, recv, same;
		struct world w;
		int rc;

		begin(&w, calm(2, 512), "psl=4000", NULL);
		fake_array_init(&m, calloc(1, sizes[kind] + 1), sizes[kind], 3);
		assert_int_equal(ibvx_pin_irecv(w.ep[1], &want, &recv), 0);
		same = recv;
		assert_int_equal(ibvx_pin_wait(w.ep[1], &recv, &m.pinnable, &s, 1000), 1);
		assert_int_equal(recv, same);
		send = put(&w, 0, 1, 1, t, 6, false);
		while ((rc = ibvx_pin_wait(w.ep[1], &recv, &m.pinnable, &s, 1)) == 1)
			world_turn(&w, 1);
		assert_int_equal(rc, 0);
		assert_int_equal(recv, IBVX_REQ_NULL);
		assert_int_equal(s.body_bytes, sizes[kind]);
		fake_array_bring(&m);
		assert_text(m.at, 6, sizes[kind]);
		assert_int_equal(finish(&w, 0, &send, NULL), 0);
		free(m.at);
		end(&w);
		text_free(t);
	}
}

/* What comes while nobody waits is bounced, and copied by the call that completes it: no pin then. */
static void bounced(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (int how = 0; how < 2; how++) {
			struct ibvx_want want = {0, 1, CTX, sizes[kind], 0, 0, NULL};
			struct text t = text_of(6, sizes[kind]);
			struct ibvx_status s;
			struct fake_array m;
			ibvx_req send, recv;
			struct world w;

			begin(&w, calm(2, 512), "psl=4000", NULL);
			fake_array_init(&m, calloc(1, sizes[kind] + 1), sizes[kind], 3);
			assert_int_equal(ibvx_pin_irecv(w.ep[1], &want, &recv), 0);
			send = put(&w, 0, 1, 1, t, 6, false);
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
			settle(&w);
			if (how)
				assert_int_equal(ibvx_pin_wait(w.ep[1], &recv, &m.pinnable, &s, -1), 0);
			else
				assert_int_equal(ibvx_pin_test(w.ep[1], &recv, &m.pinnable, &s), 1);
			assert_int_equal(recv, IBVX_REQ_NULL);
			assert_int_equal(m.pins, 0);
			fake_array_bring(&m);
			assert_text(m.at, 6, sizes[kind]);
			free(m.at);
			end(&w);
			text_free(t);
		}
}

/* A peer that takes nothing for a while: the sender pins while there is room, then not. */
static void no_pin_without_room(void **state)
{
	struct world_config cfg = calm(2, 512);
	struct caller from;
	uint64_t before, after;
	struct text t = text_of(5, 60000);
	struct world w;
	ibvx_req recv;

	(void)state;
	cfg.net.room_bytes = 4096;
	cfg.ops = &fake_plain_ops;
	begin(&w, cfg, "spin_us=0", "yield_us=0", "psl=4000", NULL);
	fabric_clock_start(w.fabric, 50);
	call(&from, &w, 1, true, 0, 5, 60000);
	memset(t.bytes, 0, t.len);
	recv = take(&w, 0, 1, 5, t.bytes, t.len);
	do {
		world_turn(&w, 1);
		before = world_counter(w.ep[1], -1, "pins");
	} while (before == 0);
	fabric_freeze(w.fabric, 0, true);
	usleep(20000); /* what was in flight has made its way */
	before = world_counter(w.ep[1], -1, "pins");
	usleep(50000);
	after = world_counter(w.ep[1], -1, "pins");
	assert_int_equal(after, before);
	fabric_freeze(w.fabric, 0, false);
	assert_int_equal(finish(&w, 0, &recv, NULL), 0);
	assert_int_equal(ended(&from), 0);
	assert_text(t.bytes, 5, 60000);
	caller_free(&from);
	text_free(t);
	end(&w);
}

/* One thread polls, another owns the memory: the first must not touch it, and the second must come. */
static void another_polls(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct caller from[2], to[2];
		struct world w;

		begin(&w, timed(seed), "spin_us=0", "yield_us=0", "psl=4000", seed % 3 ? "progress_thread=0" : "progress_thread=1", NULL);
		fabric_clock_start(w.fabric, 50);
		call(&to[0], &w, 0, false, 1, 1, 100);
		usleep(seed % 2 ? 1000 : 0);
		call(&to[1], &w, 0, false, 1, 2, 90000);
		call(&from[1], &w, 1, true, 0, 2, 90000);
		assert_int_equal(ended(&to[1]), 0);
		assert_text(to[1].m.at, 2, 90000);
		call(&from[0], &w, 1, true, 0, 1, 100);
		assert_int_equal(ended(&to[0]), 0);
		assert_text(to[0].m.at, 1, 100);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(ended_with(&from[i], &w), 0);
			caller_free(&from[i]);
			caller_free(&to[i]);
		}
		end(&w);
	}
}

/* The peer dies at whatever moment: the call ends, nothing stays pinned or is touched any more. */
static void deaths(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world_config cfg = timed(seed);

		cfg.net.size = 3;
		call_dies(cfg, seed, seed % 3 ? 300000 : 3000, (unsigned)(seed * 60));
	}
}

/* Pinning takes a while: rank 1 dies meanwhile, and another receive gets the error. */
static void lose_rank_1(struct fake_array *m, void *arg)
{
	struct world *w = arg;
	struct ibvx_status s;
	ibvx_req other;
	char mem[8];

	m->on_enter = NULL;
	world_kill(w, 1, true);
	settle(w);
	other = take(w, 0, IBVX_ANY_SOURCE, 99, mem, sizeof(mem));
	assert_int_equal(finish(w, 0, &other, &s), -ECONNRESET);
}

/* A message that is here is received, whatever becomes of its sender while its memory is being pinned; and its receive is gone
 * then: the next message is not swallowed. */
static void gone_meanwhile(void **state)
{
	(void)state;
	for (int any = 0; any < 2; any++)
		for (int matched = 0; matched < 2; matched++) {
			struct ibvx_want want = {any ? IBVX_ANY_SOURCE : 1, 1, CTX, 3000, 0, 0, NULL};
			struct text t = text_of(6, 3000), next = text_of(7, 3000);
			ibvx_req send, message;
			struct ibvx_status s;
			struct fake_array m;
			struct world w;

			begin(&w, calm(3, 4096), "psl=4000", "fault_scope=peer", NULL);
			fake_array_init(&m, calloc(1, 3000), 3000, 3);
			m.on_enter = lose_rank_1;
			m.arg = &w;
			send = put(&w, 1, 0, 1, t, 6, false);
			assert_int_equal(finish(&w, 1, &send, NULL), 0);
			settle(&w);
			if (matched) {
				assert_int_equal(ibvx_improbe(w.ep[0], want.source, 1, CTX, &message, &s), 1);
				assert_int_equal(ibvx_pin_mrecv(w.ep[0], &message, &m.pinnable, &want, &s), 0);
			} else {
				assert_int_equal(ibvx_pin_recv(w.ep[0], &m.pinnable, &want, &s), 0);
			}
			assert_int_equal(m.pins, 1);
			fake_array_bring(&m);
			assert_text(m.at, 6, 3000);
			send = put(&w, 2, 0, 1, next, 7, false);
			settle(&w);
			assert_int_equal(ibvx_iprobe(w.ep[0], 2, 1, CTX, &s), 1);
			want.source = 2;
			assert_int_equal(ibvx_pin_recv(w.ep[0], &m.pinnable, &want, &s), 0);
			fake_array_bring(&m);
			assert_text(m.at, 7, 3000);
			assert_int_equal(finish(&w, 2, &send, NULL), 0);
			free(m.at);
			end(&w);
			text_free(t);
			text_free(next);
		}
}

/* The layer cannot pin: what comes is bounced all the same, and the sender asks again. */
static void never_pinned(void **state)
{
	(void)state;
	for (int kind = 1; kind < 4; kind++) {
		struct caller from, to;
		struct world w;

		begin(&w, calm(2, 512), "spin_us=0", "yield_us=0", "psl=4000", NULL);
		fabric_clock_start(w.fabric, 50);
		call_prepare(&to, &w, 0, false, 1, 5, sizes[kind]);
		to.m.refuse = 1u << 20;
		call_start(&to);
		call_prepare(&from, &w, 1, true, 0, 5, sizes[kind]);
		from.m.refuse = 100;
		call_start(&from);
		assert_int_equal(ended(&to), 0);
		assert_int_equal(ended(&from), 0);
		assert_int_equal(to.m.pins, 0);
		assert_text(to.m.at, 5, sizes[kind]);
		assert_int_equal(from.m.refuse, 0);
		caller_free(&from);
		caller_free(&to);
		end(&w);
	}
}

/* The second pin of a call is held up, as by a collection. */
static atomic_int held;

static void hold_second(struct fake_array *m, void *arg)
{
	(void)arg;
	if (m->pins != 1)
		return;
	atomic_store(&held, 1);
	while (atomic_load(&held) == 1)
		usleep(100);
}

/* A stream from a heap waits for its owner: the peer's other streams do not. */
static void streams_pass(void **state)
{
	struct text t = text_of(2, 60000);
	struct world_config cfg = calm(2, 512);
	static char mem[2][60000];
	struct caller from;
	struct world w;
	ibvx_req recv[2], send;

	(void)state;
	cfg.ops = &fake_plain_ops;
	begin(&w, cfg, "spin_us=0", "yield_us=0", "psl=4000", NULL);
	fabric_clock_start(w.fabric, 50);
	recv[0] = take(&w, 0, 1, 5, mem[0], sizeof(mem[0]));
	call_prepare(&from, &w, 1, true, 0, 5, 60000);
	from.m.on_enter = hold_second;
	call_start(&from);
	for (int i = 0; i < 10000 && atomic_load(&held) == 0; i++) {
		world_turn(&w, 1);
		usleep(100);
	}
	assert_int_equal(atomic_load(&held), 1);
	recv[1] = take(&w, 0, 1, 6, mem[1], sizeof(mem[1]));
	send = put(&w, 1, 0, 6, t, 2, false);
	settle(&w);
	assert_int_equal(ibvx_test(w.ep[0], &recv[1], NULL), 1);
	assert_int_equal(ibvx_test(w.ep[1], &send, NULL), 1);
	assert_int_equal(ibvx_test(w.ep[0], &recv[0], NULL), 0);
	assert_text(mem[1], 2, 60000);
	atomic_store(&held, 2);
	assert_int_equal(finish(&w, 0, &recv[0], NULL), 0);
	assert_int_equal(ended(&from), 0);
	assert_text(mem[0], 5, 60000);
	caller_free(&from);
	text_free(t);
	end(&w);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(both_sides),          cmocka_unit_test(refused),       cmocka_unit_test(bounced),
	cmocka_unit_test(no_pin_without_room), cmocka_unit_test(another_polls), cmocka_unit_test(deaths),
	cmocka_unit_test(gone_meanwhile),      cmocka_unit_test(never_pinned),  cmocka_unit_test(streams_pass),
	cmocka_unit_test(time_is_over),
};

int main(void)
{
	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
