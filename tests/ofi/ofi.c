/* SPDX-License-Identifier: MIT */
/* The transport ofi over a double of libfabric: credit, sends without room, registered memory, sleeping, broken queues, providers. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "netlib/pair.h"
#include "ofi/double.h"
#include "transport/ofi/ofi_abi.h"
#include "transport/ofi/ofi_state.h"

/* A receiver that does not poll gets so many packets and no more; what it acknowledges then lets the sender go on. */
static void test_credit(void **state)
{
	uint32_t credit, sent = 0;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	credit = netlib_of(p.side[0].t)->credit;
	assert_int_equal(credit, NETLIB_SMALL_SLOTS + netlib_of(p.side[0].t)->large_slots);
	while (pair_send(&p, 0, 2 + sent, 8) == 0) {
		sent++;
		assert_true(sent <= credit);
	}
	assert_true(sent >= credit - 2);
	for (int i = 0; i < 10; i++)
		side_step(&p.side[0]);
	assert_int_equal(pair_send(&p, 0, 2 + sent, 8), -EAGAIN);
	assert_true(pair_peer(&p, 0)->full_count >= 2);
	pair_run(&p);
	assert_int_equal(p.side[1].packets, 1 + sent);
	assert_int_equal(p.side[1].downs, 0);
	/* rank 1 sends nothing of its own: its acknowledgements alone carry ten times the credit */
	for (uint32_t i = 0; i < 10 * credit; i++) {
		assert_int_equal(pair_send(&p, 0, 2 + sent, 8), 0);
		sent++;
		pair_run(&p);
	}
	assert_true(p.side[1].in_order && p.side[1].whole);
	pair_close(&p);
}

/* Packets without room wait in order, and the endpoint that sleeps looks after them by itself. */
static void test_sends_without_room(void **state)
{
	struct pair p;
	struct side *s = &p.side[0];

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	ofi_double.again = true;
	for (uint64_t v = 2; v < 12; v++)
		assert_int_equal(pair_send(&p, 0, v, v % 2 ? 8 : 5000), 0);
	assert_int_equal(pair_peer(&p, 0)->queued_count, 10);
	pair_run(&p);
	assert_int_equal(p.side[1].packets, 1);
	assert_false(OPS.drained(s->t));
	OPS.arm(s->t);
	assert_false(OPS.ready(s->t));
	usleep(20000);
	assert_true(side_readable(s, WATCH_GATE)); /* the library had nothing to report */
	s->watch[WATCH_GATE].fn(s->watch[WATCH_GATE].arg);
	OPS.disarm(s->t);
	ofi_double.again = false;
	pair_run(&p);
	assert_int_equal(p.side[1].packets, 11);
	assert_true(p.side[1].in_order && p.side[1].whole);
	assert_null(netlib_of(s->t)->queued);
	/* with an empty queue there is nothing to look after */
	OPS.arm(s->t);
	usleep(5000);
	assert_false(side_readable(s, WATCH_GATE));
	OPS.disarm(s->t);
	/* a peer that is given up takes its queue along */
	ofi_double.again = true;
	assert_int_equal(pair_send(&p, 0, 12, 5000), 0);
	OPS.forget(s->t, 1);
	assert_int_equal(pair_peer(&p, 0)->in_flight[1], 0);
	pair_run(&p);
	ofi_double.again = false;
	pair_run(&p);
	assert_int_equal(p.side[1].packets, 11);
	pair_close(&p);
}

/* What is queued when the endpoint closes goes out, if there is room soon. */
static void test_close_sends_the_queue(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	ofi_double.again = true;
	OPS.leave(p.side[0].t);
	assert_non_null(pair_peer(&p, 0)->queue);
	ofi_double.again = false;
	side_close(&p.side[0]);
	pair_run(&p);
	assert_true(pair_peer(&p, 1)->left);
	pair_close(&p);
}

/* A provider that wants registered memory gets nothing else (the double looks at each buffer). */
static void test_registered_memory(void **state)
{
	static const int modes[] = {OFI_MR_LOCAL | OFI_MR_PROV_KEY, OFI_MR_LOCAL | OFI_MR_ENDPOINT};

	(void)state;
	for (int i = 0; i < 2; i++) {
		int sent = 0;
		struct pair p;

		double_reset();
		ofi_double.mr_mode = modes[i];
		pair_open(&p, NULL);
		pair_connect(&p);
		assert_int_equal(ofi_double.registered, 4);
		for (uint64_t v = 2; v < 200; v++) {
			assert_int_equal(pair_send(&p, 0, v, v * 997 % 60000), 0);
			pair_run(&p);
		}
		double_faults.hold = true;
		while (pair_send(&p, 0, 2, 5000) == 0)
			sent++;
		assert_int_equal(sent, netlib_of(p.side[0].t)->large_slots);
		assert_true(p.side[1].in_order && p.side[1].whole);
		pair_close(&p);
		assert_int_equal(double_live(), 0);
	}
	double_reset();
	ofi_double.mr_mode = OFI_MR_LOCAL;
	double_faults.fail_call = 11; /* fi_mr_reg of rank 0: it goes without the transport */
	struct pair p;
	pair_open(&p, NULL);
	assert_string_equal(double_faults.failed, "reg");
	assert_false(OPS.reaches(p.side[0].t, 1));
	pair_close(&p);
}

