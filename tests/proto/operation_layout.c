/* SPDX-License-Identifier: MIT */
/* Traffic between memory that a layout describes. */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 64
#define GAP 0x5e /* what lies between the blocks, and must stay */

static void *got(struct actor *a, void *p)
{
	if (!p)
		traffic_fail(a->cfg, "no memory");
	return p;
}

static void made(struct actor *a, int err)
{
	if (err)
		traffic_fail(a->cfg, "a layout: %s", ibvx_error());
}

/* Element i of the message lies at i * stride. */
static void spread_loop(struct actor *a, struct spread *s, size_t total)
{
	static const size_t blocks[] = {1, 4, 8, 16, 100, 5000};
	size_t block = blocks[rng_below(&a->rng, 6)];
	size_t stride = block + (size_t)rng_range(&a->rng, 1, 24), count = total / block + 1;
	struct ibvx_layout *one;

	s->memory_bytes = count * stride;
	made(a, ibvx_layout_vector(&one, 1, block, 0));
	made(a, ibvx_layout_nested(&s->layout, 1, (ptrdiff_t)stride, one)); /* repeated by the message */
	ibvx_layout_free(one);
	s->base = got(a, malloc(s->memory_bytes));
	s->block = block;
	s->stride = stride;
}

/* Segments of one allocation in random order. */
static void spread_segments(struct actor *a, struct spread *s, size_t total)
{
	size_t count = (size_t)rng_range(&a->rng, 1, BLOCKS_MAX), each = total / count + 1, at = 0;
	struct ibvx_segment segments[BLOCKS_MAX];

	s->memory_bytes = count * (each + 8);
	s->base = got(a, malloc(s->memory_bytes));
	s->order = got(a, calloc(count, sizeof(*s->order)));
	for (size_t i = 0; i < count; i++) {
		size_t k = (size_t)rng_below(&a->rng, i + 1);

		s->order[i] = s->order[k];
		s->order[k] = i;
	}
	for (size_t i = 0; i < count; i++) {
		size_t len = total - at < each ? total - at : each;

		segments[i] = (struct ibvx_segment){s->base + s->order[i] * (each + 8), len};
		at += len;
	}
	made(a, ibvx_layout_segments(&s->layout, count, segments));
	s->block = each;
	s->stride = each + 8;
}

static void pack(void *arg, const void *base, size_t offset, void *to, size_t bytes)
{
	(void)arg;
	for (size_t i = 0; i < bytes; i++) /* backwards */
		((char *)to)[i] = ((const char *)base)[-(ptrdiff_t)(offset + i)];
}

static void unpack(void *arg, void *base, size_t offset, const void *from, size_t bytes)
{
	(void)arg;
	for (size_t i = 0; i < bytes; i++)
		((char *)base)[-(ptrdiff_t)(offset + i)] = ((const char *)from)[i];
}

static void spread_callbacks(struct actor *a, struct spread *s, size_t total)
{
	s->memory_bytes = total + 1;
	s->base = got(a, malloc(s->memory_bytes));
	made(a, ibvx_layout_callbacks(&s->layout, total, 0, pack, unpack, NULL));
	s->backwards = true;
}

void spread_init(struct actor *a, struct spread *s, size_t total)
{
	*s = (struct spread){.total = total};
	switch (rng_below(&a->rng, 3)) {
	case 0: spread_loop(a, s, total); break;
	case 1: spread_segments(a, s, total); break;
	default: spread_callbacks(a, s, total); break;
	}
	memset(s->base, GAP, s->memory_bytes);
}

void *spread_base(const struct spread *s)
{
	if (s->order)
		return NULL; /* the segments are addresses */
	return s->backwards ? s->base + s->memory_bytes - 1 : s->base;
}

static char *spread_at(const struct spread *s, size_t at)
{
	if (s->backwards)
		return s->base + s->memory_bytes - 1 - at;
	return s->base + (s->order ? s->order[at / s->block] : at / s->block) * s->stride + at % s->block;
}

void spread_put(struct spread *s, const char *message, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*spread_at(s, i) = message[i];
}

void spread_take(struct actor *a, struct spread *s, char *message, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		message[i] = *spread_at(s, i);
		*spread_at(s, i) = GAP;
	}
	for (size_t i = 0; i < s->memory_bytes; i++)
		if (s->base[i] != GAP)
			traffic_fail(a->cfg, "rank %d: byte %zu of %zu lies outside of the layout, and was changed", a->rank, i,
				     s->memory_bytes);
}

void spread_fini(struct spread *s)
{
	free(s->base);
	free(s->order);
	ibvx_layout_free(s->layout);
	*s = (struct spread){0};
}

bool spread_draw(struct actor *a, size_t bytes)
{
	return rng_percent(&a->rng, bytes < 100000 ? 30 : 3);
}

/* The body may be sent by a layout. */
static void send_spread(struct actor *a, struct operation *op, struct ibvx_sbuf *buf)
{
	if (!spread_draw(a, op->m.bytes[1]))
		return;
	spread_init(a, &op->spread, op->m.bytes[1]);
	spread_put(&op->spread, op->memory[1], op->m.bytes[1]);
	buf->body = spread_base(&op->spread);
	buf->layout = op->spread.layout;
}

int op_spread_isend(struct actor *a, struct operation *op, struct ibvx_sbuf *buf)
{
	int err;

	send_spread(a, op, buf);
	err = op->m.sync ? ibvx_issend(a->ep, buf, op->m.dst, op->m.tag, op->m.context, &op->req)
			 : ibvx_isend(a->ep, buf, op->m.dst, op->m.tag, op->m.context, &op->req);
	ibvx_layout_free(op->spread.layout); /* the request keeps it */
	op->spread.layout = NULL;
	return err;
}

int op_spread_send(struct actor *a, struct operation *op, struct ibvx_sbuf *buf)
{
	send_spread(a, op, buf);
	return op->m.sync ? ibvx_ssend(a->ep, buf, op->m.dst, op->m.tag, op->m.context)
			  : ibvx_send(a->ep, buf, op->m.dst, op->m.tag, op->m.context);
}
