/* SPDX-License-Identifier: MIT */
/* Leaving: what refuses a close, what a close flushes, and what the others notice. */
#include "directed.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "core/failure.h"
#include "core/progress.h"
#include "core/wait.h"

#define BIG 60000

static char mem[2][BIG];

struct closer {
	pthread_t thread;
	struct ibvx *ep;
	int err;
	atomic_bool done;
};

static void *closer_main(void *arg)
{
	struct closer *c = arg;

	c->err = ibvx_close(c->ep);
	atomic_store(&c->done, true);
	return NULL;
}

static void closer_start(struct closer *c, struct world *w, int rank)
{
	c->ep = w->ep[rank];
	w->ep[rank] = NULL;
	atomic_store(&c->done, false);
	assert_int_equal(pthread_create(&c->thread, NULL, closer_main, c), 0);
}

/* The others go on turning while it closes. */
static int closer_end(struct closer *c, struct world *w)
{
	while (!atomic_load(&c->done))
		world_turn(w, 1);
	pthread_join(c->thread, NULL);
	return c->err;
}

struct prober {
	struct ibvx *ep;
	bool receives;
	int err;
};

static void *prober_main(void *arg)
{
	struct prober *p = arg;
	char byte;

	p->err = p->receives ? ibvx_recv(p->ep, &(struct ibvx_rbuf){&byte, 1, 0}, 1, 4, CTX, NULL) : ibvx_probe(p->ep, 1, 4, CTX, NULL);
	return NULL;
}

/* A thread waits inside, with a request or without: whenever the close comes, it is refused, or the wait had not begun. */
static void refused_while_inside(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct text t = text_of(1, 1);
		struct prober p = {.receives = round % 2};
		struct ibvx_status s;
		struct world w;
		pthread_t thread;
		ibvx_req send;
		int tries = 0;

		begin(&w, calm(2, 0), "spin_us=1000000", NULL);
		p.ep = w.ep[0];
		assert_int_equal(pthread_create(&thread, NULL, prober_main, &p), 0);
		while (world_counter(w.ep[0], -1, "polls") < 20u * (unsigned)(round % 5 + 1)) /* it is inside */
			;
		while (tries++ < 20) {
			assert_int_equal(ibvx_close(w.ep[0]), -EBUSY);
			assert_non_null(strstr(ibvx_error(), "rank 0 finishes"));
		}
		send = put(&w, 1, 0, 4, t, 1, false);
		while (ibvx_test(w.ep[1], &send, NULL) == 0)
			fabric_step(w.fabric, 1);
		fabric_step(w.fabric, 1000);
		pthread_join(thread, NULL);
		assert_int_equal(p.err, 0);
		if (!p.receives) {
			char byte;

			assert_int_equal(ibvx_recv(w.ep[0], &(struct ibvx_rbuf){&byte, 1, 0}, 1, 4, CTX, &s), 0);
		}
		end(&w);
		text_free(t);
	}
}

static void refused_while_pending(void **state)
{
	struct text t = text_of(1, 8);
	struct world w;
	ibvx_req recv, send, late;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	recv = take(&w, 0, 1, 4, mem[0], BIG);
	assert_int_equal(ibvx_close(w.ep[0]), -EBUSY);
	assert_non_null(strstr(ibvx_error(), "4")); /* the tag */
	assert_int_equal(ibvx_cancel(w.ep[0], recv), 0);
	assert_int_equal(finish(&w, 0, &recv, NULL), -ECANCELED);
	send = put(&w, 0, 1, 5, t, 1, true);
	assert_int_equal(ibvx_close(w.ep[0]), -EBUSY);
	/* nothing was closed: both still work */
	late = take(&w, 1, 0, 5, mem[0], BIG);
	assert_int_equal(finish(&w, 1, &late, NULL), 0);
	assert_int_equal(finish(&w, 0, &send, NULL), 0);
	end(&w);
	text_free(t);
}

