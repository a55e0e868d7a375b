/* SPDX-License-Identifier: MIT */
/*
 * meet: how a job assembles.
 *
 * A rank that has come is a record (JOINED) that travels up to rank 0.  When all have come rank 0 closes its
 * listeners and sends SEAL to the leaders below; each closes its local listener and answers SEALED when its subtree
 * has.  Only then anybody is welcome: a rank of the next round of this job cannot meet a listener of this one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

static void meet_seal(struct tree *t);

static bool meet_is_seated(const struct tree *t, int rank)
{
	return t->ranks[rank] & RANK_SEATED;
}

void meet_start(struct tree *t)
{
	if (!tree_is_root(t)) {
		seek_start(t);
		return;
	}
	snprintf(t->job_id, sizeof(t->job_id), "%s", t->cfg.drawn_id);
	t->missing = t->cfg.size;
	if (t->cfg.size > 1)
		t->seek.local_bound = t->cfg.net->listen(t->cfg.net_arg, MESSAGE_LOCAL, true) == 0;
	t->me.left_ms = t->cfg.timeout_ms;
	meet_seat(t, &t->me, 0);
}

static int meet_twice(struct tree *t, int rank)
{
	char name[TREE_NAME_BYTES];
	int child = tree_child_of(t, rank);

	if (child >= 0)
		tree_member_name(t, &t->links[child].member, name, sizeof(name));
	else
		tree_name(t, rank, name, sizeof(name));
	return error_set(-EEXIST, "%s is already there; does another job use the same conf? End it, or use other ports", name);
}

int meet_check(struct tree *t, int link)
{
	const struct link *l = &t->links[link];
	int rank = l->member.rank;

	if (l->member.size != t->cfg.size)
		return error_set(-EINVAL, "it was started for %d ranks, rank 0 for %d; use one conf for all", l->member.size, t->cfg.size);
	if (rank <= 0 || rank >= t->cfg.size)
		return error_set(-EINVAL, "rank %d does not exist among %d", rank, t->cfg.size);
	/* One that is leaving still has to hand on what its children report. */
	if (l->purpose == MESSAGE_ATTACH && (t->ranks[rank] & RANK_LOST))
		return error_set(-ECONNRESET, "the job has given rank %d up", rank);
	if (l->purpose == MESSAGE_ATTACH && t->state >= TREE_WATCHED)
		return rank == t->cfg.rank ? error_set(-EINVAL, "a rank cannot attach to itself") : 0;
	if (rank == t->cfg.rank || meet_is_seated(t, rank) || tree_child_of(t, rank) >= 0)
		return meet_twice(t, rank);
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_ASSIGNED && t->links[i].member.rank == rank)
			return meet_twice(t, rank);
	return 0;
}

/* Remembers a leader and finds its parent among those before it. */
static const struct leader *meet_assign(struct tree *t, const struct link *l)
{
	struct leader *leaders;
	int parent = t->leader_count / TREE_RADIX; /* the leaders' parents, itself not counted: a heap */

	if (t->leader_count == t->leader_room) {
		t->leader_room = t->leader_room ? 2 * t->leader_room : 16;
		leaders = realloc(t->leaders, (size_t)t->leader_room * sizeof(*leaders));
		if (!leaders) {
			t->leader_room = t->leader_count;
			return NULL;
		}
		t->leaders = leaders;
	}
	t->leaders[t->leader_count] = (struct leader){.rank = l->member.rank, .loopback = l->loopback, .address = l->address};
	t->leaders[t->leader_count].address.port = (uint32_t)l->member.port;
	t->leader_count++;
	/* Leader k (from 1) has parent (k - 1) / radix; 0 is rank 0. */
	if (parent == 0 || (t->leaders[parent - 1].loopback && !l->loopback) || !t->leaders[parent - 1].address.port)
		return NULL;
	return &t->leaders[parent - 1];
}

static void meet_listen_for_orphans(struct tree *t)
{
	int port;

	if (t->attach_port)
		return;
	port = t->cfg.net->listen(t->cfg.net_arg, MESSAGE_ATTACH, t->cfg.loopback);
	t->attach_port = port > 0 ? port : 0;
}

