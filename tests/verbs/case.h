/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VERBS_CASE_H
#define TESTS_VERBS_CASE_H
/* case: what the test programs of the transport share: a fresh adapter for each test, and nothing left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair.h"

#define OPS transport_verbs_ops
#define TEST(f) cmocka_unit_test_setup_teardown(f, case_setup, case_teardown)

static inline int case_setup(void **state)
{
	(void)state;
	adapter_reset();
	return 0;
}

static inline int case_teardown(void **state)
{
	(void)state;
	return adapter_live() ? -1 : 0;
}

/* As many packets, all of them in order and whole, and the peer is there. */
static inline void expect_good(const struct side *s, int packets)
{
	assert_int_equal(s->packets, packets);
	assert_true(s->in_order);
	assert_true(s->whole);
	assert_int_equal(s->downs, 0);
}

/* Opens, and rank 0 sends a first packet: a connection stands. */
static inline void open_connected(struct pair *p, const char *const *settings)
{
	pair_open(p, settings);
	assert_true(pair_send_until(p, 0, 1, 8));
	pair_run(p);
}

#endif
