/* SPDX-License-Identifier: MIT */
/*
 * seek: how a rank finds its parent.
 *
 * At the start each attempt asks for the leader of this node first.  Where there is none, and rank 0 answers on the
 * network, this rank becomes the leader: it takes the name of the local listener, registers with rank 0, and attaches
 * to the parent that rank 0 names.  A rank that finds the name taken goes back to the leader.
 *
 *   PAUSE --> LOCAL --nobody--> ROOT --connected, name taken by us--> handshake --> ATTACH --> parent
 *     ^         |                 `--connected, name taken by another--> PAUSE
 *     `---------'-- handshake --> parent
 *
 * After the start a rank whose parent is gone asks its ancestors in turn.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

#define SEEK_CONNECT_MS 3000
#define SEEK_ATTACH_MS 2000
#define SEEK_UNREACHABLE_MS 3000
#define SEEK_PAUSE_FIRST_MS 2
#define SEEK_PAUSE_MAX_MS 100
#define SEEK_ORPHAN_MS 1000

static void seek_attempt(struct tree *t);

static void seek_pause(struct tree *t, int ms)
{
	/* Ranks that were started together do not ask together. */
	ms += t->cfg.rank % 8 * ms / 16;
	t->seek.state = SEEK_PAUSE;
	t->seek.link = -1;
	t->seek.until = t->now + ms * (int64_t)TREE_NS_PER_MS;
}

static void seek_pause_longer(struct tree *t)
{
	seek_pause(t, t->seek.pause_ms);
	if (t->seek.pause_ms < SEEK_PAUSE_MAX_MS)
		t->seek.pause_ms *= 2;
}

static void seek_note(struct tree *t, int err, const char *why)
{
	t->seek.last = err;
	snprintf(t->seek.why, sizeof(t->seek.why), "%s", why);
}

/* False: not even begun. */
static bool seek_connect(struct tree *t, enum seek_state state, enum message_purpose purpose, int index,
			 const struct message_address *address)
{
	int ms = purpose == MESSAGE_ATTACH ? SEEK_ATTACH_MS : SEEK_CONNECT_MS;
	int link = tree_link_new(t), err;

	if (link < 0)
		return false;
	t->links[link].purpose = purpose;
	t->links[link].deadline = t->now + ms * (int64_t)TREE_NS_PER_MS;
	err = t->cfg.net->connect(t->cfg.net_arg, link, purpose, index, address);
	if (err) {
		if (purpose == MESSAGE_LOCAL)
			t->seek.local_bad = t->seek.local_bad || err == -EPERM;
		else if (err != -EALREADY)
			seek_note(t, err, error_text());
		return false;
	}
	tree_link_set_state(t, link, LINK_CONNECTING);
	t->seek.state = state;
	t->seek.link = link;
	return true;
}

static bool seek_is_unreachable(int err)
{
	return err == -EHOSTUNREACH || err == -ENETUNREACH || err == -ENETDOWN || err == -EHOSTDOWN;
}

/* Every address of rank 0 was tried. */
static void seek_round_over(struct tree *t)
{
	struct seek *s = &t->seek;

	if (!seek_is_unreachable(s->last))
		s->unreachable = 0;
	else if (!s->unreachable)
		s->unreachable = t->now;
	if (s->last == -EMFILE || (s->unreachable && t->now - s->unreachable >= SEEK_UNREACHABLE_MS * (int64_t)TREE_NS_PER_MS)) {
		tree_fail(t, seek_given_up(t));
		return;
	}
	seek_pause_longer(t);
}

static void seek_root(struct tree *t, int index)
{
	for (t->seek.index = index; t->seek.index < t->cfg.addresses; t->seek.index++)
		if (seek_connect(t, SEEK_ROOT, MESSAGE_JOIN, t->seek.index, NULL))
			return;
	seek_round_over(t);
}

static void seek_attempt(struct tree *t)
{
	if (!t->seek.local_bad && seek_connect(t, SEEK_LOCAL, MESSAGE_LOCAL, 0, NULL))
		return;
	if (t->now >= t->seek.local_until || t->seek.local_bad)
		seek_root(t, 0);
	else
		seek_pause_longer(t);
}