void meet_accept(struct tree *t, int link, struct message_accepted *a)
{
	struct link *l = &t->links[link];
	const struct leader *parent = NULL;

	if (l->purpose == MESSAGE_JOIN) {
		meet_listen_for_orphans(t);
		parent = meet_assign(t, l);
	}
	message_put32(&a->port, (uint32_t)(tree_is_root(t) ? t->attach_port : t->seek.attach_port));
	if (parent) {
		a->address = parent->address;
		message_put32(&a->address.family, parent->loopback ? 0 : parent->address.family);
		message_put32(&a->address.port, parent->address.port);
		message_put32(&a->parent, (uint32_t)parent->rank);
	}
	tree_send(t, link, MESSAGE_ACCEPTED, a, sizeof(*a));
	tree_link_set_state(t, link, parent ? LINK_ASSIGNED : LINK_CHILD);
	l->leader = l->purpose != MESSAGE_LOCAL;
	if (tree_is_root(t) && t->now + l->member.left_ms * TREE_NS_PER_MS < t->deadline)
		t->deadline = t->now + l->member.left_ms * TREE_NS_PER_MS;
	if (l->purpose == MESSAGE_ATTACH && t->state != TREE_MEETING) {
		t->links[link].leader = true;
		notice_ancestors(t, link);
		notice_sync(t, link);
		notice_moved(t, l->member.rank, t->cfg.rank);
	} else if (l->purpose == MESSAGE_LOCAL) {
		struct message_rank member = l->member; /* the links may move */

		meet_seat(t, &member, t->cfg.rank);
	}
}

/* A record for rank 0. */
static void meet_queue(struct tree *t, const struct message_rank *member, int parent)
{
	size_t room = sizeof(struct message_joined) + MESSAGE_HOST_BYTES;

	if (t->joined_len + room > t->joined_room) {
		uint8_t *joined = realloc(t->joined, 2 * (t->joined_room + room));

		if (!joined) {
			tree_fail(t, error_set(-ENOMEM, "no memory for %d ranks", t->cfg.size));
			return;
		}
		t->joined = joined;
		t->joined_room = 2 * (t->joined_room + room);
	}
	t->joined_len += message_put_joined(t->joined + t->joined_len, member, parent);
}

void meet_flush(struct tree *t)
{
	if (t->joined_len == 0 || t->parent < 0)
		return;
	tree_send(t, t->parent, MESSAGE_JOINED, t->joined, t->joined_len);
	t->joined_len = 0;
}

void meet_attached(struct tree *t)
{
	if (t->state == TREE_MEETING) {
		/* A rank that came through its leader was reported by it. */
		if (t->links[t->parent].purpose != MESSAGE_LOCAL) {
			t->me.left_ms = (t->deadline - t->now) / TREE_NS_PER_MS;
			meet_queue(t, &t->me, t->links[t->parent].member.rank);
		}
		t->deadline += TREE_GRACE_MS * (int64_t)TREE_NS_PER_MS;
		return;
	}
	t->seek.orphan = false;
	log_info(t->cfg.log, "bootstrap: attached to rank %d", t->links[t->parent].member.rank);
	notice_sync(t, t->parent);
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD)
			notice_moved(t, t->links[i].member.rank, t->cfg.rank);
	notice_ancestors(t, -1);
}

/* Another process has this rank: the leader that let it in closes its connection. */
static void meet_deny(struct tree *t, const struct message_rank *member)
{
	struct message_denied d;
	uint8_t body[sizeof(d) + MESSAGE_TEXT_BYTES];
	int err = meet_twice(t, member->rank);
	size_t len = strnlen(error_text(), MESSAGE_TEXT_BYTES);
	struct frame *f;

	t->refused++;
	snprintf(t->last_refusal, sizeof(t->last_refusal), "one from %s that claimed to be rank %d: %.150s", member->host, member->rank,
		 error_text());
	log_warn(t->cfg.log, "bootstrap: refused %s", t->last_refusal);
	message_put32(&d.rank, (uint32_t)member->rank);
	message_put32(&d.pid, (uint32_t)member->pid);
	message_put_node(d.node, member->node);
	message_put32(&d.code, (uint32_t)err);
	memcpy(body, &d, sizeof(d));
	memcpy(body + sizeof(d), error_text(), len);
	f = frame_new(MESSAGE_DENIED, body, sizeof(d) + len);
	tree_send_children(t, f, -1);
	frame_unref(f);
}

