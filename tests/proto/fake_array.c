/* SPDX-License-Identifier: MIT */
#include "fake_array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fake_array_relocate(struct fake_array *m)
{
	char *to = malloc(m->bytes ? m->bytes : 1);

	if (!to)
		return;
	memcpy(to, m->at, m->bytes);
	memset(m->at, 0xee, m->bytes);
	free(m->at);
	m->at = to;
}

static void *fake_array_enter(struct ibvx_pin *heap)
{
	struct fake_array *m = (struct fake_array *)heap;

	if (m->open) {
		fprintf(stderr, "a pin of what is pinned\n");
		abort();
	}
	if (m->refuse) {
		m->refuse--;
		return NULL;
	}
	if (rng_percent(&m->rng, 50))
		fake_array_relocate(m);
	if (m->on_enter)
		m->on_enter(m, m->arg);
	m->open = true;
	m->pins++;
	return m->at;
}

static void fake_array_leave(struct ibvx_pin *heap, void *at)
{
	struct fake_array *m = (struct fake_array *)heap;

	if (!m->open || at != m->at) {
		fprintf(stderr, "an unpin of what is not pinned, or of another one\n");
		abort();
	}
	m->open = false;
	if (rng_percent(&m->rng, 50))
		fake_array_relocate(m);
}

void fake_array_init(struct fake_array *m, char *at, size_t bytes, uint64_t seed)
{
	*m = (struct fake_array){
		.pinnable = {.enter = fake_array_enter, .leave = fake_array_leave}, .at = at, .bytes = bytes, .rng = rng_seed(seed, 11)};
}

static void fake_array_drop(struct ibvx_pin *heap)
{
	struct fake_array *m = (struct fake_array *)heap;

	if (m->open) {
		fprintf(stderr, "zero-copy memory is released while it is pinned\n");
		abort();
	}
	atomic_fetch_add(m->dropped, 1);
	memset(m->at, 0xdd, m->bytes);
	free(m->at);
	free(m);
}

struct ibvx_pin *fake_array_donate(char *at, size_t bytes, uint64_t seed, atomic_uint *dropped)
{
	struct fake_array *m = malloc(sizeof(*m));

	if (!m)
		abort();
	fake_array_init(m, at, bytes, seed);
	m->pinnable.drop = fake_array_drop;
	m->dropped = dropped;
	return &m->pinnable;
}

void fake_array_bring(struct fake_array *m)
{
	if (m->pinnable.rest_bytes)
		memcpy(m->at + m->pinnable.rest_at, m->pinnable.bounce + m->pinnable.rest_at, m->pinnable.rest_bytes);
	free(m->pinnable.bounce);
	m->pinnable.bounce = NULL;
}
