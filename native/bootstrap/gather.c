/* SPDX-License-Identifier: MIT */
/* gather: an allgather up the tree and down again.  Each node sends one message up when its subtree is complete. */
#include "bootstrap/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

#define GATHER_HEAD sizeof(struct message_gather)

int gather_unpack(const void *in, size_t len, int size, uint32_t number, void *out, size_t out_size, uint32_t *lengths)
{
	const uint8_t *p = in;
	size_t head = 8, total = 0;
	uint32_t common;

	if (len < head || message_get32(p) != number)
		return error_set(-EPROTO, "rank 0 sent a malformed allgather");
	common = message_get32(p + 4);
	if (common == GATHER_DIFFERENT)
		head += 4 * (size_t)size;
	if (len < head)
		return error_set(-EPROTO, "rank 0 sent a malformed allgather");
	for (int i = 0; i < size; i++) {
		lengths[i] = common == GATHER_DIFFERENT ? message_get32(p + 8 + 4 * (size_t)i) : common;
		if (lengths[i] > MESSAGE_GATHER_BYTES)
			return error_set(-EPROTO, "rank 0 sent a malformed allgather");
		total += lengths[i];
	}
	if (total != len - head)
		return error_set(-EPROTO, "rank 0 sent a malformed allgather");
	if (total > out_size)
		return error_set(-ENOBUFS, "allgather of %zu bytes into a buffer of %zu", total, out_size);
	if (total > 0)
		memcpy(out, p + head, total);
	return 0;
}

int gather_check(const uint8_t *in, size_t len, int size)
{
	size_t at = GATHER_HEAD;
	uint32_t ranks;
	int records = 0;

	if (len < GATHER_HEAD)
		return -EPROTO;
	ranks = message_get32(in + offsetof(struct message_gather, ranks));
	for (; at < len; records++) {
		uint32_t rank, bytes;

		if (len - at < 8)
			return -EPROTO;
		rank = message_get32(in + at);
		bytes = message_get32(in + at + 4);
		if (rank >= (uint32_t)size || bytes == 0 || bytes > MESSAGE_GATHER_BYTES || len - at - 8 < bytes)
			return -EPROTO;
		at += 8 + bytes;
	}
	return ranks < 1 || ranks > (uint32_t)size || (uint32_t)records > ranks ? -EPROTO : 0;
}

void gather_reset(struct tree *t)
{
	frame_unref(t->gather_own);
	frame_unref(t->gathered);
	t->gather_own = t->gathered = NULL;
	for (int i = 0; i < t->link_max; i++) {
		struct link *l = &t->links[i];

		if (l->gather && message_get32(frame_body(l->gather)) <= t->gather_number) {
			frame_unref(l->gather);
			l->gather = NULL;
		}
	}
}

static uint32_t gather_number_of(const struct frame *f)
{
	return message_get32(frame_body(f));
}

/* This rank's records and those of its children as one GATHER. */
static struct frame *gather_merge(struct tree *t)
{
	size_t len = t->gather_own->len;
	uint32_t ranks = 1;
	struct message_gather head;
	struct frame *f;
	uint8_t *p;

	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD) {
			const struct frame *g = t->links[i].gather;

			len += g->len - GATHER_HEAD;
			ranks += message_get32(frame_body(g) + offsetof(struct message_gather, ranks));
		}
	f = frame_new(MESSAGE_GATHER, NULL, len);
	if (!f)
		return NULL;
	message_put32(&head.number, t->gather_number);
	message_put32(&head.left_ms, (uint32_t)(t->deadline > t->now ? (t->deadline - t->now) / TREE_NS_PER_MS : 0));
	message_put32(&head.ranks, ranks);
	p = f->bytes + sizeof(struct message_header);
	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	memcpy(p, frame_body(t->gather_own) + GATHER_HEAD, t->gather_own->len - GATHER_HEAD);
	p += t->gather_own->len - GATHER_HEAD;
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD) {
			const struct frame *g = t->links[i].gather;

			memcpy(p, frame_body(g) + GATHER_HEAD, g->len - GATHER_HEAD);
			p += g->len - GATHER_HEAD;
		}
	return f;
}

/* Rank 0: the records in rank order.  NULL without memory, or with *err -EPROTO. */
static struct frame *gather_sort(struct tree *t, const struct frame *all, int *err)
{
	size_t size = (size_t)t->cfg.size, total = 0, head = 8;
	const uint8_t **data = calloc(size, sizeof(*data));
	uint32_t *lengths = calloc(size, sizeof(*lengths)), common;
	struct frame *f = NULL;
	uint8_t *p;

	*err = -ENOMEM;
	for (size_t at = GATHER_HEAD; data && lengths && at < all->len;) {
		const uint8_t *record = frame_body(all) + at;
		uint32_t rank = message_get32(record), bytes = message_get32(record + 4);

		if (lengths[rank])
			*err = -EPROTO;
		lengths[rank] = bytes;
		data[rank] = record + 8;
		at += 8 + bytes;
		total += bytes;
	}
	common = lengths ? lengths[0] : 0;
	for (size_t r = 1; lengths && r < size; r++)
		common = lengths[r] == lengths[0] ? common : GATHER_DIFFERENT;
	head += common == GATHER_DIFFERENT ? 4 * size : 0;
	if (data && lengths && *err != -EPROTO)
		f = frame_new(MESSAGE_GATHERED, NULL, head + total);
	if (f) {
		p = f->bytes + sizeof(struct message_header);
		message_put32(p, t->gather_number);
		message_put32(p + 4, common);
		for (size_t r = 0; common == GATHER_DIFFERENT && r < size; r++)
			message_put32(p + 8 + 4 * r, lengths[r]);
		p += head;
		for (size_t r = 0; r < size; r++) {
			if (lengths[r])
				memcpy(p, data[r], lengths[r]);
			p += lengths[r];
		}
	}
	free(data);
	free(lengths);
	return f;
}

