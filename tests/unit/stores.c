/* SPDX-License-Identifier: MIT */
/* How long payloads are copied into a ring: the copy itself, and what is learned about it. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "transport/shm/stores.h"

#define LONG 65536u

static void copies_what_memcpy_copies(void **unused)
{
	unsigned char from[700], to[1000], expected[1000];

	(void)unused;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (size_t at = 0; at < 130; at++)
		for (size_t n = 0; n < 520; n += n < 140 ? 1 : 37) {
			size_t skew = (at * 3 + n) % 64;

			memset(to, 0xee, sizeof(to));
			memset(expected, 0xee, sizeof(expected));
			memcpy(expected + at, from + skew, n);
			assert_ptr_equal(copy_streaming(to + at, from + skew, n), to + at);
			assert_memory_equal(to, expected, sizeof(to));
		}
}

struct pair {
	struct stores producer;
	_Atomic uint32_t measured_ns;
	uint32_t consumer_ns[2]; /* what the consumer takes after ordinary stores, after streaming ones */
};

/* Sends one payload; true: by streaming stores. */
static bool payload(struct pair *p, size_t len)
{
	bool streamed = stores_begin(&p->producer, &p->measured_ns, len) != (copy_fn *)memcpy;

	if (stores_end(&p->producer))
		atomic_store(&p->measured_ns, p->consumer_ns[streamed]);
	return streamed;
}

static int streamed_of(struct pair *p, size_t len, int count)
{
	int streamed = 0;

	for (int i = 0; i < count; i++)
		streamed += payload(p, len);
	return streamed;
}

static void needs_streaming(void)
{
	if (!copy_can_stream())
		skip();
}

/* The times of the consumer differ by far more than what the clock can show between begin and end here. */
static void finds_the_faster_stores(void **unused)
{
	struct pair p = {.consumer_ns = {90000000, 10000000}};

	(void)unused;
	needs_streaming();
	stores_init(&p.producer, STORES_LEARN);
	streamed_of(&p, LONG, 200);
	assert_in_range(streamed_of(&p, LONG, 1000), 980, 1000);
	p.consumer_ns[0] = 1000000; /* the machine changes */
	streamed_of(&p, LONG, 2000);
	assert_in_range(streamed_of(&p, LONG, 1000), 0, 20);
}

static void learns_each_size_by_itself(void **unused)
{
	struct pair p = {.consumer_ns = {90000000, 10000000}};

	(void)unused;
	needs_streaming();
	stores_init(&p.producer, STORES_LEARN);
	streamed_of(&p, LONG, 200);
	p.consumer_ns[0] = 1000000;
	streamed_of(&p, STORES_MIN, 200);
	assert_in_range(streamed_of(&p, STORES_MIN, 100), 0, 10);
	p.consumer_ns[0] = 90000000;
	assert_in_range(streamed_of(&p, LONG, 100), 90, 100);
}

/* A consumer that does not answer: the best known one is taken, nothing is explored that cannot be learned from. */
static void waits_for_the_consumer(void **unused)
{
	struct pair p = {.consumer_ns = {0, 0}};

	(void)unused;
	needs_streaming();
	stores_init(&p.producer, STORES_LEARN);
	assert_in_range(streamed_of(&p, LONG, 1000), 0, 1);
}

static void what_was_not_sent_is_not_measured(void **unused)
{
	struct pair p = {.consumer_ns = {1000, 1000}};

	(void)unused;
	needs_streaming();
	stores_init(&p.producer, STORES_LEARN);
	for (int i = 0; i < 100; i++) {
		stores_begin(&p.producer, &p.measured_ns, LONG);
		stores_forget(&p.producer);
		assert_false(stores_end(&p.producer));
	}
}

static void can_be_forced(void **unused)
{
	struct pair p = {.consumer_ns = {1000, 90000000}};

	(void)unused;
	needs_streaming();
	stores_init(&p.producer, STORES_STREAMING);
	assert_int_equal(streamed_of(&p, LONG, 100), 100);
	assert_int_equal(p.producer.streamed_count, 100);
	stores_init(&p.producer, STORES_CACHED);
	assert_int_equal(streamed_of(&p, LONG, 100), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_what_memcpy_copies),         cmocka_unit_test(finds_the_faster_stores),
		cmocka_unit_test(learns_each_size_by_itself),        cmocka_unit_test(waits_for_the_consumer),
		cmocka_unit_test(what_was_not_sent_is_not_measured), cmocka_unit_test(can_be_forced),
	};

	return cmocka_run_group_tests_name("stores", tests, NULL, NULL);
}
