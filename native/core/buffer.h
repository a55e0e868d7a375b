/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_BUFFER_H
#define IBVX_CORE_BUFFER_H
/*
 * buffer: the memory that a request reads (send) or writes (receive).
 *
 *   CONTIGUOUS  receive: all bytes at base[0]
 *   SEGMENTS    send: the head at base[0], the body at base[1]
 *   SPLIT       receive: the head at base[0], the body at base[1], which the library allocates
 *   LAYOUT      a head at base[0] unless that is NULL, the rest as a layout relative to base[1]
 *   COPY        send: SEGMENTS of a private copy, `bounce`
 *   PINNABLE    memory that has an address, base[0], only while it is pinned (pin.h); a receive has
 *               a bounce buffer for what arrives while it is not
 *
 * Positions count from the first byte of the message, head before body.  Only buffer.c, pin.c and
 * pin_serve.c know the kinds.  A buffer is part of its request: the caller holds the core's lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copy.h"
#include "core/list.h"
#include "ibvx.h"

struct ibvx_pin;

enum buffer_kind {
	BUFFER_CONTIGUOUS,
	BUFFER_SEGMENTS,
	BUFFER_SPLIT, /* from here on buffer_fini() has something to release */
	BUFFER_LAYOUT,
	BUFFER_COPY,
	BUFFER_PINNABLE,
};

struct buffer {
	uint8_t kind; /* enum buffer_kind */
	bool lost;    /* there was no memory for the bounce buffer: bytes are missing */
	char *base[2];
	size_t bytes[2];                /* head, body: of a receive once it has matched */
	size_t capacity;                /* receive */
	char *bounce;                   /* pool_get() */
	uint64_t bounce_at, bounce_end; /* PINNABLE receive: the part of the bounce buffer that is not in its memory yet */
	union {
		const struct ibvx_layout *layout; /* LAYOUT: holds a reference */
		struct ibvx_pin *pin;             /* PINNABLE: that of the thread that waits, or of a zero-copy send; or NULL */
	};
	struct list wanting; /* PINNABLE: in ibvx.wanting while a zero-copy send is to be pinned */
};

/* --- life --- */

/* The seldom part of the two below: takes a reference to the layout. */
void buffer_set_layout(struct buffer *b, char *base, const struct ibvx_layout *layout, size_t bytes) __attribute__((cold));

/* The buffer of a fresh request.  The arguments have been checked. */
static inline void buffer_init_send(struct buffer *b, const struct ibvx_sbuf *from)
{
	b->kind = BUFFER_SEGMENTS;
	b->base[0] = (char *)(uintptr_t)from->head;
	b->base[1] = (char *)(uintptr_t)from->body;
	b->bytes[0] = from->head_bytes;
	b->bytes[1] = from->body_bytes;
	if (from->layout)
		buffer_set_layout(b, b->base[1], from->layout, from->body_bytes);
}

static inline void buffer_init_receive(struct buffer *b, const struct ibvx_rbuf *to)
{
	b->kind = to->split ? BUFFER_SPLIT : BUFFER_CONTIGUOUS;
	b->base[0] = to->base;
	b->capacity = to->capacity_bytes;
	if (to->layout)
		buffer_set_layout(b, b->base[0], to->layout, to->capacity_bytes);
}

/* Makes an initialised buffer pinnable; its lengths stay. */
static inline void buffer_set_pinnable(struct buffer *b, struct ibvx_pin *pin)
{
	b->kind = BUFFER_PINNABLE;
	b->base[0] = NULL;
	b->base[1] = NULL;
	b->pin = pin;
	list_init(&b->wanting);
}

/* Makes the buffer of a send a private one.  adopt: `copy` holds its memory already and is from malloc().
 * take: allocates and copies; false: no memory. */
void buffer_adopt_copy(struct buffer *b, void *copy);
bool buffer_take_copy(struct buffer *b);

/* Frees what the buffer owns and gives back its layout.  A pin is the caller's to drop (pin_drop()). */
void buffer_fini(struct buffer *b);

