/* SPDX-License-Identifier: MIT */
/* Conf files and strings, good and bad; what bootstrap_open makes of them. */
#include "party.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/conf.h"
#include "bootstrap/starter.h"

#define HEAD "# comment\n\n2\n131072\n"

static void expect_bad(int err, const char *input, const char *words)
{
	char copy[512], *rest = copy;

	if (err != -EINVAL && err != -EPROTO)
		fail_msg("%d for \"%s\"", err, input);
	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word; (word = strsep(&rest, "|"));)
		if (!strstr(error_text(), word))
			fail_msg("no \"%s\" in \"%s\"", word, error_text());
}

static void bad_file(const char *text, const char *words)
{
	struct conf conf = {0};
	int err = conf_parse_file(&conf, "x.conf", text, strlen(text), 0);

	expect_bad(err, text, words);
	conf_fini(&conf);
}

static void test_niodev(void **state)
{
	const char *path = party_file(HEAD "#ibvdev psl=64k\n  hosta@20000@20001@0@8000\r\n#ibvdevil x\n"
					   "10.0.0.7@20002@20003@1@8002  \n#ibvdev\tlog=info\n");
	struct conf conf;

	(void)state;
	assert_int_equal(conf_read(&conf, path), 0);
	assert_int_equal(conf.size, 2);
	assert_int_equal(conf.psl_bytes, 131072);
	assert_int_equal(conf.psl_line, 4);
	assert_string_equal(conf.hosts[0].host, "hosta");
	assert_int_equal(conf.hosts[0].port, 20000);
	assert_int_equal(conf.hosts[0].line, 6);
	assert_string_equal(conf.hosts[1].host, "10.0.0.7");
	assert_int_equal(conf.hosts[1].port, 20002);
	assert_false(conf.derived_port);
	assert_string_equal(conf.settings[0], "psl=64k");
	assert_int_equal(conf.settings_lines[0], 5);
	assert_string_equal(conf.settings[1], "log=info");
	assert_null(conf.settings[2]);
	conf_fini(&conf);
	conf_fini(&conf);
	party_forget(path);
}

/* Four fields: niodev without a debug port, ranks in any order, no newline at the end. */
static void test_four_fields(void **state)
{
	static const char text[] = "3\n0\nc@2000@2001@2\na@3000@3001@0\n::1@4000@4001@1";
	struct conf conf = {0};

	(void)state;
	assert_int_equal(conf_parse_file(&conf, "x", text, strlen(text), 0), 0);
	assert_string_equal(conf.hosts[0].host, "a");
	assert_string_equal(conf.hosts[1].host, "::1");
	assert_int_equal(conf.hosts[2].port, 2000);
	conf_fini(&conf);
}

static void test_mxdev(void **state)
{
	static const char text[] = "#temp line\n#Number of Processes\n2\n#Protocol Switch Limit\n131072\n"
				   "#Entry, HOST_NAME/IP@...\nlocalhost@0@0@0\nlocalhost@1@1@2\n";
	struct conf conf[3] = {{0}};
	int ports_differ = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(conf_parse_file(&conf[i], "x", text, strlen(text), i < 2 ? 5 : 6), 0);
		assert_int_equal(conf[i].size, 2);
		assert_true(conf[i].derived_port);
		assert_int_equal(conf[i].hosts[1].line, 8);
		assert_in_range(conf[i].hosts[0].port, 20000, 29999);
	}
	assert_int_equal(conf[0].hosts[0].port, conf[1].hosts[0].port);
	ports_differ = conf[0].hosts[0].port != conf[2].hosts[0].port;
	assert_true(ports_differ);
	for (int i = 0; i < 3; i++)
		conf_fini(&conf[i]);
}

