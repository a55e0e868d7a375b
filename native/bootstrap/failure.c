/* SPDX-License-Identifier: MIT */
/*
 * failure: how a start fails: the first cause goes up to rank 0, whose verdict comes down, so that all report the same.
 */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

void tree_member_name(const struct tree *t, const struct message_rank *member, char *out, size_t size)
{
	if (member->pid)
		snprintf(out, size, "rank %d (pid %d on %s)", member->rank, member->pid, member->host);
	else
		tree_name(t, member->rank, out, size);
}

void tree_name(const struct tree *t, int rank, char *out, size_t size)
{
	struct message_rank member = {.rank = rank};
	const struct roster_builder *b = &t->builder;

	if (rank >= 0 && rank < t->cfg.size && roster_pid(&t->roster, rank)) {
		member.pid = roster_pid(&t->roster, rank);
		roster_host(&t->roster, rank, member.host);
		tree_member_name(t, &member, out, size);
	} else if (rank >= 0 && rank < t->cfg.size && b->members && b->members[rank].pid) {
		snprintf(out, size, "rank %d (pid %u on %s)", rank, b->members[rank].pid, b->node[b->members[rank].node].host);
	} else if (t->cfg.name && rank >= 0 && rank < t->cfg.size) {
		t->cfg.name(t->cfg.net_arg, rank, out, size);
	} else {
		snprintf(out, size, "rank %d", rank);
	}
}

int tree_pid(const struct tree *t, int rank)
{
	return roster_pid(&t->roster, rank);
}

bool tree_same_node(const struct tree *t, int a, int b)
{
	return roster_same_node(&t->roster, a, b);
}

/* The failure is what all are going to report. */
void failure_verdict(struct tree *t)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];
	struct frame *f = frame_new(MESSAGE_FAILED, body, message_put_text(body, t->failure_code, t->failure));

	tree_set_state(t, TREE_FAILED);
	seek_stop(t);
	t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_LOCAL);
	t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_ATTACH);
	tree_send_children(t, f, -1);
	for (int i = 0; f && i < t->link_max; i++)
		if (t->links[i].state == LINK_ASSIGNED)
			t->cfg.net->send(t->cfg.net_arg, i, f);
	frame_unref(f);
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state != LINK_FREE)
			tree_link_close(t, i);
}

void tree_fail(struct tree *t, int code)
{
	if (t->state != TREE_NEW && t->state != TREE_MEETING && t->state != TREE_JOINED)
		return;
	snprintf(t->failure, sizeof(t->failure), "%s", error_text());
	t->failure_code = code;
	if (tree_is_root(t) || t->parent < 0 || t->state == TREE_NEW) {
		failure_verdict(t);
		return;
	}
	tree_send_text(t, t->parent, MESSAGE_FAILED, code, t->failure);
	tree_set_state(t, TREE_FAILING);
	t->deadline = t->now + TREE_VERDICT_MS * (int64_t)TREE_NS_PER_MS;
}

void tree_fail_lost(struct tree *t, int rank, const struct message_rank *member, const char *why)
{
	char name[TREE_NAME_BYTES];

	if (member)
		tree_member_name(t, member, name, sizeof(name));
	else
		tree_name(t, rank, name, sizeof(name));
	tree_fail(t, error_set(-ECONNRESET, "%s died while the job was starting: %.200s", name, why));
}

/* FAILED, from either side. */
void failure_on_frame(struct tree *t, int link, const struct frame *frame)
{
	struct link *l = &t->links[link];
	bool from_parent = l->state != LINK_CHILD;
	char text[MESSAGE_TEXT_BYTES + 1], why[MESSAGE_TEXT_BYTES + 64];
	int code;

	if (message_get_text(frame_body(frame), frame->len, &code, text) < 0 || code >= 0 || code < -4095) {
		error_set(-EPROTO, "it sent a malformed message of kind %d", MESSAGE_FAILED);
		tree_break(t, link);
	} else if (t->state == TREE_WATCHED || t->state == TREE_LEAVING) {
		struct link gone = *l;

		snprintf(why, sizeof(why), from_parent ? "it has given this rank up: %s" : "it could not start: %s", text);
		tree_link_close(t, link);
		if (from_parent)
			notice_parent_down(t, &gone, -EPROTO, why);
		else
			notice_lost(t, gone.member.rank, why, link);
	} else if (from_parent) {
		snprintf(t->failure, sizeof(t->failure), "%s", text);
		t->failure_code = code;
		failure_verdict(t);
	} else {
		error_set(code, "%s", text);
		tree_fail(t, code);
	}
}

/* A link that counted as a rank has ended. */
void failure_member_down(struct tree *t, const struct link *gone, int err, const char *why)
{
	char ended[MESSAGE_TEXT_BYTES + 1];
	bool reset = err == -ECONNRESET || err == -EPIPE;

	/* The same words on both sides of a broken connection: all report the same text. */
	snprintf(ended, sizeof(ended), "%s", reset ? "it ended without a farewell" : why);
	if (t->state == TREE_MEETING || t->state == TREE_JOINED) {
		tree_fail_lost(t, gone->member.rank, &gone->member, ended);
	} else if (t->state == TREE_FAILING && gone->state != LINK_CHILD) {
		failure_verdict(t);
	} else if (t->state == TREE_WATCHED || t->state == TREE_LEAVING) {
		if (gone->state == LINK_CHILD)
			notice_child_down(t, gone, err, ended);
		else
			notice_parent_down(t, gone, err, ended);
	}
}
