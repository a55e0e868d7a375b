/* SPDX-License-Identifier: MIT */
/* Threads that do not block in the library (ibvx_watch.h): one watcher is inside for all of them, and others that do block come and go. */
#include "directed.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "ibvx_watch.h"

#define THREADS 8
#define ROUNDS 5
#define LEN 9000

enum kind { PARKED, PROBING, IMPATIENT, BLOCKING, KIND_COUNT };

/* The layer above one endpoint: what the watcher has found. */
struct layer {
	struct ibvx *ep;
	pthread_t watcher;
	pthread_mutex_t lock;
	pthread_cond_t news;
	unsigned messages;
	ibvx_req found[THREADS * ROUNDS];
	int count;
	bool ended, stop;
};

struct parked {
	pthread_t thread;
	struct layer *layer;
	enum kind kind;
	int tag, err;
	char text[200];
	char mem[LEN];
};

static void *watcher_main(void *arg)
{
	struct layer *l = arg;
	ibvx_req reqs[3];
	bool stop = false;

	while (!stop) {
		int n = ibvx_watched(l->ep, 3, reqs);

		pthread_mutex_lock(&l->lock);
		for (int i = 0; i < n; i++) {
			if (reqs[i] == IBVX_REQ_NULL)
				l->messages++;
			else
				l->found[l->count++] = reqs[i];
		}
		l->ended = n < 0;
		stop = n < 0 || (n == 0 && l->stop);
		pthread_cond_broadcast(&l->news);
		pthread_mutex_unlock(&l->lock);
		if (n == 0)
			usleep(20);
	}
	return NULL;
}

static void layer_start(struct layer *l, struct ibvx *ep)
{
	*l = (struct layer){.ep = ep, .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
	assert_int_equal(pthread_create(&l->watcher, NULL, watcher_main, l), 0);
}

static void layer_end(struct layer *l)
{
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->watcher, NULL);
}

static bool layer_has(struct layer *l, ibvx_req req)
{
	for (int i = 0; i < l->count; i++)
		if (l->found[i] == req)
			return true;
	return false;
}

static void layer_await(struct layer *l, ibvx_req req)
{
	pthread_mutex_lock(&l->lock);
	while (!layer_has(l, req) && !l->ended)
		pthread_cond_wait(&l->news, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

/* A thread that looks anew at each message. */
static int probe(struct parked *p, struct ibvx_status *status)
{
	struct layer *l = p->layer;
	int rc;

	ibvx_watch_messages(l->ep, 1);
	for (;;) {
		unsigned seen;

		pthread_mutex_lock(&l->lock);
		seen = l->messages;
		pthread_mutex_unlock(&l->lock);
		rc = ibvx_look(l->ep, 1, p->tag, CTX, NULL, status);
		if (rc)
			break;
		pthread_mutex_lock(&l->lock);
		while (l->messages == seen && !l->ended)
			pthread_cond_wait(&l->news, &l->lock);
		pthread_mutex_unlock(&l->lock);
	}
	ibvx_watch_messages(l->ep, -1);
	return rc < 0 ? rc : 0;
}

static int receive(struct parked *p, struct ibvx_status *status)
{
	struct ibvx_rbuf in = {p->mem, LEN, 0};
	ibvx_req req;
	int rc;

	if (p->kind == BLOCKING)
		return ibvx_recv(p->layer->ep, &in, 1, p->tag, CTX, status);
	if (p->kind == PROBING) {
		rc = probe(p, status);
		return rc ? rc : ibvx_recv(p->layer->ep, &in, 1, p->tag, CTX, status);
	}
	rc = ibvx_irecv(p->layer->ep, &in, 1, p->tag, CTX, &req);
	for (int i = 0; rc == 0 && p->kind == IMPATIENT && i < 5; i++) {
		rc = ibvx_watch(p->layer->ep, req);
		usleep(i * 30);
		ibvx_unwatch(p->layer->ep, req);
	}
	rc = rc < 0 ? rc : ibvx_watch(p->layer->ep, req);
	if (rc == 0)
		layer_await(p->layer, req);
	return rc < 0 ? rc : ibvx_wait(p->layer->ep, &req, status);
}

static void *parked_main(void *arg)
{
	struct parked *p = arg;

	for (int i = 0; i < ROUNDS && p->err == 0; i++) {
		struct ibvx_status status;

		p->err = receive(p, &status);
		if (p->err)
			snprintf(p->text, sizeof(p->text), "%s", ibvx_error());
		else if (status.user != (uint64_t)(p->tag + i))
			p->err = -EPROTO;
	}
	return NULL;
}

static void parked_start(struct parked *p, struct layer *l, enum kind kind, int tag)
{
	*p = (struct parked){.layer = l, .kind = kind, .tag = tag};
	assert_int_equal(pthread_create(&p->thread, NULL, parked_main, p), 0);
}

struct sender {
	pthread_t thread;
	struct world *w;
	uint64_t seed;
	atomic_bool done;
};

static void *sender_main(void *arg)
{
	struct sender *s = arg;

	for (int i = 0; i < ROUNDS; i++)
		for (int t = 0; t < THREADS; t++) {
			int tag = (int)((s->seed + (uint64_t)t * 3) % THREADS);
			uint64_t user = (uint64_t)(tag + i);
			struct text text = text_of(user, (t + i) % 2 ? LEN : 10);
			struct ibvx_sbuf buf = {NULL, 0, text.bytes, (t + i) % 2 ? LEN : 10, user};

			assert_int_equal(ibvx_send(s->w->ep[1], &buf, 0, tag, CTX), 0);
			text_free(text);
		}
	atomic_store(&s->done, true);
	return NULL;
}

static struct world_config sleepy(uint64_t seed)
{
	struct world_config cfg = ugly(2, seed);

	cfg.monitor = false;
	return cfg;
}

static void every_thread_gets_its_messages(void **state)
{
	static struct parked p[THREADS];
	static struct layer layer;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct sender s = {.seed = seed};
		struct world w;

		begin(&w, sleepy(seed), seed % 3 ? "spin_us=0" : "spin_us=20", "yield_us=0", "psl=4000", "eager_window=64k",
		      seed % 4 ? "progress_thread=0" : "progress_thread=1", NULL);
		fabric_clock_start(w.fabric, 100);
		layer_start(&layer, w.ep[0]);
		for (int i = 0; i < THREADS; i++)
			parked_start(&p[i], &layer, (enum kind)((seed + (uint64_t)i) % KIND_COUNT), i);
		s.w = &w;
		assert_int_equal(pthread_create(&s.thread, NULL, sender_main, &s), 0);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(p[i].thread, NULL);
			if (p[i].err)
				fail_msg("seed %llu, thread %d of kind %d: %d %s", (unsigned long long)seed, i, p[i].kind, p[i].err,
					 p[i].text);
		}
		layer_end(&layer);
		while (!atomic_load(&s.done))
			world_turn(&w, 1);
		pthread_join(s.thread, NULL);
		end(&w);
	}
}

