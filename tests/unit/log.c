/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define THREADS 4
#define LINES 500

static char folder[] = "/tmp/ibvdev-test-log-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* The whole file, which is then removed. */
static char *slurp(const char *path)
{
	static char data[THREADS * LINES * 80];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(data, 1, sizeof(data) - 1, f);
	data[n] = '\0';
	fclose(f);
	assert_int_equal(unlink(path), 0);
	return data;
}

static void test_line_has_its_form(void **state)
{
	struct log log;
	long long seconds;
	char *data, level[16], text[64];
	int rank, micros, at = 0;

	(void)state;
	assert_int_equal(log_open(&log, LOG_INFO, in_folder("form"), 12), 0);
	log_info(&log, "peer %d is up", 3);
	log_close(&log);
	data = slurp(in_folder("form"));
	assert_int_equal(sscanf(data, "ibvdev[%d] %15s %lld.%6d %63[^\n]%n", &rank, level, &seconds, &micros, text, &at), 5);
	assert_int_equal(rank, 12);
	assert_string_equal(level, "INFO");
	assert_true(seconds > 1600000000);
	assert_string_equal(text, "peer 3 is up");
	assert_string_equal(data + at, "\n");
}

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

static void test_levels(void **state)
{
	struct log log;
	char *data;

	(void)state;
	assert_int_equal(log_open(&log, LOG_WARN, in_folder("levels"), 0), 0);
	log_error(&log, "one");
	log_warn(&log, "two %d", evaluate());
	log_info(&log, "three %d", evaluate());
	log_trace(&log, "four %d", evaluate());
	log_write(&log, LOG_OFF, "asked for");
	log_close(&log);
	log_error(&log, "after the close %d", evaluate());
	assert_int_equal(evaluated, 1);
	data = slurp(in_folder("levels"));
	assert_non_null(strstr(data, "] ERROR "));
	assert_non_null(strstr(data, "two 1\n"));
	assert_null(strstr(data, "three"));
	assert_null(strstr(data, "four"));
	assert_non_null(strstr(data, "] NOTE "));
	assert_null(strstr(data, "after"));
}

static void test_rank_in_the_name_and_append(void **state)
{
	struct log log;
	char *data;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(log_open(&log, LOG_ERROR, in_folder("%r-of-%r.%d"), 42), 0);
		log_error(&log, "round %d", i);
		log_close(&log);
	}
	data = slurp(in_folder("42-of-42.%d"));
	assert_non_null(strstr(data, "round 0\n"));
	assert_non_null(strstr(data, "round 1\n"));
}

static void test_a_line_stays_one_line(void **state)
{
	struct log log;
	char *data, longer[5000];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(log_open(&log, LOG_ERROR, in_folder("one"), 0), 0);
	log_error(&log, "forged\nibvdev[0] ERROR 1.000000 \033[31m");
	log_error(&log, "%s", longer);
	log_close(&log);
	data = slurp(in_folder("one"));
	assert_null(strchr(data, '\033'));
	assert_non_null(strstr(data, "forged ibvdev[0]"));
	data = strchr(data, '\n') + 1;
	assert_true(strlen(data) > 1000 && strlen(data) < 2100);
	assert_ptr_equal(strchr(data, '\n'), data + strlen(data) - 1);
}

static void test_bad_file(void **state)
{
	struct log log;

	(void)state;
	assert_int_equal(log_open(&log, LOG_ERROR, in_folder("no/such"), 0), -ENOENT);
	assert_error_contains("no/such", "log_file", "No such file");
	log_error(&log, "goes nowhere");
	log_close(&log);
}

static void test_stderr_is_not_closed(void **state)
{
	struct log log, zeroed = {0};
	struct stat st;

	(void)state;
	assert_int_equal(log_open(&log, LOG_OFF, NULL, 0), 0);
	log_close(&log);
	assert_int_equal(log_open(&log, LOG_OFF, "", 0), 0);
	log_close(&log);
	log_close(&log);
	log_close(&zeroed);
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	assert_int_equal(fstat(STDIN_FILENO, &st), 0);
}

struct writer {
	struct log *log;
	int id;
};

static void *write_lines(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < LINES; i++)
		log_info(w->log, "writer %d line %d end", w->id, i);
	return NULL;
}

static void test_threads_do_not_mix_lines(void **state)
{
	struct log log;
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	int next[THREADS] = {0}, lines = 0;

	(void)state;
	assert_int_equal(log_open(&log, LOG_INFO, in_folder("threads"), 1), 0);
	for (int i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){&log, i};
		assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	log_close(&log);
	for (char *line = strtok(slurp(in_folder("threads")), "\n"); line; line = strtok(NULL, "\n"), lines++) {
		int id, number, at = 0;

		assert_int_equal(sscanf(line, "ibvdev[1] INFO %*d.%*d writer %d line %d end%n", &id, &number, &at), 2);
		assert_int_equal(line[at], '\0');
		assert_true(id >= 0 && id < THREADS);
		assert_int_equal(number, next[id]++);
	}
	assert_int_equal(lines, THREADS * LINES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_has_its_form),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_rank_in_the_name_and_append),
		cmocka_unit_test(test_a_line_stays_one_line),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_stderr_is_not_closed),
		cmocka_unit_test(test_threads_do_not_mix_lines),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
