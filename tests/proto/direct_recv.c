/* SPDX-License-Identifier: MIT */
/* Blocking receives that look for their message before they are posted: what is received directly, what needs a request, what
 * stands before them. */
#include "directed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "ibvx_pin.h"

/* Everything that was sent is there to be polled. */
static void arrive(struct world *w)
{
	fabric_step(w->fabric, 1000);
}

static int receive(struct world *w, int source, int tag, void *mem, size_t capacity, struct ibvx_status *s)
{
	return ibvx_recv(w->ep[1], &(struct ibvx_rbuf){mem, capacity, 0}, source, tag, CTX, s);
}

static void send_all(struct world *w, ibvx_req *sends, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(finish(w, 0, &sends[i], NULL), 0);
}

/* It is received directly, whatever the capacity and wildcards, and the status is that of any receive. */
static void direct(void **state)
{
	static const struct {
		size_t bytes, capacity;
		int source, tag;
	} of[] = {{8, 8, 0, 5},
		  {0, 0, 0, 5},
		  {17, 100, IBVX_ANY_SOURCE, 5},
		  {300, 300, 0, IBVX_ANY_TAG},
		  {1, 9, IBVX_ANY_SOURCE, IBVX_ANY_TAG}};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct text t = text_of(40 + i, of[i].bytes);
		struct ibvx_status s = {.body = &s};
		char mem[300];
		struct world w;
		ibvx_req send;

		begin(&w, calm(2, 0), NULL);
		send = put(&w, 0, 1, 5, t, 40 + i, false);
		arrive(&w);
		assert_int_equal(receive(&w, of[i].source, of[i].tag, mem, of[i].capacity, &s), 0);
		assert_text(mem, 40 + i, of[i].bytes);
		assert_int_equal(s.source, 0);
		assert_int_equal(s.tag, 5);
		assert_int_equal(s.context, CTX);
		assert_int_equal(s.error, 0);
		assert_int_equal(s.head_bytes, 0);
		assert_int_equal(s.body_bytes, of[i].bytes);
		assert_int_equal(s.user, 40 + i);
		assert_null(s.body);
		assert_int_equal(world_counter(w.ep[1], 0, "unexpected_in"), 0);
		send_all(&w, &send, 1);
		end(&w);
		text_free(t);
	}
}

/* Another message comes first; and it is still there afterwards, before what came later with its tag. */
static void others_stay(void **state)
{
	ibvx_req sends[4];
	struct text t[4];
	char mem[8];
	struct world w;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int i = 0; i < 4; i++) {
		t[i] = text_of((uint64_t)i, 8);
		sends[i] = put(&w, 0, 1, i % 2, t[i], (uint64_t)i, false);
	}
	arrive(&w);
	for (int i = 0; i < 4; i++) { /* 1, 3 with tag 1, then 0, 2 */
		int number = i < 2 ? 2 * i + 1 : 2 * i - 4;

		assert_int_equal(receive(&w, 0, number % 2, mem, 8, NULL), 0);
		assert_text(mem, (uint64_t)number, 8);
	}
	send_all(&w, sends, 4);
	for (int i = 0; i < 4; i++)
		text_free(t[i]);
	end(&w);
}

/* What was posted before is served before. */
static void posted_come_first(void **state)
{
	char first[8], second[8];
	ibvx_req sends[2], recv;
	struct text t[2] = {text_of(0, 8), text_of(1, 8)};
	struct world w;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	recv = take(&w, 1, IBVX_ANY_SOURCE, IBVX_ANY_TAG, first, 8);
	for (int i = 0; i < 2; i++)
		sends[i] = put(&w, 0, 1, 3, t[i], (uint64_t)i, false);
	arrive(&w);
	assert_int_equal(receive(&w, 0, 3, second, 8, NULL), 0);
	assert_text(second, 1, 8);
	assert_int_equal(finish(&w, 1, &recv, NULL), 0);
	assert_text(first, 0, 8);
	send_all(&w, sends, 2);
	for (int i = 0; i < 2; i++)
		text_free(t[i]);
	end(&w);
}