static void gather_deliver(struct tree *t, struct frame *gathered)
{
	tree_send_children(t, gathered, -1);
	t->gathered = frame_ref(gathered);
	t->gathering = false;
}

/* The subtree is complete. */
static void gather_finish(struct tree *t)
{
	struct frame *all = gather_merge(t), *sorted;
	int err = -ENOMEM;

	if (all && !tree_is_root(t)) {
		t->cfg.net->send(t->cfg.net_arg, t->parent, all);
		frame_unref(all);
		frame_unref(t->gather_own);
		t->gather_own = NULL; /* it waits for GATHERED alone */
		t->deadline += TREE_GRACE_MS * (int64_t)TREE_NS_PER_MS;
		return;
	}
	sorted = all ? gather_sort(t, all, &err) : NULL;
	frame_unref(all);
	if (sorted)
		gather_deliver(t, sorted);
	else if (err == -EPROTO)
		tree_fail(t, error_set(-EPROTO, "a rank takes part in the allgather twice"));
	else
		tree_fail(t, error_set(-ENOMEM, "allgather: no memory"));
	frame_unref(sorted);
}

static void gather_check_complete(struct tree *t)
{
	if (!t->gathering || !t->gather_own)
		return;
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD && (!t->links[i].gather || gather_number_of(t->links[i].gather) != t->gather_number))
			return;
	gather_finish(t);
}

static void gather_limit(struct tree *t, const struct frame *f)
{
	int64_t deadline = t->now + (int64_t)message_get32(frame_body(f) + offsetof(struct message_gather, left_ms)) * TREE_NS_PER_MS;

	if (t->gather_own && deadline < t->deadline)
		t->deadline = deadline;
}

int tree_gather(struct tree *t, const void *mine, size_t len, int64_t now)
{
	struct message_gather head = {0};
	uint8_t record[8];
	struct frame *own;
	uint8_t *p;

	t->now = now;
	gather_reset(t);
	own = frame_new(MESSAGE_GATHER, NULL, GATHER_HEAD + (len ? 8 + len : 0));
	if (!own) {
		tree_fail(t, error_set(-ENOMEM, "allgather: no memory for %zu bytes", len));
		return -ENOMEM;
	}
	p = own->bytes + sizeof(struct message_header);
	memcpy(p, &head, sizeof(head));
	if (len) {
		message_put32(record, (uint32_t)t->cfg.rank);
		message_put32(record + 4, (uint32_t)len);
		memcpy(p + sizeof(head), record, sizeof(record));
		memcpy(p + sizeof(head) + sizeof(record), mine, len);
	}
	t->gather_own = own;
	t->gather_number++;
	t->gathering = true;
	t->deadline = now + t->cfg.timeout_ms * TREE_NS_PER_MS;
	/* A child may have been quicker. */
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].gather)
			gather_limit(t, t->links[i].gather);
	gather_check_complete(t);
	return 0;
}

const struct frame *tree_gathered(const struct tree *t)
{
	return t->gathered;
}

void gather_on_frame(struct tree *t, int link, struct frame *frame)
{
	struct link *l = &t->links[link];

	if (t->state == TREE_FAILING)
		return;
	if (frame_kind(frame) == MESSAGE_GATHERED && t->gathering && !t->gather_own && frame->len >= 8 &&
	    gather_number_of(frame) == t->gather_number) {
		gather_deliver(t, frame);
		return;
	}
	if (frame_kind(frame) == MESSAGE_GATHERED || t->state != TREE_JOINED ||
	    (l->gather && gather_number_of(l->gather) == t->gather_number + !t->gathering) ||
	    gather_check(frame_body(frame), frame->len, t->cfg.size) < 0 || gather_number_of(frame) != t->gather_number + !t->gathering) {
		error_set(-EPROTO, "it takes part in another allgather");
		tree_break(t, link);
		return;
	}
	frame_unref(l->gather);
	l->gather = frame_ref(frame);
	if (t->gathering)
		gather_limit(t, frame);
	gather_check_complete(t);
}

static int gather_missing(struct tree *t)
{
	char names[200] = "", name[TREE_NAME_BYTES];
	size_t used = 0;
	int named = 0, missing = 0;

	for (int i = 0; i < t->link_max; i++) {
		const struct link *l = &t->links[i];
		int n;

		if (l->state != LINK_CHILD || (l->gather && gather_number_of(l->gather) == t->gather_number))
			continue;
		if (missing++ >= 3)
			continue;
		tree_name(t, l->member.rank, name, sizeof(name));
		n = snprintf(names + used, sizeof(names) - used, "%s%s%s", named ? ", " : "", name,
			     l->leader ? " or one that it leads" : "");
		used += (size_t)n < sizeof(names) - used ? (size_t)n : 0;
		named++;
	}
	return error_set(-ETIMEDOUT,
			 "%d of %d ranks came to the start but did not go on within %lld ms "
			 "(start_timeout_ms): %s%s; are "
			 "they stopped or overloaded?",
			 missing, t->cfg.size, (long long)t->cfg.timeout_ms, names, missing > named ? " and others" : "");
}

void gather_late(struct tree *t)
{
	char name[TREE_NAME_BYTES];

	if (t->gather_own) {
		tree_fail(t, gather_missing(t));
		return;
	}
	tree_name(t, t->parent >= 0 ? t->links[t->parent].member.rank : 0, name, sizeof(name));
	tree_fail(t, error_set(-ETIMEDOUT, "%s did not answer within %lld ms (start_timeout_ms); is it stopped or overloaded?", name,
			       (long long)t->cfg.timeout_ms));
}
