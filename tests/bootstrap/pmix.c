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
		ranks[i] = (struct session_rank){.rank = -1, .fd = -1, .rounds = rounds, .settings = {timeout},
						 .variables = {names[i]}};
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

static void test_failures(void **state)
{
	static const char *const calls[] = {"PMIx_Init",  "PMIx_Get size", "PMIx_Put",
					    "PMIx_Commit", "PMIx_Fence",    "PMIx_Get"};
	struct session_rank ranks[RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int rank = i == 2 || i == 3 ? 0 : 1;

		setenv("FAKE_PMIX_FAIL", calls[i], 1);
		/* Rank 0 alone can put; rank 1 alone can fail to get, once the fence is open. */
		if (i == 5)
			run(ranks, 2, 0, 2, 2, "start_timeout_ms=500");
		else
			run(ranks, 2, rank, rank + 1, 2, "start_timeout_ms=500");
		assert_int_equal(ranks[rank].rounds_done, 0);
		assert_non_null(strstr(ranks[rank].first_text, "FAKE-ERROR"));
		assert_non_null(strstr(ranks[rank].first_text, "FakePMIx 4.2.2"));
		assert_int_equal(ranks[rank].result, -ESTALE);
	}
	unsetenv("FAKE_PMIX_FAIL");
}

static void test_hangs(void **state)
{
	static const char *const calls[] = {"PMIx_Init", "PMIx_Get size", "PMIx_Put", "PMIx_Commit", "PMIx_Fence", "PMIx_Get"};
	struct session_rank ranks[RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int64_t begin = clock_now_ns();
		int rank = i == 2 || i == 3 ? 0 : 1;

		setenv("FAKE_PMIX_HANG", calls[i], 1);
		if (i == 5)
			run(ranks, 2, 0, 2, 1, "start_timeout_ms=300");
		else
			run(ranks, 2, rank, rank + 1, 1, "start_timeout_ms=300");
		assert_int_equal(ranks[rank].result, -ETIMEDOUT);
		assert_non_null(strstr(ranks[rank].text, "PMIx_"));
		assert_true(clock_now_ns() - begin < 8000 * CLOCK_NS_PER_MS);
	}
	unsetenv("FAKE_PMIX_HANG");
}

static void test_end(void **state)
{
	struct session_rank ranks[RANKS];

	(void)state;
	setenv("FAKE_PMIX_FAIL", "PMIx_Finalize", 1);
	run(ranks, 2, 0, 2, 1, "start_timeout_ms=10000");
	assert_int_equal(ranks[0].result, -EPROTO);
	assert_non_null(strstr(ranks[0].text, "PMIx_Finalize"));
	unsetenv("FAKE_PMIX_FAIL");
	setenv("FAKE_PMIX_HANG", "PMIx_Finalize", 1);
	run(ranks, 2, 0, 2, 1, "start_timeout_ms=1500");
	assert_int_equal(ranks[1].result, -ETIMEDOUT);
	unsetenv("FAKE_PMIX_HANG");
}

static void test_odd_values(void **state)
{
	struct session_rank ranks[RANKS];

	(void)state;
	setenv("FAKE_PMIX_CARD", "ibvx1/cut", 1);
	run(ranks, 2, 0, 2, 1, "start_timeout_ms=500");
	assert_int_equal(ranks[1].result, -EPROTO);
	assert_non_null(strstr(ranks[1].text, "card was cut"));
	unsetenv("FAKE_PMIX_CARD");
	setenv("FAKE_PMIX_TYPE", "3", 1);
	run(ranks, 2, 1, 2, 1, "start_timeout_ms=500");
	assert_int_equal(ranks[1].result, -EPROTO);
	assert_non_null(strstr(ranks[1].text, "type 3"));
	unsetenv("FAKE_PMIX_TYPE");
	/* A size that the rank is not below. */
	run(ranks, 1, 2, 3, 1, "start_timeout_ms=500");
	assert_int_equal(ranks[2].result, -EPROTO);
	assert_non_null(strstr(ranks[2].text, "rank 2 of 1"));
}

static void test_libraries(void **state)
{
	struct session_rank ranks[RANKS];
	char prefix[300], path[400];

	(void)state;
	setenv("FAKE_PMIX_VERSION", "OpenPMIx 2.2.5", 1);
	run(ranks, 2, 1, 2, 1, "start_timeout_ms=500");
	assert_int_equal(ranks[1].result, -EPROTO);
	assert_non_null(strstr(ranks[1].text, "2.2.5"));
	unsetenv("FAKE_PMIX_VERSION");

	/* Another library of that name. */
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
		cmocka_unit_test(test_faithful), cmocka_unit_test(test_local), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_hangs),	 cmocka_unit_test(test_end),   cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_libraries),
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
