/* SPDX-License-Identifier: MIT */
/* Connections by TCP wire-up, over doubles of libibverbs and real sockets: which side connects, strangers, ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/wireup.h"

static const char *const by_tcp[] = {"verbs_connect=tcp", "job_secret=s3cret", NULL};

static struct verbs *verbs_of(struct pair *p, int rank)
{
	return (struct verbs *)p->side[rank].t;
}

static void test_connects_when_first_used(void **state)
{
	(void)state;
	for (int infiniband = 0; infiniband < 2; infiniband++) {
		for (int first = 0; first < 2; first++) {
			struct pair p;

			adapter_reset();
			adapter_faults.infiniband = infiniband;
			pair_open(&p, by_tcp);
			assert_true(OPS.reaches(p.side[0].t, 1));
			pair_run(&p);
			assert_null(adapter_qp(0));
			assert_int_equal(pair_send(&p, first, 1, 100), -EAGAIN);
			pair_run(&p);
			for (uint64_t v = 1; v <= 300; v++) {
				assert_true(pair_send_until(&p, 0, v, v));
				assert_true(pair_send_until(&p, 1, v, 0));
			}
			pair_run(&p);
			expect_good(&p.side[0], 300);
			expect_good(&p.side[1], 300);
			assert_int_equal(adapter_requests, 0); /* RDMA CM has no part in it */
			assert_non_null(adapter_qp(1));
			assert_null(adapter_qp(2));
			pair_close(&p);
			assert_int_equal(adapter_live(), 0);
		}
	}
}

