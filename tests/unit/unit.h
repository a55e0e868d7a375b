/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TESTS_UNIT_H
#define IBVX_TESTS_UNIT_H
/* unit: cmocka with the headers that it wants included first, and what several tests need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"

/* The text of the last error contains every one of the words. */
#define assert_error_contains(...)                                                         \
	do {                                                                               \
		const char *const words_[] = {__VA_ARGS__};                                \
		for (size_t i_ = 0; i_ < sizeof(words_) / sizeof(*words_); i_++) {         \
			if (!strstr(error_text(), words_[i_]))                             \
				fail_msg("no \"%s\" in \"%s\"", words_[i_], error_text()); \
		}                                                                          \
	} while (0)

#endif
