/* SPDX-License-Identifier: MIT */
/* provider.h over the libraries themselves, as far as that goes without an adapter: what is found in them, and what is reported where
 * one is not installed.  The linker puts __wrap_loader_open() in place of loader_open(). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "transport/loader.h"
#include "transport/verbs/provider.h"

static const char *missing;

int __real_loader_open(const char *library, const struct loader_symbol *symbols, size_t count);
int __wrap_loader_open(const char *library, const struct loader_symbol *symbols, size_t count);

int __wrap_loader_open(const char *library, const struct loader_symbol *symbols, size_t count)
{
	return __real_loader_open(missing && strcmp(library, missing) == 0 ? "libnosuchlibrary.so.7" : library, symbols, count);
}

static int absent_calls(void)
{
	void (*call[sizeof(struct verbs_provider) / sizeof(void (*)(void))])(void);
	int absent = 0;

	memcpy(call, verbs_provider_real, sizeof(call));
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++)
		absent += !call[i];
	return absent;
}

static void test_no_libibverbs(void **state)
{
	(void)state;
	missing = "libibverbs.so.1";
	assert_int_equal(verbs_provider_open(false), -ENOENT);
	assert_non_null(strstr(error_text(), "libibverbs is not installed (Debian, Ubuntu: libibverbs1"));
	assert_true(absent_calls() > 0);
}

static void test_no_librdmacm(void **state)
{
	(void)state;
	missing = "librdmacm.so.1";
	assert_int_equal(verbs_provider_open(true), -ENOENT);
	assert_non_null(strstr(error_text(), "librdmacm is not installed (Debian, Ubuntu, SUSE: librdmacm1"));
	assert_int_equal(verbs_provider_open(false), 0);
	assert_true(absent_calls() > 0);
}

static void test_both(void **state)
{
	(void)state;
	missing = NULL;
	assert_int_equal(verbs_provider_open(true), 0);
	assert_int_equal(absent_calls(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_libibverbs),
		cmocka_unit_test(test_no_librdmacm),
		cmocka_unit_test(test_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
