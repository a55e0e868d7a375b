/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/near.h"
#include "base/settings.h"

static int setup(void **state)
{
	*state = settings_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	settings_free(*state);
	return 0;
}

static int set(struct settings *s, const char *name, const char *value)
{
	return settings_set(s, SETTINGS_CALLER, name, value, "caller");
}

static void test_defaults(void **state)
{
	struct settings *s = *state;

	assert_int_equal(settings_int(s, SETTING_PSL), 131072);
	assert_int_equal(settings_int(s, SETTING_EAGER_WINDOW), 8 << 20);
	assert_int_equal(settings_int(s, SETTING_SPIN_US), -1);
	assert_int_equal(settings_int(s, SETTING_SHM_RING), 256 << 10);
	assert_int_equal(settings_int(s, SETTING_CMA), 0);
	assert_int_equal(settings_int(s, SETTING_FAULT_SCOPE), 0);
	assert_int_equal(settings_int(s, SETTING_START_TIMEOUT_MS), 60000);
	assert_string_equal(settings_text(s, SETTING_TRANSPORTS), "self,shm,verbs,ucx,ofi");
	assert_string_equal(settings_text(s, SETTING_SPIN_US), "auto");
	assert_string_equal(settings_secret(s), "");
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_info *info = setting_info((enum setting)id);

		/* Canonical, so that a list can show what was changed. */
		assert_string_equal(settings_text(s, (enum setting)id), info->fallback);
		assert_string_equal(settings_origin(s, (enum setting)id), "default");
		assert_true(info->help[0] && info->name[0] && info->unit);
		assert_int_equal(info->kind == SETTING_KIND_CHOICE, info->choices != NULL);
	}
	settings_free(NULL);
}

static void test_units_and_forms(void **state)
{
	struct settings *s = *state;

	assert_int_equal(set(s, "psl", "0"), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 0);
	assert_string_equal(settings_text(s, SETTING_PSL), "0");
	assert_int_equal(set(s, "psl", "65536"), 0);
	assert_string_equal(settings_text(s, SETTING_PSL), "64k");
	assert_int_equal(set(s, "psl", "3M"), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 3 << 20);
	assert_int_equal(set(s, "psl", "1g"), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 1 << 30);
	assert_int_equal(set(s, "psl", "1025"), 0);
	assert_string_equal(settings_text(s, SETTING_PSL), "1025");
	assert_int_equal(set(s, "spin_us", "7"), 0);
	assert_int_equal(settings_int(s, SETTING_SPIN_US), 7);
	assert_int_equal(set(s, "spin_us", "0x1F"), 0);
	assert_int_equal(settings_int(s, SETTING_SPIN_US), 31);
	assert_string_equal(settings_text(s, SETTING_SPIN_US), "31");
	assert_int_equal(set(s, "spin_us", "AUTO"), 0);
	assert_int_equal(settings_int(s, SETTING_SPIN_US), -1);
	assert_int_equal(set(s, "cma", "never"), 0);
	assert_int_equal(settings_int(s, SETTING_CMA), 2);
	assert_int_equal(set(s, "log", "Debug"), 0);
	assert_int_equal(settings_int(s, SETTING_LOG), 4);
	assert_string_equal(settings_text(s, SETTING_LOG), "debug");
}

static void test_truth_values(void **state)
{
	static const char *const yes[] = {"1", "on", "true", "YES"}, *const no[] = {"0", "off", "False", "no"};
	struct settings *s = *state;

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(set(s, "counters", yes[i]), 0);
		assert_int_equal(settings_int(s, SETTING_COUNTERS), 1);
		assert_string_equal(settings_text(s, SETTING_COUNTERS), "1");
		assert_int_equal(set(s, "counters", no[i]), 0);
		assert_int_equal(settings_int(s, SETTING_COUNTERS), 0);
	}
}

