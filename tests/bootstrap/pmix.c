/* SPDX-License-Identifier: MIT */
/* PMIx against a double of libpmix.so.2 (lib/fake_pmix.c): each call fails, and each one hangs. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define RANKS 3

static char folder[256];

static void clear_folder(void)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (*folder)
		assert_int_equal(system(command), 0);
	snprintf(folder, sizeof(folder), "%s/ibvdev-pmix-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	setenv("FAKE_PMIX_FOLDER", folder, 1);
}

/* Runs ranks first to last - 1 of `size`, and checks nothing. */
static void run(struct session_rank *ranks, int size, int first, int last, int rounds, const char *timeout)
{
	static const char *const names[] = {"PMIX_RANK=0", "PMIX_RANK=1", "PMIX_RANK=2"};
	char text[16];

	clear_folder();
	snprintf(text, sizeof(text), "%d", size);
	setenv("FAKE_PMIX_SIZE", text, 1);
	setenv("PMIX_NAMESPACE", "fake", 1);
	for (int i = first; i < last; i++) {
		ranks[i] = (struct session_rank){.rank = -1, .fd = -1, .rounds = rounds, .settings = {timeout}, .variables = {names[i]}};
		session_start(&ranks[i]);
	}
	for (int i = first; i < last; i++)
		session_wait(&ranks[i]);
}

static void test_faithful(void **state)
{
	struct session_rank ranks[RANKS];
	struct stat st;
	char path[512];

	(void)state;
	run(ranks, RANKS, 0, RANKS, 3, "start_timeout_ms=20000");
	for (int i = 0; i < RANKS; i++) {
		assert_string_equal(ranks[i].text, "");
		assert_int_equal(ranks[i].rounds_done, 3);
		assert_int_equal(ranks[i].joined_rank, i);
		assert_int_equal(ranks[i].joined_size, RANKS);
		assert_string_equal(ranks[i].job_ids[2], ranks[0].job_ids[2]);
		assert_string_not_equal(ranks[i].job_ids[0], ranks[i].job_ids[2]);
		/* Else mpirun would kill the job when the process ends. */
		snprintf(path, sizeof(path), "%s/finalized.0.%d", folder, i);
		assert_int_equal(stat(path, &st), 0);
	}
}

static void test_local(void **state)
{
	struct session_rank ranks[RANKS];

	(void)state;
	setenv("FAKE_PMIX_LOCAL", "3", 1);
	run(ranks, RANKS, 0, RANKS, 2, "start_timeout_ms=20000");
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(ranks[i].rounds_done, 2);
	/* The number of local ranks is a help, no need. */
	setenv("FAKE_PMIX_FAIL", "PMIx_Get local", 1);
	run(ranks, RANKS, 0, RANKS, 2, "start_timeout_ms=20000");
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(ranks[i].rounds_done, 2);
	unsetenv("FAKE_PMIX_FAIL");
	unsetenv("FAKE_PMIX_LOCAL");
}

/* The same with one variable of the double set: the last of the ranks, which it strikes. */
static const struct session_rank *faulty(const char *variable, const char *value, int size, int first, int last, int rounds,
					 const char *timeout)
{
	static struct session_rank ranks[RANKS];

	setenv(variable, value, 1);
	run(ranks, size, first, last, rounds, timeout);
	unsetenv(variable);
	return &ranks[last - 1];
}

/* A call, and the ranks of two that have to run for it: rank 0 alone puts; rank 1 gets once rank 0 has come to the fence. */
static const struct {
	const char *name;
	int first, last;
} calls[] = {{"PMIx_Init", 1, 2},   {"PMIx_Get size", 1, 2}, {"PMIx_Put", 0, 1},
	     {"PMIx_Commit", 0, 1}, {"PMIx_Fence", 1, 2},    {"PMIx_Get", 0, 2}};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static void test_failures(void **state)
{
	(void)state;
	for (size_t i = 0; i < CALLS; i++) {
		const struct session_rank *r =
			faulty("FAKE_PMIX_FAIL", calls[i].name, 2, calls[i].first, calls[i].last, 2, "start_timeout_ms=500");

		assert_int_equal(r->rounds_done, 0);
		assert_non_null(strstr(r->first_text, "FAKE-ERROR"));
		assert_non_null(strstr(r->first_text, "FakePMIx 4.2.2"));
		assert_int_equal(r->result, -ESTALE);
	}
}

