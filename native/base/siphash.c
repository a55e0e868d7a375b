/* SPDX-License-Identifier: MIT */
#include "base/siphash.h"

struct sip_state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t sip_load(const uint8_t *p, size_t count)
{
	uint64_t word = 0;

	for (size_t i = 0; i < count; i++)
		word |= (uint64_t)p[i] << (8 * i);
	return word;
}

static void sip_store(uint8_t *p, uint64_t word)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(word >> (8 * i));
}

static uint64_t sip_rotate(uint64_t word, int bits)
{
	return (word << bits) | (word >> (64 - bits));
}

static void sip_rounds(struct sip_state *s, int count)
{
	while (count-- > 0) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
		s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
		s->v0 = sip_rotate(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
		s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
		s->v2 = sip_rotate(s->v2, 32);
	}
}

static void sip_absorb(struct sip_state *s, uint64_t word)
{
	s->v3 ^= word;
	sip_rounds(s, 2);
	s->v0 ^= word;
}

void siphash128(const uint8_t key[16], const void *data, size_t len, uint8_t out[16])
{
	const uint8_t *p = data;
	uint64_t k0 = sip_load(key, 8);
	uint64_t k1 = sip_load(key + 8, 8);
	size_t rest = len % 8;
	/* The initial words spell "somepseudorandomlygeneratedbytes"; 0xee marks the 128-bit variant. */
	struct sip_state s = {
		.v0 = k0 ^ 0x736f6d6570736575u,
		.v1 = k1 ^ 0x646f72616e646f6du ^ 0xee,
		.v2 = k0 ^ 0x6c7967656e657261u,
		.v3 = k1 ^ 0x7465646279746573u,
	};

	for (size_t i = 0; i + 8 <= len; i += 8)
		sip_absorb(&s, sip_load(p + i, 8));
	sip_absorb(&s, ((uint64_t)(len & 0xff) << 56) | (rest ? sip_load(p + len - rest, rest) : 0));

	s.v2 ^= 0xee;
	sip_rounds(&s, 4);
	sip_store(out, s.v0 ^ s.v1 ^ s.v2 ^ s.v3);
	s.v1 ^= 0xdd;
	sip_rounds(&s, 4);
	sip_store(out + 8, s.v0 ^ s.v1 ^ s.v2 ^ s.v3);
}
