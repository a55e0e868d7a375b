/* SPDX-License-Identifier: MIT */
/* What launchers hand over: rank 0's card with a check that fits the damage, Slurm's lists of hosts and ports. */
#include "fuzz.h"

#include <arpa/inet.h>

#include "base/error.h"
#include "base/siphash.h"
#include "bootstrap/card.h"
#include "bootstrap/hostlist.h"

#define ROOM 1400

static const char *const cards[] = {
	"ibvx1/00112233445566778899aabbccddeeff/ffeeddccbbaa99887766554433221100/4242/n1/192.0.2.1,2001:db8::1/",
	"ibvx1/00112233445566778899aabbccddeeff/ffeeddccbbaa99887766554433221100/65535//::1/",
};
static const char *const lists[] = {"n[01-16,20],login", "rack[0-1]n[03-05]-ib", "31000-31003,31007", "1-65535"};

static size_t pick(struct fuzz_rng *rng, const char *const *from, size_t count, char *text)
{
	const char *chosen = from[fuzz_below(rng, count)];
	size_t len = strlen(chosen);

	memcpy(text, chosen, len);
	for (size_t i = fuzz_below(rng, 4); i > 0; i--)
		fuzz_damage(rng, (uint8_t *)text, &len, ROOM - 64);
	text[len] = '\0';
	return strlen(text);
}

static int fuzz_card(struct fuzz_rng *rng, char *text)
{
	static const uint8_t key[16] = "ibvdev card 1";
	size_t len = pick(rng, cards, 2, text);
	char again[CARD_TEXT_BYTES];
	struct card card, back;
	uint8_t hash[16];

	if (len == 0)
		return 0;
	siphash128(key, text, len - 1, hash); /* the last character is the slash before the check */
	for (int i = 0; i < 8; i++)
		snprintf(text + len + 2 * (size_t)i, 3, "%02x", hash[i]);
	if (card_parse(&card, text) < 0)
		return *card.secret || card.addresses.count; /* a refused card leaves nothing behind */
	if (strlen(card.secret) != CARD_SECRET_CHARS || card.addresses.count < 1 || address_port(&card.addresses.at[0]) < 1)
		return 1;
	card_print(&card, again);
	return card_parse(&back, again) < 0 || strcmp(back.secret, card.secret) != 0 || back.addresses.count != card.addresses.count;
}

static int fuzz_lists(struct fuzz_rng *rng, char *text)
{
	int ports[8], count;
	char host[32];

	pick(rng, lists, 4, text);
	if (hostlist_first(text, host, sizeof(host)) == 0 && (!*host || strpbrk(host, "[], \n")))
		return 1;
	count = hostlist_ports(text, ports, 8);
	if (count > 8 || count == 0)
		return 1;
	for (int i = 0; i < count; i++)
		if (ports[i] < 1 || ports[i] > 65535)
			return 1;
	return 0;
}

static int target(struct fuzz_rng *rng)
{
	char text[ROOM + 1];

	error_set(-1, "unset");
	return fuzz_below(rng, 3) ? fuzz_card(rng, text) : fuzz_lists(rng, text);
}

int main(int argc, char **argv)
{
	return fuzz_main(argc, argv, 100000, target);
}
