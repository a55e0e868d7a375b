/* SPDX-License-Identifier: MIT */
/* Zero-copy sends from pinnable memory: any thread inside the library pins it, and it is dropped exactly once. */
#include "directed.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_array.h"

#define MESSAGES 8

static const size_t sizes[] = {0, 8, 3000, 60000}; /* empty, eager, fragmented (packets of 512), rendezvous */

static atomic_uint dropped;

/* zero-copy isend or issend; its number (the user word) fills it. */
static ibvx_req zero_copy_isend(struct world *w, int src, int dst, int tag, size_t bytes, bool sync)
{
	const struct ibvx_sbuf buf = {.body_bytes = bytes, .user = (uint64_t)tag};
	struct ibvx_pin *donated = fake_array_donate(text_of((uint64_t)tag, bytes).bytes, bytes, (uint64_t)tag, &dropped);
	ibvx_req req;
	int err = ibvx_pin_isend(w->ep[src], donated, &buf, dst, tag, CTX, sync, &req);

	if (err)
		fail_msg("isend: %d (%s)", err, ibvx_error());
	return req;
}

static struct world_config plain(void)
{
	struct world_config cfg = calm(2, 512);

	cfg.ops = &fake_plain_ops;
	cfg.net.room_bytes = 4096;
	return cfg;
}

/* Several messages of each size, received in order; completed by tests from either end. Every array is dropped. */
static void several_messages(void **state)
{
	static char mem[MESSAGES][60000];

	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (int how = 0; how < 4; how++) {
			ibvx_req send[MESSAGES], recv[MESSAGES];
			struct world w;

			atomic_store(&dropped, 0);
			begin(&w, plain(), "psl=4000", NULL);
			for (int i = 0; i < MESSAGES && how & 1; i++)
				recv[i] = take(&w, 1, 0, i, mem[i], sizes[kind]);
			for (int i = 0; i < MESSAGES; i++)
				send[i] = zero_copy_isend(&w, 0, 1, i, sizes[kind], i == 3);
			for (int i = 0; i < MESSAGES && !(how & 1); i++)
				recv[i] = take(&w, 1, 0, i, mem[i], sizes[kind]);
			for (int i = 0; i < MESSAGES; i++)
				assert_int_equal(finish(&w, 1, &recv[how & 2 ? MESSAGES - 1 - i : i], NULL), 0);
			for (int i = 0; i < MESSAGES; i++) {
				assert_int_equal(finish(&w, 0, &send[how & 2 ? MESSAGES - 1 - i : i], NULL), 0);
				assert_text(mem[i], (uint64_t)i, sizes[kind]);
			}
			end(&w);
			assert_int_equal(atomic_load(&dropped), MESSAGES);
		}
}

