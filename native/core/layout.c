/* SPDX-License-Identifier: MIT */
#include "core/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A copy under way.  Exactly one of to and from is set: where the flat side continues. */
struct layout_copy {
	char *to;         /* pack */
	const char *from; /* unpack */
};

/* Offsets may lead anywhere, also from NULL. */
static inline char *layout_address(const char *base, ptrdiff_t offset)
{
	return (char *)((uintptr_t)base + (uintptr_t)offset);
}

static inline __attribute__((always_inline)) void layout_copy_blocks(struct layout_copy *c, char *memory, ptrdiff_t stride, size_t count,
								     size_t n)
{
	if (c->to) {
		char *to = c->to;

		for (; count > 0; count--, to += n, memory = layout_address(memory, stride))
			memcpy(to, memory, n);
		c->to = to;
	} else {
		const char *from = c->from;

		for (; count > 0; count--, from += n, memory = layout_address(memory, stride))
			memcpy(memory, from, n);
		c->from = from;
	}
}

/* `count` blocks of n bytes; the compiler makes a loop of loads and stores for each common size. */
static inline void layout_copy_stride(struct layout_copy *c, char *memory, ptrdiff_t stride, size_t count, size_t n)
{
	switch (n) {
	case 0: break;
	case 4: layout_copy_blocks(c, memory, stride, count, 4); break;
	case 8: layout_copy_blocks(c, memory, stride, count, 8); break;
	case 16: layout_copy_blocks(c, memory, stride, count, 16); break;
	default: layout_copy_blocks(c, memory, stride, count, n); break;
	}
}

static void layout_copy_range(const struct ibvx_layout *l, char *base, size_t at, size_t len, struct layout_copy *c);

/* Bytes [at, at + len) of one element. */
static inline void layout_copy_element(const struct ibvx_layout *inner, char *memory, size_t at, size_t len, struct layout_copy *c)
{
	if (inner)
		layout_copy_range(inner, memory, at, len, c);
	else
		layout_copy_stride(c, layout_address(memory, (ptrdiff_t)at), 0, 1, len);
}

static void layout_copy_loop(const struct ibvx_layout *l, char *base, size_t at, size_t len, struct layout_copy *c)
{
	size_t i = at / l->each, skip = at % l->each, whole;
	char *memory = layout_address(base, (ptrdiff_t)i * l->stride);

	if (skip > 0) {
		size_t n = l->each - skip < len ? l->each - skip : len;

		layout_copy_element(l->inner, memory, skip, n, c);
		memory = layout_address(memory, l->stride);
		len -= n;
	}
	whole = len / l->each;
	if (!l->inner) {
		layout_copy_stride(c, memory, l->stride, whole, l->each);
		memory = layout_address(memory, (ptrdiff_t)whole * l->stride);
	} else {
		for (; whole > 0; whole--, memory = layout_address(memory, l->stride))
			layout_copy_range(l->inner, memory, 0, l->each, c);
	}
	len %= l->each;
	if (len > 0)
		layout_copy_element(l->inner, memory, 0, len, c);
}

/* The item that holds byte `at` < bytes. */
static size_t layout_find(const struct ibvx_layout *l, size_t at)
{
	size_t low = 0, high = l->count;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (l->items[mid].at <= at)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void layout_copy_list(const struct ibvx_layout *l, char *base, size_t at, size_t len, struct layout_copy *c)
{
	const struct layout_item *item = &l->items[at > 0 ? layout_find(l, at) : 0];

	for (size_t skip = at - item->at; len > 0; item++, skip = 0) {
		size_t n = item[1].at - item[0].at - skip;

		n = n < len ? n : len;
		layout_copy_element(item->inner, layout_address(base, item->offset), skip, n, c);
		len -= n;
	}
}

/* Bytes [at, at + len) of one instance of l; at + len <= l->bytes. */
static void layout_copy_range(const struct ibvx_layout *l, char *base, size_t at, size_t len, struct layout_copy *c)
{
	if (len == 0)
		return;
	switch (l->kind) {
	case LAYOUT_LOOP: layout_copy_loop(l, base, at, len, c); return;
	case LAYOUT_LIST: layout_copy_list(l, base, at, len, c); return;
	case LAYOUT_CALLBACKS: break;
	}
	if (c->to) {
		l->pack(l->arg, base, at, c->to, len);
		c->to += len;
	} else {
		l->unpack(l->arg, base, at, c->from, len);
		c->from += len;
	}
}

/* The message is a loop without an end over l. */
static void layout_copy_message(const struct ibvx_layout *l, char *base, size_t at, size_t len, struct layout_copy *c)
{
	struct ibvx_layout endless = {.kind = LAYOUT_LOOP, .each = l->bytes, .stride = l->extent, .inner = l};

	if (at + len <= l->bytes)
		layout_copy_range(l, base, at, len, c);
	else
		layout_copy_loop(&endless, base, at, len, c);
}

void layout_pack(const struct ibvx_layout *l, const void *base, size_t at, void *to, size_t len)
{
	layout_copy_message(l, (char *)(uintptr_t)base, at, len, &(struct layout_copy){.to = to});
}

void layout_unpack(const struct ibvx_layout *l, void *base, size_t at, const void *from, size_t len)
{
	layout_copy_message(l, base, at, len, &(struct layout_copy){.from = from});
}

const struct ibvx_layout *layout_get(const struct ibvx_layout *l)
{
	atomic_fetch_add_explicit(&((struct ibvx_layout *)(uintptr_t)l)->references, 1, memory_order_relaxed);
	return l;
}

void layout_put(const struct ibvx_layout *l)
{
	struct ibvx_layout *gone = (struct ibvx_layout *)(uintptr_t)l;

	if (atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) != 1)
		return;
	if (gone->inner)
		layout_put(gone->inner);
	for (size_t i = 0; gone->kind == LAYOUT_LIST && i < gone->count; i++) {
		if (gone->items[i].inner)
			layout_put(gone->items[i].inner);
	}
	free(gone);
}

int layout_check(const struct ibvx_layout *l, size_t bytes)
{
	ptrdiff_t low = l->low, high = l->high, last;

	if (bytes <= l->bytes)
		return 0;
	if (l->bytes == 0)
		return error_set(-EINVAL, "a message of %zu bytes with a layout of no bytes", bytes);
	if (!layout_product((bytes - 1) / l->bytes, l->extent, &last) || !layout_span(&low, &high, last, l->low, l->high))
		return error_set(-EINVAL, "a message of %zu bytes with a layout of %zu bytes and extent %td exceeds memory", bytes,
				 l->bytes, l->extent);
	return 0;
}

bool layout_is_contiguous(const struct ibvx_layout *l, size_t bytes)
{
	return layout_is_block(l) && (bytes <= l->bytes || l->extent == (ptrdiff_t)l->bytes);
}
