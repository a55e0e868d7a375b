/* SPDX-License-Identifier: MIT */
/* loader.h: what a library may read and change while it is loaded, and what is left of that. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "transport/loader.h"

static const struct loader_variable variables[] = {
	{"LOADER_TEST_NEW", "new", false},
	{"LOADER_TEST_USER", "ours", false},
	{"LOADER_TEST_FORCED", "ours", true},
};

static void test_environment(void **state)
{
	struct loader l;

	(void)state;
	setenv("LOADER_TEST_USER", "user's", 1);
	setenv("LOADER_TEST_FORCED", "user's", 1);
	for (int round = 0; round < 5; round++) {
		char **before = environ;

		assert_int_equal(loader_begin(&l, variables, 3), 0);
		assert_string_equal(getenv("LOADER_TEST_NEW"), "new");
		assert_string_equal(getenv("LOADER_TEST_USER"), "user's");
		assert_string_equal(getenv("LOADER_TEST_FORCED"), "ours");
		assert_non_null(getenv("PATH"));
		assert_int_equal(loader_end(&l), 0);
		assert_ptr_equal(environ, before);
		assert_null(getenv("LOADER_TEST_NEW"));
		assert_string_equal(getenv("LOADER_TEST_FORCED"), "user's");
	}
}

/* Another thread that sets a variable meanwhile keeps it. */
static void test_setenv_meanwhile(void **state)
{
	struct loader l;

	(void)state;
	assert_int_equal(loader_begin(&l, variables, 3), 0);
	setenv("LOADER_TEST_MEANWHILE", "yes", 1);
	loader_end(&l);
	assert_string_equal(getenv("LOADER_TEST_MEANWHILE"), "yes");
	unsetenv("LOADER_TEST_MEANWHILE");
	unsetenv("LOADER_TEST_NEW");
}

static void handler(int number)
{
	(void)number;
}

static void test_signals(void **state)
{
	struct sigaction mine = {.sa_handler = handler, .sa_flags = SA_RESTART}, now;
	sigset_t before, during, after;
	struct loader l;

	(void)state;
	sigaddset(&mine.sa_mask, SIGUSR2);
	assert_int_equal(sigaction(SIGUSR1, &mine, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(loader_begin(&l, NULL, 0), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &during);
	assert_true(sigismember(&during, SIGTERM));
	assert_int_equal(signal(SIGSEGV, handler) == SIG_ERR, 0);
	assert_int_equal(signal(SIGUSR1, SIG_IGN) == SIG_ERR, 0);
	assert_int_equal(signal(SIGRTMAX, SIG_IGN) == SIG_ERR, 0);
	assert_int_equal(loader_end(&l), 3);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s <= LOADER_SIGNALS; s++)
		assert_int_equal(sigismember(&before, s), sigismember(&after, s));
	assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, handler);
	assert_true(now.sa_flags & SA_RESTART);
	assert_true(sigismember(&now.sa_mask, SIGUSR2));
	assert_int_equal(sigaction(SIGRTMAX, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
}

static void test_libraries(void **state)
{
	size_t (*length)(const char *) = NULL;
	const struct loader_symbol there[] = {{"strlen", &length}}, missing[] = {{"strlen", &length}, {"no_such_function", &length}};

	(void)state;
	assert_int_equal(loader_open("libnosuchlibrary.so.7", there, 1), -ENOENT);
	assert_non_null(strstr(error_text(), "libnosuchlibrary.so.7"));
	assert_int_equal(loader_open("libc.so.6", missing, 2), -EPROTO);
	assert_non_null(strstr(error_text(), "no_such_function"));
	assert_int_equal(loader_open("libc.so.6", there, 1), 0);
	assert_int_equal(length("four"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_setenv_meanwhile),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
