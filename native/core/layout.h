/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_LAYOUT_H
#define IBVX_CORE_LAYOUT_H
/*
 * layout: the layouts of ibvx.h as a tree, and copies between a layout in memory and a flat range.
 *
 * A node is a loop (count elements, a constant stride apart), a list (elements at offsets) or a pair of
 * callbacks.  An element is a block of contiguous bytes or another layout.  The constructors normalise:
 * adjacent blocks become one, a loop of contiguous elements becomes a loop of blocks.
 *
 * Layouts are immutable after construction.  No function here takes a lock.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibvx.h"

/* The longest message, and the largest distance within a layout.  Sums of a few never overflow. */
#define LAYOUT_BYTES_MAX ((size_t)PTRDIFF_MAX / 8)
#define LAYOUT_DEPTH_MAX 32

enum layout_kind { LAYOUT_LOOP, LAYOUT_LIST, LAYOUT_CALLBACKS };

/* One element of a list: a block, or a layout. */
struct layout_item {
	ptrdiff_t offset;
	size_t at;                       /* its position in the message; items[count].at: the end */
	const struct ibvx_layout *inner; /* NULL: a block */
};

struct ibvx_layout {
	_Atomic uint32_t references;
	enum layout_kind kind;
	uint32_t depth;
	size_t bytes;
	ptrdiff_t extent;
	ptrdiff_t low, high; /* the bytes lie in [low, high) */
	size_t count;        /* elements */
	/* LAYOUT_LOOP */
	size_t each; /* bytes of an element */
	ptrdiff_t stride;
	const struct ibvx_layout *inner; /* NULL: blocks */
	/* LAYOUT_CALLBACKS */
	void (*pack)(void *arg, const void *base, size_t offset, void *to, size_t bytes);
	void (*unpack)(void *arg, void *base, size_t offset, const void *from, size_t bytes);
	void *arg;
	struct layout_item items[]; /* LAYOUT_LIST */
};

/* Takes a reference, which layout_put() gives back.  ibvx_layout_free() gives back the constructor's. */
const struct ibvx_layout *layout_get(const struct ibvx_layout *l);
void layout_put(const struct ibvx_layout *l);

/* Extends [*low, *high) by [from + inner_low, from + inner_high).  False: it exceeds LAYOUT_BYTES_MAX. */
bool layout_span(ptrdiff_t *low, ptrdiff_t *high, ptrdiff_t from, ptrdiff_t inner_low, ptrdiff_t inner_high);
/* *product = count * stride.  False: it exceeds LAYOUT_BYTES_MAX. */
bool layout_product(size_t count, ptrdiff_t stride, ptrdiff_t *product);

/* One block, or nothing. */
static inline bool layout_is_block(const struct ibvx_layout *l)
{
	return l->kind == LAYOUT_LOOP && !l->inner && l->count <= 1;
}

/* Can a message of so many bytes (<= LAYOUT_BYTES_MAX) use the layout? 0, or -EINVAL with text. */
int layout_check(const struct ibvx_layout *l, size_t bytes);

/* The first `bytes` bytes of the layout are contiguous and begin at offset 0. */
bool layout_is_contiguous(const struct ibvx_layout *l, size_t bytes);

/* Copies the bytes [at, at + len) of a message whose layout is relative to `base`.  Finds `at` in
 * O(depth * log(blocks)); the copy itself is linear. */
void layout_pack(const struct ibvx_layout *l, const void *base, size_t at, void *to, size_t len);
void layout_unpack(const struct ibvx_layout *l, void *base, size_t at, const void *from, size_t len);

#endif