/* More than a copy: too long, synchronous, in fragments, by rendezvous, with a body of its own; the next one is whole again. */
static void needs_more(void **state)
{
	static char mem[60000];
	static const size_t sizes[] = {8, 3000, 60000};
	struct text small = text_of(9, 8);

	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (int how = 0; how < 4; how++) {
			struct text t = text_of(1, sizes[kind]);
			const struct ibvx_sbuf parts = {t.bytes, 5, t.bytes + 5, t.len - 5, 1};
			struct ibvx_status s;
			struct world w;
			ibvx_req sends[2];
			bool truncated = how == 2, split = how == 3;

			begin(&w, calm(2, 512), "psl=4000", NULL);
			fabric_clock_start(w.fabric, 20);
			if (split)
				assert_int_equal(ibvx_isend(w.ep[0], &parts, 1, 5, CTX, &sends[0]), 0);
			else
				sends[0] = put(&w, 0, 1, 5, t, 1, how == 1);
			sends[1] = put(&w, 0, 1, 5, small, 9, false);
			arrive(&w);
			assert_int_equal(ibvx_recv(w.ep[1],
						   &(struct ibvx_rbuf){mem,
								       truncated ? sizes[kind] - 1
								       : split   ? 5
										 : sizes[kind],
								       split},
						   0, 5, CTX, &s),
					 truncated ? -EMSGSIZE : 0);
			assert_int_equal(s.head_bytes + s.body_bytes, sizes[kind]);
			if (split) {
				assert_memory_equal(mem, t.bytes, 5);
				assert_memory_equal(s.body, t.bytes + 5, sizes[kind] - 5);
				ibvx_free(s.body);
			} else if (!truncated) {
				assert_text(mem, 1, sizes[kind]);
			}
			assert_int_equal(receive(&w, 0, 5, mem, 8, &s), 0);
			assert_text(mem, 9, 8);
			send_all(&w, sends, 2);
			fabric_clock_stop(w.fabric);
			end(&w);
			text_free(t);
		}
	text_free(small);
}

/* Of another type: consumed, and both sides get the error. */
static void other_type(void **state)
{
	char mem[8];
	const struct ibvx_want want = {
		.source = 0, .tag = 5, .context = CTX, .capacity_bytes = 8, .user = 2, .user_mask = 0xff, .base = mem};
	struct text t[2] = {text_of(0x101, 8), text_of(0x102, 8)};
	struct ibvx_status s;
	ibvx_req sends[2];
	struct world w;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int i = 0; i < 2; i++)
		sends[i] = put(&w, 0, 1, 5, t[i], 0x101u + (unsigned)i, false);
	arrive(&w);
	assert_int_equal(ibvx_pin_recv(w.ep[1], NULL, &want, &s), -EPROTOTYPE);
	assert_int_equal(s.user, 0x101);
	assert_int_equal(ibvx_pin_recv(w.ep[1], NULL, &want, &s), 0);
	assert_int_equal(s.user, 0x102);
	assert_text(mem, 0x102, 8);
	send_all(&w, sends, 2);
	for (int i = 0; i < 2; i++)
		text_free(t[i]);
	end(&w);
}

/* Two threads in blocking receives of one tag, one of another, and a rank that ends: everybody gets one message or the news. */
struct reader {
	pthread_t thread;
	struct world *w;
	int tag, err;
	char mem[8];
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	r->err = receive(r->w, 0, r->tag, r->mem, 8, NULL);
	return NULL;
}

static void threads_and_death(void **state)
{
	(void)state;
	for (int round = 0; round < 60; round++) {
		struct text t = text_of(7, 8);
		struct reader r[3] = {0};
		struct world w;
		ibvx_req sends[2];
		int good = 0;

		begin(&w, calm(2, 0), "fault_scope=peer", NULL);
		fabric_clock_start(w.fabric, 20);
		for (int i = 0; i < 3; i++) {
			r[i].w = &w;
			r[i].tag = i / 2;
			assert_int_equal(pthread_create(&r[i].thread, NULL, reader_main, &r[i]), 0);
		}
		usleep(round % 3 * 50u);
		for (int i = 0; i < 2; i++)
			sends[i] = put(&w, 0, 1, 0, t, 7, false);
		for (int i = 0; i < 2; i++)
			assert_int_equal(ibvx_wait(w.ep[0], &sends[i], NULL), 0);
		usleep(round % 4 * 50u);
		world_kill(&w, 0, true);
		for (int i = 0; i < 3; i++) {
			pthread_join(r[i].thread, NULL);
			good += r[i].err == 0;
			if (r[i].err == 0)
				assert_text(r[i].mem, 7, 8);
		}
		assert_true(r[2].err < 0);
		assert_true(good <= 2);
		fabric_clock_stop(w.fabric);
		end(&w);
		text_free(t);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(direct),     cmocka_unit_test(others_stay), cmocka_unit_test(posted_come_first),
	cmocka_unit_test(needs_more), cmocka_unit_test(other_type),  cmocka_unit_test(threads_and_death),
};

int main(void)
{
	return cmocka_run_group_tests_name("direct_recv", tests, NULL, NULL);
}