static void test_no_descriptor(void **state)
{
	struct pair p;
	struct side *s = &p.side[1];

	(void)state;
	ofi_double.no_fd = true;
	pair_open(&p, NULL);
	pair_connect(&p);
	OPS.arm(s->t);
	assert_false(OPS.ready(s->t));
	usleep(20000);
	assert_true(side_readable(s, WATCH_GATE));
	s->watch[WATCH_GATE].fn(s->watch[WATCH_GATE].arg);
	assert_false(side_readable(s, WATCH_GATE));
	OPS.disarm(s->t);
	pair_close(&p);
}

static void test_broken_queue(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	ofi_double.broken = EIO;
	for (unsigned n = 0; n <= NETLIB_GRACE; n++)
		side_tick(&p.side[0]);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -ECONNRESET);
	assert_non_null(strstr(p.side[0].why, "rank 1 cannot be reached by libfabric any more: error 5"));
	ofi_double.broken = 0;
	pair_close(&p);
}

/* Every buffer is posted again, also after a packet that was too long. */
static void test_receives_are_posted_again(void **state)
{
	struct pair p;
	int posted;

	(void)state;
	pair_open(&p, NULL);
	pair_connect(&p);
	posted = ofi_double.posted;
	assert_int_equal(posted, 2 * (int)OFI_RECEIVES);
	for (uint64_t v = 2; v < 200; v++) {
		assert_int_equal(pair_send(&p, 0, v, v), 0);
		if (v % 10 == 0)
			double_inject(1, "abc", 3, NULL, 0, false);
		pair_run(&p);
	}
	assert_int_equal(p.side[1].packets, 199);
	assert_int_equal(ofi_double.posted, posted);
	assert_true(netlib_of(p.side[1].t)->foreign_count > 0);
	pair_close(&p);
}

/* Opens a pair and answers which provider was chosen; "" for none. */
static void choose(const struct ofi_double_network *networks, const char *setting, char *provider, size_t size)
{
	struct pair p;

	double_reset();
	ofi_double.networks = networks;
	pair_open(&p, setting);
	provider[0] = '\0';
	assert_true(size > 0);
	if (OPS.reaches(p.side[0].t, 1)) {
		const struct ofi *o = (const struct ofi *)p.side[0].t;

		strncat(provider, o->info->fabric_attr->prov_name, size - 1);
		strncat(provider, " ", size - 1 - strlen(provider));
		strncat(provider, o->info->domain_attr->name, size - 1 - strlen(provider));
		assert_int_equal(OPS.payload_max(p.side[0].t, 1), strstr(provider, "rxm") ? 16000 : 64000);
		pair_connect(&p);
	}
	pair_close(&p);
}

static void test_providers(void **state)
{
	static const struct ofi_double_network none[] = {
		{"shm", "shm", 0}, {"sockets", "lo", AF_INET}, {"net", "lo", AF_INET}, {NULL, NULL, 0}};
	static const struct ofi_double_network many[] = {{"shm", "shm", 0},
							 {"tcp;ofi_rxm", "nosuch0", AF_INET},
							 {"tcp", "nosuch6", AF_INET6},
							 {"tcp", "nosuch1", AF_INET},
							 {"verbs;ofi_rxm", "mlx5_0", 0},
							 {"net", "lo", 0},
							 {NULL, NULL, 0}};
	char chosen[64];

	(void)state;
	choose(none, NULL, chosen, sizeof(chosen));
	assert_string_equal(chosen, "");
	choose(many, NULL, chosen, sizeof(chosen));
	assert_string_equal(chosen, "tcp nosuch1");
	assert_string_equal(ofi_double.asked, "");
	choose(many, "provider=verbs;ofi_rxm", chosen, sizeof(chosen));
	assert_string_equal(chosen, "verbs;ofi_rxm mlx5_0");
	choose(many, "provider=tcp", chosen, sizeof(chosen));
	assert_string_equal(chosen, "tcp nosuch1");
	assert_string_equal(ofi_double.asked, "tcp");
	choose(many, "provider=net", chosen, sizeof(chosen)); /* none of our list, but it was asked for */
	assert_string_equal(chosen, "net lo");
	choose(many, "provider=shm", chosen, sizeof(chosen));
	assert_string_equal(chosen, "");
	choose(many, "provider=efa", chosen, sizeof(chosen));
	assert_string_equal(chosen, "");
}

/* Ranks with different providers do not reach each other by this transport. */
static void test_another_provider(void **state)
{
	static const struct ofi_double_network other[] = {{"tcp;ofi_rxm", "lo", AF_INET}, {NULL, NULL, 0}};
	struct transport_peer_info info[2] = {{0}};
	struct settings *settings = settings_new();
	struct log log = {.level = LOG_OFF, .fd = -1};
	struct side side[2] = {{0}};
	char blob[2][256];

	(void)state;
	for (int r = 0; r < 2; r++) {
		ofi_double.networks = r ? other : NULL;
		info[r].address = blob[r];
		info[r].address_bytes = (size_t)side_open(&side[r], r, settings, &log, blob[r], sizeof(blob[r]));
	}
	for (int r = 0; r < 2; r++) {
		assert_int_equal(OPS.attach(side[r].t, info), 0);
		assert_false(OPS.reaches(side[r].t, 1 - r));
	}
	for (int r = 0; r < 2; r++)
		side_close(&side[r]);
	double_locked = false;
	settings_free(settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_credit, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_sends_without_room, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_close_sends_the_queue, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_registered_memory, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptor, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_broken_queue, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_receives_are_posted_again, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_providers, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_another_provider, pair_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
