/* SPDX-License-Identifier: MIT */
/* Which launcher is chosen, and at which addresses rank 0 would listen. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/launch.h"

static int open_with(const char *setting, const char *conf, const char *const *peers, int rank, int size, char name[16])
{
	struct settings *settings = settings_new();
	struct bootstrap_config cfg = {.rank = rank, .size = size, .conf = conf, .peers = peers, .settings = settings};
	struct launch *l = NULL;
	int err = setting ? settings_set_pair(settings, SETTINGS_CALLER, setting, "test") : 0;

	if (!err)
		err = launch_open(&l, &cfg);
	assert_true((err == 0) == (l != NULL));
	if (l)
		snprintf(name, 16, "%s", launch_name(l));
	launch_close(l);
	settings_free(settings);
	return err;
}

static void test_choice(void **state)
{
	static const char *const peers[] = {"a:1"};
	const char *path = party_conf(2, 20000);
	char name[16];

	(void)state;
	assert_int_equal(open_with(NULL, NULL, NULL, -1, 0, name), 0);
	assert_string_equal(name, "single");
	assert_int_equal(open_with(NULL, "auto", NULL, 0, 1, name), 0);
	assert_string_equal(name, "single");
	assert_int_equal(open_with("launcher=single", "auto", NULL, -1, 0, name), 0);
	assert_int_equal(open_with(NULL, path, NULL, 1, 0, name), 0);
	assert_string_equal(name, "conf");
	assert_int_equal(open_with("launcher=conf", NULL, peers, 0, 1, name), 0);
	assert_string_equal(name, "conf");
	party_forget(path);
}

static void expect_text(int err, int code, const char *words)
{
	assert_int_equal(err, code);
	assert_non_null(strstr(error_text(), words));
}

static void test_contradictions(void **state)
{
	static const char *const peers[] = {"a:1"};
	char name[16];

	(void)state;
	expect_text(open_with("launcher=pmi", NULL, NULL, -1, 0, name), -EINVAL, "neither PMI_FD nor PMI_PORT");
	expect_text(open_with("launcher=conf", NULL, NULL, -1, 0, name), -EINVAL, "no conf was named");
	expect_text(open_with("launcher=pmi", NULL, peers, 0, 1, name), -EINVAL, "list of peers");
	expect_text(open_with("launcher=single", "x.conf", NULL, 0, 1, name), -EINVAL, "x.conf");
	expect_text(open_with("launcher=slrum", NULL, NULL, -1, 0, name), -EINVAL, "slrum");
	expect_text(open_with(NULL, NULL, NULL, 1, 0, name), -EINVAL, "rank 1 was given");
	expect_text(open_with(NULL, NULL, NULL, -1, 4, name), -EINVAL, "size 4 was given");
	expect_text(open_with(NULL, "x.conf", peers, 0, 1, name), -EINVAL, "either");
	/* One of four that nobody connects must not take itself for the only one, unless it is configured so. */
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	expect_text(open_with(NULL, NULL, NULL, -1, 0, name), -EINVAL, "OMPI_COMM_WORLD_SIZE=4");
	assert_int_equal(open_with("launcher=single", NULL, NULL, -1, 0, name), 0);
	setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
	assert_int_equal(open_with(NULL, NULL, NULL, -1, 0, name), 0);
	unsetenv("OMPI_COMM_WORLD_SIZE");
}

static void test_report(void **state)
{
	struct settings *settings = settings_new();
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;

	(void)state;
	assert_int_equal(settings_set(settings, SETTINGS_CALLER, "net", "lo", "test"), 0);
	setenv("PMI_FD", "77", 1);
	out = open_memstream(&text, &bytes);
	launch_report(settings, out);
	fclose(out);
	unsetenv("PMI_FD");
	settings_free(settings);
	assert_non_null(strstr(text, "pmix     not found: PMIX_RANK"));
	assert_non_null(strstr(text, "pmi      found: PMI_FD=77"));
	assert_non_null(strstr(text, "chosen:      pmi (launcher=auto, default)"));
	assert_non_null(strstr(text, "127.0.0.1"));
	free(text);
}