static void test_path(void **state)
{
	static const char *const wanted[] = {"verbs_connect=tcp",     "job_secret=s3cret",       "verbs_mtu=512",
					     "verbs_service_level=3", "verbs_traffic_class=106", NULL};
	static const char *const larger[] = {"verbs_connect=tcp", "job_secret=s3cret", "verbs_mtu=4096", NULL};
	static const char *const by_cm[] = {"verbs_connect=cm", "verbs_mtu=512", "verbs_traffic_class=7", NULL};
	static const struct {
		const char *const *settings;
		struct adapter_path path;
	} c[] = {{wanted, {IBV_MTU_512, 3, 106}}, {larger, {IBV_MTU_1024, 0, 0}}, {by_cm, {0, 0, 7}}};

	(void)state;
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct pair p;

		adapter_reset();
		adapter_path = (struct adapter_path){0};
		pair_open(&p, c[i].settings);
		assert_true(pair_send_until(&p, 0, 1, 10));
		pair_run(&p);
		expect_good(&p.side[1], 1);
		assert_int_equal(adapter_path.mtu, c[i].path.mtu);
		assert_int_equal(adapter_path.service_level, c[i].path.service_level);
		assert_int_equal(adapter_path.traffic_class, c[i].path.traffic_class);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

static void test_two_calls_become_one_connection(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct pair p;

		adapter_reset();
		pair_open(&p, by_tcp);
		assert_int_equal(pair_send(&p, first, 1, 10), -EAGAIN);
		assert_int_equal(pair_send(&p, 1 - first, 1, 10), -EAGAIN);
		for (uint64_t v = 1; v <= 100; v++) {
			assert_true(pair_send_until(&p, 0, v, 10));
			assert_true(pair_send_until(&p, 1, v, 300));
		}
		pair_run(&p);
		expect_good(&p.side[0], 100);
		expect_good(&p.side[1], 100);
		assert_true(verbs_of(&p, 0)->peers[1].conn->active != verbs_of(&p, 1)->peers[0].conn->active);
		assert_true(verbs_of(&p, 1)->peers[0].conn->active); /* the call of the higher rank */
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* Without RDMA CM "auto" does the same, "cm" does nothing. */
static void test_fallback(void **state)
{
	static const char *const cm[] = {"verbs_connect=cm", NULL};
	struct pair p;

	(void)state;
	adapter_faults.no_cm = true;
	pair_open(&p, NULL);
	p.sockets = true;
	assert_true(pair_send_until(&p, 0, 1, 8));
	pair_run(&p);
	expect_good(&p.side[1], 1);
	pair_close(&p);
	assert_int_equal(adapter_live(), 0);
	adapter_reset();
	adapter_faults.no_cm = true;
	pair_open(&p, cm);
	assert_false(OPS.reaches(p.side[0].t, 1));
	pair_close(&p);
}

static void test_iwarp_cannot(void **state)
{
	struct pair p;

	(void)state;
	adapter_faults.iwarp = true;
	pair_open(&p, by_tcp);
	assert_false(OPS.reaches(p.side[0].t, 1));
	pair_close(&p);
}

/* An index that an address handle cannot name is refused, not cut to the entry that its lowest bits name. */
static void test_large_gid_index(void **state)
{
	static const char *const indexes[] = {"verbs_gid_index=2", "verbs_gid_index=258"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		const char *const settings[] = {"verbs_connect=tcp", indexes[i % 2], NULL};
		struct pair p;

		adapter_reset();
		adapter_faults.infiniband = i / 2;
		pair_open(&p, settings);
		assert_int_equal(OPS.reaches(p.side[0].t, 1), i % 2 == 0);
		pair_close(&p);
	}
}

/* A partition is found whatever the membership that the setting names; a full member comes first. */
static void test_partition(void **state)
{
	static const struct {
		const char *setting;
		bool there;
		unsigned index;
	} cases[] = {{NULL, true, 2},
		     {"verbs_pkey=0x8001", true, 2},
		     {"verbs_pkey=1", true, 2},
		     {"verbs_pkey=0x8002", true, 3},
		     {"verbs_pkey=0xffff", true, 0},
		     {"verbs_pkey=0x8000", false, 0},
		     {"verbs_pkey=0x8005", false, 0}};

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const settings[] = {"verbs_connect=tcp", cases[i / 2].setting, NULL};
		struct pair p;

		adapter_reset();
		adapter_faults.infiniband = i % 2;
		pair_open(&p, settings);
		assert_int_equal(OPS.reaches(p.side[0].t, 1), cases[i / 2].there);
		if (cases[i / 2].there) {
			assert_true(pair_send_until(&p, 0, 1, 8));
			pair_run(&p);
			expect_good(&p.side[1], 1);
			assert_int_equal(adapter_pkey_index, cases[i / 2].index);
		}
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

static void test_calls_fail_in_turn(void **state)
{
	static const char *const no_srq[] = {"verbs_slots=4", "verbs_srq=0", "verbs_connect=tcp", NULL};
	bool failed = true;

	(void)state;
	for (int n = 1; failed; n++) {
		struct pair p;
		bool sent;

		adapter_reset();
		adapter_faults.fail_call = n;
		pair_open(&p, no_srq);
		sent = OPS.reaches(p.side[0].t, 1) && pair_send_until(&p, 0, 1, 8);
		pair_run(&p);
		failed = adapter_faults.failed != NULL;
		if (!sent && OPS.reaches(p.side[0].t, 1)) {
			assert_int_equal(p.side[0].downs, 1);
			assert_non_null(strstr(p.side[0].why, "rank"));
		}
		if (sent && p.side[0].downs == 0 && p.side[1].downs == 0)
			assert_int_equal(p.side[1].packets, 1);
		assert_true(sent || failed);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* In both directions: a rank without the secret is refused, whether it connects or accepts. */
static void test_secrets(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		struct settings *other = settings_new();
		struct pair p;

		adapter_reset();
		pair_open(&p, by_tcp);
		assert_int_equal(settings_set_pair(other, SETTINGS_CALLER, "job_secret=guessed", "test"), 0);
		verbs_of(&p, 1)->env.settings = other;
		pair_send(&p, active, 1, 8);
		pair_run(&p);
		assert_int_equal(p.side[active].downs, 1);
		assert_int_equal(p.side[active].down_error, -ECONNREFUSED);
		assert_int_equal(p.side[0].packets + p.side[1].packets, 0);
		assert_int_equal(p.side[1 - active].downs, 0); /* a stranger harms nobody */
		verbs_of(&p, 1)->env.settings = p.settings;
		pair_close(&p);
		settings_free(other);
		assert_int_equal(adapter_live(), 0);
	}
}

static int knock(struct pair *p, int rank)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = wireup_port(verbs_of(p, rank)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Garbage, silence, more connections than slots, and connections that are closed: the job goes on. */
static void test_strangers(void **state)
{
	unsigned char junk[500];
	int fd[200];
	struct pair p;

	(void)state;
	memset(junk, 0x5a, sizeof(junk));
	pair_open(&p, by_tcp);
	for (int i = 0; i < 200; i++) {
		fd[i] = knock(&p, 1);
		if (i % 3 == 1)
			assert_true(send(fd[i], junk, (size_t)i, MSG_NOSIGNAL) == i);
		pair_run(&p);
		if (i % 3 == 2)
			close(fd[i]);
	}
	assert_true(pair_send_until(&p, 0, 1, 8));
	pair_run(&p);
	expect_good(&p.side[1], 1);
	for (int i = 0; i < 200; i++) {
		if (i % 3 != 2)
			close(fd[i]);
	}
	assert_true(pair_send_until(&p, 1, 1, 8));
	pair_run(&p);
	expect_good(&p.side[0], 1);
	pair_close(&p);
}

/* The answering side takes the adapter that was called, not the one that it would have called from. */
static void test_rails(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct pair p;

		adapter_reset();
		adapter_faults.rails = true;
		pair_open(&p, by_tcp);
		assert_true(pair_send_until(&p, first, 1, 8));
		pair_run(&p);
		expect_good(&p.side[!first], 1);
		assert_int_equal(verbs_of(&p, 0)->peers[1].conn->here.gid[15], 1);
		assert_int_equal(verbs_of(&p, 1)->peers[0].conn->here.gid[15], first == 0 ? 2 : 1);
		pair_close(&p);
	}
}

/* A connecting rank that is slow, and others that connect meanwhile: as many as leave it its slot, and more. */
static void test_slow_connecting_side(void **state)
{
	static const int others[] = {64, 150};
	int fd[150];

	(void)state;
	for (int n = 0; n < 2; n++) {
		struct pair p;

		pair_open(&p, by_tcp);
		pair_send(&p, 0, 1, 8);
		usleep(2000);
		for (int i = 0; i < 5; i++)
			side_step(&p.side[1]); /* challenged; the connecting side has not read that yet */
		for (int i = 0; i < others[n]; i++) {
			fd[i] = knock(&p, 1);
			usleep(200);
			side_step(&p.side[1]);
			side_step(&p.side[1]);
		}
		assert_true(pair_send_until(&p, 0, 1, 8));
		pair_run(&p);
		expect_good(&p.side[1], 1);
		assert_int_equal(p.side[0].downs, 0);
		for (int i = 0; i < others[n]; i++)
			close(fd[i]);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* No descriptor is left: the connection is refused, and the listener does not spin. */
static void test_descriptors_run_out(void **state)
{
	struct rlimit was, few;
	struct pair p;
	int fd, turns;

	(void)state;
	pair_open(&p, by_tcp);
	fd = knock(&p, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	turns = dup(fd);
	close(turns);
	few.rlim_cur = (rlim_t)turns; /* the lowest number that is not in use */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	pair_run(&p);
	turns = pair_step(&p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(turns, 0); /* nothing is readable any more */
	assert_true(recv(fd, &turns, 1, 0) <= 0);
	close(fd);
	assert_true(pair_send_until(&p, 0, 1, 8));
	pair_run(&p);
	expect_good(&p.side[1], 1);
	pair_close(&p);
}

/* Either side's end is seen through its socket; what it had sent comes first. */
static void test_deaths_and_farewells(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		int gone = how & 1, stays = 1 - gone;
		bool leaves = how & 2;
		struct pair p;

		adapter_reset();
		pair_open(&p, by_tcp);
		assert_true(pair_send_until(&p, 0, 1, 8));
		assert_true(pair_send_until(&p, 1, 1, 8));
		pair_run(&p);
		assert_int_equal(pair_send(&p, gone, 2, 8), 0);
		if (leaves)
			OPS.leave(p.side[gone].t);
		side_close(&p.side[gone]);
		pair_run(&p);
		assert_int_equal(p.side[stays].packets_at_down, 2);
		assert_int_equal(p.side[stays].downs, 1);
		assert_int_equal(p.side[stays].down_error, leaves ? -EPIPE : -ECONNRESET);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* A rank that has failed a peer refuses it. */
static void test_refusals(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, by_tcp);
	OPS.forget(p.side[1].t, 0);
	pair_send(&p, 0, 1, 8);
	pair_run(&p);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -ECONNREFUSED);
	assert_non_null(strstr(p.side[0].why, "given this rank up"));
	pair_close(&p);
	assert_int_equal(adapter_live(), 0);

	adapter_reset(); /* nobody listens there any more */
	pair_open(&p, by_tcp);
	side_close(&p.side[1]);
	pair_send(&p, 0, 1, 8);
	pair_run(&p);
	assert_int_equal(p.side[0].downs, 1);
	assert_int_equal(p.side[0].down_error, -ECONNREFUSED);
	assert_non_null(strstr(p.side[0].why, "rank 1"));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connects_when_first_used),
		TEST(test_path),
		TEST(test_two_calls_become_one_connection),
		TEST(test_fallback),
		TEST(test_iwarp_cannot),
		TEST(test_large_gid_index),
		TEST(test_partition),
		TEST(test_calls_fail_in_turn),
		TEST(test_secrets),
		TEST(test_strangers),
		TEST(test_slow_connecting_side),
		TEST(test_rails),
		TEST(test_descriptors_run_out),
		TEST(test_deaths_and_farewells),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
