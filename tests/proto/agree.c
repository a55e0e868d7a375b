/* SPDX-License-Identifier: MIT */
/* Both ends of a pair choose one transport (core/agree.h): three transports of the test, and which ranks each of them reaches. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "core/agree.h"
#include "transport/self/self.h"

#define KINDS 3
#define RANKS 5

static bool reached[KINDS][RANKS][RANKS]; /* by transport, from, to */
static int used[KINDS][RANKS][RANKS];
static bool broken[KINDS][RANKS]; /* it opens, but has no address */
static int opened[KINDS];

struct stub {
	struct transport base;
	int rank;
};

static int stub_kind(const struct transport *t)
{
	return t->ops->name[0] - 'a';
}

static int stub_open(struct transport **out, const struct transport_env *env, const struct transport_ops *ops)
{
	struct stub *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->base.ops = ops;
	s->rank = env->rank;
	opened[ops->name[0] - 'a']++;
	*out = &s->base;
	return 0;
}

static struct transport_ops stubs[KINDS];

static int open_a(struct transport **out, const struct transport_env *env)
{
	return stub_open(out, env, &stubs[0]);
}

static int open_b(struct transport **out, const struct transport_env *env)
{
	return stub_open(out, env, &stubs[1]);
}

static int open_c(struct transport **out, const struct transport_env *env)
{
	return stub_open(out, env, &stubs[2]);
}

static int stub_address(struct transport *t, void *out, size_t size)
{
	(void)out;
	(void)size;
	return !broken[stub_kind(t)][((const struct stub *)t)->rank];
}

static bool stub_reaches(const struct transport *t, int peer)
{
	return reached[stub_kind(t)][((const struct stub *)t)->rank][peer];
}

static void stub_use(struct transport *t, int peer)
{
	used[stub_kind(t)][((const struct stub *)t)->rank][peer]++;
}

static void stub_close(struct transport *t)
{
	free(t);
}

static int setup(void **state)
{
	static const char *const names[KINDS] = {"a", "b", "c"};
	static int (*const opens[KINDS])(struct transport **, const struct transport_env *) = {open_a, open_b, open_c};

	(void)state;
	memset(reached, 0, sizeof(reached));
	memset(used, 0, sizeof(used));
	memset(broken, 0, sizeof(broken));
	memset(opened, 0, sizeof(opened));
	for (int k = 0; k < KINDS; k++) {
		stubs[k] = transport_self_ops; /* what the test does not reach */
		stubs[k].name = names[k];
		stubs[k].open = opens[k];
		stubs[k].close = stub_close;
		stubs[k].address = stub_address;
		stubs[k].reaches = stub_reaches;
		stubs[k].use = stub_use;
	}
	for (int r = 0; r < RANKS; r++)
		reached[0][r][r] = true;
	return 0;
}

struct job {
	struct settings *settings;
	struct ibvx *ep[RANKS];
};

static void job_gather(struct job *j, struct core_peer_info *info, char blobs[RANKS][1024])
{
	for (int r = 0; r < RANKS; r++) {
		info[r] = (struct core_peer_info){.address = blobs[r]};
		info[r].address_bytes = (size_t)core_address(j->ep[r], blobs[r], 1024);
	}
}