static void a_death_ends_all(void **state)
{
	static struct parked p[THREADS];
	static struct layer layer;

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct world w;

		begin(&w, sleepy(seed), "spin_us=0", "yield_us=0", seed % 2 ? "progress_thread=0" : "progress_thread=1", NULL);
		fabric_clock_start(w.fabric, 100);
		layer_start(&layer, w.ep[0]);
		for (int i = 0; i < THREADS; i++)
			parked_start(&p[i], &layer, (enum kind)(i % KIND_COUNT), i);
		usleep(seed % 3 ? 2000 : 0);
		world_kill(&w, 1, false);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(p[i].thread, NULL);
			assert_int_equal(p[i].err, -ECONNRESET);
			if (!strstr(p[i].text, "rank 1"))
				fail_msg("thread %d: \"%s\" does not name rank 1", i, p[i].text);
		}
		layer_end(&layer);
		end(&w);
	}
}

/* What is complete or unknown is not watched, what is watched belongs to one thread, and what was returned once is not again. */
static void rules(void **state)
{
	struct world w;
	char mem[10];
	struct ibvx_rbuf in = {mem, sizeof(mem), 0};
	struct ibvx_sbuf out = {NULL, 0, "x", 1, 7};
	ibvx_req req, other, reqs[2];

	(void)state;
	begin(&w, calm(1, 0), NULL);
	assert_int_equal(ibvx_watched(w.ep[0], 2, reqs), 0);
	assert_int_equal(ibvx_irecv(w.ep[0], &in, 0, 1, CTX, &req), 0);
	assert_int_equal(ibvx_irecv(w.ep[0], &in, 0, 2, CTX, &other), 0);
	assert_int_equal(ibvx_watch(w.ep[0], req), 0);
	assert_int_equal(ibvx_watch(w.ep[0], req), -EINVAL);
	assert_int_equal(ibvx_watch(w.ep[0], other), 0);
	assert_int_equal(ibvx_test(w.ep[0], &req, NULL), -EINVAL);
	assert_int_equal(ibvx_watch(w.ep[0], req + 1000), -EINVAL);
	assert_int_equal(ibvx_send(w.ep[0], &out, 0, 2, CTX), 0);
	assert_int_equal(ibvx_watched(w.ep[0], 2, reqs), 1);
	assert_int_equal(reqs[0], other);
	assert_int_equal(ibvx_watch(w.ep[0], other), 1);
	assert_int_equal(ibvx_wait(w.ep[0], &other, NULL), 0);
	assert_int_equal(ibvx_send(w.ep[0], &out, 0, 1, CTX), 0);
	ibvx_unwatch(w.ep[0], req);
	ibvx_unwatch(w.ep[0], req);
	assert_int_equal(ibvx_watched(w.ep[0], 2, reqs), 0);
	assert_int_equal(ibvx_wait(w.ep[0], &req, NULL), 0);
	ibvx_watch_messages(w.ep[0], 1);
	assert_int_equal(ibvx_look(w.ep[0], 0, 3, CTX, NULL, NULL), 0);
	assert_int_equal(ibvx_send(w.ep[0], &out, 0, 3, CTX), 0);
	assert_int_equal(ibvx_watched(w.ep[0], 2, reqs), 1);
	assert_int_equal(reqs[0], IBVX_REQ_NULL);
	assert_int_equal(ibvx_look(w.ep[0], 0, 3, CTX, NULL, NULL), 1);
	ibvx_watch_messages(w.ep[0], -1);
	assert_int_equal(ibvx_watched(w.ep[0], 2, reqs), 0);
	assert_int_equal(ibvx_recv(w.ep[0], &in, 0, 3, CTX, NULL), 0);
	end(&w);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_thread_gets_its_messages),
	cmocka_unit_test(a_death_ends_all),
	cmocka_unit_test(rules),
};

int main(void)
{
	return cmocka_run_group_tests_name("watched", tests, NULL, NULL);
}