/* The streams of several messages come one after the other: nobody takes the second one's bytes while the first is under way. */
static void one_stream_at_a_time(void **state)
{
	static char mem[2][60000];
	ibvx_req send[2], recv[2];
	struct world w;

	(void)state;
	begin(&w, plain(), "psl=4000", NULL);
	for (int i = 0; i < 2; i++) {
		memset(mem[i], 0, sizeof(mem[i]));
		recv[i] = take(&w, 1, 0, i, mem[i], sizeof(mem[i]));
		send[i] = zero_copy_isend(&w, 0, 1, i, sizeof(mem[i]), false);
	}
	while (ibvx_test(w.ep[1], &recv[0], NULL) == 0) {
		assert_int_equal(mem[1][600], 0);
		world_turn(&w, 1);
	}
	assert_int_equal(finish(&w, 1, &recv[1], NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
		assert_text(mem[i], (uint64_t)i, sizeof(mem[i]));
	}
	end(&w);
}

/* One thread that waits for something else. */
struct other {
	pthread_t thread;
	struct ibvx *ep;
	int peer;
	char mem[8];
	int err;
};

static void *other_main(void *arg)
{
	struct other *o = arg;
	struct ibvx_rbuf buf = {o->mem, sizeof(o->mem), 0};

	o->err = ibvx_recv(o->ep, &buf, o->peer, 99, CTX, NULL);
	return NULL;
}

static void *waiter_main(void *arg)
{
	struct other *o = arg;
	ibvx_req req;

	memcpy(&req, o->mem, sizeof(req));
	o->err = ibvx_pin_wait(o->ep, &req, NULL, NULL, -1);
	return NULL;
}

static void other_start(struct other *o, struct world *w, int rank, void *(*main_of)(void *))
{
	o->ep = w->ep[rank];
	o->peer = 1 - rank;
	assert_int_equal(pthread_create(&o->thread, NULL, main_of, o), 0);
}

/* Sends that nobody waits for go out while a thread is in a receive, asleep or not, whose message depends on them. */
static void served_by_a_receive(void **state)
{
	static char mem[MESSAGES][60000];

	(void)state;
	for (int before = 0; before < 2; before++)
		for (int kind = 1; kind < 4; kind++) {
			struct other o = {0};
			ibvx_req send[MESSAGES], recv[MESSAGES];
			struct text word = text_of(1, 8);
			struct world w;

			atomic_store(&dropped, 0);
			begin(&w, plain(), "psl=4000", "spin_us=0", "yield_us=0", NULL);
			fabric_clock_start(w.fabric, 50);
			if (before)
				other_start(&o, &w, 0, other_main);
			usleep(before ? 2000 : 0);
			for (int i = 0; i < MESSAGES; i++)
				send[i] = zero_copy_isend(&w, 0, 1, i, sizes[kind], false);
			if (!before)
				other_start(&o, &w, 0, other_main);
			for (int i = 0; i < MESSAGES; i++) {
				struct ibvx_rbuf buf = {mem[i], sizes[kind], 0};

				assert_int_equal(ibvx_irecv(w.ep[1], &buf, 0, i, CTX, &recv[i]), 0);
				assert_int_equal(ibvx_wait(w.ep[1], &recv[i], NULL), 0);
				assert_text(mem[i], (uint64_t)i, sizes[kind]);
			}
			recv[0] = put(&w, 1, 0, 99, word, 1, false);
			assert_int_equal(finish(&w, 1, &recv[0], NULL), 0);
			pthread_join(o.thread, NULL);
			assert_int_equal(o.err, 0);
			for (int i = 0; i < MESSAGES; i++)
				assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
			text_free(word);
			end(&w);
			assert_int_equal(atomic_load(&dropped), MESSAGES);
		}
}

/* A thread that waits for the last message serves the first ones, which the receiver takes before. */
static void waits_backwards(void **state)
{
	static char mem[60000];

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct world_config cfg = ugly(2, seed);
		struct other o = {0};
		ibvx_req send[MESSAGES], one;
		struct world w;

		cfg.monitor = false;
		atomic_store(&dropped, 0);
		begin(&w, cfg, "psl=4000", "spin_us=0", "yield_us=0", NULL);
		fabric_clock_start(w.fabric, 50);
		for (int i = 0; i < MESSAGES; i++)
			send[i] = zero_copy_isend(&w, 0, 1, i, sizes[1 + seed % 3], false);
		memcpy(o.mem, &send[MESSAGES - 1], sizeof(send[0]));
		other_start(&o, &w, 0, waiter_main);
		for (int i = 0; i < MESSAGES; i++) {
			one = take(&w, 1, 0, i, mem, sizeof(mem));
			assert_int_equal(ibvx_wait(w.ep[1], &one, NULL), 0);
			assert_text(mem, (uint64_t)i, sizes[1 + seed % 3]);
		}
		pthread_join(o.thread, NULL);
		assert_int_equal(o.err, 0);
		for (int i = 0; i < MESSAGES - 1; i++)
			assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
		end(&w);
		assert_int_equal(atomic_load(&dropped), MESSAGES);
	}
}

