/* SPDX-License-Identifier: MIT */
/* The pool of blocks: what is given back is used again, up to a limit, by any thread. */
#include "unit.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

#define LARGE ((size_t)4 << 20)
#define KEPT 4 /* large blocks that the pool keeps */

#ifdef __SANITIZE_ADDRESS__
#define POOL_KEEPS false
#else
#define POOL_KEEPS true
#endif

static void test_sizes(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < 5 * LARGE; bytes += bytes / 3 + 1) {
		char *at = pool_get(bytes);

		assert_non_null(at);
		memset(at, 1, bytes);
		assert_true(malloc_usable_size(at) >= bytes);
		pool_put(at);
	}
	pool_put(NULL);
	pool_drain();
}

/* Between two powers of two as well: a block serves each size of its class. */
static void test_used_again(void **state)
{
	void *at = pool_get(70000), *other;

	(void)state;
	pool_put(at);
	other = pool_get(131072);
	if (POOL_KEEPS)
		assert_ptr_equal(other, at);
	at = pool_get(131072);
	assert_ptr_not_equal(other, at);
	pool_put(at);
	free(other); /* is allowed */
	pool_drain();
}

/* The blocks that come back from a pool which was offered twice its limit. */
static void test_limit(void **state)
{
	void *at[2 * KEPT], *again[2 * KEPT];
	int same = 0;

	(void)state;
	for (int i = 0; i < 2 * KEPT; i++)
		at[i] = pool_get(LARGE);
	for (int i = 0; i < 2 * KEPT; i++)
		pool_put(at[i]);
	for (int i = 0; i < KEPT; i++) {
		again[i] = pool_get(LARGE);
		for (int k = 0; k < KEPT; k++)
			same += again[i] == at[k];
	}
	if (POOL_KEEPS)
		assert_int_equal(same, KEPT);
	for (int i = 0; i < KEPT; i++)
		pool_put(again[i]);
	pool_drain();
}

static void *fill_and_check(void *arg)
{
	uintptr_t mine = (uintptr_t)arg;

	for (int i = 0; i < 20000; i++) {
		size_t words = (size_t)1000 << (i % 5);
		volatile uintptr_t *at = pool_get(words * sizeof(*at));

		at[0] = at[words - 1] = mine;
		if (at[0] != mine || at[words - 1] != mine)
			return (void *)at;
		pool_put((void *)at);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fill_and_check, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++) {
		void *bad;

		assert_int_equal(pthread_join(thread[i], &bad), 0);
		assert_null(bad);
	}
	pool_drain();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_used_again),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
