/* SPDX-License-Identifier: MIT */
/* Watches that come and go, as strangers at a listener do, leave nothing behind. */
#include "unit.h"

#include <stdatomic.h>

#include "../../native/core/monitor.c"

#define GUESTS 1000

struct guest {
	struct monitor *monitor;
	int fd;
	_Atomic int *gone;
};

static void on_guest(void *arg)
{
	struct guest *g = arg;

	monitor_remove(g->monitor, g->fd);
	close(g->fd);
	atomic_fetch_add(g->gone, 1);
}

static int count(const struct watch *w)
{
	int n = 0;

	for (; w; w = w->next)
		n++;
	return n;
}

static void test_nothing_stays(void **state)
{
	struct ibvx *ep = calloc(1, sizeof(*ep));
	static struct guest guest[GUESTS];
	_Atomic int gone = 0;
	struct monitor *m;

	(void)state;
	assert_non_null(ep);
	list_init(&ep->busy);
	list_init(&ep->waiters);
	assert_int_equal(monitor_open(&m, ep), 0);
	assert_int_equal(monitor_start(m), 0);
	for (int i = 0; i < GUESTS; i++) {
		guest[i] = (struct guest){m, eventfd(1, EFD_CLOEXEC), &gone};
		core_lock(ep);
		assert_int_equal(monitor_add(m, guest[i].fd, on_guest, &guest[i]), 0);
		assert_true(monitor_add(m, guest[i].fd, on_guest, &guest[i]) < 0); /* twice: refused */
		core_unlock(ep);
		while (atomic_load(&gone) <= i)
			usleep(10);
	}
	core_lock(ep);
	assert_int_equal(count(m->watches), 0);
	assert_int_equal(count(m->removed), 0);
	core_unlock(ep);
	monitor_close(m);
	free(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_stays)};

	return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
