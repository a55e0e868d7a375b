/* SPDX-License-Identifier: MIT */
/*
 * leave: a rank goes in good order.  A leader first serves its children for a while, as a job mostly ends everywhere at
 * the same time; then it ends its streams to them, hands on what they still send, and goes.
 */
#include <string.h>

#include "bootstrap/tree_state.h"

/* How long a leader that leaves goes on serving its children, and then waits for them to go elsewhere. */
#define LEAVE_SERVE_MS 150
#define LEAVE_CLOSE_MS 50

void leave_close_all(struct tree *t)
{
	seek_stop(t);
	t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_ATTACH);
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state != LINK_FREE)
			tree_link_close(t, i);
}

/* Rank 0: ranks whose parent has died are on their way here, and would take rank 0 for dead as well. */
static bool leave_is_awaited(const struct tree *t)
{
	for (int i = 0; i < t->orphan_count; i++)
		if (t->ranks[t->parents[t->orphans[i].rank]] & RANK_LOST)
			return true;
	return false;
}

/* LEAVING is over when nobody depends on this rank any more and its own farewell has gone. */
void leave_check(struct tree *t)
{
	if (t->state != TREE_LEAVING || (tree_is_root(t) ? leave_is_awaited(t) : t->children > 0 || t->seek.orphan))
		return;
	leave_close_all(t);
	tree_set_state(t, TREE_LEFT);
}

/* The time to serve the children is over: they see the end of the stream and look for another parent. */
void leave_late(struct tree *t)
{
	/* What the children have reported waits for a new parent. */
	if (t->seek.orphan && t->finishing && t->now < t->seek.give_up) {
		t->deadline = t->seek.give_up;
		return;
	}
	if (t->finishing || t->children == 0 || tree_is_root(t)) {
		leave_close_all(t);
		tree_set_state(t, TREE_LEFT);
		return;
	}
	t->finishing = true;
	t->deadline = t->now + LEAVE_CLOSE_MS * (int64_t)TREE_NS_PER_MS;
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD)
			t->cfg.net->finish(t->cfg.net_arg, i);
}

void tree_ignore(struct tree *t)
{
	memset(&t->events, 0, sizeof(t->events));
}

void tree_leave(struct tree *t, int64_t now)
{
	enum tree_state state = t->state;

	t->now = now;
	if (state == TREE_LEFT || state == TREE_FAILED || state == TREE_LEAVING)
		return;
	tree_ignore(t);
	if (!tree_is_root(t))
		t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_ATTACH);
	notice_left(t, t->cfg.rank, -1);
	if (state == TREE_WATCHED) {
		tree_set_state(t, TREE_LEAVING);
		t->deadline = now + LEAVE_SERVE_MS * (int64_t)TREE_NS_PER_MS;
	}
	notice_flush(t);
	if (state == TREE_WATCHED)
		return;
	leave_close_all(t);
	tree_set_state(t, TREE_LEFT);
}