/* Given up, lost with the peer, or still there at the end: given back all the same, and what was accepted is delivered. */
static void given_back(void **state)
{
	static char mem[60000];

	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (int how = 0; how < 3; how++) {
			struct other o = {0};
			struct world w;
			ibvx_req send, recv;

			atomic_store(&dropped, 0);
			begin(&w, plain(), "psl=4000", "fault_scope=peer", NULL);
			if (how != 1)
				recv = take(&w, 1, 0, 5, mem, sizeof(mem));
			send = zero_copy_isend(&w, 0, 1, 5, sizes[kind], false);
			if (how == 0) {
				assert_int_equal(ibvx_request_free(w.ep[0], &send), 0);
				assert_int_equal(finish(&w, 1, &recv, NULL), 0);
				assert_text(mem, 5, sizes[kind]);
			} else if (how == 1) {
				world_kill(&w, 1, true);
				settle(&w);
				(void)finish(&w, 0, &send, NULL);
			} else { /* rank 0 finishes: that flushes */
				fabric_clock_start(w.fabric, 50);
				memcpy(o.mem, &recv, sizeof(recv));
				other_start(&o, &w, 1, waiter_main);
				assert_int_equal(ibvx_close(w.ep[0]), 0);
				w.ep[0] = NULL;
				pthread_join(o.thread, NULL);
				assert_int_equal(o.err, 0);
				assert_text(mem, 5, sizes[kind]);
			}
			end(&w);
			assert_int_equal(atomic_load(&dropped), 1);
		}
}

/* Where it is refused, the memory comes back at once. */
static void refused(void **state)
{
	const struct ibvx_sbuf buf = {.body_bytes = 100};
	struct world w;
	ibvx_req req;

	(void)state;
	atomic_store(&dropped, 0);
	begin(&w, plain(), "psl=4000", "fault_scope=peer", NULL);
	assert_true(ibvx_pin_zero_copy(w.ep[0], 1, 100000));
	assert_int_equal(ibvx_pin_isend(w.ep[0], fake_array_donate(calloc(1, 100), 100, 1, &dropped), &buf, 7, 1, CTX, false, &req),
			 -EINVAL);
	assert_int_equal(atomic_load(&dropped), 1);
	world_kill(&w, 1, true);
	settle(&w);
	assert_true(ibvx_pin_isend(w.ep[0], fake_array_donate(calloc(1, 100), 100, 1, &dropped), &buf, 1, 1, CTX, false, &req) < 0);
	assert_int_equal(req, IBVX_REQ_NULL);
	assert_int_equal(atomic_load(&dropped), 2);
	end(&w);
	begin(&w, calm(2, 512), "psl=4000", NULL); /* with gets */
	assert_false(ibvx_pin_zero_copy(w.ep[0], 1, 100000));
	end(&w);
}

/* Four threads send and wait, each takes what the others send: any of them may serve any. */
struct channel {
	pthread_t thread;
	struct world *w;
	int rank, number;
};

static void *sender_main(void *arg)
{
	struct channel *l = arg;
	char *mem = malloc(60000);

	for (int i = 0; i < 12; i++) {
		int tag = 100 * l->number + i;
		size_t bytes = sizes[1 + (i + l->number) % 3];
		ibvx_req send = zero_copy_isend(l->w, l->rank, 1 - l->rank, tag, bytes, i % 4 == 0);
		struct ibvx_rbuf buf = {mem, bytes, 0};
		int err = ibvx_recv(l->w->ep[l->rank], &buf, 1 - l->rank, tag, CTX, NULL);

		if (err || ibvx_pin_wait(l->w->ep[l->rank], &send, NULL, NULL, -1))
			abort();
		assert_text(mem, (uint64_t)tag, bytes);
	}
	free(mem);
	return NULL;
}

static void channels(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct world_config cfg = ugly(2, seed);
		struct channel channel[4];
		struct world w;

		cfg.monitor = false;
		atomic_store(&dropped, 0);
		begin(&w, cfg, "psl=4000", "spin_us=0", "yield_us=0", NULL);
		fabric_clock_start(w.fabric, 50);
		for (int i = 0; i < 4; i++) {
			channel[i] = (struct channel){.w = &w, .rank = i % 2, .number = i / 2};
			assert_int_equal(pthread_create(&channel[i].thread, NULL, sender_main, &channel[i]), 0);
		}
		for (int i = 0; i < 4; i++)
			pthread_join(channel[i].thread, NULL);
		end(&w);
		assert_int_equal(atomic_load(&dropped), 4 * 12);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(several_messages), cmocka_unit_test(one_stream_at_a_time), cmocka_unit_test(served_by_a_receive),
	cmocka_unit_test(waits_backwards),  cmocka_unit_test(given_back),           cmocka_unit_test(refused),
	cmocka_unit_test(channels),
};

int main(void)
{
	return cmocka_run_group_tests_name("zero_copy", tests, NULL, NULL);
}
