/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "transport/shm/ring.h"

struct pipe {
	void *mapping;
	struct ring producer, consumer;
};

static int setup_shape(void **state, const struct ring_shape *shape)
{
	struct pipe *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->mapping = aligned_alloc(RING_PAGE, ring_mapping_bytes(shape));
	assert_non_null(p->mapping);
	memset(p->mapping, 0, ring_mapping_bytes(shape));
	ring_init(&p->producer, p->mapping, shape);
	ring_init(&p->consumer, p->mapping, shape);
	*state = p;
	return 0;
}

static int setup(void **state)
{
	return setup_shape(state, &(struct ring_shape){.slot_count = 16, .data_bytes = 16384, .payload_max = 1024});
}

static const struct ring_shape grown = {.slot_count = 32, .data_bytes = 16 * RING_SMALL_BYTES, .payload_max = RING_SMALL_BYTES};

static int setup_grown(void **state)
{
	return setup_shape(state, &grown);
}

/* The smallest with long payloads. */
static int setup_long(void **state)
{
	return setup_shape(state, &(struct ring_shape){.slot_count = 16, .data_bytes = 4 * RING_LONG, .payload_max = RING_LONG});
}

static int teardown(void **state)
{
	struct pipe *p = *state;

	free(p->mapping);
	free(p);
	return 0;
}

static bool send_less(struct pipe *p, uint32_t reserved, uint32_t len, unsigned char fill)
{
	struct ring_slot *slot;
	void *payload = NULL;

	if (!ring_reserve(&p->producer, reserved, &slot, &payload))
		return false;
	if (reserved >= RING_LONG)
		assert_int_equal((uintptr_t)payload % RING_PAGE, RING_SKEW);
	slot->hdr.len = len;
	memset(payload, fill, len);
	ring_commit(&p->producer, slot, reserved);
	return true;
}

static bool send(struct pipe *p, uint32_t len, unsigned char fill)
{
	return send_less(p, len, len, fill);
}

