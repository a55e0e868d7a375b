/* SPDX-License-Identifier: MIT */
/* The constructors of layouts (ibvx.h). */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "core/layout.h"

static int layout_too_large(const char *what)
{
	return error_set(-EINVAL, "a layout's %s exceeds %zu bytes", what, LAYOUT_BYTES_MAX);
}

bool layout_span(ptrdiff_t *low, ptrdiff_t *high, ptrdiff_t from, ptrdiff_t inner_low, ptrdiff_t inner_high)
{
	ptrdiff_t max = (ptrdiff_t)LAYOUT_BYTES_MAX;

	if (from < -max || from > max || from + inner_low < -max || from + inner_high > max)
		return false;
	*low = from + inner_low < *low ? from + inner_low : *low;
	*high = from + inner_high > *high ? from + inner_high : *high;
	return true;
}

bool layout_product(size_t count, ptrdiff_t stride, ptrdiff_t *product)
{
	ptrdiff_t max = (ptrdiff_t)LAYOUT_BYTES_MAX;

	return count <= LAYOUT_BYTES_MAX && !__builtin_mul_overflow((ptrdiff_t)count, stride, product) && *product >= -max &&
	       *product <= max;
}

static struct ibvx_layout *layout_new(enum layout_kind kind, size_t items)
{
	struct ibvx_layout *l =
		items <= LAYOUT_BYTES_MAX / sizeof(struct layout_item) ? calloc(1, sizeof(*l) + items * sizeof(struct layout_item)) : NULL;

	if (!l) {
		error_set(-ENOMEM, "no memory for a layout of %zu elements", items);
		return NULL;
	}
	atomic_init(&l->references, 1);
	l->kind = kind;
	l->depth = 1;
	return l;
}

/* A loop over blocks of `each` bytes or over `inner`. */
static int layout_new_loop(struct ibvx_layout **out, size_t count, size_t each, ptrdiff_t stride, ptrdiff_t extent,
			   const struct ibvx_layout *inner)
{
	ptrdiff_t low = inner ? inner->low : 0, high = inner ? inner->high : (ptrdiff_t)each, last, bytes;
	struct ibvx_layout *l;

	if (each > LAYOUT_BYTES_MAX || !layout_product(count, (ptrdiff_t)each, &bytes))
		return layout_too_large("number of bytes");
	if (!layout_product(count > 0 ? count - 1 : 0, stride, &last) || !layout_span(&low, &high, last, low, high))
		return layout_too_large("span");
	if (bytes == 0) {
		count = 0;
		inner = NULL;
		low = high = 0;
	} else if (!inner && stride == (ptrdiff_t)each) {
		each = (size_t)bytes;
		count = 1;
	}
	l = layout_new(LAYOUT_LOOP, 0);
	if (!l)
		return -ENOMEM;
	l->bytes = (size_t)bytes;
	l->extent = extent;
	l->low = low;
	l->high = high;
	l->count = count;
	l->each = each;
	l->stride = stride;
	l->inner = inner ? layout_get(inner) : NULL;
	l->depth = inner ? inner->depth + 1 : 1;
	*out = l;
	return 0;
}

int ibvx_layout_contiguous(struct ibvx_layout **out, size_t bytes)
{
	*out = NULL;
	return layout_new_loop(out, 1, bytes, (ptrdiff_t)bytes, (ptrdiff_t)bytes, NULL);
}

int ibvx_layout_vector(struct ibvx_layout **out, size_t count, size_t block_bytes, ptrdiff_t stride_bytes)
{
	ptrdiff_t last = 0;

	*out = NULL;
	if (block_bytes > LAYOUT_BYTES_MAX || !layout_product(count > 0 ? count - 1 : 0, stride_bytes, &last))
		return layout_too_large("span");
	return layout_new_loop(out, count, block_bytes, stride_bytes, count > 0 ? last + (ptrdiff_t)block_bytes : 0, NULL);
}

int ibvx_layout_nested(struct ibvx_layout **out, size_t count, ptrdiff_t extent_bytes, const struct ibvx_layout *inner)
{
	ptrdiff_t extent;

	*out = NULL;
	if (!inner)
		return error_set(-EINVAL, "a nested layout needs a layout to repeat");
	if (inner->depth >= LAYOUT_DEPTH_MAX)
		return error_set(-EINVAL, "a layout is nested more than %d deep", LAYOUT_DEPTH_MAX);
	if (!layout_product(count, extent_bytes, &extent))
		return layout_too_large("extent");
	return layout_new_loop(out, count, inner->bytes, extent_bytes, extent, layout_is_block(inner) ? NULL : inner);
}

