/* SPDX-License-Identifier: MIT */
#include "moving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void moving_move(struct moving *m)
{
	char *to = malloc(m->bytes ? m->bytes : 1);

	if (!to)
		return;
	memcpy(to, m->at, m->bytes);
	memset(m->at, 0xee, m->bytes);
	free(m->at);
	m->at = to;
}

static void *moving_enter(struct ibvx_heap *heap)
{
	struct moving *m = (struct moving *)heap;

	if (m->open) {
		fprintf(stderr, "a region is opened that is open\n");
		abort();
	}
	if (m->refuse) {
		m->refuse--;
		return NULL;
	}
	if (rng_percent(&m->rng, 50))
		moving_move(m);
	if (m->on_enter)
		m->on_enter(m, m->arg);
	m->open = true;
	m->regions++;
	return m->at;
}

static void moving_leave(struct ibvx_heap *heap, void *at)
{
	struct moving *m = (struct moving *)heap;

	if (!m->open || at != m->at) {
		fprintf(stderr, "a region is closed that is not open, or another one\n");
		abort();
	}
	m->open = false;
	if (rng_percent(&m->rng, 50))
		moving_move(m);
}

void moving_init(struct moving *m, char *at, size_t bytes, uint64_t seed)
{
	*m = (struct moving){.heap = {.enter = moving_enter, .leave = moving_leave},
			     .at = at,
			     .bytes = bytes,
			     .rng = rng_seed(seed, 11)};
}

static void moving_drop(struct ibvx_heap *heap)
{
	struct moving *m = (struct moving *)heap;

	if (m->open) {
		fprintf(stderr, "lent memory is given back while a region of it is open\n");
		abort();
	}
	atomic_fetch_add(m->dropped, 1);
	memset(m->at, 0xdd, m->bytes);
	free(m->at);
	free(m);
}

struct ibvx_heap *moving_lend(char *at, size_t bytes, uint64_t seed, atomic_uint *dropped)
{
	struct moving *m = malloc(sizeof(*m));

	if (!m)
		abort();
	moving_init(m, at, bytes, seed);
	m->heap.drop = moving_drop;
	m->dropped = dropped;
	return &m->heap;
}

void moving_bring(struct moving *m)
{
	if (m->heap.rest_bytes)
		memcpy(m->at + m->heap.rest_at, m->heap.stage + m->heap.rest_at, m->heap.rest_bytes);
	free(m->heap.stage);
	m->heap.stage = NULL;
}
