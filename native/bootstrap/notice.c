/* SPDX-License-Identifier: MIT */
/*
 * notice: the end of ranks, after the start.
 *
 * A notice (LOST, LEFT) floods the tree: a rank hands the first one of each rank on to every neighbour but that it
 * came from.  Two ranks that become neighbours send each other all notices that they know, so that what was under way
 * in a dead rank is not missing.  Rank 0 knows every rank's parent: when a parent has ended, the children that do not
 * report a new one in time have ended too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

/* How long the children of a dead rank have to find another parent, before they count as dead: a part for each rank,
 * since many may have to at once. */
#define NOTICE_ORPHAN_MS 1000
#define NOTICE_ORPHAN_RANKS_PER_MS 4
/* The same if the parent left in good order: there is no reason to think ill of them. */
#define NOTICE_MOVING_MS 20000
/* The process of a rank may be seen to end before its farewell was read. */
#define NOTICE_SUSPECT_MS 20

static void notice_report(struct tree *t, int rank, const char *why)
{
	const struct bootstrap_events *e = &t->events;

	if (t->ranks[rank] & RANK_REPORTED || rank == t->cfg.rank)
		return;
	t->ranks[rank] |= RANK_REPORTED;
	if (why && e->lost)
		e->lost(e->arg, rank, why);
	else if (!why && e->left)
		e->left(e->arg, rank);
}

static void notice_add_orphan(struct tree *t, int rank, int64_t deadline)
{
	if (t->orphan_count == t->orphan_room) {
		int room = t->orphan_room ? 2 * t->orphan_room : 64;
		struct orphan *o = realloc(t->orphans, (size_t)room * sizeof(*o));

		if (!o)
			return;
		t->orphans = o;
		t->orphan_room = room;
	}
	t->orphans[t->orphan_count++] = (struct orphan){rank, deadline};
}

static int64_t notice_orphan_deadline(const struct tree *t, int parent)
{
	int64_t ms = t->ranks[parent] & RANK_LOST ? NOTICE_ORPHAN_MS + t->cfg.size / NOTICE_ORPHAN_RANKS_PER_MS : NOTICE_MOVING_MS;

	return t->now + ms * TREE_NS_PER_MS;
}

/* Rank 0: the children of `rank` have to report a new parent. */
static void notice_orphans_of(struct tree *t, int rank)
{
	if (!tree_is_root(t))
		return;
	for (int r = 1; r < t->cfg.size; r++)
		if (t->parents[r] == rank && r != rank && !(t->ranks[r] & RANK_GONE))
			notice_add_orphan(t, r, notice_orphan_deadline(t, rank));
}

static struct loss *notice_loss_new(struct loss **list, int rank, int64_t due, const char *why)
{
	struct loss *l = malloc(sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct loss){.next = *list, .rank = rank, .due = due};
	snprintf(l->why, sizeof(l->why), "%s", why);
	*list = l;
	return l;
}

/* The others go on without this rank: a dead link, or this process stood still for too long. */
static void notice_given_up(struct tree *t, int parent, const char *why)
{
	char text[MESSAGE_TEXT_BYTES + 64];

	snprintf(text, sizeof(text), "%s", why);
	leave_close_all(t);
	if (!(t->ranks[parent] & RANK_GONE)) {
		t->ranks[parent] |= RANK_LOST;
		notice_report(t, parent, text);
	}
}

void notice_lost(struct tree *t, int rank, const char *why, int from)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	char text[MESSAGE_TEXT_BYTES + 1];
	struct frame *f;
	int child;

	if (t->ranks[rank] & RANK_GONE)
		return;
	snprintf(text, sizeof(text), "%s", why);
	if (rank == t->cfg.rank) {
		char up[MESSAGE_TEXT_BYTES + 64];

		snprintf(up, sizeof(up), "it has given this rank up: %s", text);
		notice_given_up(t, t->parent >= 0 ? t->links[t->parent].member.rank : 0, up);
		return;
	}
	t->ranks[rank] |= RANK_LOST;
	notice_loss_new(&t->losses, rank, 0, text);
	child = tree_child_of(t, rank);
	if (child >= 0) {
		/* Should it live after all, it must not believe that the job goes on with it. */
		tree_send_text(t, child, MESSAGE_FAILED, -ECONNRESET, text);
		tree_link_close(t, child);
	}
	f = frame_new(MESSAGE_LOST, body, message_put_text(body, rank, text));
	tree_send_all(t, f, from);
	frame_unref(f);
	notice_orphans_of(t, rank);
	notice_report(t, rank, text);
}