static void meet_on_denied(struct tree *t, struct frame *frame)
{
	struct message_denied d;
	char text[MESSAGE_TEXT_BYTES + 1];
	uint8_t node[MESSAGE_NODE_BYTES / 2];
	int child;

	if (frame->len < sizeof(d))
		return;
	memcpy(&d, frame_body(frame), sizeof(d));
	message_get_chars(text, frame_body(frame) + sizeof(d), frame->len - sizeof(d));
	tree_send_children(t, frame, -1);
	child = tree_child_of(t, (int)(message_get32(&d.rank) & INT32_MAX));
	if (child < 0 || (uint32_t)t->links[child].member.pid != message_get32(&d.pid))
		return;
	message_put_node(node, t->links[child].member.node);
	if (memcmp(node, d.node, sizeof(node)) == 0) {
		error_set((int)message_get32(&d.code), "%s", text);
		handshake_refuse(t, child, (int)message_get32(&d.code));
	}
}

void meet_seat(struct tree *t, const struct message_rank *member, int parent)
{
	int64_t deadline = t->now + member->left_ms * TREE_NS_PER_MS;

	if (!tree_is_root(t)) {
		meet_queue(t, member, parent);
		return;
	}
	if (meet_is_seated(t, member->rank)) {
		meet_deny(t, member);
		return;
	}
	t->ranks[member->rank] |= RANK_SEATED;
	t->parents[member->rank] = parent;
	if (roster_add(&t->builder, member) < 0) {
		tree_fail(t, error_set(-ENOMEM, "no memory for %d ranks", t->cfg.size));
		return;
	}
	if (deadline < t->deadline)
		t->deadline = deadline;
	if (t->cfg.log->level >= LOG_DEBUG) {
		char name[TREE_NAME_BYTES];

		tree_name(t, member->rank, name, sizeof(name));
		log_debug(t->cfg.log, "bootstrap: %s has come, %d missing", name, t->missing - 1);
	}
	if (--t->missing == 0)
		meet_seal(t);
}

static void meet_on_joined(struct tree *t, int link, const struct frame *frame)
{
	const uint8_t *in = frame_body(frame);
	size_t len = frame->len;

	while (len > 0 && t->state == TREE_MEETING) {
		struct message_rank member;
		int parent, used = message_get_joined(in, len, &member, &parent);

		if (used < 0 || member.rank <= 0 || member.rank >= t->cfg.size || parent >= t->cfg.size || !member.pid) {
			error_set(-EPROTO, "it sent a malformed message of kind %d", MESSAGE_JOINED);
			tree_break(t, link);
			return;
		}
		meet_seat(t, &member, parent);
		in += used;
		len -= (size_t)used;
	}
}

/* Rank 0: everybody is here and nobody else can come. */
static void meet_welcome(struct tree *t)
{
	struct frame *f = roster_pack(&t->builder);

	if (!f || roster_set(&t->roster, f, t->cfg.size) < 0) {
		frame_unref(f);
		tree_fail(t, error_set(-ENOMEM, "no memory for %d ranks", t->cfg.size));
		return;
	}
	roster_builder_fini(&t->builder);
	tree_send_children(t, f, -1);
	frame_unref(f);
	tree_set_state(t, TREE_JOINED);
}

/* Every leader below has closed its local listener. */
static void meet_check_sealed(struct tree *t)
{
	if (!t->sealing || t->sealed)
		return;
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD && t->links[i].leader && !t->links[i].sealed)
			return;
	t->sealed = true;
	if (tree_is_root(t))
		meet_welcome(t);
	else
		tree_send(t, t->parent, MESSAGE_SEALED, NULL, 0);
}

static void meet_seal(struct tree *t)
{
	t->sealing = true;
	t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_LOCAL);
	t->seek.local_bound = false;
	if (tree_is_root(t))
		t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_JOIN);
	for (int i = 0; i < t->link_max; i++) {
		struct link *l = &t->links[i];

		/* Too late: it belongs to the next round, or to nobody. */
		if (l->purpose != MESSAGE_ATTACH && (l->state == LINK_SILENT || l->state == LINK_CHALLENGED || l->state == LINK_REFUSED))
			tree_link_close(t, i);
		else if (l->state == LINK_CHILD && l->leader)
			tree_send(t, i, MESSAGE_SEAL, NULL, 0);
	}
	meet_check_sealed(t);
}

