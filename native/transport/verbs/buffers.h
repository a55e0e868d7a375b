/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_BUFFERS_H
#define IBVX_TRANSPORT_VERBS_BUFFERS_H
/*
 * buffers: registered memory in equal pieces, in slabs that are added as they are needed.
 *
 * A piece is named by a 32-bit number: slab in the upper half, index in the lower.  All of it is freed at once, with the device.
 * The caller holds the core's lock, but for slab_open() and slab_close(), which call the adapter.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/provider.h"

#define BUFFERS_SLABS_MAX 256u
#define BUFFERS_NONE UINT32_MAX

struct slab {
	char *mem;
	size_t bytes, piece_bytes;
	uint32_t count;
	struct ibv_mr *mr;
};

/* 0 or -errno with text; *s is empty then. */
int slab_open(struct slab *s, const struct verbs_provider *api, struct ibv_pd *pd, uint32_t count, size_t piece_bytes);
/* An empty one is allowed. */
void slab_close(struct slab *s, const struct verbs_provider *api);
static inline char *slab_piece(const struct slab *s, uint32_t i)
{
	return s->mem + (size_t)i * s->piece_bytes;
}

struct buffers {
	struct slab slab[BUFFERS_SLABS_MAX];
	uint32_t slab_count;
	uint32_t count, max; /* pieces there are, and there may be */
	uint32_t *free;      /* stack of numbers */
	uint32_t free_count;
	bool wanted; /* more pieces have been asked for */
};

/* Adopts a slab; its pieces are free.  0 or -ENOMEM, -ENOSPC with text: the slab is still the caller's. */
int buffers_add(struct buffers *b, const struct slab *s);
/* How many pieces a further slab should have; 0: there may be no more. */
uint32_t buffers_step(const struct buffers *b, uint32_t least);
void buffers_close(struct buffers *b, const struct verbs_provider *api);
/* NULL: there is no such piece. */
static inline const struct slab *buffers_slab(const struct buffers *b, uint32_t number)
{
	const struct slab *s = number >> 16 < b->slab_count ? &b->slab[number >> 16] : NULL;

	return s && (number & 0xffff) < s->count ? s : NULL;
}
/* A free piece, or BUFFERS_NONE. */
static inline uint32_t buffers_take(struct buffers *b)
{
	return b->free_count ? b->free[--b->free_count] : BUFFERS_NONE;
}
static inline void buffers_give(struct buffers *b, uint32_t number)
{
	b->free[b->free_count++] = number;
}

#endif