/* order: for each rank, the names of its transports, best first. Returns what core_attached() of the last rank does. */
static int job_open(struct job *j, const char *const order[RANKS], bool exchange)
{
	struct core_peer_info info[RANKS];
	const struct transport_ops *ops[RANKS][KINDS + 1] = {{NULL}};
	struct core_config cfg[RANKS];
	char blobs[RANKS][1024], reach[RANKS][64];
	int bytes[RANKS], rc = 0;

	memset(j, 0, sizeof(*j));
	j->settings = settings_new();
	assert_non_null(j->settings);
	assert_int_equal(settings_set_pair(j->settings, SETTINGS_CALLER, "progress_thread=0", "test"), 0);
	for (int r = 0; r < RANKS; r++) {
		cfg[r] = (struct core_config){.rank = r,
					      .size = RANKS,
					      .job_id = "00112233445566778899aabbccddeeff",
					      .settings = j->settings,
					      .transports = ops[r],
					      .test = j};
		for (int i = 0; order[r][i]; i++)
			ops[r][i] = &stubs[order[r][i] - 'a'];
		assert_int_equal(core_open(&j->ep[r], &cfg[r]), 0);
	}
	job_gather(j, info, blobs);
	if (core_incomplete(j->ep[0], info)) {
		for (int r = 0; r < RANKS; r++) {
			assert_true(core_incomplete(j->ep[r], info));
			assert_int_equal(core_open_rest(j->ep[r], &cfg[r]), 0);
		}
		job_gather(j, info, blobs);
		assert_false(core_incomplete(j->ep[0], info));
	}
	for (int r = 0; r < RANKS; r++) {
		assert_int_equal(core_attach(j->ep[r], info), 0);
		bytes[r] = core_reach(j->ep[r], reach[r], sizeof(reach[r]));
		assert_true(bytes[r] > 0 && (size_t)bytes[r] <= agree_reach_max(RANKS));
	}
	for (int r = 0; r < RANKS; r++) {
		for (int s = 0; s < RANKS && exchange; s++)
			assert_int_equal(core_agree(j->ep[r], s, reach[s], (size_t)bytes[s]), 0);
	}
	for (int r = 0; r < RANKS; r++) {
		int got = core_attached(j->ep[r]);

		rc = rc ? rc : got;
	}
	return rc;
}

static void job_close(struct job *j)
{
	for (int r = 0; r < RANKS; r++)
		core_free(j->ep[r]);
	settings_free(j->settings);
}

static const char *chosen(const struct job *j, int rank, int peer)
{
	return j->ep[rank]->peers[peer].transport->ops->name;
}

static void join(int kind, int a, int b)
{
	reached[kind][a][b] = reached[kind][b][a] = true;
}

static void test_first_that_works_both_ways(void **state)
{
	static const char *const order[RANKS] = {"abc", "abc", "abc", "abc", "abc"};
	struct job j;

	(void)state;
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < a; b++)
			join(2, a, b);
	}
	reached[1][0][3] = true; /* one direction only */
	join(1, 1, 4);
	assert_int_equal(job_open(&j, order, true), 0);
	assert_string_equal(chosen(&j, 0, 3), "c");
	assert_string_equal(chosen(&j, 3, 0), "c");
	assert_string_equal(chosen(&j, 1, 4), "b");
	assert_string_equal(chosen(&j, 4, 1), "b");
	assert_string_equal(chosen(&j, 2, 2), "a");
	assert_int_equal(used[2][0][3], 1);
	assert_int_equal(used[1][0][3], 0);
	job_close(&j);
}

/* Without the exchange each would take its own first. */
static void test_another_order(void **state)
{
	static const char *const order[RANKS] = {"acb", "abc", "cab", "abc", "a"};
	struct job j;

	(void)state;
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < a; b++) {
			join(0, a, b);
			join(1, a, b);
			join(2, a, b);
		}
	}
	for (int r = 0; r < RANKS; r++)
		reached[0][r][0] = reached[0][0][r] = r == 0;
	reached[0][0][4] = reached[0][4][0] = true;
	assert_int_equal(job_open(&j, order, true), 0);
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < RANKS; b++)
			assert_string_equal(chosen(&j, a, b), chosen(&j, b, a));
	}
	assert_string_equal(chosen(&j, 3, 0), "c");
	assert_string_equal(chosen(&j, 2, 3), "c");
	assert_string_equal(chosen(&j, 1, 2), "a");
	assert_string_equal(chosen(&j, 4, 2), "a");
	job_close(&j);
}

static void test_nothing_in_both_directions(void **state)
{
	static const char *const order[RANKS] = {"abc", "abc", "abc", "abc", "abc"};
	struct job j;

	(void)state;
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < RANKS; b++)
			reached[1][a][b] = true;
	}
	reached[1][2][4] = false;
	reached[2][2][4] = true;
	assert_int_equal(job_open(&j, order, true), -EHOSTUNREACH);
	assert_non_null(strstr(error_text(), "reaches rank 2 in both directions"));
	job_close(&j);
}