/* Appends an element to a list under construction: elements without bytes are dropped, adjacent blocks joined. 0 or -EINVAL. */
static int layout_append(struct ibvx_layout *l, ptrdiff_t offset, size_t bytes, const struct ibvx_layout *inner)
{
	struct layout_item *item = &l->items[l->count], *last = l->count > 0 ? item - 1 : NULL;

	if (bytes == 0)
		return 0;
	if (bytes > LAYOUT_BYTES_MAX - l->bytes)
		return layout_too_large("number of bytes");
	if (l->count == 0) {
		l->low = (ptrdiff_t)LAYOUT_BYTES_MAX;
		l->high = -(ptrdiff_t)LAYOUT_BYTES_MAX;
	}
	if (!layout_span(&l->low, &l->high, offset, inner ? inner->low : 0, inner ? inner->high : (ptrdiff_t)bytes))
		return layout_too_large("span");
	l->bytes += bytes;
	if (!inner && last && !last->inner && last->offset + (ptrdiff_t)(item->at - last->at) == offset) {
		item->at = l->bytes;
		return 0;
	}
	item->offset = offset;
	item->inner = inner ? layout_get(inner) : NULL;
	item[1].at = l->bytes;
	l->count++;
	if (inner && inner->depth >= l->depth)
		l->depth = inner->depth + 1;
	return 0;
}

/* The list is complete, or (rc) its construction failed. */
static int layout_finish(struct ibvx_layout **out, struct ibvx_layout *l, int rc)
{
	if (rc == 0 && l->depth > LAYOUT_DEPTH_MAX)
		rc = error_set(-EINVAL, "a layout is nested more than %d deep", LAYOUT_DEPTH_MAX);
	if (rc) {
		layout_put(l);
		return rc;
	}
	l->extent = l->high > 0 ? l->high : 0;
	if (l->count == 0 || (l->count == 1 && !l->items[0].inner && l->items[0].offset == 0)) {
		l->kind = LAYOUT_LOOP;
		l->each = l->bytes;
		l->stride = l->extent;
	}
	*out = l;
	return 0;
}

int ibvx_layout_indexed(struct ibvx_layout **out, size_t count, const struct ibvx_block blocks[])
{
	struct ibvx_layout *l;
	int rc = 0;

	*out = NULL;
	if (!blocks && count > 0)
		return error_set(-EINVAL, "a layout of %zu blocks at a NULL address", count);
	l = layout_new(LAYOUT_LIST, count + 1);
	if (!l)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = layout_append(l, blocks[i].offset, blocks[i].bytes, NULL);
	return layout_finish(out, l, rc);
}

int ibvx_layout_segments(struct ibvx_layout **out, size_t count, const struct ibvx_segment segments[])
{
	struct ibvx_layout *l;
	int rc = 0;

	*out = NULL;
	if (!segments && count > 0)
		return error_set(-EINVAL, "a layout of %zu segments at a NULL address", count);
	l = layout_new(LAYOUT_LIST, count + 1);
	if (!l)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (!segments[i].base && segments[i].bytes > 0)
			rc = error_set(-EINVAL, "segment %zu of a layout has %zu bytes at a NULL address", i, segments[i].bytes);
		else
			rc = layout_append(l, (ptrdiff_t)(uintptr_t)segments[i].base, segments[i].bytes, NULL);
	}
	return layout_finish(out, l, rc);
}

int ibvx_layout_struct(struct ibvx_layout **out, size_t count, const struct ibvx_field fields[])
{
	struct ibvx_layout *l;
	int rc = 0;

	*out = NULL;
	if (!fields && count > 0)
		return error_set(-EINVAL, "a layout of %zu fields at a NULL address", count);
	l = layout_new(LAYOUT_LIST, count + 1);
	if (!l)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		const struct ibvx_layout *inner = fields[i].layout;

		if (inner)
			rc = layout_append(l, fields[i].offset, inner->bytes, layout_is_block(inner) ? NULL : inner);
		else
			rc = error_set(-EINVAL, "field %zu of a layout is NULL", i);
	}
	return layout_finish(out, l, rc);
}

int ibvx_layout_callbacks(struct ibvx_layout **out, size_t bytes, ptrdiff_t extent_bytes,
			  void (*pack)(void *arg, const void *base, size_t offset, void *to, size_t bytes),
			  void (*unpack)(void *arg, void *base, size_t offset, const void *from, size_t bytes), void *arg)
{
	ptrdiff_t extent;
	struct ibvx_layout *l;

	*out = NULL;
	if (!pack || !unpack)
		return error_set(-EINVAL, "a layout of callbacks needs both pack and unpack");
	if (bytes > LAYOUT_BYTES_MAX || !layout_product(1, extent_bytes, &extent))
		return layout_too_large("number of bytes or extent");
	l = layout_new(LAYOUT_CALLBACKS, 0);
	if (!l)
		return -ENOMEM;
	l->bytes = bytes;
	l->extent = extent;
	l->low = extent < 0 ? extent : 0;
	l->high = extent > 0 ? extent : 0;
	l->pack = pack;
	l->unpack = unpack;
	l->arg = arg;
	*out = l;
	return 0;
}

size_t ibvx_layout_bytes(const struct ibvx_layout *layout)
{
	return layout->bytes;
}

ptrdiff_t ibvx_layout_extent(const struct ibvx_layout *layout)
{
	return layout->extent;
}

void ibvx_layout_free(struct ibvx_layout *layout)
{
	if (layout)
		layout_put(layout);
}