static inline bool buffer_needs_fini(const struct buffer *b)
{
	return b->kind >= BUFFER_SPLIT;
}

/* --- what it holds --- */

static inline size_t buffer_bytes(const struct buffer *b)
{
	return b->bytes[0] + b->bytes[1];
}

static inline bool buffer_is_pinnable(const struct buffer *b)
{
	return b->kind == BUFFER_PINNABLE;
}

/* Receive: only the head counts against the capacity, the body gets memory of its own. */
static inline bool buffer_is_split(const struct buffer *b)
{
	return b->kind == BUFFER_SPLIT;
}

/* Receive: enters the lengths of the message that has matched. */
static inline void buffer_set_bytes(struct buffer *b, size_t head, size_t body)
{
	b->bytes[0] = head;
	b->bytes[1] = body;
}

/* Receive that has matched: the message fits, and there is memory for its body. 0, -EMSGSIZE or -ENOMEM. */
int buffer_accept(struct buffer *b);

/* SPLIT: hands the body over, to be freed by the caller; else NULL. */
static inline void *buffer_take_body(struct buffer *b)
{
	char *body;

	if (b->kind != BUFFER_SPLIT)
		return NULL;
	body = b->base[1];
	b->base[1] = NULL;
	return body;
}

/* --- copies --- */

/* Can the memory be read now?  Always, but for pinnable memory that is not pinned. */
static inline bool buffer_is_readable(const struct buffer *b)
{
	return b->kind != BUFFER_PINNABLE || b->base[0];
}

/* Copies bytes [at, at + len) out of a readable buffer; layouts are packed, all else by `copy`. */
void buffer_read(const struct buffer *b, uint64_t at, void *to, size_t len, copy_fn *copy);
/* Copies to [at, at + len).  What arrives for pinnable memory that is not pinned, or behind bytes that have been
 * bounced, goes to the bounce buffer. */
void buffer_write(struct buffer *b, uint64_t at, const void *from, size_t len);

/* buffer_write() of a whole short message to a receive that needs nothing but a copy.  False: nothing was done, use
 * buffer_write(). */
static inline bool buffer_write_short(struct buffer *b, const void *from, size_t len)
{
	if (b->kind != BUFFER_CONTIGUOUS)
		return false;
	copy_small(b->base[0], from, len);
	return true;
}

/* --- addresses --- */

/* Could an rma operation reach it, perhaps by way of a bounce buffer or a lease? */
static inline bool buffer_can_rma(const struct buffer *b)
{
	return b->kind != BUFFER_LAYOUT;
}

/* The memory as two pieces of bytes[0] and bytes[1] bytes, for an rma operation that reads or writes it.  False: it has no address
 * for so long.  A target that is pinnable is its bounce buffer, which is allocated. */
bool buffer_rma_source(const struct buffer *b, void *base[2]);
bool buffer_rma_target(struct buffer *b, void *base[2]);
/* An rma operation has filled the target. */
void buffer_filled(struct buffer *b);

/* --- pinnable memory --- */

/* Pinned at this address from here on; NULL: no longer. */
static inline void buffer_set_address(struct buffer *b, void *at)
{
	b->base[0] = at;
}

/* Are there bytes in the bounce buffer that belong to the memory? */
static inline bool buffer_has_bounced(const struct buffer *b)
{
	return b->bounce_at != b->bounce_end;
}

/* Pinned: copies up to max bytes of the bounce buffer to the memory.  False: there were none. */
bool buffer_settle(struct buffer *b, size_t max);

/* All bytes before `at` have been written to the memory directly. */
static inline void buffer_written(struct buffer *b, uint64_t at)
{
	b->bounce_at = at;
	b->bounce_end = at;
}

/* Hands over the bounce buffer if it holds bytes, [*at, *at + *bytes) of it; else NULL. */
char *buffer_take_bounce(struct buffer *b, size_t *at, size_t *bytes);

#endif
