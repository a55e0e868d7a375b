/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <pthread.h>

static void *fresh_thread(void *arg)
{
	*(int *)arg = strcmp(error_text(), "no error") || error_rank() != -1;
	error_set(-EIO, "of another thread");
	return NULL;
}

static void test_text_belongs_to_the_thread(void **state)
{
	pthread_t thread;
	int differs = -1;

	(void)state;
	error_concerns(error_set(-EIO, "mine"), 5);
	assert_int_equal(pthread_create(&thread, NULL, fresh_thread, &differs), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(differs, 0);
	assert_string_equal(error_text(), "mine");
	assert_int_equal(error_rank(), 5);
}

static void test_set_returns_the_code(void **state)
{
	(void)state;
	assert_int_equal(error_set(-EINVAL, "rank %d", 7), -EINVAL);
	assert_string_equal(error_text(), "rank 7");
	assert_int_equal(error_set(-ENOENT, "%s", "%d is no format"), -ENOENT);
	assert_string_equal(error_text(), "%d is no format");
}

static void test_sys_appends_the_meaning(void **state)
{
	(void)state;
	assert_int_equal(error_sys(-ECONNREFUSED, "connecting to %s", "10.0.0.7:20003"), -ECONNREFUSED);
	assert_string_equal(error_text(), "connecting to 10.0.0.7:20003: Connection refused");
	assert_int_equal(error_sys(-99999, "x"), -99999);
	assert_string_equal(error_text(), "x: Unknown error 99999");
}

static void test_prefixes_pile_up(void **state)
{
	(void)state;
	error_set(-EIO, "Connection refused");
	assert_int_equal(error_prefix(-EIO, "port %d", 1), -EIO);
	assert_int_equal(error_prefix(-EPIPE, "rank %d", 3), -EPIPE);
	assert_string_equal(error_text(), "rank 3: port 1: Connection refused");
}

static void test_arguments_may_be_the_text(void **state)
{
	(void)state;
	error_set(-EIO, "inner");
	error_set(-EIO, "outer (%s)", error_text());
	assert_string_equal(error_text(), "outer (inner)");
	error_prefix(-EIO, "%s", error_text());
	assert_string_equal(error_text(), "outer (inner): outer (inner)");
}

static void test_long_texts_are_cut(void **state)
{
	char longer[3000];

	(void)state;
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	error_set(-EIO, "%s", longer);
	assert_int_equal(strlen(error_text()), 1023);
	error_prefix(-EIO, "in front");
	assert_int_equal(strlen(error_text()), 1023);
	assert_memory_equal(error_text(), "in front: aaa", 13);
	error_prefix(-EIO, "%s", longer);
	assert_int_equal(strlen(error_text()), 1023);
	error_sys(-EIO, "%s", longer);
	assert_int_equal(strlen(error_text()), 1023);
}

static void test_the_rank_stays_until_the_next_error(void **state)
{
	(void)state;
	error_set(-EIO, "a link broke");
	assert_int_equal(error_rank(), -1);
	assert_int_equal(error_concerns(-EIO, 3), -EIO);
	error_prefix(-EIO, "in front");
	assert_int_equal(error_rank(), 3);
	error_sys(-EIO, "another");
	assert_int_equal(error_rank(), -1);
	error_concerns(-EIO, 0);
	assert_int_equal(error_rank(), 0);
	error_set(-EIO, "the next");
	assert_int_equal(error_rank(), -1);
}

static void test_errno_survives(void **state)
{
	(void)state;
	errno = E2BIG;
	error_set(-EIO, "a");
	error_sys(-EIO, "b");
	error_prefix(-EIO, "c");
	assert_int_equal(errno, E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_belongs_to_the_thread),
		cmocka_unit_test(test_set_returns_the_code),
		cmocka_unit_test(test_sys_appends_the_meaning),
		cmocka_unit_test(test_prefixes_pile_up),
		cmocka_unit_test(test_arguments_may_be_the_text),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_the_rank_stays_until_the_next_error),
		cmocka_unit_test(test_errno_survives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
