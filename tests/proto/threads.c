/* SPDX-License-Identifier: MIT */
/* Calls that block: they sleep, and whatever ends them wakes them.  A clock makes time pass in the network. */
#include "directed.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 4
#define LEN 9000

enum call { CALL_RECV, CALL_WAIT, CALL_WAITANY, CALL_PROBE, CALL_PEEK, CALL_SSEND, CALL_COUNT };

struct blocked {
	pthread_t thread;
	struct ibvx *ep;
	enum call call;
	int peer, tag;
	int err;
	struct ibvx_status status;
	char text[200];
	char mem[LEN];
	ibvx_req req;
};

static int call_blocking(struct blocked *b)
{
	struct ibvx_rbuf in = {b->mem, LEN, 0};
	struct ibvx_sbuf out = {NULL, 0, b->mem, LEN, 0};
	ibvx_req list[2] = {IBVX_REQ_NULL, b->req}, shown;
	int err;

	switch (b->call) {
	case CALL_RECV: return ibvx_recv(b->ep, &in, b->peer, b->tag, CTX, &b->status);
	case CALL_WAIT: return ibvx_wait(b->ep, &b->req, &b->status);
	case CALL_WAITANY: err = ibvx_waitany(b->ep, 2, list, &b->status); return err == 1 ? b->status.error : -EPROTO;
	case CALL_PROBE:
		err = ibvx_probe(b->ep, b->peer, b->tag, CTX, &b->status);
		return err ? err : ibvx_recv(b->ep, &in, b->peer, b->tag, CTX, &b->status);
	case CALL_PEEK:
		err = ibvx_peek(b->ep, &shown);
		if (err || shown != b->req)
			return err ? err : -EPROTO;
		return ibvx_wait(b->ep, &b->req, &b->status);
	case CALL_SSEND: return ibvx_ssend(b->ep, &out, b->peer, b->tag, CTX);
	case CALL_COUNT: break;
	}
	return -EINVAL;
}

static void *blocked_main(void *arg)
{
	struct blocked *b = arg;

	b->err = call_blocking(b);
	if (b->err)
		snprintf(b->text, sizeof(b->text), "%s", ibvx_error());
	return NULL;
}

static void block(struct blocked *b, struct world *w, int rank, enum call call, int peer, int tag)
{
	struct ibvx_rbuf in = {b->mem, LEN, 0};

	b->ep = w->ep[rank];
	b->call = call;
	b->peer = peer;
	b->tag = tag;
	b->err = 1;
	if (call == CALL_WAIT || call == CALL_WAITANY || call == CALL_PEEK)
		assert_int_equal(ibvx_irecv(b->ep, &in, peer, tag, CTX, &b->req), 0);
	assert_int_equal(pthread_create(&b->thread, NULL, blocked_main, b), 0);
}

static struct world_config sleepy(int size, uint64_t seed)
{
	struct world_config cfg = ugly(size, seed);

	cfg.monitor = false;
	return cfg;
}

static void send_blocking(struct world *w, int src, int dst, int tag, uint64_t user, size_t len)
{
	struct text t = text_of(user, len);
	struct ibvx_sbuf buf = {NULL, 0, t.bytes, len, user};

	assert_int_equal(ibvx_send(w->ep[src], &buf, dst, tag, CTX), 0);
	text_free(t);
}

/* Sends from a thread of its own, because a blocking send may end only after a later call of its receiver. */
struct sender {
	pthread_t thread;
	struct world *w;
	int count;
	int tag[THREADS];
	size_t len[THREADS];
	atomic_bool done;
};

static void *sender_main(void *arg)
{
	struct sender *s = arg;

	for (int i = 0; i < s->count; i++)
		send_blocking(s->w, 1, 0, s->tag[i], (uint64_t)s->tag[i], s->len[i]);
	atomic_store(&s->done, true);
	return NULL;
}

static void sender_start(struct sender *s, struct world *w)
{
	s->w = w;
	atomic_store(&s->done, false);
	assert_int_equal(pthread_create(&s->thread, NULL, sender_main, s), 0);
}

static void sender_end(struct sender *s)
{
	while (!atomic_load(&s->done))
		world_turn(s->w, 1);
	pthread_join(s->thread, NULL);
}

/* Each kind of call, alone and asleep, is woken by its message. */
static void woken_by_a_message(void **state)
{
	static struct blocked b;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++)
		for (int call = CALL_RECV; call < CALL_SSEND; call++)
			for (int progress = 0; progress < 2; progress++) {
				struct sender s = {.count = 1, .tag = {5}, .len = {seed % 4 ? 100 : LEN}};
				struct world w;

				begin(&w, sleepy(2, seed), "spin_us=0", "yield_us=0", "psl=4000",
				      progress ? "progress_thread=1" : "progress_thread=0", NULL);
				fabric_clock_start(w.fabric, 100);
				block(&b, &w, 0, (enum call)call, seed % 2 ? 1 : IBVX_ANY_SOURCE, 5);
				usleep(seed % 3 ? 1000 : 0);
				sender_start(&s, &w);
				pthread_join(b.thread, NULL);
				assert_int_equal(b.err, 0);
				assert_int_equal(b.status.user, 5);
				assert_text(b.mem, 5, s.len[0]);
				sender_end(&s);
				end(&w);
			}
}