void notice_left(struct tree *t, int rank, int from)
{
	if (t->ranks[rank] & RANK_GONE)
		return;
	if (t->left_count + 2 > t->left_room) {
		int room = t->left_room ? 2 * t->left_room : 64;
		int32_t *left = realloc(t->left_out, (size_t)room * sizeof(*left));

		if (!left)
			return;
		t->left_out = left;
		t->left_room = room;
	}
	t->left_out[t->left_count++] = rank;
	t->left_out[t->left_count++] = from;
	t->ranks[rank] |= RANK_LEFT;
	notice_orphans_of(t, rank);
	notice_report(t, rank, NULL);
}

/* The ranks that have left as one frame, without those that link `except` has reported. */
static struct frame *notice_left_frame(const struct tree *t, int except)
{
	struct frame *f = frame_new(MESSAGE_LEFT, NULL, 2 * (size_t)t->left_count);
	size_t len = 0;

	if (!f)
		return NULL;
	for (int n = 0; n < t->left_count; n += 2)
		if (except < 0 || t->left_out[n + 1] != except) {
			message_put32(f->bytes + sizeof(struct message_header) + len, (uint32_t)t->left_out[n]);
			len += 4;
		}
	f->len = len;
	message_put_header(f->bytes, MESSAGE_LEFT, (uint32_t)len);
	return f;
}

void notice_flush(struct tree *t)
{
	struct frame *all = NULL;

	for (int i = 0; t->left_count > 0 && i < t->link_max; i++) {
		bool source = false;
		struct frame *f;

		if (t->links[i].state != LINK_CHILD && t->links[i].state != LINK_PARENT)
			continue;
		for (int n = 1; n < t->left_count; n += 2)
			source = source || t->left_out[n] == i;
		if (!source && !all)
			all = notice_left_frame(t, -1);
		f = source ? notice_left_frame(t, i) : all ? frame_ref(all) : NULL;
		if (f && f->len > 0)
			t->cfg.net->send(t->cfg.net_arg, i, f);
		frame_unref(f);
	}
	frame_unref(all);
	t->left_count = 0;
	leave_check(t);
}

static void notice_on_left(struct tree *t, int link, const struct frame *frame)
{
	const uint8_t *in = frame_body(frame);

	for (size_t at = 0; at < frame->len; at += 4) {
		uint32_t rank = frame->len - at >= 4 ? message_get32(in + at) : UINT32_MAX;

		if (rank >= (uint32_t)t->cfg.size || rank == (uint32_t)t->cfg.rank) {
			error_set(-EPROTO, "it sent a farewell of rank %d", (int)rank);
			tree_break(t, link);
			return;
		}
		notice_left(t, (int)rank, link);
	}
}

/* Only the parent of a rank judges, once the farewell that may lie unread has been read. */
static void notice_on_suspect(struct tree *t, int link, int rank, const char *why, struct frame *frame)
{
	if (t->ranks[rank] & (RANK_GONE | RANK_SUSPECT))
		return;
	/* Of this rank, from a child: only the parent can judge, and this is the path to it. */
	if (rank == t->cfg.rank) {
		if (t->parent >= 0 && link != t->parent)
			t->cfg.net->send(t->cfg.net_arg, t->parent, frame);
		return;
	}
	t->ranks[rank] |= RANK_SUSPECT;
	if (tree_child_of(t, rank) >= 0)
		notice_loss_new(&t->suspects, rank, t->now + NOTICE_SUSPECT_MS * (int64_t)TREE_NS_PER_MS, why);
	else
		tree_send_all(t, frame, link);
}

static void notice_on_ancestors(struct tree *t, const struct frame *frame)
{
	t->ancestor_count = 0;
	for (size_t at = 0; at + sizeof(struct message_ancestor) <= frame->len; at += sizeof(struct message_ancestor)) {
		struct message_ancestor *a = &t->ancestors[t->ancestor_count++];

		memcpy(a, frame_body(frame) + at, sizeof(*a));
		a->rank = message_get32(&a->rank);
		a->address.family = message_get32(&a->address.family);
		a->address.port = message_get32(&a->address.port);
	}
}

