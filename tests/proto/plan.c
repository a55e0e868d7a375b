/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rng.h"

#define KIB ((size_t)1024)

void traffic_config_random(struct traffic_config *cfg, uint64_t seed, int ranks, unsigned messages)
{
	struct rng r = rng_seed(seed, 5);
	static const size_t sizes[] = {40, 300, 2 * KIB, 10 * KIB, 70 * KIB, 300 * KIB, 1024 * KIB};
	size_t size = sizes[rng_below(&r, sizeof(sizes) / sizeof(sizes[0]))];

	cfg->ranks = ranks;
	cfg->channels = (int)rng_range(&r, 1, 3);
	cfg->rounds = (int)rng_range(&r, 1, 3);
	cfg->messages = (unsigned)rng_range(&r, 1, messages);
	cfg->ops = (unsigned)rng_range(&r, 1, rng_percent(&r, 50) ? 6 : 60);
	cfg->tags = (int)rng_range(&r, 1, 6);
	cfg->size_max = size;
	if (size > 100 * KIB) {
		cfg->messages = cfg->messages / 4 + 1;
		cfg->ops = cfg->ops > 12 ? 12 : cfg->ops;
	}
	cfg->shared = cfg->channels > 1 && rng_percent(&r, 25);
}

int traffic_context(const struct traffic_config *cfg, int channel)
{
	return cfg->shared ? 3 : 3 + 17 * channel;
}

static uint64_t user_word(int src, int channel, int round, unsigned seq)
{
	return (uint64_t)src << 56 | (uint64_t)channel << 48 | (uint64_t)round << 32 | seq;
}

static size_t size_draw(const struct traffic_config *cfg, struct rng *r)
{
	uint64_t kind = rng_below(r, 100);
	size_t size;

	if (kind < 30)
		return (size_t)rng_below(r, 70) % (cfg->size_max + 1);
	if (kind < 75) {
		size = cfg->edges[rng_below(r, TRAFFIC_EDGES)];
		size = size * (size_t)rng_range(r, 1, 2) + (size_t)rng_below(r, 4);
		size = size < 2 ? 0 : size - 2; /* two below the edge to one above */
	} else {
		size = (size_t)rng_below(r, kind < 92 ? cfg->size_max / 8 + 1 : cfg->size_max);
	}
	return size > cfg->size_max ? (size_t)rng_below(r, cfg->size_max + 1) : size;
}

void message_make(const struct traffic_config *cfg, int src, int channel, int round, unsigned seq, struct message *m)
{
	uint64_t user = user_word(src, channel, round, seq);
	struct rng r = rng_seed(cfg->seed, user);
	size_t size = size_draw(cfg, &r), head;

	switch (rng_below(&r, 4)) {
	case 0: head = 0; break;
	case 1: head = size; break;
	case 2: head = size < 40 ? size : (size_t)rng_below(&r, 40); break;
	default: head = (size_t)rng_below(&r, size + 1);
	}
	*m = (struct message){
		.src = src,
		.dst = (int)rng_below(&r, (uint64_t)cfg->ranks),
		.channel = channel,
		.round = round,
		.seq = seq,
		.context = traffic_context(cfg, channel),
		.tag = rng_percent(&r, 3) ? IBVX_ANY_TAG : (int)rng_below(&r, (uint64_t)cfg->tags),
		.bytes = {head, size - head},
		.sync = rng_percent(&r, 25),
		.detach = rng_percent(&r, 4),
		.user = user,
	};
}

bool message_of_user(const struct traffic_config *cfg, uint64_t user, struct message *m)
{
	int src = (int)(user >> 56), channel = (int)(user >> 48 & 0xff), round = (int)(user >> 32 & 0xffff);
	unsigned seq = (unsigned)user;

	if (src >= cfg->ranks || channel >= cfg->channels || round >= cfg->rounds || seq >= cfg->messages)
		return false;
	message_make(cfg, src, channel, round, seq, m);
	return m->user == user;
}

/* Word w of a message: cheap, and different in every place of every message. */
static uint64_t pattern_base(const struct traffic_config *cfg, uint64_t user)
{
	return rng_mix(user * 0x9e3779b97f4a7c15u + cfg->seed);
}

static uint64_t pattern_word(uint64_t base, size_t w)
{
	return (base + w) * 0xd6e8feb86659fd93u;
}

void pattern_fill(const struct traffic_config *cfg, uint64_t user, size_t at, void *to, size_t len)
{
	uint64_t base = pattern_base(cfg, user);
	unsigned char *out = to;

	while (len) {
		size_t skip = at % 8, part = 8 - skip < len ? 8 - skip : len;
		uint64_t word = pattern_word(base, at / 8);

		memcpy(out, (unsigned char *)&word + skip, part);
		out += part;
		at += part;
		len -= part;
	}
}

bool pattern_holds(const struct traffic_config *cfg, uint64_t user, size_t at, const void *from, size_t len)
{
	uint64_t base = pattern_base(cfg, user);
	const unsigned char *in = from;

	while (len) {
		size_t skip = at % 8, part = 8 - skip < len ? 8 - skip : len;
		uint64_t word = pattern_word(base, at / 8);

		if (memcmp(in, (unsigned char *)&word + skip, part) != 0)
			return false;
		in += part;
		at += part;
		len -= part;
	}
	return true;
}

void traffic_fail(const struct traffic_config *cfg, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "\nFAILED (seed %llu): ", (unsigned long long)cfg->seed);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nreplay: %s\n", cfg->replay ? cfg->replay : "(not known)");
	fflush(stderr);
	_exit(1);
}