/* Sends that were accepted arrive, though their sender is gone before they are received. */
static void flushed(void **state)
{
	static const size_t len[] = {8, 0, 3000, 60000, 3999, 60000, 100};

	(void)state;
	for (uint64_t seed = 1; seed <= 16; seed++) {
		struct world_config cfg = ugly(3, seed);
		struct text t[7];
		struct closer closer;
		struct ibvx_status s;
		struct world w;

		cfg.ops = seed % 2 ? &fake_ops : &fake_plain_ops;
		begin(&w, cfg, "psl=4000", "eager_window=64k", NULL);
		fabric_clock_start(w.fabric, 100);
		for (unsigned i = 0; i < 7; i++) {
			ibvx_req send;

			t[i] = text_of(i, len[i]);
			send = put(&w, 0, 1, 3, t[i], i, false);
			if (seed % 3)
				assert_int_equal(ibvx_request_free(w.ep[0], &send), 0);
		}
		closer_start(&closer, &w, 0);
		for (unsigned i = 0; i < 7; i++) {
			ibvx_req recv = take(&w, 1, 0, 3, mem[0], BIG);

			assert_int_equal(finish(&w, 1, &recv, &s), 0);
			assert_int_equal(s.user, i);
			assert_text(mem[0], i, len[i]);
		}
		assert_int_equal(closer_end(&closer, &w), 0);
		end(&w);
		for (unsigned i = 0; i < 7; i++)
			text_free(t[i]);
	}
}

/* After BYE: what was sent before is received, more is not to be had, and the text names the rank that left. */
static void after_goodbye(void **state)
{
	struct text t = text_of(1, 100);
	struct ibvx_sbuf buf = {NULL, 0, t.bytes, t.len, 0};
	struct closer closer;
	struct ibvx_status s;
	struct world w;
	ibvx_req send, recv, waiting, any;
	int err;

	(void)state;
	begin(&w, calm(3, 0), NULL);
	send = put(&w, 0, 1, 3, t, 1, false);
	assert_int_equal(finish(&w, 0, &send, NULL), 0);
	waiting = take(&w, 1, 0, 9, mem[1], BIG);
	any = take(&w, 1, IBVX_ANY_SOURCE, 9, mem[1], BIG);
	closer_start(&closer, &w, 0);
	assert_int_equal(closer_end(&closer, &w), 0);
	assert_int_equal(finish(&w, 1, &waiting, &s), -EPIPE);
	assert_non_null(strstr(ibvx_error(), "rank 0"));
	recv = take(&w, 1, 0, 3, mem[0], BIG);
	assert_int_equal(finish(&w, 1, &recv, &s), 0);
	assert_text(mem[0], 1, 100);
	recv = IBVX_REQ_NULL;
	err = ibvx_irecv(w.ep[1], &(struct ibvx_rbuf){mem[0], BIG, 0}, 0, 3, CTX, &recv);
	assert_int_equal(err ? err : finish(&w, 1, &recv, &s), -EPIPE);
	send = IBVX_REQ_NULL;
	err = ibvx_isend(w.ep[1], &buf, 0, 3, CTX, &send);
	assert_int_equal(err ? err : finish(&w, 1, &send, &s), -EPIPE);
	assert_non_null(strstr(ibvx_error(), "rank 0"));
	/* rank 2 is there: a receive from anybody waits on, and gets its message */
	assert_true(stays_open(&w, 1, &any));
	send = put(&w, 2, 1, 9, t, 5, false);
	assert_int_equal(finish(&w, 1, &any, &s), 0);
	assert_int_equal(s.source, 2);
	assert_int_equal(finish(&w, 2, &send, NULL), 0);
	end(&w);
	text_free(t);
}

