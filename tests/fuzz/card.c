/* SPDX-License-Identifier: MIT */
/* What launchers hand over: rank 0's card with a check that fits the damage, Slurm's lists of hosts and ports. */
#include "fuzz.h"

#include <arpa/inet.h>

#include "base/siphash.h"
#include "bootstrap/card.h"
#include "bootstrap/hostlist.h"

/* The input is all of a card but the check. */
static void try_card(const char *text)
{
	static const uint8_t key[16] = "ibvdev card 1";
	size_t len = strlen(text);
	char *checked = malloc(len + 17), again[CARD_TEXT_BYTES];
	struct card card, back;
	uint8_t hash[16];

	fuzz_check(checked);
	memcpy(checked, text, len + 1);
	siphash128(key, text, len ? len - 1 : 0, hash); /* the last character is the slash before the check */
	for (int i = 0; i < 8; i++)
		snprintf(checked + len + 2 * (size_t)i, 3, "%02x", hash[i]);
	if (card_parse(&card, checked) < 0) {
		fuzz_check(!*card.secret && !card.addresses.count); /* a refused card leaves nothing behind */
	} else {
		fuzz_check(strlen(card.secret) == CARD_SECRET_CHARS && card.addresses.count >= 1 &&
			   address_port(&card.addresses.at[0]) >= 1);
		card_print(&card, again);
		fuzz_check(card_parse(&back, again) == 0 && strcmp(back.secret, card.secret) == 0);
		fuzz_check(back.addresses.count == card.addresses.count);
	}
	free(checked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), host[32];
	int ports[8], count;

	try_card(text);
	if (hostlist_first(text, host, sizeof(host)) == 0)
		fuzz_check(*host && !strpbrk(host, "[], \n"));
	count = hostlist_ports(text, ports, 8);
	fuzz_check(count <= 8 && count != 0);
	for (int i = 0; i < count; i++)
		fuzz_check(ports[i] >= 1 && ports[i] <= 65535);
	free(text);
	return 0;
}