static void notice_on_moved(struct tree *t, struct frame *frame)
{
	if (!tree_is_root(t)) {
		if (t->parent >= 0)
			t->cfg.net->send(t->cfg.net_arg, t->parent, frame);
		return;
	}
	for (size_t at = 0; at + 8 <= frame->len; at += 8) {
		uint32_t rank = message_get32(frame_body(frame) + at);
		uint32_t parent = message_get32(frame_body(frame) + at + 4);

		if (rank < (uint32_t)t->cfg.size && parent < (uint32_t)t->cfg.size)
			notice_moved(t, (int)rank, (int)parent);
	}
}

/* LOST or LEFT of another rank while this one still starts: the start has failed. */
static void notice_at_start(struct tree *t, int link, const struct frame *frame)
{
	char text[MESSAGE_TEXT_BYTES + 1];
	int rank = -1;

	if (t->state == TREE_FAILING || t->state == TREE_FAILED)
		return;
	if (frame_kind(frame) == MESSAGE_LEFT && frame->len >= 4) {
		rank = (int)message_get32(frame_body(frame));
		snprintf(text, sizeof(text), "it left the job");
	} else if (frame_kind(frame) != MESSAGE_LEFT) {
		message_get_text(frame_body(frame), frame->len, &rank, text);
	}
	if (rank >= 0 && rank < t->cfg.size) {
		tree_fail_lost(t, rank, NULL, text);
	} else {
		error_set(-EPROTO, "it sent a malformed message of kind %d", (int)frame_kind(frame));
		tree_break(t, link);
	}
}

void notice_on_frame(struct tree *t, int link, const struct frame *frame)
{
	struct frame *shared = (struct frame *)(uintptr_t)frame; /* to be sent on as it is */
	char text[MESSAGE_TEXT_BYTES + 1];
	int rank;

	if (frame_kind(frame) == MESSAGE_ANCESTORS) {
		notice_on_ancestors(t, frame);
	} else if (frame_kind(frame) == MESSAGE_MOVED) {
		notice_on_moved(t, shared);
	} else if (t->state != TREE_WATCHED && t->state != TREE_LEAVING) {
		notice_at_start(t, link, frame);
	} else if (frame_kind(frame) == MESSAGE_LEFT) {
		notice_on_left(t, link, frame);
	} else if (message_get_text(frame_body(frame), frame->len, &rank, text) < 0 || rank < 0 || rank >= t->cfg.size) {
		error_set(-EPROTO, "it sent a malformed message of kind %d", (int)frame_kind(frame));
		tree_break(t, link);
	} else if (frame_kind(frame) == MESSAGE_LOST) {
		notice_lost(t, rank, text, link);
	} else {
		notice_on_suspect(t, link, rank, text, shared);
	}
}

void notice_child_down(struct tree *t, const struct link *gone, int err, const char *why)
{
	char text[MESSAGE_TEXT_BYTES + 64];

	if (t->finishing)
		return; /* it looks for another parent, as it should */
	if (err == -ECONNRESET || err == -EPIPE || err == -EPROTO || err == -ENOBUFS)
		snprintf(text, sizeof(text), "%s", why);
	else
		snprintf(text, sizeof(text), "it ended without a farewell: %s", why);
	notice_lost(t, gone->member.rank, text, -1);
}

void notice_parent_down(struct tree *t, const struct link *gone, int err, const char *why)
{
	int parent = gone->member.rank;

	if (err == -EPROTO)
		notice_given_up(t, parent, why);
	else if (parent == 0 && !(t->ranks[0] & RANK_GONE))
		notice_lost(t, 0, why, -1);
	else if (parent != 0)
		seek_orphan(t, parent);
}

void notice_sync(struct tree *t, int link)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	struct frame *f = frame_new(MESSAGE_LEFT, NULL, 4 * (size_t)t->cfg.size);
	size_t len = 0;

	for (int r = 0; f && r < t->cfg.size; r++)
		if (t->ranks[r] & RANK_LEFT) {
			message_put32(f->bytes + sizeof(struct message_header) + len, (uint32_t)r);
			len += 4;
		}
	if (f && len > 0) {
		f->len = len;
		message_put_header(f->bytes, MESSAGE_LEFT, (uint32_t)len);
		t->cfg.net->send(t->cfg.net_arg, link, f);
	}
	frame_unref(f);
	for (const struct loss *l = t->losses; l; l = l->next)
		tree_send(t, link, MESSAGE_LOST, body, message_put_text(body, l->rank, l->why));
}

static void notice_put_ancestor(struct message_ancestor *out, int rank, const struct message_address *a)
{
	message_put32(&out->rank, (uint32_t)rank);
	out->address = *a;
	message_put32(&out->address.family, a->family);
	message_put32(&out->address.port, a->port);
}

