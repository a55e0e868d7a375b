/* SPDX-License-Identifier: MIT */
#include "base/proof.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/siphash.h"

int proof_random(void *out, size_t len)
{
	uint8_t *p = out;

	while (len > 0) {
		ssize_t got = getrandom(p, len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_sys(-errno, "getrandom");
		p += got;
		len -= (size_t)got;
	}
	return 0;
}

void proof_set_key(struct proof *p, const char *secret)
{
	static const uint8_t domain[16] = "ibvdev secret 1";

	siphash128(domain, secret, strlen(secret), p->key);
}

static void proof_put32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (24 - 8 * i));
}

void proof_make(const struct proof *p, enum proof_side side, uint8_t out[PROOF_BYTES])
{
	uint8_t signed_bytes[4 + 2 * PROOF_NONCE_BYTES + 8];

	proof_put32(signed_bytes, side);
	memcpy(signed_bytes + 4, p->rank_nonce, PROOF_NONCE_BYTES);
	memcpy(signed_bytes + 4 + PROOF_NONCE_BYTES, p->listener_nonce, PROOF_NONCE_BYTES);
	proof_put32(signed_bytes + 4 + 2 * PROOF_NONCE_BYTES, (uint32_t)p->rank);
	proof_put32(signed_bytes + 8 + 2 * PROOF_NONCE_BYTES, (uint32_t)p->size);
	siphash128(p->key, signed_bytes, sizeof(signed_bytes), out);
}

bool proof_holds(const struct proof *p, enum proof_side side, const uint8_t proof[PROOF_BYTES])
{
	uint8_t expected[PROOF_BYTES];
	volatile uint8_t differ = 0;

	proof_make(p, side, expected);
	for (int i = 0; i < PROOF_BYTES; i++)
		differ = (uint8_t)(differ | (expected[i] ^ proof[i]));
	return differ == 0;
}
