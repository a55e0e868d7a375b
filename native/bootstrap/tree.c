/* SPDX-License-Identifier: MIT */
/* tree: states, links, and what is done with each event. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

static const bool tree_steps[TREE_STATE_COUNT][TREE_STATE_COUNT] = {
	[TREE_NEW] = {[TREE_MEETING] = true, [TREE_FAILED] = true, [TREE_LEFT] = true},
	[TREE_MEETING] = {[TREE_JOINED] = true, [TREE_FAILING] = true, [TREE_FAILED] = true, [TREE_LEFT] = true},
	[TREE_JOINED] = {[TREE_WATCHED] = true, [TREE_FAILING] = true, [TREE_FAILED] = true, [TREE_LEFT] = true},
	[TREE_WATCHED] = {[TREE_LEAVING] = true, [TREE_LEFT] = true},
	[TREE_FAILING] = {[TREE_FAILED] = true, [TREE_LEFT] = true},
	[TREE_FAILED] = {[TREE_LEFT] = true},
	[TREE_LEAVING] = {[TREE_LEFT] = true},
};

static const bool link_steps[LINK_STATE_COUNT][LINK_STATE_COUNT] = {
	[LINK_FREE] = {[LINK_CONNECTING] = true, [LINK_SILENT] = true},
	[LINK_CONNECTING] = {[LINK_HELLO] = true, [LINK_FREE] = true},
	[LINK_HELLO] = {[LINK_PROOF] = true, [LINK_FREE] = true},
	[LINK_PROOF] = {[LINK_PARENT] = true, [LINK_REGISTERED] = true, [LINK_FREE] = true},
	[LINK_REGISTERED] = {[LINK_PARENT] = true, [LINK_FREE] = true},
	[LINK_PARENT] = {[LINK_FREE] = true},
	[LINK_SILENT] = {[LINK_CHALLENGED] = true, [LINK_REFUSED] = true, [LINK_FREE] = true},
	[LINK_CHALLENGED] = {[LINK_CHILD] = true, [LINK_ASSIGNED] = true, [LINK_REFUSED] = true, [LINK_FREE] = true},
	[LINK_REFUSED] = {[LINK_FREE] = true},
	[LINK_ASSIGNED] = {[LINK_CHILD] = true, [LINK_FREE] = true},
	[LINK_CHILD] = {[LINK_REFUSED] = true, [LINK_FREE] = true},
};

#define BIT(kind) (1u << (kind))
static const unsigned link_expects[LINK_STATE_COUNT] = {
	[LINK_HELLO] = BIT(MESSAGE_CHALLENGE) | BIT(MESSAGE_REFUSED),
	[LINK_PROOF] = BIT(MESSAGE_ACCEPTED) | BIT(MESSAGE_REFUSED),
	[LINK_REGISTERED] = BIT(MESSAGE_FAILED),
	[LINK_PARENT] = BIT(MESSAGE_SEAL) | BIT(MESSAGE_WELCOME) | BIT(MESSAGE_GATHERED) | BIT(MESSAGE_FAILED) | BIT(MESSAGE_LOST) |
			BIT(MESSAGE_LEFT) | BIT(MESSAGE_DENIED) | BIT(MESSAGE_ANCESTORS) | BIT(MESSAGE_SUSPECT) | BIT(MESSAGE_REFUSED),
	[LINK_SILENT] = BIT(MESSAGE_HELLO),
	[LINK_CHALLENGED] = BIT(MESSAGE_PROOF),
	[LINK_ASSIGNED] = BIT(MESSAGE_ATTACHED),
	[LINK_CHILD] = BIT(MESSAGE_JOINED) | BIT(MESSAGE_SEALED) | BIT(MESSAGE_GATHER) | BIT(MESSAGE_FAILED) | BIT(MESSAGE_LOST) |
		       BIT(MESSAGE_LEFT) | BIT(MESSAGE_MOVED) | BIT(MESSAGE_SUSPECT),
};

void tree_set_state(struct tree *t, enum tree_state state)
{
	if (t->state == state)
		return;
	if (!tree_steps[t->state][state]) {
		log_error(t->cfg.log, "bootstrap: step from state %d to %d refused", (int)t->state, (int)state);
		return;
	}
	t->state = state;
}

void tree_link_set_state(struct tree *t, int i, enum link_state state)
{
	struct link *l = &t->links[i];

	if (!link_steps[l->state][state]) {
		log_error(t->cfg.log, "bootstrap: step of a connection from state %d to %d refused", (int)l->state, (int)state);
		return;
	}
	t->children += (state == LINK_CHILD) - (l->state == LINK_CHILD);
	if (state == LINK_PARENT)
		t->parent = i;
	else if (t->parent == i)
		t->parent = -1;
	if (state == LINK_REGISTERED)
		t->registration = i;
	else if (t->registration == i)
		t->registration = -1;
	l->state = state;
}

int tree_link_new(struct tree *t)
{
	struct link *links;
	int i, room;

	for (i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_FREE)
			break;
	if (i == t->link_max) {
		room = t->link_max ? 2 * t->link_max : 4;
		links = realloc(t->links, (size_t)room * sizeof(*links));
		if (!links)
			return -1;
		memset(links + t->link_max, 0, (size_t)(room - t->link_max) * sizeof(*links));
		t->links = links;
		t->link_max = room;
	}
	memset(&t->links[i], 0, sizeof(t->links[i]));
	t->links[i].deadline = INT64_MAX;
	return i;
}

static void tree_link_free(struct tree *t, int i)
{
	frame_unref(t->links[i].gather);
	t->links[i].gather = NULL;
	tree_link_set_state(t, i, LINK_FREE);
}

void tree_link_close(struct tree *t, int i)
{
	t->cfg.net->close(t->cfg.net_arg, i);
	tree_link_free(t, i);
}

void tree_send(struct tree *t, int link, enum message_kind kind, const void *body, size_t len)
{
	struct frame *f = frame_new(kind, body, len);

	/* Without memory the link is of no use to either side. */
	if (!f) {
		log_error(t->cfg.log, "bootstrap: no memory for a message of %zu bytes", len);
		t->cfg.net->finish(t->cfg.net_arg, link);
		return;
	}
	t->cfg.net->send(t->cfg.net_arg, link, f);
	frame_unref(f);
}

