/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/gather.h"
#include "bootstrap/star.h"

/* What rank 0 collects: everything in one block, as it will travel. */
struct gather {
	struct bootstrap *b;
	uint8_t **parts;
	uint32_t *lengths;
	int missing;
	int64_t deadline;
};

int gather_unpack(const void *in, size_t len, int size, uint32_t number, void *out, size_t out_size,
		  uint32_t *lengths)
{
	const uint8_t *p = in;
	size_t total = 0;

	if (len < 4 + (size_t)size * 4 || message_get32(p) != number)
		return error_set(-EPROTO, "rank 0 sent a malformed allgather");
	for (int i = 0; i < size; i++) {
		lengths[i] = message_get32(p + 4 + 4 * (size_t)i);
		if (lengths[i] > MESSAGE_GATHER_BYTES)
			return error_set(-EPROTO, "rank 0 sent a malformed allgather");
		total += lengths[i];
	}
	if (total != len - 4 - (size_t)size * 4)
		return error_set(-EPROTO, "rank 0 sent a malformed allgather");
	if (total > out_size)
		return error_set(-ENOBUFS, "allgather of %zu bytes into a buffer of %zu", total, out_size);
	if (total > 0)
		memcpy(out, p + len - total, total);
	return 0;
}

static int gather_missing(struct gather *g)
{
	struct bootstrap *b = g->b;
	char names[200] = "";
	size_t used = 0;
	int named = 0;

	for (int i = 1; i < b->size && named < 3; i++)
		if (!g->parts[i]) {
			int n = snprintf(names + used, sizeof(names) - used, "%s%s", named ? ", " : "",
					 b->peers[i].name);

			used += (size_t)n < sizeof(names) - used ? (size_t)n : 0;
			named++;
		}
	return error_set(-ETIMEDOUT,
			 "%d of %d ranks came to the start but did not go on within %lld ms "
			 "(start_timeout_ms): %s%s; are "
			 "they stopped or overloaded?",
			 g->missing, b->size, (long long)b->timeout_ms, names,
			 g->missing > named ? " and others" : "");
}

static int gather_take(struct gather *g, int rank, const struct conn_frame *frame)
{
	struct bootstrap *b = g->b;
	size_t head = sizeof(struct message_gather);
	size_t len = frame->len - head;

	if (frame->kind != MESSAGE_GATHER)
		return star_bad_news(b, rank, frame);
	if (frame->len < head || g->parts[rank] ||
	    message_get32(frame->body + offsetof(struct message_gather, number)) != b->gather_number) {
		error_set(-EPROTO, "it takes part in another allgather");
		return star_fail_lost(b, rank);
	}
	g->parts[rank] = malloc(len + 1);
	if (!g->parts[rank])
		return star_fail_all(b, error_set(-ENOMEM, "allgather: no memory for %zu bytes", len));
	memcpy(g->parts[rank], frame->body + head, len);
	g->lengths[rank] = (uint32_t)len;
	g->missing--;
	g->deadline = deadline_earlier(
		g->deadline,
		deadline_after_ms(message_get32(frame->body + offsetof(struct message_gather, left_ms))));
	return 0;
}

static int gather_collect(struct gather *g)
{
	struct bootstrap *b = g->b;

	while (g->missing > 0) {
		int err = 0;

		for (int i = 0; i < b->conn_count; i++)
			b->polls[i] = (struct pollfd){.fd = b->conns[i].fd, .events = POLLIN};
		if (deadline_left_ms(g->deadline) == 0)
			return star_fail_all(b, gather_missing(g));
		err = star_poll(b->polls, b->conn_count, b->polls + b->conn_count, g->deadline);
		if (err < 0)
			return star_fail_all(b, err);
		for (int i = 0; i < b->conn_count; i++) {
			struct conn_frame frame;

			if (!b->polls[i].revents)
				continue;
			err = conn_receive(&b->conns[i], &frame);
			if (err < 0)
				return star_fail_lost(b, i);
			err = err ? gather_take(g, i, &frame) : 0;
			if (err < 0)
				return err;
		}
	}
	return 0;
}

static uint8_t *gather_pack(const struct gather *g, size_t *len)
{
	struct bootstrap *b = g->b;
	uint8_t *block, *p;

	*len = 4 + 4 * (size_t)b->size;
	for (int i = 0; i < b->size; i++)
		*len += g->lengths[i];
	block = malloc(*len);
	if (!block)
		return NULL;
	message_put32(block, b->gather_number);
	p = block + 4 + 4 * (size_t)b->size;
	for (int i = 0; i < b->size; i++) {
		message_put32(block + 4 + 4 * (size_t)i, g->lengths[i]);
		if (g->lengths[i] > 0)
			memcpy(p, g->parts[i], g->lengths[i]);
		p += g->lengths[i];
	}
	return block;
}

