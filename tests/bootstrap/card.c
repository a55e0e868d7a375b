/* SPDX-License-Identifier: MIT */
/* Rank 0's card: what is printed is read back, what was cut or altered is refused. */
#include "party.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/card.h"

static void make(struct card *card, int addresses)
{
	memset(card, 0, sizeof(*card));
	assert_int_equal(card_draw(card), 0);
	snprintf(card->host, sizeof(card->host), "node-1.example");
	for (int i = 0; i < addresses; i++) {
		char text[64];

		if (i % 2)
			snprintf(text, sizeof(text), "2001:db8:1111:2222:3333:4444:5555:%x", 0x6000 + i);
		else
			snprintf(text, sizeof(text), "192.0.2.%d", i + 1);
		assert_int_equal(address_from_numeric(&card->addresses.at[i], text, 12345), 0);
	}
	card->addresses.count = addresses;
}

static void expect_same(const struct card *a, const struct card *b)
{
	char left[ADDRESS_TEXT_BYTES], right[ADDRESS_TEXT_BYTES];

	assert_string_equal(a->job_id, b->job_id);
	assert_string_equal(a->secret, b->secret);
	assert_string_equal(a->host, b->host);
	assert_int_equal(a->addresses.count, b->addresses.count);
	for (int i = 0; i < a->addresses.count; i++) {
		address_text(&a->addresses.at[i], left);
		address_text(&b->addresses.at[i], right);
		assert_string_equal(left, right);
	}
}

static void test_round_trip(void **state)
{
	char text[CARD_TEXT_BYTES];
	struct card card, back;
	size_t len;

	(void)state;
	for (int n = 1; n <= ADDRESS_MAX; n++) {
		make(&card, n);
		len = card_print(&card, text);
		assert_int_equal(len, strlen(text));
		assert_int_equal(card_parse(&back, text), 0);
		expect_same(&card, &back);
		/* PMI's values end at a blank, its pairs are split at '='. */
		assert_int_equal(strcspn(text, " \t\n=;"), strlen(text));
	}
}

static void test_drawn(void **state)
{
	struct card a, b;

	(void)state;
	make(&a, 1);
	make(&b, 1);
	assert_string_not_equal(a.secret, b.secret);
	assert_string_not_equal(a.job_id, b.job_id);
}

static void test_hosts(void **state)
{
	char text[CARD_TEXT_BYTES];
	struct card card, back;

	(void)state;
	make(&card, 1);
	snprintf(card.host, sizeof(card.host), "a/b=c d;\n");
	card_print(&card, text);
	assert_int_equal(card_parse(&back, text), 0);
	assert_string_equal(back.host, "a_b_c_d__");
}

/* Every cut and every altered character. */
static void test_damage(void **state)
{
	char text[CARD_TEXT_BYTES], bad[CARD_TEXT_BYTES + 8];
	struct card card, back;
	size_t len;

	(void)state;
	make(&card, 5);
	len = card_print(&card, text);
	for (size_t cut = 0; cut < len; cut++) {
		memcpy(bad, text, len + 1);
		bad[cut] = '\0';
		assert_int_equal(card_parse(&back, bad), -EPROTO);
		assert_string_equal(back.secret, "");
		assert_null(strstr(error_text(), card.secret));
	}
	for (size_t at = 0; at < len; at++) {
		memcpy(bad, text, len + 1);
		bad[at] = (char)(bad[at] == 'x' ? 'y' : 'x');
		assert_int_equal(card_parse(&back, bad), -EPROTO);
		assert_null(strstr(error_text(), card.secret));
	}
	memset(bad, 'a', sizeof(bad) - 1);
	bad[sizeof(bad) - 1] = '\0';
	assert_int_equal(card_parse(&back, bad), -EPROTO);
	memcpy(bad, text, len + 1);
	memcpy(bad, "ibvx9", 5);
	assert_int_equal(card_parse(&back, bad), -EPROTO);
	assert_non_null(strstr(error_text(), "version"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_drawn),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