void tree_send_children(struct tree *t, struct frame *frame, int except)
{
	for (int i = 0; frame && i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD && i != except)
			t->cfg.net->send(t->cfg.net_arg, i, frame);
}

void tree_send_all(struct tree *t, struct frame *frame, int except)
{
	tree_send_children(t, frame, except);
	if (frame && t->parent >= 0 && t->parent != except)
		t->cfg.net->send(t->cfg.net_arg, t->parent, frame);
}

void tree_send_text(struct tree *t, int link, enum message_kind kind, int code, const char *text)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];

	tree_send(t, link, kind, body, message_put_text(body, code, text));
}

int tree_child_of(const struct tree *t, int rank)
{
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state == LINK_CHILD && t->links[i].member.rank == rank)
			return i;
	return -1;
}

void tree_break(struct tree *t, int link)
{
	char why[MESSAGE_TEXT_BYTES + 1];

	snprintf(why, sizeof(why), "%s", error_text());
	t->cfg.net->close(t->cfg.net_arg, link);
	tree_on_down(t, link, -EPROTO, why, t->now);
}

/* Until the next call everything that was decided must be on its way. */
static void tree_turn(struct tree *t)
{
	meet_flush(t);
	notice_flush(t);
}

void tree_start(struct tree *t, int64_t now)
{
	t->now = now;
	t->deadline = now + t->cfg.timeout_ms * TREE_NS_PER_MS;
	tree_set_state(t, TREE_MEETING);
	meet_start(t);
	tree_turn(t);
}

void tree_on_connected(struct tree *t, int link, bool loopback, const struct message_address *peer, int64_t now)
{
	t->now = now;
	t->links[link].loopback = loopback;
	t->links[link].address = *peer;
	seek_on_connected(t, link);
	tree_turn(t);
}

int64_t tree_expects(const struct tree *t, int link, enum message_kind kind)
{
	enum link_state state = t->links[link].state;

	if (!(link_expects[state] & BIT(kind)))
		return -1;
	return (int64_t)message_limit(kind, t->cfg.size);
}

void tree_on_frame(struct tree *t, int link, struct frame *frame, int64_t now)
{
	t->now = now;
	switch (frame_kind(frame)) {
	case MESSAGE_HELLO:
	case MESSAGE_CHALLENGE:
	case MESSAGE_PROOF:
	case MESSAGE_ACCEPTED:
	case MESSAGE_REFUSED: handshake_on_frame(t, link, frame); break;
	case MESSAGE_JOINED:
	case MESSAGE_SEAL:
	case MESSAGE_SEALED:
	case MESSAGE_WELCOME:
	case MESSAGE_ATTACHED:
	case MESSAGE_DENIED: meet_on_frame(t, link, frame); break;
	case MESSAGE_GATHER:
	case MESSAGE_GATHERED: gather_on_frame(t, link, frame); break;
	case MESSAGE_FAILED: failure_on_frame(t, link, frame); break;
	case MESSAGE_LOST:
	case MESSAGE_LEFT:
	case MESSAGE_ANCESTORS:
	case MESSAGE_MOVED:
	case MESSAGE_SUSPECT: notice_on_frame(t, link, frame); break;
	case MESSAGE_NONE:
	case MESSAGE_KIND_COUNT: break;
	}
	tree_turn(t);
}