/* The last one finds nobody there: a receive from anybody cannot come true, a close can. */
static void everybody_gone(void **state)
{
	struct text t = text_of(1, 100);
	struct closer closer;
	struct ibvx_status s;
	struct world w;
	ibvx_req send, any;

	(void)state;
	begin(&w, calm(3, 0), NULL);
	for (int r = 0; r < 2; r++) {
		send = put(&w, r, 2, 1, t, 1, false);
		assert_int_equal(finish(&w, r, &send, NULL), 0);
	}
	any = take(&w, 2, IBVX_ANY_SOURCE, 9, mem[1], BIG);
	for (int r = 0; r < 2; r++) {
		closer_start(&closer, &w, r);
		assert_int_equal(closer_end(&closer, &w), 0);
	}
	assert_int_equal(finish(&w, 2, &any, &s), -EPIPE);
	for (int r = 0; r < 2; r++) {
		any = take(&w, 2, IBVX_ANY_SOURCE, 1, mem[1], BIG);
		assert_int_equal(finish(&w, 2, &any, &s), 0);
	}
	/* what is not waited for can still be met by a message to oneself, and a probe is no error */
	assert_int_equal(ibvx_iprobe(w.ep[2], 0, 1, CTX, &s), 0);
	assert_int_equal(ibvx_iprobe(w.ep[2], IBVX_ANY_SOURCE, 1, CTX, &s), 0);
	any = take(&w, 2, IBVX_ANY_SOURCE, 3, mem[1], BIG);
	send = put(&w, 2, 2, 3, t, 1, false);
	assert_int_equal(finish(&w, 2, &send, NULL), 0);
	assert_int_equal(finish(&w, 2, &any, &s), 0);
	assert_int_equal(s.source, 2);
	end(&w);
	text_free(t);
}

/* A rank that died does not keep the others from leaving. */
static void close_after_deaths(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct text t = text_of(1, BIG);
		struct world w;
		ibvx_req send[3];

		begin(&w, ugly(3, seed), "psl=4000", NULL);
		for (int i = 0; i < 3; i++)
			send[i] = put(&w, 0, 1, 1, (struct text){t.bytes, i == 1 ? 100 : BIG}, 1, i == 2);
		for (uint64_t i = 0; i < seed; i++)
			world_turn(&w, 1);
		world_kill(&w, 1, false);
		for (int i = 0; i < 3; i++)
			if (seed % 2)
				(void)finish(&w, 0, &send[i], NULL);
			else
				assert_int_equal(ibvx_request_free(w.ep[0], &send[i]), 0);
		end(&w);
		text_free(t);
	}
}

/* A peer that never polls: the close gives up after its time, and nothing was closed. */
static void close_times_out(void **state)
{
	struct text t = text_of(1, BIG);
	struct world w;
	ibvx_req send, recv;

	(void)state;
	begin(&w, calm(2, 0), "psl=4000", "finish_timeout_ms=50", NULL);
	fabric_freeze(w.fabric, 1, true);
	send = put(&w, 0, 1, 1, t, 1, false);
	assert_int_equal(ibvx_close(w.ep[0]), -ETIMEDOUT);
	fabric_freeze(w.fabric, 1, false);
	recv = take(&w, 1, 0, 1, mem[0], BIG);
	assert_int_equal(finish(&w, 1, &recv, NULL), 0);
	assert_text(mem[0], 1, BIG);
	assert_int_equal(finish(&w, 0, &send, NULL), 0);
	end(&w);
	text_free(t);
}

/* The bootstrap's word that a rank has left overtakes what that rank has sent. */
static void left_before_its_last(void **state)
{
	struct text t = text_of(1, 100);
	struct closer closer;
	struct world w;
	ibvx_req send, recv;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	recv = take(&w, 1, 0, 3, mem[0], BIG);
	fabric_freeze(w.fabric, 1, true);
	send = put(&w, 0, 1, 3, t, 1, false);
	assert_int_equal(finish(&w, 0, &send, NULL), 0);
	closer_start(&closer, &w, 0);
	assert_int_equal(closer_end(&closer, &w), 0);
	core_lock(w.ep[1]);
	peer_left(&w.ep[1]->peers[0]);
	core_unlock(w.ep[1]);
	fabric_freeze(w.fabric, 1, false);
	assert_int_equal(finish(&w, 1, &recv, NULL), 0);
	assert_text(mem[0], 1, 100);
	recv = IBVX_REQ_NULL; /* and then it has */
	if (ibvx_irecv(w.ep[1], &(struct ibvx_rbuf){mem[0], BIG, 0}, 0, 3, CTX, &recv) == 0)
		assert_int_equal(finish(&w, 1, &recv, NULL), -EPIPE);
	end(&w);
	text_free(t);
}

/* A transport takes its descriptors off the monitor when it is closed: the monitor ends after it, whether everybody closes
 * well or one is aborted. */