static void test_bad_files(void **state)
{
	(void)state;
	bad_file("", "x.conf|without any value|truncated");
	bad_file("# only\n", "without any value");
	bad_file("2\n", "protocol switch limit|line 1");
	bad_file("2\n131072\n", "0 process lines|2 processes|rank 0");
	bad_file(HEAD "h@2000@2001@0@0\n", "1 process lines|2 processes|rank 1");
	bad_file(HEAD "h@2000@2001@1@0\n", "rank 0 is the first");
	bad_file("1\n0\nh@2000@2001@0@0\nh@2002@2003@0@0\n", "line 4|too many|1 processes");
	bad_file(HEAD "h@2000@2001@0@0\nh@2002@2003@0@0\n", "line 6|rank 0|line 5");
	bad_file(HEAD "h@2000@2001@2@0\n", "line 5|rank 2|2 processes|0 to 1");
	bad_file(HEAD "h@2000@2001@-1@0\n", "line 5|rank|-1");
	bad_file("two\n", "line 1|two|number of processes");
	bad_file("0\n0\n", "line 1|\"0\"");
	bad_file("-3\n0\n", "-3");
	bad_file("99999999999999999999\n0\n", "99999999999999999999");
	bad_file("2x\n0\n", "2x");
	bad_file("2\nmany\n", "line 2|many|bytes");
	bad_file("2\n-1\n", "-1");
	bad_file(HEAD "h@port@2001@0@0\n", "line 5|port");
	bad_file(HEAD "h@70000@2001@0@0\n", "70000|65535");
	bad_file(HEAD "h@0@2001@0@0\n", "port 0");
	bad_file(HEAD "h@2000@2001@0@debug\n", "debug");
	bad_file(HEAD "h@2000@2001\n", "line 5|host@port@port@rank");
	bad_file(HEAD "h@2000@2001@0@0@9\n", "line 5|host@port@port@rank");
	bad_file(HEAD "h\n", "line 5");
	bad_file(HEAD "@2000@2001@0@0\n", "line 5|host name");
	bad_file(HEAD "a b@2000@2001@0@0\n", "line 5|blank");
	bad_file("#ibvdev psl\n2\n", "line 1|name=value");
	bad_file("#ibvdev\n2\n", "line 1|name=value");
	bad_file("#ibvdev =3\n2\n", "line 1|name=value");
	assert_int_equal(conf_parse_file(&(struct conf){0}, "x.conf", "2\0\n", 3, 0), -EINVAL);
	assert_non_null(strstr(error_text(), "NUL"));
}

static void test_unreadable(void **state)
{
	const char *path = party_file("x");
	struct conf conf;

	(void)state;
	assert_int_equal(conf_read(&conf, "/no/such/file.conf"), -ENOENT);
	assert_non_null(strstr(error_text(), "/no/such/file.conf"));
	assert_int_equal(conf_read(&conf, "http://host/mpj.conf"), -ENOENT);
	assert_non_null(strstr(error_text(), "URL"));
	assert_int_equal(conf_read(&conf, "/tmp"), -EINVAL);
	assert_non_null(strstr(error_text(), "regular file"));
	assert_int_equal(chmod(path, 0), 0);
	if (geteuid() != 0) /* root reads everything */
		assert_int_equal(conf_read(&conf, path), -EACCES);
	party_forget(path);
	path = party_file("");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(conf_read(&conf, path), -EINVAL); /* and does not wait for a writer */
	party_forget(path);
}

static void bad_string(const char *text, const char *words)
{
	struct conf conf;

	expect_bad(conf_read(&conf, text), text, words);
}

static void test_strings(void **state)
{
	struct conf conf;

	(void)state;
	assert_int_equal(conf_read(&conf, "#Number of Processes;4;#Protocol Switch Limit;65536;#Other;7;"
					  "#Server Name;host-a;#Server Port;40002;more"),
			 0);
	assert_int_equal(conf.size, 4);
	assert_int_equal(conf.psl_bytes, 65536);
	assert_int_equal(conf.psl_line, 0);
	assert_string_equal(conf.starter_host, "host-a");
	assert_int_equal(conf.starter_port, 40002);
	assert_null(conf.hosts);
	conf_fini(&conf);
	assert_int_equal(conf_read(&conf, "#Number of Processes;1;"), 0);
	assert_int_equal(conf.psl_bytes, -1);
	conf_fini(&conf);

	bad_string("#Number of Processes;", "#Number of Processes|\"\"");
	bad_string(";#Number of Processes", "truncated");
	bad_string(";x#Number of Processes", "no \"#Number of Processes\"");
	bad_string("#Number of Processes;four;", "four");
	bad_string("#Number of Processes;2;#Protocol Switch Limit;x", "x|Protocol Switch Limit");
	bad_string("#Number of Processes;2;#Server Name;a;#Server Port;0", "\"0\"|Server Port");
	bad_string("#Number of Processes;2;#Server Name;;#Server Port;1", "Server Name");
	bad_string("#Number of Processes;2;#Server Port;1", "without \"#Server Name\"|conf file");
	bad_string("#Number of Processes;2;#Server Name;a", "without \"#Server Port\"");
}

static int open_rank(int rank, int size, const char *conf, const char *const *peers, struct settings *settings)
{
	struct bootstrap_config cfg = {.rank = rank, .size = size, .conf = conf, .peers = peers, .settings = settings};
	struct bootstrap *b = (void *)&cfg;
	int found = 0, err = bootstrap_open(&b, &cfg, &found);

	assert_true((err == 0) == (b != NULL));
	bootstrap_close(b);
	return err;
}