void notice_ancestors(struct tree *t, int link)
{
	struct message_ancestor list[MESSAGE_ANCESTORS_MAX];
	int parent = t->parent >= 0 ? t->links[t->parent].member.rank : -1, count = 0;
	struct frame *f;

	if (parent >= 0 && t->parent_address.port)
		notice_put_ancestor(&list[count++], parent, &t->parent_address);
	if (parent != 0 && t->root.address.port && !tree_is_root(t))
		notice_put_ancestor(&list[count++], 0, &t->root.address);
	f = frame_new(MESSAGE_ANCESTORS, list, (size_t)count * sizeof(list[0]));
	if (f && link >= 0)
		t->cfg.net->send(t->cfg.net_arg, link, f);
	else if (f)
		tree_send_children(t, f, -1);
	frame_unref(f);
}

void notice_moved(struct tree *t, int rank, int parent)
{
	uint8_t body[8];

	if (!tree_is_root(t)) {
		message_put32(body, (uint32_t)rank);
		message_put32(body + 4, (uint32_t)parent);
		if (t->parent >= 0)
			tree_send(t, t->parent, MESSAGE_MOVED, body, sizeof(body));
		return;
	}
	t->parents[rank] = parent;
	for (int i = 0; i < t->orphan_count; i++)
		if (t->orphans[i].rank == rank)
			t->orphans[i--] = t->orphans[--t->orphan_count];
	/* The new parent has ended as well. */
	if (t->ranks[parent] & RANK_GONE && !(t->ranks[rank] & RANK_GONE))
		notice_add_orphan(t, rank, notice_orphan_deadline(t, parent));
}

static void notice_judge(struct tree *t)
{
	for (struct loss **at = &t->suspects; *at;) {
		struct loss *l = *at;

		if (l->due > t->now) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		notice_lost(t, l->rank, l->why, -1);
		free(l);
		at = &t->suspects; /* a callback may have changed the list */
	}
}

void notice_on_time(struct tree *t)
{
	char why[96];

	notice_judge(t);
	for (int i = 0; i < t->orphan_count;) {
		struct orphan o = t->orphans[i];

		if (o.deadline > t->now) {
			i++;
			continue;
		}
		t->orphans[i] = t->orphans[--t->orphan_count];
		snprintf(why, sizeof(why), "it did not come back after its leader, rank %d, had ended", (int)t->parents[o.rank]);
		notice_lost(t, o.rank, why, -1);
		i = 0;
	}
}

int64_t notice_next(const struct tree *t)
{
	int64_t next = INT64_MAX;

	for (const struct loss *l = t->suspects; l; l = l->next)
		next = l->due < next ? l->due : next;
	for (int i = 0; i < t->orphan_count; i++)
		next = t->orphans[i].deadline < next ? t->orphans[i].deadline : next;
	return next;
}

void tree_watch(struct tree *t, const struct bootstrap_events *events)
{
	gather_reset(t);
	t->events = *events;
	tree_set_state(t, TREE_WATCHED);
	t->deadline = INT64_MAX;
}

void tree_report_lost(struct tree *t, int rank, const char *why, int64_t now)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	char text[MESSAGE_TEXT_BYTES + 1];
	struct frame *f;

	t->now = now;
	if (t->state != TREE_WATCHED || rank < 0 || rank >= t->cfg.size || rank == t->cfg.rank || t->ranks[rank] & RANK_REPORTED)
		return;
	t->ranks[rank] |= RANK_REPORTED; /* the caller knows already */
	if (tree_child_of(t, rank) >= 0) {
		notice_lost(t, rank, why, -1);
	} else if (!(t->ranks[rank] & (RANK_GONE | RANK_SUSPECT))) {
		snprintf(text, sizeof(text), "%.380s (seen by rank %d)", why, t->cfg.rank);
		t->ranks[rank] |= RANK_SUSPECT;
		f = frame_new(MESSAGE_SUSPECT, body, message_put_text(body, rank, text));
		tree_send_all(t, f, -1);
		frame_unref(f);
	}
	notice_flush(t);
}

void notice_fini(struct tree *t)
{
	while (t->losses || t->suspects) {
		struct loss **list = t->losses ? &t->losses : &t->suspects, *l = *list;

		*list = l->next;
		free(l);
	}
	free(t->left_out);
	free(t->orphans);
	t->left_out = NULL;
	t->orphans = NULL;
}