static void monitor_ends_last(void **state)
{
	(void)state;
	for (int kill = 0; kill < 2; kill++) {
		struct world_config cfg = calm(2, 0);
		struct text t = text_of(1, BIG);
		struct world w;
		ibvx_req send, recv;

		cfg.monitor = true;
		begin(&w, cfg, "psl=4000", NULL);
		send = put(&w, 0, 1, 1, t, 1, false);
		recv = take(&w, 1, 0, 1, mem[0], BIG);
		assert_int_equal(finish(&w, 1, &recv, NULL), 0);
		assert_int_equal(finish(&w, 0, &send, NULL), 0);
		assert_text(mem[0], 1, BIG);
		if (kill)
			world_kill(&w, 1, false);
		end(&w);
		text_free(t);
	}
}

/* The buffers of an aborted endpoint may be gone: what has arrived for them stays where it is. */
static void an_abort_writes_nothing(void **state)
{
	struct text t = text_of(1, 100);
	struct world w;
	ibvx_req send, recv;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	memset(mem[0], 0, 100);
	recv = take(&w, 1, 0, 1, mem[0], BIG);
	send = put(&w, 0, 1, 1, t, 1, false);
	fabric_step(w.fabric, 100);
	core_lock(w.ep[1]);
	w.ep[1]->aborted = true;
	assert_int_equal(progress_run(w.ep[1]), 0);
	w.ep[1]->aborted = false;
	core_unlock(w.ep[1]);
	assert_int_equal(mem[0][99], 0);
	assert_int_equal(finish(&w, 1, &recv, NULL), 0);
	assert_text(mem[0], 1, 100);
	assert_int_equal(finish(&w, 0, &send, NULL), 0);
	end(&w);
	text_free(t);
}

struct tester {
	pthread_t thread;
	struct ibvx *ep;
	_Atomic int tid;
	int err;
};

static void *tester_main(void *arg)
{
	struct tester *t = arg;

	atomic_store(&t->tid, gettid());
	t->err = ibvx_iprobe(t->ep, IBVX_ANY_SOURCE, IBVX_ANY_TAG, 0, NULL);
	return NULL;
}

/* Until the thread sleeps, which it does on the lock alone. */
static void tester_await(struct tester *t)
{
	char path[64], state = '?';

	while (!atomic_load(&t->tid))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&t->tid));
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
	}
}

static void *aborter_main(void *arg)
{
	ibvx_abort(arg);
	return NULL;
}

/* Threads that wait for the endpoint's lock in calls that never block, when it is aborted: they get an error, not freed memory. */
static void aborted_under_waiters(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		struct tester t[3];
		pthread_t aborter;
		struct ibvx *ep;
		struct world w;

		begin(&w, calm(2, 1000), NULL);
		ep = w.ep[1];
		w.ep[1] = NULL;
		core_lock(ep);
		assert_int_equal(pthread_create(&aborter, NULL, aborter_main, ep), 0);
		for (int i = 0; i < 3; i++) {
			t[i] = (struct tester){.ep = ep};
			assert_int_equal(pthread_create(&t[i].thread, NULL, tester_main, &t[i]), 0);
		}
		for (int i = 0; i < 3; i++)
			tester_await(&t[i]);
		core_unlock(ep);
		for (int i = 0; i < 3; i++) {
			pthread_join(t[i].thread, NULL);
			assert_true(t[i].err == -ESHUTDOWN || t[i].err == 0);
		}
		pthread_join(aborter, NULL);
		end(&w);
	}
}

static void close_of_null(void **state)
{
	(void)state;
	assert_int_equal(ibvx_close(NULL), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(refused_while_inside),    cmocka_unit_test(refused_while_pending), cmocka_unit_test(flushed),
	cmocka_unit_test(after_goodbye),           cmocka_unit_test(everybody_gone),        cmocka_unit_test(close_after_deaths),
	cmocka_unit_test(close_times_out),         cmocka_unit_test(left_before_its_last),  cmocka_unit_test(monitor_ends_last),
	cmocka_unit_test(an_abort_writes_nothing), cmocka_unit_test(aborted_under_waiters), cmocka_unit_test(close_of_null),
};

int main(void)
{
	return cmocka_run_group_tests_name("closing", tests, NULL, NULL);
}