static void test_open(void **state)
{
	static const char *const peers[] = {"a:1", "[::1]:2"}, *const bad_peers[] = {"a:1", "b:x"};
	const char *path = party_conf(2, 20000);
	struct settings *settings = settings_new();

	(void)state;
	assert_int_equal(open_rank(1, 0, path, NULL, settings), 0);
	assert_int_equal(open_rank(1, 2, path, NULL, settings), 0);
	assert_int_equal(open_rank(1, 2, NULL, peers, settings), 0);
	expect_bad(open_rank(2, 0, path, NULL, settings), "rank 2", "rank 2|2 processes|0 to 1");
	expect_bad(open_rank(-1, 0, path, NULL, settings), "rank -1", "rank -1");
	expect_bad(open_rank(0, 3, path, NULL, settings), "size 3", "size 3|2 processes");
	expect_bad(open_rank(0, 2, NULL, bad_peers, settings), "b:x", "peer 1|b:x|host:port");
	expect_bad(open_rank(0, 0, NULL, peers, settings), "size 0", "size 0");
	expect_bad(open_rank(0, 2, path, peers, settings), "both", "either");
	expect_bad(open_rank(0, 2, NULL, NULL, settings), "none", "size 2|1 ranks");
	assert_int_equal(open_rank(0, 0, "/no/such", NULL, settings), -ENOENT);
	settings_free(settings);
	party_forget(path);
}

static void test_settings(void **state)
{
	const char *path = party_file("1\n4096\n#ibvdev start_timeout_ms=77\nlocalhost@2000@2001@0@0\n");
	const char *wrong = party_file("1\n4096\n#ibvdev start_timeout=77\nlocalhost@2000@2001@0@0\n");
	struct settings *settings = settings_new();

	(void)state;
	assert_int_equal(open_rank(0, 0, path, NULL, settings), 0);
	assert_int_equal(settings_int(settings, SETTING_PSL), 4096);
	assert_int_equal(settings_int(settings, SETTING_START_TIMEOUT_MS), 77);
	assert_non_null(strstr(settings_origin(settings, SETTING_PSL), path));
	assert_non_null(strstr(settings_origin(settings, SETTING_PSL), "line 2"));
	expect_bad(open_rank(0, 0, wrong, NULL, settings), "start_timeout", "start_timeout_ms|line 3");
	assert_int_equal(open_rank(0, 0, "#Number of Processes;1;#Protocol Switch Limit;8192", NULL, settings), 0);
	assert_int_equal(settings_int(settings, SETTING_PSL), 8192);
	settings_free(settings);
	party_forget(path);
	party_forget(wrong);
}

static void test_addresses(void **state)
{
	char *host = NULL;
	int port;

	(void)state;
	assert_int_equal(address_split("[::1]:80", &host, &port), 0);
	assert_string_equal(host, "::1");
	assert_int_equal(port, 80);
	free(host);
	assert_int_equal(address_split("a.b:65535", &host, &port), 0);
	free(host);
	assert_int_equal(address_split("a", &host, &port), -EINVAL);
	assert_int_equal(address_split(":1", &host, &port), -EINVAL);
	assert_int_equal(address_split("[]:1", &host, &port), -EINVAL);
	assert_int_equal(address_split("a:0", &host, &port), -EINVAL);
	assert_int_equal(address_split("a:65536", &host, &port), -EINVAL);
}

static int parse_answer(const char *text, int size)
{
	struct conf_host hosts[4] = {{0}};
	int err = starter_parse(text, strlen(text), size, hosts);

	for (int i = 0; i < 4; i++)
		free(hosts[i].host);
	return err;
}

static void test_starter_answers(void **state)
{
	(void)state;
	assert_int_equal(parse_answer("#Peer Information;10.0.0.1@5@6@1@0;127.0.0.1@7@7@0@8000;", 2), 0);
	assert_int_equal(parse_answer("#Peer Information;10.0.0.1@5@6@0@0", 1), 0);
	expect_bad(parse_answer("", 1), "", "beginning");
	expect_bad(parse_answer("#Peer", 1), "", "beginning");
	expect_bad(parse_answer("#Peer Information;", 1), "", "0 ranks|1");
	expect_bad(parse_answer("#Peer Information;a@1@2@0", 1), "", "ip@port@port");
	expect_bad(parse_answer("#Peer Information;@1@2@0@0", 1), "", "address");
	expect_bad(parse_answer("#Peer Information;a@1@x@0@0", 1), "", "port|a@1@x@0@0");
	expect_bad(parse_answer("#Peer Information;a@1@2@1@0", 1), "", "rank");
	expect_bad(parse_answer("#Peer Information;a@0@2@0@0", 1), "", "no port");
	expect_bad(parse_answer("#Peer Information;a@1@2@0@0;b@1@2@0@0", 2), "", "twice");
	expect_bad(parse_answer("#Peer Information;a@1@2@0@0", 2), "", "names 1 ranks|2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_niodev),     cmocka_unit_test(test_four_fields),
		cmocka_unit_test(test_mxdev),      cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_strings),
		cmocka_unit_test(test_open),       cmocka_unit_test(test_settings),
		cmocka_unit_test(test_addresses),  cmocka_unit_test(test_starter_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