static void receive(struct pipe *p, uint32_t len, unsigned char fill)
{
	const void *payload = NULL;
	struct wire_hdr hdr = {0};

	assert_true(ring_ready(&p->consumer));
	assert_true(ring_next(&p->consumer, &hdr, &payload));
	assert_int_equal(hdr.len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(((const unsigned char *)payload)[i], fill);
	ring_free(&p->consumer, hdr.len);
}

/* Laps of mixed lengths: everything comes out as it went in, in order. */
static void test_order(void **state)
{
	struct pipe *p = *state;
	uint32_t in = 0, out = 0;

	while (out < 5000) {
		while (in < 5000 && send(p, in * 37 % 1025, (unsigned char)in))
			in++;
		assert_true(in > out);
		do {
			receive(p, out * 37 % 1025, (unsigned char)out);
			out++;
		} while (out < in && out % 5);
	}
	assert_false(ring_ready(&p->consumer));
}

/* Long payloads among others, some shorter than was reserved. */
static void test_long(void **state)
{
	static const uint32_t lengths[] = {RING_LONG, 100, RING_LONG, RING_LONG - 1, 0, RING_LONG, 33, 5000, 64};
	struct pipe *p = *state;
	uint32_t in = 0, out = 0;

	while (out < 5000) {
		while (in < 5000 && send_less(p, in % 4 == 3 ? RING_LONG : lengths[in % 9], lengths[in % 9], (unsigned char)in))
			in++;
		assert_true(in > out);
		do {
			receive(p, lengths[out % 9], (unsigned char)out);
			out++;
		} while (out < in && out % 5);
	}
	assert_false(ring_ready(&p->consumer));
}

/* One thread of the producer sleeps for room; another finds some before the consumer looks: the sleeper
 * must be woken all the same. */
static void test_lack_of_room_survives_others(void **state)
{
	struct pipe *p = *state;
	_Atomic uint32_t *lacks_room = &p->producer.control->lacks_room;
	uint32_t count = 0;

	while (send(p, 1000, 1))
		count++;
	assert_true(count > 2);
	receive(p, 1000, 1);
	assert_true(send(p, 0, 2));
	assert_true(ring_take_lack(lacks_room));
	assert_false(ring_take_lack(lacks_room));
}

/* A producer that finds no room again asks to be woken again. */
static void test_lack_of_room_again(void **state)
{
	struct pipe *p = *state;
	_Atomic uint32_t *lacks_room = &p->producer.control->lacks_room;

	assert_false(ring_take_lack(lacks_room));
	while (send(p, 1000, 1))
		;
	assert_true(ring_take_lack(lacks_room));
	assert_false(send(p, 1000, 1));
	assert_true(ring_take_lack(lacks_room));
	receive(p, 1000, 1);
	assert_true(send(p, 1000, 1));
	assert_false(ring_take_lack(lacks_room));
}

/* A producer that finds no room sleeps until it is woken, a consumer reads in random bursts and looks only when that is
 * due: it never ends up with nothing to read while the producer sleeps. */
static void test_looks_come_in_time(void **state)
{
	struct pipe *p = *state;
	_Atomic uint32_t *lacks_room = &p->producer.control->lacks_room;
	uint64_t random = 1;
	uint32_t sleeps = 0;
	bool asleep = false;

	for (int step = 0; step < 200000; step++) {
		uint32_t len, burst;

		random = random * 6364136223846793005u + 1442695040888963407u;
		len = random >> 60 < 8 ? (uint32_t)(random >> 33) % 33 : (uint32_t)(random >> 33) % (p->producer.shape.payload_max + 1);
		burst = (uint32_t)(random >> 24) % 32;
		if (!asleep && random >> 60 > 0) {
			asleep = !send(p, len, 7);
			sleeps += asleep;
			continue;
		}
		for (; burst > 0 && ring_ready(&p->consumer); burst--) {
			const void *payload;
			struct wire_hdr hdr = {0};

			assert_true(ring_next(&p->consumer, &hdr, &payload));
			ring_free(&p->consumer, hdr.len);
		}
		if (ring_look_due(&p->consumer) && ring_take_lack(lacks_room))
			asleep = false;
		assert_true(ring_ready(&p->consumer) || !asleep);
	}
	assert_true(sleeps > 100);
}

/* A ring that begins small grows while packets are unread: everything comes out as it went in. */
static void test_grow(void **state)
{
	struct pipe *p = *state;

	for (uint32_t before = 0; before < 60; before++) {
		uint32_t in = 0, out = 0, unread = before % 7;
		struct ring_slot *slot = NULL;
		void *payload = NULL;

		memset(p->mapping, 0, RING_PAGE * 2);
		ring_init(&p->producer, p->mapping, &grown);
		ring_init(&p->consumer, p->mapping, &grown);
		ring_limit(&p->producer);
		ring_limit(&p->consumer);
		assert_int_equal(p->producer.shape.data_bytes, RING_SMALL_BYTES);
		for (; in < before; in++) {
			assert_true(send(p, 1 + in * 611 % 2000, (unsigned char)in));
			for (; in - out >= unread && out < in; out++)
				receive(p, 1 + out * 611 % 2000, (unsigned char)out);
		}
		assert_true(ring_reserve(&p->producer, 0, &slot, &payload));
		slot->hdr.len = 0;
		ring_commit(&p->producer, slot, 0);
		ring_grow(&p->producer);
		/* the whole area but the small one is free at once */
		for (uint32_t i = 0; i < (grown.data_bytes - RING_SMALL_BYTES) / grown.payload_max; i++, in++)
			assert_true(send(p, grown.payload_max, (unsigned char)in));
		for (; out < before; out++)
			receive(p, 1 + out * 611 % 2000, (unsigned char)out);
		ring_grow_consumer(&p->consumer);
		ring_free(&p->consumer, 0);
		for (; out < in + 300; out++) {
			while (in < out + 5 && send(p, grown.payload_max - in % 3, (unsigned char)in))
				in++;
			receive(p, out < before + 15 ? grown.payload_max : grown.payload_max - out % 3, (unsigned char)out);
			if (in > before + 400)
				break;
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long, setup_long, teardown),
		cmocka_unit_test_setup_teardown(test_lack_of_room_survives_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lack_of_room_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grow, setup_grown, teardown),
		cmocka_unit_test_setup_teardown(test_looks_come_in_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_looks_come_in_time, setup_long, teardown),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