void tree_on_down(struct tree *t, int link, int err, const char *why, int64_t now)
{
	struct link gone = t->links[link];

	t->now = now;
	tree_link_free(t, link);
	gone.gather = NULL;
	switch (gone.state) {
	case LINK_CONNECTING:
	case LINK_HELLO:
	case LINK_PROOF: seek_on_failure(t, link, err, why, false); break;
	case LINK_CHILD:
	case LINK_PARENT:
	case LINK_REGISTERED:
	case LINK_ASSIGNED: failure_member_down(t, &gone, err, why); break;
	case LINK_SILENT:
	case LINK_CHALLENGED: log_debug(t->cfg.log, "bootstrap: dropped a connection from %s: %s", gone.from, why); break;
	case LINK_REFUSED:
	case LINK_FREE:
	case LINK_STATE_COUNT: break;
	}
	tree_turn(t);
}

void tree_on_time(struct tree *t, int64_t now)
{
	t->now = now;
	handshake_on_time(t);
	seek_on_time(t);
	notice_on_time(t);
	if (now >= t->deadline) {
		if (t->state == TREE_MEETING)
			meet_late(t);
		else if (t->state == TREE_JOINED && t->gathering)
			gather_late(t);
		else if (t->state == TREE_FAILING)
			failure_verdict(t);
		else if (t->state == TREE_LEAVING)
			leave_late(t);
	}
	tree_turn(t);
}

int64_t tree_next(const struct tree *t)
{
	int64_t next = tree_busy(t) ? t->deadline : INT64_MAX;
	int64_t other = seek_next(t);

	next = other < next ? other : next;
	other = notice_next(t);
	next = other < next ? other : next;
	for (int i = 0; i < t->link_max; i++)
		if (t->links[i].state != LINK_FREE && t->links[i].deadline < next)
			next = t->links[i].deadline;
	return next;
}

void tree_give_up(struct tree *t, int code)
{
	tree_fail(t, code);
}

int tree_missing(const struct tree *t)
{
	return t->missing;
}

enum tree_state tree_state(const struct tree *t)
{
	return t->state;
}

bool tree_busy(const struct tree *t)
{
	return t->state == TREE_MEETING || t->state == TREE_FAILING || t->state == TREE_LEAVING ||
	       (t->state == TREE_JOINED && t->gathering);
}

int tree_error(const struct tree *t)
{
	return error_set(t->failure_code, "%s", t->failure);
}

const char *tree_job_id(const struct tree *t)
{
	return t->job_id;
}

int tree_link_max(const struct tree *t)
{
	return t->link_max;
}

bool tree_link_is_open(const struct tree *t, int link)
{
	return t->links[link].state != LINK_FREE;
}

int tree_new(struct tree **out, const struct tree_config *cfg)
{
	struct tree *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (!t)
		return error_set(-ENOMEM, "no memory for %d ranks", cfg->size);
	t->cfg = *cfg;
	t->parent = t->registration = t->seek.link = -1;
	t->deadline = INT64_MAX;
	t->me = (struct message_rank){.rank = cfg->rank, .size = cfg->size, .pid = cfg->pid};
	t->me.secret = *cfg->secret != '\0';
	snprintf(t->me.host, sizeof(t->me.host), "%s", cfg->host);
	snprintf(t->me.node, sizeof(t->me.node), "%s", cfg->node);
	t->proof.rank = cfg->rank;
	t->proof.size = cfg->size;
	proof_set_key(&t->proof, cfg->secret);
	t->cfg.secret = NULL; /* the key is enough */
	t->ranks = calloc((size_t)cfg->size, 1);
	if (tree_is_root(t))
		t->parents = calloc((size_t)cfg->size, sizeof(*t->parents));
	if (!t->ranks || (tree_is_root(t) && (!t->parents || roster_builder_init(&t->builder, cfg->size) < 0))) {
		tree_free(t);
		return error_set(-ENOMEM, "no memory for %d ranks", cfg->size);
	}
	*out = t;
	return 0;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	gather_reset(t);
	for (int i = 0; i < t->link_max; i++)
		frame_unref(t->links[i].gather);
	notice_fini(t);
	roster_fini(&t->roster);
	roster_builder_fini(&t->builder);
	free(t->links);
	free(t->leaders);
	free(t->parents);
	free(t->joined);
	free(t->ranks);
	free(t);
}
