/* SPDX-License-Identifier: MIT */
#include "core/buffer.h"

#include <errno.h>
#include <string.h>

#include "base/pool.h"
#include "core/layout.h"

void buffer_set_layout(struct buffer *b, char *base, const struct ibvx_layout *layout, size_t bytes)
{
	if (layout_is_contiguous(layout, bytes))
		return;
	if (b->kind != BUFFER_SEGMENTS) /* the layout of a receive has no head in front */
		b->base[0] = NULL;
	b->kind = BUFFER_LAYOUT;
	b->base[1] = base;
	b->layout = layout_get(layout);
}

void buffer_adopt_copy(struct buffer *b, void *copy)
{
	b->kind = BUFFER_COPY;
	b->bounce = copy;
}

bool buffer_take_copy(struct buffer *b)
{
	char *copy = pool_get(buffer_bytes(b) + 1);

	if (!copy)
		return false;
	buffer_read(b, 0, copy, buffer_bytes(b), memcpy);
	buffer_fini(b);
	buffer_adopt_copy(b, copy);
	b->base[0] = copy;
	b->base[1] = copy + b->bytes[0];
	return true;
}

void buffer_fini(struct buffer *b)
{
	switch ((enum buffer_kind)b->kind) {
	case BUFFER_CONTIGUOUS:
	case BUFFER_SEGMENTS: break;
	case BUFFER_SPLIT:
		pool_put(b->base[1]);
		b->base[1] = NULL;
		break;
	case BUFFER_LAYOUT: layout_put(b->layout); break;
	case BUFFER_COPY:
	case BUFFER_PINNABLE:
		pool_put(b->bounce);
		b->bounce = NULL;
		break;
	}
	b->kind = BUFFER_CONTIGUOUS;
}

int buffer_accept(struct buffer *b)
{
	bool split = buffer_is_split(b);

	if ((split ? b->bytes[0] : buffer_bytes(b)) > b->capacity)
		return -EMSGSIZE;
	if (split && b->bytes[1] > 0) {
		b->base[1] = pool_get(b->bytes[1]);
		if (!b->base[1])
			return -ENOMEM;
	}
	return 0;
}

/* How much of [at, at + len) lies before `end`. */
static size_t buffer_before(uint64_t at, size_t len, size_t end)
{
	return at >= end ? 0 : end - at < len ? (size_t)(end - at) : len;
}

void buffer_read(const struct buffer *b, uint64_t at, void *to, size_t len, copy_fn *copy)
{
	size_t head = b->kind == BUFFER_LAYOUT && !b->base[0] ? 0 : b->bytes[0];
	size_t first = buffer_before(at, len, head);

	if (b->kind == BUFFER_PINNABLE) {
		if (len > 0)
			copy(to, b->base[0] + at, len);
		return;
	}
	if (first > 0)
		copy(to, b->base[0] + at, first);
	if (len == first)
		return;
	to = (char *)to + first;
	at += first;
	if (b->kind == BUFFER_LAYOUT)
		layout_pack(b->layout, b->base[1], at - head, to, len - first);
	else
		copy(to, b->base[1] + (at - head), len - first);
}

static char *buffer_bounce(struct buffer *b)
{
	if (!b->bounce)
		b->bounce = pool_get(buffer_bytes(b) + 1);
	return b->bounce;
}

static void buffer_write_pinnable(struct buffer *b, uint64_t at, const void *from, size_t len)
{
	if (len == 0)
		return;
	if (b->base[0] && !buffer_has_bounced(b)) {
		memcpy(b->base[0] + at, from, len);
		buffer_written(b, at + len);
	} else if (buffer_bounce(b)) {
		memcpy(b->bounce + at, from, len);
		b->bounce_end = at + len;
	} else {
		b->lost = true;
	}
}

void buffer_write(struct buffer *b, uint64_t at, const void *from, size_t len)
{
	size_t first;

	switch ((enum buffer_kind)b->kind) {
	case BUFFER_CONTIGUOUS:
		if (len > 0)
			memcpy(b->base[0] + at, from, len);
		return;
	case BUFFER_LAYOUT: layout_unpack(b->layout, b->base[1], at, from, len); return;
	case BUFFER_PINNABLE: buffer_write_pinnable(b, at, from, len); return;
	case BUFFER_SPLIT:
	case BUFFER_SEGMENTS:
	case BUFFER_COPY: break;
	}
	first = buffer_before(at, len, b->bytes[0]);
	if (first > 0)
		memcpy(b->base[0] + at, from, first);
	if (len > first)
		memcpy(b->base[1] + (at + first - b->bytes[0]), (const char *)from + first, len - first);
}

bool buffer_rma_source(const struct buffer *b, void *base[2])
{
	base[0] = b->base[0];
	base[1] = b->base[1];
	return b->kind == BUFFER_SEGMENTS || b->kind == BUFFER_COPY;
}

bool buffer_rma_target(struct buffer *b, void *base[2])
{
	char *whole = b->kind == BUFFER_PINNABLE ? buffer_bounce(b) : b->base[0];

	base[0] = whole;
	base[1] = b->kind == BUFFER_SPLIT ? b->base[1] : whole ? whole + b->bytes[0] : NULL;
	return b->kind == BUFFER_CONTIGUOUS || b->kind == BUFFER_SPLIT || (b->kind == BUFFER_PINNABLE && whole);
}

void buffer_filled(struct buffer *b)
{
	if (b->kind == BUFFER_PINNABLE)
		b->bounce_end = buffer_bytes(b);
}

bool buffer_settle(struct buffer *b, size_t max)
{
	size_t left = (size_t)(b->bounce_end - b->bounce_at);

	if (left == 0)
		return false;
	if (left > max)
		left = max;
	memcpy(b->base[0] + b->bounce_at, b->bounce + b->bounce_at, left);
	b->bounce_at += left;
	return true;
}

char *buffer_take_bounce(struct buffer *b, size_t *at, size_t *bytes)
{
	char *bounce = buffer_has_bounced(b) ? b->bounce : NULL;

	*at = (size_t)b->bounce_at;
	*bytes = (size_t)(b->bounce_end - b->bounce_at);
	if (bounce)
		b->bounce = NULL;
	return bounce;
}