static void test_bad_values_are_named(void **state)
{
	static const char *const bad[][2] = {
		{"psl", ""},
		{"psl", "k"},
		{"psl", "12x"},
		{"psl", "1kk"},
		{"psl", " 1"},
		{"psl", "1 "},
		{"psl", "-1"},
		{"psl", "+1"},
		{"psl", "0x10"},
		{"psl", "1.5m"},
		{"psl", "auto"},
		{"psl", "1073741825"},
		{"psl", "99999999999999999999"},
		{"psl", "9999999999999g"},
		{"psl", "36893488147419103232"},
		{"spin_us", "1k"},
		{"spin_us", "0x"},
		{"spin_us", "0xg"},
		{"spin_us", "0x1 "},
		{"spin_us", "0xfffffffffffffffff"},
		{"verbs_pkey", "0"},
		{"verbs_pkey", "0x10000"},
		{"spin_us", "1000001"},
		{"spin_us", "-1"},
		{"eager_window", "65535"},
		{"shm_slots", "15"},
		{"shm_slots", "100"},
		{"shm_slots", "131072"},
		{"shm_ring", "96k"},
		{"counters", "2"},
		{"counters", "yess"},
		{"counters", ""},
		{"cma", "auto "},
		{"cma", "1"},
		{"log", "verbose"},
		{"fault_scope", ""},
		{"transports", ""},
		{"transports", "self,,shm"},
		{"transports", "self,shm,"},
		{"transports", "SELF"},
		{"transports", "a b"},
		{"job_id", "1234"},
		{"job_id", "0123456789abcdef0123456789abcdeg"},
	};
	struct settings *s = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int id = 0;
		char pair[128];

		while (strcmp(setting_info((enum setting)id)->name, bad[i][0]) != 0)
			id++;
		snprintf(pair, sizeof(pair), "setting %s=%s (conf file c line 4)", bad[i][0], bad[i][1]);
		assert_int_equal(settings_set(s, SETTINGS_CONF_FILE, bad[i][0], bad[i][1], "conf file c line 4"), -EINVAL);
		assert_error_contains(pair, "; give ");
		/* and nothing has changed */
		assert_string_equal(settings_text(s, (enum setting)id), setting_info((enum setting)id)->fallback);
		assert_string_equal(settings_origin(s, (enum setting)id), "default");
	}
}

static void test_remedies(void **state)
{
	struct settings *s = *state;

	set(s, "psl", "2g");
	assert_error_contains("out of range", "from 0 to 1g", "powers of 1024");
	set(s, "shm_ring", "96k");
	assert_error_contains("not a power of two", "from 16k to 64m");
	set(s, "cma", "maybe");
	assert_error_contains("one of auto, always, never");
	set(s, "spin_us", "x");
	assert_error_contains("from 0 to 1000000 us", "or auto");
	set(s, "job_id", "x");
	assert_error_contains("32 hexadecimal digits");
}

static void test_unknown_names_get_near_misses(void **state)
{
	struct settings *s = *state;

	assert_int_equal(settings_set(s, SETTINGS_ENVIRONMENT, "pls", "1", "environment IBVDEV_PLS"), -EINVAL);
	assert_error_contains("\"pls\"", "environment IBVDEV_PLS", "did you mean psl?");
	assert_int_equal(set(s, "spin", "1"), -EINVAL);
	assert_error_contains("did you mean spin_us?");
	assert_int_equal(set(s, "shm_sluts", "1"), -EINVAL);
	assert_error_contains("shm_slots");
	assert_int_equal(set(s, "progress-thread", "1"), -EINVAL);
	assert_error_contains("progress_thread");
	assert_int_equal(set(s, "PSL", "1"), -EINVAL);
	assert_error_contains("did you mean psl?");
	assert_int_equal(set(s, "frobnicate", "1"), -EINVAL);
	assert_error_contains("ibvdev-info lists them all");
	assert_int_equal(set(s, "", "1"), -EINVAL);
}

static void test_distance(void **state)
{
	(void)state;
	assert_int_equal(near_distance("", ""), 0);
	assert_int_equal(near_distance("", "abc"), 3);
	assert_int_equal(near_distance("abc", ""), 3);
	assert_int_equal(near_distance("kitten", "sitting"), 3);
	assert_int_equal(near_distance("psl", "pls"), 1);
	assert_int_equal(near_distance("Abc", "aBC"), 0);
	assert_int_equal(near_distance("ca", "abc"), 3);
	assert_int_equal(near_distance("a234567890123456789012345678901234567890123456789012345678901234", "a"), 64);
	assert_true(near_miss("windw", "window"));
	assert_false(near_miss("a", "b"));
	assert_false(near_miss("", "abc"));
}