static void meet_on_welcome(struct tree *t, int link, struct frame *frame)
{
	int err = t->state == TREE_MEETING ? roster_set(&t->roster, frame, t->cfg.size) : -EPROTO;
	bool grandparent = false;

	if (err == -ENOMEM) {
		tree_fail(t, error_set(-ENOMEM, "no memory for %d ranks", t->cfg.size));
		return;
	}
	if (err) {
		error_set(-EPROTO, "it sent a malformed welcome");
		tree_break(t, link);
		return;
	}
	tree_send_children(t, frame, -1);
	for (int i = 0; i < t->link_max; i++)
		grandparent = grandparent || (t->links[i].state == LINK_CHILD && t->links[i].leader);
	/* Only the children of a leader below would ever come here. */
	if (!grandparent) {
		t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_ATTACH);
		t->seek.attach_bound = false;
		t->seek.attach_port = 0;
	}
	t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_LOCAL);
	notice_ancestors(t, -1);
	tree_set_state(t, TREE_JOINED);
}

static void meet_on_attached(struct tree *t, int link, const struct frame *frame)
{
	if (frame->len == 4 && message_get32(frame_body(frame)) != 0) {
		tree_link_close(t, link);
	} else {
		tree_link_set_state(t, link, LINK_CHILD);
		t->links[link].leader = true;
		/* Its record follows. */
	}
}

/* Rank 0 has refused this rank after its leader had let it in. */
static void meet_on_refused(struct tree *t, int link, const struct frame *frame)
{
	char text[MESSAGE_TEXT_BYTES + 1];
	int code;

	if (t->state != TREE_MEETING || message_get_text(frame_body(frame), frame->len, &code, text) < 0 || code >= 0 || code < -4095) {
		error_set(-EPROTO, "it refused without a reason");
		tree_break(t, link);
		return;
	}
	tree_link_close(t, link);
	tree_fail(t, error_set(code, "rank 0 at %.150s refused this rank: %s", t->cfg.where, text));
}

void meet_on_frame(struct tree *t, int link, struct frame *frame)
{
	enum message_kind kind = frame_kind(frame);

	if (kind == MESSAGE_JOINED) {
		meet_on_joined(t, link, frame);
	} else if (kind == MESSAGE_SEAL && t->state == TREE_MEETING && !t->sealing) {
		meet_seal(t);
	} else if (kind == MESSAGE_SEALED) {
		t->links[link].sealed = true;
		meet_check_sealed(t);
	} else if (kind == MESSAGE_WELCOME) {
		meet_on_welcome(t, link, frame);
	} else if (kind == MESSAGE_ATTACHED) {
		meet_on_attached(t, link, frame);
	} else if (kind == MESSAGE_DENIED) {
		meet_on_denied(t, frame);
	} else if (kind == MESSAGE_REFUSED) {
		meet_on_refused(t, link, frame);
	}
}

static int meet_silent(struct tree *t, const struct message_rank *member)
{
	char name[TREE_NAME_BYTES];

	tree_member_name(t, member, name, sizeof(name));
	return error_set(-ETIMEDOUT, "%s did not answer within %lld ms (start_timeout_ms); is it stopped or overloaded?", name,
			 (long long)t->cfg.timeout_ms);
}

static int meet_missing(struct tree *t)
{
	char names[256] = "", refusals[400] = "", name[TREE_NAME_BYTES];
	size_t used = 0;
	int named = 0;

	for (int r = 1; r < t->cfg.size && named < 4; r++) {
		int n;

		if (meet_is_seated(t, r))
			continue;
		tree_name(t, r, name, sizeof(name));
		n = snprintf(names + used, sizeof(names) - used, "%s%s", named ? ", " : "", name);
		used += (size_t)n < sizeof(names) - used ? (size_t)n : 0;
		named++;
	}
	for (int i = 0; t->missing == 0 && i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD && t->links[i].leader && !t->links[i].sealed)
			return meet_silent(t, &t->links[i].member);
	if (t->refused)
		snprintf(refusals, sizeof(refusals), "; rank 0 refused %d connections, the last was %s", t->refused, t->last_refusal);
	return error_set(-ETIMEDOUT,
			 "%d of %d ranks did not come within %lld ms (start_timeout_ms): %s%s; check that they were "
			 "started and can reach rank 0%s",
			 t->missing, t->cfg.size, (long long)t->cfg.timeout_ms, names, t->missing > named ? " and others" : "", refusals);
}

void meet_late(struct tree *t)
{
	if (tree_is_root(t))
		tree_fail(t, meet_missing(t));
	else if (t->parent < 0)
		tree_fail(t, seek_given_up(t));
	else
		tree_fail(t, meet_silent(t, &t->links[t->parent].member));
}
