/* SPDX-License-Identifier: MIT */
/* One rank of a large job that talks with every other one: queues and buffers follow the traffic, not the number of peers. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "transport/verbs/handshake.h"
#include "transport/verbs/route.h"

#define OPS transport_verbs_ops
#define PORT 20000

static int answer(uint16_t port, void *data)
{
	struct private_data d = {
		.magic = PRIVATE_DATA_MAGIC, .rank = (uint32_t)(ntohs(port) - PORT), .credit = 8, .credit_max = 32, .reads = 4};

	for (int i = 0; i < 16; i++)
		d.job[i] = (uint8_t)("\x01\x23\x45\x67\x89\xab\xcd\xef"[i % 8]);
	memcpy(data, &d, sizeof(d));
	return (int)sizeof(d);
}

/* Rank 0 of `size`; every other one listens at a port of its own. */
static void star_open(struct side *s, int size, const struct settings *settings, const struct log *log)
{
	struct transport_peer_info *info = calloc((size_t)size, sizeof(*info));
	struct route_blob *blobs = calloc((size_t)size, sizeof(*blobs)), own;
	int bytes = side_open(s, 0, size, settings, log, &own, sizeof(own));

	assert_true(bytes > 0);
	for (int r = 0; r < size; r++) {
		blobs[r] = own;
		blobs[r].entry[0].port = htons((uint16_t)(PORT + r));
		info[r] = (struct transport_peer_info){.address = &blobs[r], .address_bytes = (size_t)bytes};
	}
	assert_int_equal(OPS.attach(s->t, info), 0);
	adapter_hollow = answer;
	adapter_locked = true;
	free(info);
	free(blobs);
}

static void run(struct side *s)
{
	while (side_step(s) > 0)
		;
}

static uint64_t counted[2];

static void count(void *arg, const char *name, uint64_t value)
{
	(void)arg;
	if (strcmp(name, "verbs_queue_pairs") == 0)
		counted[0] = value;
	if (strcmp(name, "verbs_buffer_bytes") == 0)
		counted[1] = value;
}

static void send_to(struct side *s, int r, size_t len)
{
	struct transport_slot slot;

	for (int i = 0; OPS.reserve(s->t, r, len, &slot) == -EAGAIN; i++) {
		assert_true(i < 10);
		run(s);
	}
	*slot.hdr = (struct wire_hdr){.kind = WIRE_CTS, .len = (uint32_t)len};
	memset(slot.payload, 0, len);
	OPS.commit(s->t, r, &slot);
}

static void talk_to_all(const char *slots, int size)
{
	struct side *s = calloc(1, sizeof(*s));
	struct settings *settings = settings_new();
	struct log log = {.level = LOG_OFF, .fd = -1};
	struct wire_hdr hdr = {.kind = WIRE_CTS};
	struct transport_slot slot;

	adapter_reset();
	assert_int_equal(settings_set_pair(settings, SETTINGS_CALLER, slots, "test"), 0);
	star_open(s, size, settings, &log);
	for (int r = 1; r < size; r++)
		assert_int_equal(OPS.reserve(s->t, r, 100, &slot), -EAGAIN);
	run(s);
	assert_int_equal(s->downs, 0);
	for (int n = 0; n < 3; n++) {
		for (int r = 1; r < size; r++) {
			send_to(s, r, n * 100u);
			hdr.ctl.value = (uint64_t)s->packets;
			adapter_inject(&hdr, sizeof(hdr), adapter_qp(r - 1));
			if (r % 100 == 0)
				run(s);
		}
		run(s);
	}
	assert_int_equal(s->downs, 0);
	assert_int_equal(s->packets, 3 * (size - 1));
	OPS.counters(s->t, -1, count, NULL);
	assert_int_equal(counted[0], size - 1);
	print_message("%d ranks, %s: %llu queue pairs, %llu KB of buffers\n", size, slots, (unsigned long long)counted[0],
		      (unsigned long long)counted[1] >> 10);
	assert_true(counted[1] <= 64u << 20);
	side_close(s);
	adapter_locked = false;
	settings_free(settings);
	free(s);
	assert_int_equal(adapter_live(), 0);
}

static void test_many_connections(void **state)
{
	(void)state;
	talk_to_all("verbs_slots=32", 2101);
	talk_to_all("verbs_slots=32", 4096);
}

/* As many peers as once filled the shared receive queue. */
static void test_large_credit(void **state)
{
	(void)state;
	talk_to_all("verbs_slots=64", 601);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_connections),
		cmocka_unit_test(test_large_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