/* Several threads of one rank, each asleep for its own message, in any order. */
static void many_threads(void **state)
{
	static struct blocked b[THREADS];

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct sender s = {.count = THREADS};
		struct world w;

		begin(&w, sleepy(2, seed), "spin_us=0", "yield_us=0", "psl=4000", seed % 4 ? "progress_thread=0" : "progress_thread=1",
		      NULL);
		fabric_clock_start(w.fabric, 100);
		for (int i = 0; i < THREADS; i++) {
			block(&b[i], &w, 0, i == 3 ? CALL_PROBE : (enum call)((seed + (uint64_t)i) % CALL_PEEK), 1, i);
			s.tag[i] = (int)((seed + (uint64_t)i * 3) % THREADS);
			s.len[i] = i % 2 ? LEN : 10;
		}
		sender_start(&s, &w);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(b[i].thread, NULL);
			assert_int_equal(b[i].err, 0);
			assert_int_equal(b[i].status.user, i);
			assert_text(b[i].mem, (uint64_t)i, b[i].status.body_bytes);
		}
		sender_end(&s);
		end(&w);
	}
}

/* All threads that sleep for a rank that dies are woken, with the error. */
static void woken_by_a_death(void **state)
{
	static struct blocked b[CALL_COUNT];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world w;

		begin(&w, sleepy(3, seed), "spin_us=0", "yield_us=0", "psl=4000", seed % 4 ? "progress_thread=0" : "progress_thread=1",
		      NULL);
		fabric_clock_start(w.fabric, 100);
		for (int i = 0; i < CALL_COUNT; i++)
			if (i != CALL_PEEK) /* which would be shown the others' requests */
				block(&b[i], &w, 0, (enum call)i, 1, 10 + i);
		usleep(2000);
		world_kill(&w, 1, false);
		for (int i = 0; i < CALL_COUNT; i++) {
			if (i == CALL_PEEK)
				continue;
			pthread_join(b[i].thread, NULL);
			assert_int_equal(b[i].err, -ECONNRESET);
			if (!strstr(b[i].text, "rank 1"))
				fail_msg("call %d: \"%s\" does not name rank 1", i, b[i].text);
		}
		end(&w);
	}
}

/* One request, two threads: the second is refused, the first is not disturbed. */
static void one_waiter(void **state)
{
	static struct blocked b;
	struct world w;
	ibvx_req same;
	int err;

	(void)state;
	begin(&w, calm(2, 0), "spin_us=0", NULL);
	fabric_clock_start(w.fabric, 100);
	block(&b, &w, 0, CALL_WAIT, 1, 5);
	same = b.req;
	do {
		/* until the first one waits a test only sees it open */
		err = ibvx_test(w.ep[0], &same, NULL);
		usleep(100);
	} while (err == 0 && !world_counter(w.ep[0], -1, "sleeps"));
	same = b.req;
	assert_int_equal(ibvx_wait(w.ep[0], &same, NULL), -EINVAL);
	send_blocking(&w, 1, 0, 5, 4, 100);
	pthread_join(b.thread, NULL);
	assert_int_equal(b.err, 0);
	end(&w);
}

/* A blocking send that waits for room at its receiver sleeps, and the receiver's receives wake it. */
static void *flood_main(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < 1500; i++)
		send_blocking(s->w, 1, 0, 5, i, 300);
	atomic_store(&s->done, true);
	return NULL;
}

static void sender_waits_for_room(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct sender s = {.w = NULL};
		struct world w;
		char mem[300];

		begin(&w, sleepy(2, seed), "spin_us=0", "yield_us=0", "eager_window=64k", NULL);
		fabric_clock_start(w.fabric, 50);
		s.w = &w;
		assert_int_equal(pthread_create(&s.thread, NULL, flood_main, &s), 0);
		usleep(10000);
		for (unsigned i = 0; i < 1500; i++) {
			struct ibvx_rbuf in = {mem, sizeof(mem), 0};
			struct ibvx_status got;

			assert_int_equal(ibvx_recv(w.ep[0], &in, 1, 5, CTX, &got), 0);
			assert_int_equal(got.user, i);
			assert_text(mem, i, 300);
		}
		sender_end(&s);
		end(&w);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(woken_by_a_message), cmocka_unit_test(many_threads),          cmocka_unit_test(woken_by_a_death),
	cmocka_unit_test(one_waiter),         cmocka_unit_test(sender_waits_for_room),
};

int main(void)
{
	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