void seek_start(struct tree *t)
{
	t->seek.pause_ms = SEEK_PAUSE_FIRST_MS;
	t->seek.local_until = t->now + t->cfg.local_ms * TREE_NS_PER_MS;
	t->seek.last = -ETIMEDOUT;
	if (t->cfg.net->random(t->cfg.net_arg, t->proof.rank_nonce, sizeof(t->proof.rank_nonce)) < 0)
		tree_fail(t, -EIO);
	else
		seek_attempt(t);
}

/* Attaching */

static void seek_adopted(struct tree *t, int link)
{
	t->parent_address.port = 0;
	tree_link_set_state(t, link, LINK_PARENT);
	t->seek.state = SEEK_NONE;
	t->seek.link = -1;
}

static void seek_at_root(struct tree *t, bool attached)
{
	uint8_t body[4];

	message_put32(body, attached);
	tree_send(t, t->registration, MESSAGE_ATTACHED, body, sizeof(body));
}

/* The parent that rank 0 named cannot be reached: rank 0 itself becomes the parent. */
static void seek_stay_at_root(struct tree *t)
{
	int link = t->registration;

	if (link < 0)
		return;
	log_info(t->cfg.log, "bootstrap: rank %d cannot be reached (%s), attached to rank 0", t->seek.assigned_rank, t->seek.why);
	seek_at_root(t, false);
	seek_adopted(t, link);
	t->parent_address = t->root.address;
	meet_attached(t);
}

/* An orphan asks the ancestors from `index` on, again and again for a while. */
static void seek_ancestor(struct tree *t, int index)
{
	struct seek *s = &t->seek;

	for (s->index = index; s->index < t->ancestor_count; s->index++) {
		const struct message_ancestor *a = &t->ancestors[s->index];

		if (a->rank < (uint32_t)t->cfg.size && !(t->ranks[a->rank] & RANK_GONE) && a->address.port &&
		    seek_connect(t, SEEK_ATTACH, MESSAGE_ATTACH, 0, &a->address))
			return;
	}
	seek_pause(t, 20);
	if (t->now >= s->give_up || t->ancestor_count == 0) {
		int parent = s->orphan_of;
		char why[320];

		s->state = SEEK_NONE;
		s->orphan = false;
		snprintf(why, sizeof(why), "it ended without a farewell%s%.200s",
			 s->why[0] ? ", and no other rank of the tree could be reached: " : "", s->why);
		if (!(t->ranks[parent] & RANK_GONE))
			notice_lost(t, parent, why, -1);
		if (parent != 0 && !(t->ranks[0] & RANK_GONE))
			notice_lost(t, 0, why, -1);
	}
}

void seek_orphan(struct tree *t, int parent_rank)
{
	struct seek *s = &t->seek;

	s->orphan = true;
	s->orphan_of = parent_rank;
	s->why[0] = '\0';
	s->give_up = t->now + SEEK_ORPHAN_MS * (int64_t)TREE_NS_PER_MS;
	if (t->cfg.net->random(t->cfg.net_arg, t->proof.rank_nonce, sizeof(t->proof.rank_nonce)) < 0)
		s->give_up = t->now;
	seek_ancestor(t, 0);
}

void seek_on_accepted(struct tree *t, int link, const struct message_accepted *a)
{
	struct link *l = &t->links[link];
	int parent = (int)(message_get32(&a->parent) & INT32_MAX);

	if (l->purpose == MESSAGE_JOIN) {
		t->root = (struct message_ancestor){.rank = 0, .address = l->address};
		t->root.address.port = message_get32(&a->port);
	}
	if (l->purpose == MESSAGE_JOIN && parent != l->member.rank) {
		struct message_address address = a->address;

		address.port = message_get32(&a->address.port);
		address.family = message_get32(&a->address.family);
		if (!address.family) { /* on rank 0's machine: by the address that rank 0 has for us */
			uint32_t port = address.port;

			address = l->address;
			address.port = port;
		}
		tree_link_set_state(t, link, LINK_REGISTERED);
		t->seek.assigned_rank = parent;
		if (!seek_connect(t, SEEK_ATTACH, MESSAGE_ATTACH, 0, &address))
			seek_stay_at_root(t);
		return;
	}
	seek_adopted(t, link);
	if (l->purpose != MESSAGE_LOCAL) {
		t->parent_address = l->address;
		t->parent_address.port = message_get32(&a->port);
	}
	if (t->registration >= 0) {
		seek_at_root(t, true);
		tree_link_close(t, t->registration);
	}
	meet_attached(t);
}