static void test_own_view_alone(void **state)
{
	static const char *const order[RANKS] = {"abc", "abc", "abc", "abc", "abc"};
	struct job j;

	(void)state;
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < RANKS; b++)
			reached[1][a][b] = true;
	}
	reached[1][2][4] = false;
	reached[2][2][4] = true;
	assert_int_equal(job_open(&j, order, false), 0);
	assert_string_equal(chosen(&j, 2, 4), "c");
	job_close(&j);
}

/* b is universal, c the last resort. */
static void last_resort_setup(void)
{
	stubs[1].universal = true;
	stubs[2].last_resort = true;
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < a; b++) {
			join(1, a, b);
			join(2, a, b);
		}
	}
}

static void test_last_resort_left_out(void **state)
{
	static const char *const order[RANKS] = {"abc", "abc", "abc", "abc", "abc"};
	struct job j;

	(void)state;
	last_resort_setup();
	assert_int_equal(job_open(&j, order, true), 0);
	assert_int_equal(opened[1], RANKS);
	assert_int_equal(opened[2], 0);
	assert_string_equal(chosen(&j, 0, 4), "b");
	job_close(&j);
}

/* One rank cannot do without it: all have it in the end, and use it where they must. */
static void test_last_resort_needed(void **state)
{
	static const char *const order[RANKS] = {"abc", "abc", "abc", "abc", "abc"};
	struct job j;

	(void)state;
	last_resort_setup();
	broken[1][3] = true;
	for (int r = 0; r < RANKS; r++)
		reached[1][3][r] = reached[1][r][3] = false;
	assert_int_equal(job_open(&j, order, true), 0);
	assert_int_equal(opened[2], RANKS);
	assert_string_equal(chosen(&j, 0, 4), "b");
	assert_string_equal(chosen(&j, 0, 3), "c");
	assert_string_equal(chosen(&j, 3, 4), "c");
	job_close(&j);
}

/* The order of one rank has it first, which counts for the pairs whose lower rank it is. */
static void test_last_resort_preferred(void **state)
{
	static const char *const order[RANKS] = {"abc", "acb", "abc", "abc", "abc"};
	struct job j;

	(void)state;
	last_resort_setup();
	assert_int_equal(job_open(&j, order, true), 0);
	assert_int_equal(opened[2], RANKS);
	assert_string_equal(chosen(&j, 1, 2), "c");
	assert_string_equal(chosen(&j, 0, 1), "b");
	job_close(&j);
}

static void test_malformed(void **state)
{
	static const char *const order[RANKS] = {"abc", "abc", "abc", "abc", "abc"};
	const uint32_t short_run = 2u << 8 | 1u;
	struct job j;

	(void)state;
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < RANKS; b++)
			reached[1][a][b] = true;
	}
	assert_int_equal(job_open(&j, order, true), 0);
	assert_int_equal(core_agree(j.ep[3], 1, &short_run, sizeof(short_run)), -EPROTO);
	assert_int_equal(core_agree(j.ep[3], 1, &short_run, 3), -EPROTO);
	assert_int_equal(core_agree(j.ep[1], 3, &short_run, sizeof(short_run)), 0);
	assert_int_equal(core_reach(j.ep[1], &(char){0}, 1), -ENOBUFS);
	job_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_first_that_works_both_ways, setup), cmocka_unit_test_setup(test_another_order, setup),
		cmocka_unit_test_setup(test_nothing_in_both_directions, setup), cmocka_unit_test_setup(test_own_view_alone, setup),
		cmocka_unit_test_setup(test_last_resort_left_out, setup),       cmocka_unit_test_setup(test_last_resort_needed, setup),
		cmocka_unit_test_setup(test_last_resort_preferred, setup),      cmocka_unit_test_setup(test_malformed, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