static void test_layers(void **state)
{
	struct settings *s = *state;

	assert_int_equal(settings_set(s, SETTINGS_ENVIRONMENT, "psl", "2k", "environment IBVDEV_PSL"), 0);
	assert_int_equal(settings_set(s, SETTINGS_CONF_FILE, "psl", "3k", "conf file c line 1"), 0);
	assert_int_equal(settings_set(s, SETTINGS_EMBEDDER, "psl", "4k", "java"), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 2048);
	assert_string_equal(settings_origin(s, SETTING_PSL), "environment IBVDEV_PSL");
	assert_int_equal(settings_set(s, SETTINGS_CALLER, "psl", "5k", "property ibvdev.psl"), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 5120);
	assert_string_equal(settings_origin(s, SETTING_PSL), "property ibvdev.psl");
	/* the same layer: the later one */
	assert_int_equal(settings_set(s, SETTINGS_CALLER, "psl", "6k", "again"), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 6144);
	/* a mistake is one also where it would not count */
	assert_int_equal(settings_set(s, SETTINGS_EMBEDDER, "psl", "much", "java"), -EINVAL);
	assert_int_equal(settings_set(s, SETTINGS_EMBEDDER, "eager_window", "1m", "java"), 0);
	assert_int_equal(settings_int(s, SETTING_EAGER_WINDOW), 1 << 20);
}

static void test_pairs(void **state)
{
	struct settings *s = *state;
	char longer[400];

	assert_int_equal(settings_set_pair(s, SETTINGS_CALLER, "log_file=/tmp/a=b %r", "caller"), 0);
	assert_string_equal(settings_text(s, SETTING_LOG_FILE), "/tmp/a=b %r");
	assert_int_equal(settings_set_pair(s, SETTINGS_CALLER, "log_file=", "caller"), 0);
	assert_string_equal(settings_text(s, SETTING_LOG_FILE), "");
	assert_int_equal(settings_set_pair(s, SETTINGS_CALLER, "psl", "caller"), -EINVAL);
	assert_error_contains("\"psl\"", "name=value");
	assert_int_equal(settings_set_pair(s, SETTINGS_CALLER, "=5", "caller"), -EINVAL);
	memset(longer, 'n', sizeof(longer));
	memcpy(longer + 390, "=1", 3);
	assert_int_equal(settings_set_pair(s, SETTINGS_CALLER, longer, "caller"), -EINVAL);
	assert_error_contains("nnnn");
}

static void test_secret_and_job_id(void **state)
{
	struct settings *s = *state;
	char longer[2000];

	assert_int_equal(set(s, "job_secret", "open sesame"), 0);
	assert_string_equal(settings_text(s, SETTING_JOB_SECRET), "(set)");
	assert_string_equal(settings_secret(s), "open sesame");
	memset(longer, 's', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(set(s, "job_secret", longer), -EINVAL);
	assert_null(strstr(error_text(), "sss"));
	assert_string_equal(settings_secret(s), "open sesame");
	assert_int_equal(set(s, "job_id", "0123456789ABCDEF0123456789abcdef"), 0);
	assert_string_equal(settings_text(s, SETTING_JOB_ID), "0123456789abcdef0123456789abcdef");
}

static void test_environment(void **state)
{
	struct settings *s = *state;

	setenv("IBVDEV_PSL", "7k", 1);
	setenv("IBVDEV_BUILD", "build", 1);
	setenv("IBVDEV_LIBRARY", "x", 1);
	setenv("IBVDEV_HOME", "y", 1);
	setenv("IBVDEV_TEST_SEED", "z", 1);
	setenv("NOT_IBVDEV_PSL", "z", 1);
	assert_int_equal(settings_set_environment(s), 0);
	assert_int_equal(settings_int(s, SETTING_PSL), 7168);
	assert_string_equal(settings_origin(s, SETTING_PSL), "environment IBVDEV_PSL");
	setenv("IBVDEV_EAGER_WINDOWS", "1m", 1);
	assert_int_equal(settings_set_environment(s), -EINVAL);
	assert_error_contains("environment IBVDEV_EAGER_WINDOWS", "eager_window");
	unsetenv("IBVDEV_EAGER_WINDOWS");
	setenv("IBVDEV_SHM_SLOTS", "", 1);
	assert_int_equal(settings_set_environment(s), -EINVAL);
	assert_error_contains("shm_slots=", "environment IBVDEV_SHM_SLOTS");
	unsetenv("IBVDEV_SHM_SLOTS");
	unsetenv("IBVDEV_PSL");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults),     TEST(units_and_forms),
		TEST(truth_values), TEST(bad_values_are_named),
		TEST(remedies),     TEST(unknown_names_get_near_misses),
		TEST(distance),     TEST(layers),
		TEST(pairs),        TEST(secret_and_job_id),
		TEST(environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
