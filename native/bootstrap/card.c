/* SPDX-License-Identifier: MIT */
#include "bootstrap/card.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/proof.h"
#include "base/siphash.h"
#include "bootstrap/conf.h"

#define CARD_MAGIC "ibvx1"
#define CARD_CHECK_CHARS 16
#define CARD_FIELDS 7
#define CARD_HEX "0123456789abcdef"

static int card_random_hex(char *out, size_t chars)
{
	uint8_t drawn[32];
	int err = proof_random(drawn, chars / 2);

	for (size_t i = 0; !err && i < chars / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", drawn[i]);
	return err;
}

int card_draw(struct card *card)
{
	int err = card_random_hex(card->job_id, 32);

	return err ? err : card_random_hex(card->secret, CARD_SECRET_CHARS);
}

static void card_check(const char *text, size_t len, char out[CARD_CHECK_CHARS + 1])
{
	static const uint8_t key[16] = "ibvdev card 1";
	uint8_t hash[16];

	siphash128(key, text, len, hash);
	for (int i = 0; i < CARD_CHECK_CHARS / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* A host name is for texts only: characters that a launcher might trip over become '_'. */
static void card_host(const char *in, char out[CARD_HOST_CHARS + 1])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	size_t i;

	for (i = 0; i < CARD_HOST_CHARS && in[i]; i++)
		out[i] = strchr(allowed, in[i]) ? in[i] : '_';
	out[i] = '\0';
}

size_t card_print(const struct card *card, char out[CARD_TEXT_BYTES])
{
	const size_t room = CARD_TEXT_BYTES - CARD_CHECK_CHARS - 2; /* the slash and the NUL */
	char host[CARD_HOST_CHARS + 1];
	const char *comma = "";
	size_t len;

	card_host(card->host, host);
	len = (size_t)snprintf(out, room, CARD_MAGIC "/%s/%s/%d/%s/", card->job_id, card->secret,
			       card->addresses.count ? address_port(&card->addresses.at[0]) : 0, host);
	for (int i = 0; i < card->addresses.count; i++) {
		char text[ADDRESS_TEXT_BYTES];

		address_numeric(&card->addresses.at[i], text);
		if (len + 1 + strlen(text) >= room)
			break;
		len += (size_t)snprintf(out + len, room - len, "%s%s", comma, text);
		comma = ",";
	}
	out[len] = '/';
	card_check(out, len, out + len + 1);
	return len + 1 + CARD_CHECK_CHARS;
}

static bool card_is_hex(const char *text, size_t chars)
{
	return strlen(text) == chars && strspn(text, CARD_HEX) == chars;
}

static int card_parse_addresses(struct card *card, char *text, int port)
{
	char *one;

	card->addresses.count = 0;
	while ((one = strsep(&text, ","))) {
		struct address *a = &card->addresses.at[card->addresses.count];

		if (card->addresses.count == ADDRESS_MAX || address_from_numeric(a, one, port) < 0)
			return -EPROTO;
		card->addresses.count++;
	}
	return 0;
}

static int card_parse_fields(struct card *card, char *copy)
{
	char *fields[CARD_FIELDS];
	int64_t port;
	int count = 0;

	for (char *field; count < CARD_FIELDS && (field = strsep(&copy, "/"));)
		fields[count++] = field;
	if (count != CARD_FIELDS || copy || strcmp(fields[0], CARD_MAGIC) != 0 || !card_is_hex(fields[1], 32) ||
	    !card_is_hex(fields[2], CARD_SECRET_CHARS) || conf_number(fields[3], 1, 65535, &port) < 0 ||
	    strlen(fields[4]) > CARD_HOST_CHARS)
		return -EPROTO;
	memcpy(card->job_id, fields[1], 33);
	memcpy(card->secret, fields[2], CARD_SECRET_CHARS + 1);
	card_host(fields[4], card->host);
	return card_parse_addresses(card, fields[5], (int)port);
}

int card_parse(struct card *card, const char *text)
{
	char copy[CARD_TEXT_BYTES], check[CARD_CHECK_CHARS + 1];
	size_t len = strnlen(text, CARD_TEXT_BYTES);

	memset(card, 0, sizeof(*card));
	if (len >= sizeof(CARD_MAGIC) && strncmp(text, "ibvx", 4) == 0 && strncmp(text, CARD_MAGIC "/", sizeof(CARD_MAGIC)) != 0)
		return error_set(-EPROTO, "rank 0's card is of another version of ibvdev; install the same "
					  "ibvdev everywhere");
	if (len < CARD_CHECK_CHARS + 1 || len == CARD_TEXT_BYTES)
		return error_set(-EPROTO, "rank 0's card was cut: %zu bytes arrived", len);
	memcpy(copy, text, len + 1);
	card_check(copy, len - CARD_CHECK_CHARS - 1, check);
	if (strcmp(check, copy + len - CARD_CHECK_CHARS) != 0 || card_parse_fields(card, copy) < 0) {
		memset(card, 0, sizeof(*card));
		return error_set(-EPROTO, "rank 0's card was cut or garbled in transit: %zu bytes arrived", len);
	}
	return 0;
}