static int gather_distribute(struct gather *g, const uint8_t *block, size_t len)
{
	struct bootstrap *b = g->b;
	int rank = 0, err;

	for (int i = 1; i < b->conn_count; i++)
		if (conn_lend(&b->conns[i], MESSAGE_GATHERED, block, len) < 0)
			return star_fail_lost(b, i);
	err = star_flush(b, deadline_after_ms(b->timeout_ms), &rank);
	if (err == -ETIMEDOUT)
		return star_fail_all(b, err);
	return err < 0 ? star_fail_lost(b, rank) : 0;
}

static int gather_root(struct gather *g, const void *mine, size_t len, void *out, size_t out_size,
		       uint32_t *lengths)
{
	struct bootstrap *b = g->b;
	uint8_t *block = NULL;
	size_t block_len;
	int err;

	g->parts[0] = malloc(len + 1);
	if (!g->parts[0])
		return star_fail_all(b, error_set(-ENOMEM, "allgather: no memory for %zu bytes", len));
	if (len > 0)
		memcpy(g->parts[0], mine, len);
	g->lengths[0] = (uint32_t)len;
	err = gather_collect(g);
	if (err)
		return err;
	block = gather_pack(g, &block_len);
	if (!block)
		return star_fail_all(b, error_set(-ENOMEM, "allgather: no memory for %zu bytes", block_len));
	err = gather_distribute(g, block, block_len);
	if (!err)
		err = gather_unpack(block, block_len, b->size, b->gather_number, out, out_size, lengths);
	for (int i = 0; i < b->conn_count; i++)
		conn_own(&b->conns[i]);
	free(block);
	return err;
}

static int gather_leaf(struct bootstrap *b, const void *mine, size_t len, void *out, size_t out_size,
		       uint32_t *lengths)
{
	int64_t deadline = deadline_after_ms(b->timeout_ms);
	struct message_gather head;
	struct conn_frame frame;
	uint8_t *body = malloc(sizeof(head) + len);
	int err;

	if (!body)
		return error_set(-ENOMEM, "allgather: no memory for %zu bytes", len);
	message_put32(&head.number, b->gather_number);
	message_put32(&head.left_ms, (uint32_t)deadline_left_ms(deadline));
	memcpy(body, &head, sizeof(head));
	if (len > 0)
		memcpy(body + sizeof(head), mine, len);
	/* If this fails, what rank 0 said before it closed is more telling: read on. */
	conn_send(&b->conns[0], MESSAGE_GATHER, body, sizeof(head) + len);
	free(body);
	err = star_receive(b, 0, &frame, deadline + STAR_GRACE_MS * CLOCK_NS_PER_MS);
	if (err == 0)
		return star_fail(
			b, error_set(-ETIMEDOUT,
				     "%s did not answer within %lld ms (start_timeout_ms); is it stopped or "
				     "overloaded?",
				     b->peers[0].name, (long long)b->timeout_ms));
	if (err < 0)
		return star_fail_lost(b, 0);
	if (frame.kind != MESSAGE_GATHERED)
		return star_bad_news(b, 0, &frame);
	err = gather_unpack(frame.body, frame.len, b->size, b->gather_number, out, out_size, lengths);
	return err == -EPROTO ? star_fail(b, err) : err;
}

int bootstrap_allgather(struct bootstrap *b, const void *mine, size_t len, void *out, size_t out_size,
			uint32_t *lengths)
{
	struct gather g = {.b = b, .missing = b->size - 1, .deadline = deadline_after_ms(b->timeout_ms)};
	int err;

	if (b->state == STAR_FAILED)
		return star_failed(b);
	if (b->state != STAR_JOINED)
		return error_set(-EINVAL, "allgather is possible only between join and watch");
	if (len > MESSAGE_GATHER_BYTES)
		return error_set(-EINVAL, "allgather of %zu bytes; a rank may give %u", len,
				 MESSAGE_GATHER_BYTES);
	b->gather_number++;
	if (b->rank != 0)
		return gather_leaf(b, mine, len, out, out_size, lengths);
	g.parts = calloc((size_t)b->size, sizeof(*g.parts));
	g.lengths = calloc((size_t)b->size, sizeof(*g.lengths));
	if (!g.parts || !g.lengths)
		err = star_fail_all(b, error_set(-ENOMEM, "allgather: no memory for %d ranks", b->size));
	else
		err = gather_root(&g, mine, len, out, out_size, lengths);
	for (int i = 0; g.parts && i < b->size; i++)
		free(g.parts[i]);
	free(g.parts);
	free(g.lengths);
	return err;
}