/* Rank 0 answers on the network: is this rank to be the leader of its node? */
static void seek_lead(struct tree *t, int link)
{
	int err = t->seek.local_bound ? 0 : t->cfg.net->listen(t->cfg.net_arg, MESSAGE_LOCAL, true);
	int port;

	if (err == -EADDRINUSE && !t->seek.local_bad) {
		tree_link_close(t, link);
		seek_pause(t, 1);
		return;
	}
	t->seek.local_bound = err == 0;
	port = t->seek.attach_bound ? t->seek.attach_port : t->cfg.net->listen(t->cfg.net_arg, MESSAGE_ATTACH, t->links[link].loopback);
	t->seek.attach_bound = port > 0;
	t->seek.attach_port = port > 0 ? port : 0;
	handshake_hello(t, link);
}

void seek_on_connected(struct tree *t, int link)
{
	if (t->links[link].purpose == MESSAGE_JOIN)
		seek_lead(t, link);
	else
		handshake_hello(t, link);
}

static void seek_unlead(struct tree *t)
{
	if (t->seek.local_bound)
		t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_LOCAL);
	if (t->seek.attach_bound)
		t->cfg.net->unlisten(t->cfg.net_arg, MESSAGE_ATTACH);
	t->seek.local_bound = t->seek.attach_bound = false;
	t->seek.attach_port = 0;
	t->job_id[0] = '\0';
}

static void seek_local_failed(struct tree *t, enum link_state state, int err, const char *why)
{
	/* The name belongs to somebody else, or to a process that does not answer. */
	if (err == -EPERM || (err == -ETIMEDOUT && state != LINK_CONNECTING)) {
		log_warn(t->cfg.log, "bootstrap: no leader on this node: %s", why);
		t->seek.local_bad = true;
	}
	if (err == -EAGAIN || (t->now < t->seek.local_until && !t->seek.local_bad))
		seek_pause_longer(t);
	else
		seek_root(t, 0);
}

void seek_on_failure(struct tree *t, int link, int err, const char *why, bool final)
{
	enum message_purpose purpose = t->links[link].purpose;
	enum link_state state = t->links[link].state;

	if (state != LINK_FREE)
		tree_link_close(t, link);
	if (link != t->seek.link)
		return;
	t->seek.link = -1;
	if (final && purpose != MESSAGE_ATTACH) {
		seek_unlead(t);
		tree_fail(t, error_set(err, "%s", why));
		return;
	}
	if (purpose == MESSAGE_LOCAL) {
		seek_local_failed(t, state, err, why);
		return;
	}
	seek_note(t, err, why);
	if (purpose == MESSAGE_JOIN) {
		seek_unlead(t);
		seek_root(t, t->seek.index + 1);
	} else if (t->seek.orphan) {
		seek_ancestor(t, t->seek.index + 1);
	} else {
		seek_stay_at_root(t);
	}
}

void seek_on_time(struct tree *t)
{
	if (t->seek.state != SEEK_PAUSE || t->now < t->seek.until)
		return;
	if (t->seek.orphan)
		seek_ancestor(t, 0);
	else if (t->state == TREE_MEETING)
		seek_attempt(t);
}

int64_t seek_next(const struct tree *t)
{
	return t->seek.state == SEEK_PAUSE ? t->seek.until : INT64_MAX;
}

void seek_stop(struct tree *t)
{
	if (t->seek.link >= 0 && t->links[t->seek.link].state != LINK_FREE)
		tree_link_close(t, t->seek.link);
	t->seek.link = -1;
	t->seek.state = SEEK_NONE;
	t->seek.orphan = false;
}

int seek_given_up(struct tree *t)
{
	const struct seek *s = &t->seek;

	if (s->last == -EMFILE)
		return error_set(-EMFILE, "%s", s->why);
	if (seek_is_unreachable(s->last))
		return error_set(-EHOSTUNREACH, "rank 0 at %s cannot be reached: %s; check the host's name and the network", t->cfg.where,
				 s->why);
	return error_set(-ETIMEDOUT,
			 "rank 0 at %s did not let this rank in within %lld ms (start_timeout_ms), the last "
			 "attempt: %s; check that rank 0 was started and that no firewall is between%s",
			 t->cfg.where, (long long)t->cfg.timeout_ms, s->why[0] ? s->why : "cut short",
			 s->last == -ECONNREFUSED ? ", or this rank has joined already (another job with the same conf?)" : "");
}