static int find(const char *net, struct address_list *list)
{
	struct settings *settings = settings_new();
	int err = settings_set(settings, SETTINGS_CALLER, "net", net, "test");

	if (!err)
		err = interfaces_find(list, settings);
	settings_free(settings);
	return err;
}

static void test_interfaces(void **state)
{
	struct address_list list;
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	assert_int_equal(find("", &list), 0);
	assert_true(list.count >= 1);
	for (int i = 1; i < list.count; i++)
		assert_int_equal(address_is_loopback(&list.at[i]), address_is_loopback(&list.at[0]));
	assert_int_equal(find("127.0.0.0/8", &list), 0);
	assert_int_equal(list.count, 1);
	address_numeric(&list.at[0], text);
	assert_string_equal(text, "127.0.0.1");
	assert_int_equal(find("lo", &list), 0);
	assert_true(address_is_loopback(&list.at[0]));
	assert_int_equal(find("nosuch0, 127.0.0.1", &list), 0);
	assert_int_equal(list.count, 1);
	expect_text(find("nosuch0", &list), -EINVAL, "lo 127.0.0.1");
	expect_text(find("198.51.100.0/24", &list), -EINVAL, "198.51.100.0/24");
	expect_text(find("127.0.0.0/33", &list), -EINVAL, "127.0.0.0/33");
	assert_int_equal(find("0.0.0.0/1", &list), 0); /* 127.0.0.1 is in it, bit by bit */
	assert_int_equal(find("127.128.0.0/9", &list), -EINVAL);
}

/* Where something answers at once, a black hole before it costs no more than the stagger. */
static void test_race(void **state)
{
	static const char *const where[] = {"192.0.2.1", "127.0.0.2", "127.0.0.1"};
	struct address_list list = {.count = 3}, only = {.count = 1};
	struct address_listener listener = {.count = 0};
	int64_t begin = clock_now_ns();
	uint32_t tried = 0;
	int which = -1, fd;

	(void)state;
	assert_int_equal(address_from_numeric(&only.at[0], "127.0.0.1", 0), 0);
	assert_int_equal(address_listen(&listener, &only, 0), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(address_from_numeric(&list.at[i], where[i], listener.port), 0);
	fd = address_connect_any(&list, &tried, deadline_after_ms(5000), &which);
	assert_true(fd >= 0);
	assert_int_equal(which, 2);
	assert_int_equal(tried & 6, 6); /* 127.0.0.2 has refused */
	close(fd);
	/* What has answered is passed over, and a black hole costs what it is given. */
	tried |= 4;
	fd = address_connect_any(&list, &tried, deadline_after_ms(200), &which);
	assert_true(fd < 0);
	assert_int_equal(tried, 7);
	assert_true(clock_now_ns() - begin < 4000 * CLOCK_NS_PER_MS);
	assert_int_equal(address_connect_any(&list, &tried, deadline_after_ms(200), &which), -EHOSTUNREACH);
	address_unlisten(&listener);
	tried = 0;
	list.at[0] = list.at[1];
	assert_int_equal(address_connect_any(&list, &tried, deadline_after_ms(2000), &which), -ECONNREFUSED);
}

static void test_listen_at(void **state)
{
	struct address_list list = {.count = 3};
	struct address_listener a = {.count = 0}, b = {.count = 0};

	(void)state;
	assert_int_equal(address_from_numeric(&list.at[0], "127.0.0.1", 0), 0);
	assert_int_equal(address_from_numeric(&list.at[1], "127.0.0.2", 0), 0);
	assert_int_equal(address_from_numeric(&list.at[2], "198.51.100.7", 0), 0); /* not this host's */
	assert_int_equal(address_listen(&a, &list, 0), 0);
	assert_int_equal(a.count, 2);
	list.at[0] = list.at[1];
	list.count = 1;
	assert_int_equal(address_listen(&b, &list, a.port), -EADDRINUSE);
	assert_int_equal(b.count, 0);
	address_unlisten(&a);
	assert_int_equal(address_listen(&b, &list, a.port), 0);
	address_unlisten(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice), cmocka_unit_test(test_contradictions), cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_report), cmocka_unit_test(test_race),           cmocka_unit_test(test_listen_at),
	};

	session_forget_engines();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