static void test_hangs(void **state)
{
	(void)state;
	for (size_t i = 0; i < CALLS; i++) {
		int64_t begin = clock_now_ns();
		const struct session_rank *r =
			faulty("FAKE_PMIX_HANG", calls[i].name, 2, calls[i].first, calls[i].last, 1, "start_timeout_ms=300");

		assert_int_equal(r->result, -ETIMEDOUT);
		assert_non_null(strstr(r->text, "PMIx_"));
		assert_true(clock_now_ns() - begin < 8000 * CLOCK_NS_PER_MS);
	}
}

/* One round that ends with an error on the last rank. */
static void test_other_faults(void **state)
{
	static const struct {
		const char *variable, *value;
		int size, first, last;
		const char *timeout;
		int result;
		const char *text;
	} faults[] = {
		{"FAKE_PMIX_FAIL", "PMIx_Finalize", 2, 0, 2, "start_timeout_ms=10000", -EPROTO, "PMIx_Finalize"},
		{"FAKE_PMIX_HANG", "PMIx_Finalize", 2, 0, 2, "start_timeout_ms=1500", -ETIMEDOUT, "PMIx_"},
		{"FAKE_PMIX_CARD", "ibvx1/cut", 2, 0, 2, "start_timeout_ms=500", -EPROTO, "card was cut"},
		{"FAKE_PMIX_TYPE", "3", 2, 1, 2, "start_timeout_ms=500", -EPROTO, "type 3"},
		/* A size that the rank is not below. */
		{"FAKE_PMIX_SIZE", "1", 1, 2, 3, "start_timeout_ms=500", -EPROTO, "rank 2 of 1"},
		{"FAKE_PMIX_VERSION", "OpenPMIx 2.2.5", 2, 1, 2, "start_timeout_ms=500", -EPROTO, "2.2.5"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const struct session_rank *r =
			faulty(faults[i].variable, faults[i].value, faults[i].size, faults[i].first, faults[i].last, 1, faults[i].timeout);

		assert_int_equal(r->result, faults[i].result);
		assert_non_null(strstr(r->text, faults[i].text));
	}
}

/* Another library of that name. */
static void test_another_library(void **state)
{
	struct session_rank ranks[RANKS];
	char prefix[300], path[400];

	(void)state;
	clear_folder();
	snprintf(prefix, sizeof(prefix), "%s-other", folder);
	snprintf(path, sizeof(path), "%s/lib", prefix);
	assert_int_equal(mkdir(prefix, 0700), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/lib/libpmix.so.2", prefix);
	assert_int_equal(symlink(FAKE_PREFIX "/lib/libmunge.so.2", path), 0);
	setenv("PMIX_PREFIX", prefix, 1);
	run(ranks, 2, 1, 2, 1, "start_timeout_ms=500");
	assert_int_equal(ranks[1].result, -EPROTO);
	assert_non_null(strstr(ranks[1].text, "PMIx_Get_version"));
	unlink(path);
	path[strlen(path) - strlen("/libpmix.so.2")] = '\0';
	rmdir(path);
	rmdir(prefix);
	setenv("PMIX_PREFIX", FAKE_PREFIX, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faithful), cmocka_unit_test(test_local),        cmocka_unit_test(test_failures),
		cmocka_unit_test(test_hangs),    cmocka_unit_test(test_other_faults), cmocka_unit_test(test_another_library),
	};
	int failed;

	session_forget_engines();
	setenv("PMIX_PREFIX", FAKE_PREFIX, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (*folder) {
		char command[512];

		snprintf(command, sizeof(command), "rm -rf '%s'", folder);
		failed |= system(command);
	}
	return failed;
}
