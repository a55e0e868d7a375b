/* SPDX-License-Identifier: MIT */
/* The handles of native/jni: visits that race with closing. Endpoints are doubles that know whether they live. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ibvx_pin.h"
#include "jni/endpoint.h"

#define VISITORS 3

struct ibvx {
	_Atomic int alive;
	int plain; /* for TSan: written by the closer, read by visitors */
	int refuse;
	atomic_bool *wakes; /* set when the endpoint is cut off */
};

static struct ibvx *endpoint_new(void)
{
	struct ibvx *ep = calloc(1, sizeof(*ep));

	assert_non_null(ep);
	ep->alive = 1;
	ep->plain = 1;
	return ep;
}

int ibvx_close(struct ibvx *ep)
{
	if (ep->refuse)
		return ep->refuse;
	atomic_store(&ep->alive, 0);
	ep->plain = 0;
	free(ep);
	return 0;
}

void ibvx_abort(struct ibvx *ep)
{
	ibvx_close(ep);
}

void ibvx_cut_off(struct ibvx *ep)
{
	if (ep->wakes)
		atomic_store(ep->wakes, true);
}

struct town {
	_Atomic int64_t handle;
	atomic_bool stop;
	_Atomic int visits, refusals, ghosts;
};

static void *visitor(void *arg)
{
	struct town *t = arg;

	while (!atomic_load(&t->stop)) {
		int64_t handle = atomic_load(&t->handle);
		struct ibvx *ep = endpoint_get(handle);

		if (!ep) {
			atomic_fetch_add(&t->refusals, 1);
			sched_yield();
			continue;
		}
		if (!atomic_load(&ep->alive) || !ep->plain)
			atomic_fetch_add(&t->ghosts, 1);
		endpoint_put(handle);
		atomic_fetch_add(&t->visits, 1);
	}
	return NULL;
}

static void run_town(bool abort_it)
{
	struct town t = {0};
	pthread_t threads[VISITORS];

	for (int i = 0; i < VISITORS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, visitor, &t), 0);
	for (int round = 0; round < 100; round++) {
		int64_t handle = endpoint_add(endpoint_new());
		int seen = atomic_load(&t.visits);

		assert_true(handle > 0);
		atomic_store(&t.handle, handle);
		while (atomic_load(&t.visits) < seen + 20)
			sched_yield();
		if (abort_it) {
			endpoint_abort(handle);
		} else {
			int rc;

			do /* visitors are never inside for long, but somebody may be each time */
				rc = endpoint_close(handle);
			while (rc == -EBUSY);
			assert_int_equal(rc, 0);
		}
		assert_null(endpoint_get(handle));
		assert_int_equal(endpoint_close(handle), -ESHUTDOWN);
	}
	atomic_store(&t.stop, true);
	for (int i = 0; i < VISITORS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(t.ghosts, 0);
	assert_true(t.visits >= 2000);
}

static void test_close_and_visits(void **state)
{
	(void)state;
	run_town(false);
}

static void test_abort_and_visits(void **state)
{
	(void)state;
	run_town(true);
}

struct guest {
	int64_t handle;
	atomic_bool inside, leave;
};

static void *stay(void *arg)
{
	struct guest *g = arg;

	assert_non_null(endpoint_get(g->handle));
	atomic_store(&g->inside, true);
	while (!atomic_load(&g->leave))
		sched_yield();
	endpoint_put(g->handle);
	return NULL;
}

static void test_abort_wakes(void **state)
{
	struct ibvx *ep = endpoint_new();
	struct guest g = {.handle = endpoint_add(ep)};
	pthread_t thread;

	(void)state;
	ep->wakes = &g.leave;
	assert_int_equal(pthread_create(&thread, NULL, stay, &g), 0);
	while (!atomic_load(&g.inside))
		sched_yield();
	assert_true(endpoint_abort(g.handle));
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_busy(void **state)
{
	struct guest g = {.handle = endpoint_add(endpoint_new())};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, stay, &g), 0);
	while (!atomic_load(&g.inside))
		sched_yield();
	assert_int_equal(endpoint_close(g.handle), -EBUSY);
	assert_error_contains("1 thread is inside");
	assert_non_null(endpoint_get(g.handle)); /* nobody was refused */
	endpoint_put(g.handle);
	atomic_store(&g.leave, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(endpoint_close(g.handle), 0);
}

/* More threads than there are hints of where a thread's visit is. */
#define CROWD 400

static void *come_and_stay(void *arg)
{
	struct guest *g = arg;

	for (int i = 0; i < 100; i++) {
		if (!endpoint_get(g->handle))
			return g;
		endpoint_put(g->handle);
	}
	return stay(g);
}

static void test_crowd(void **state)
{
	static struct guest guests[CROWD];
	static pthread_t threads[CROWD];
	int64_t handle = endpoint_add(endpoint_new());

	(void)state;
	for (int round = 0; round < 2; round++) { /* the second takes what the first has left */
		for (int i = 0; i < CROWD; i++) {
			guests[i] = (struct guest){.handle = handle};
			assert_int_equal(pthread_create(&threads[i], NULL, come_and_stay, &guests[i]), 0);
		}
		for (int i = 0; i < CROWD; i++) {
			while (!atomic_load(&guests[i].inside))
				sched_yield();
		}
		assert_int_equal(endpoint_close(handle), -EBUSY);
		assert_error_contains("400 threads are inside");
		for (int i = 0; i < CROWD; i++) {
			void *refused;

			atomic_store(&guests[i].leave, true);
			assert_int_equal(pthread_join(threads[i], &refused), 0);
			assert_null(refused);
		}
	}
	assert_int_equal(endpoint_close(handle), 0);
}

static void test_refused_close(void **state)
{
	struct ibvx *ep = endpoint_new();
	int64_t handle = endpoint_add(ep);

	(void)state;
	ep->refuse = -EBUSY;
	assert_int_equal(endpoint_close(handle), -EBUSY);
	assert_ptr_equal(endpoint_get(handle), ep);
	endpoint_put(handle);
	ep->refuse = 0;
	assert_int_equal(endpoint_close(handle), 0);
	assert_int_equal(endpoint_close(handle), -ESHUTDOWN);
}

static void test_forged(void **state)
{
	int64_t handle = endpoint_add(endpoint_new());

	(void)state;
	assert_null(endpoint_get(0));
	assert_null(endpoint_get(-1));
	assert_null(endpoint_get(handle + 256));
	assert_null(endpoint_get(handle ^ 1));
	assert_error_contains("init");
	endpoint_abort(handle + 256); /* ignored */
	assert_int_equal(endpoint_close(handle), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forged),      cmocka_unit_test(test_refused_close),    cmocka_unit_test(test_busy),
		cmocka_unit_test(test_crowd),       cmocka_unit_test(test_close_and_visits), cmocka_unit_test(test_abort_and_visits),
		cmocka_unit_test(test_abort_wakes),
	};

	return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}
