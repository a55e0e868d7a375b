/* SPDX-License-Identifier: MIT */
/*
 * handshake: HELLO, CHALLENGE, PROOF, ACCEPTED or REFUSED, from both sides.
 *
 * Strangers cost the listener a bounded number of connections, each for a bounded time; they cannot fail the job, and
 * none waits for another.  When slots or descriptors run out, the oldest is closed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

#define HANDSHAKE_SLOTS 128
#define HANDSHAKE_SLOTS_MAX 4096
/* A connection younger than this may still be about to send: it is not closed for want of descriptors. */
#define HANDSHAKE_YOUNG_MS 300

static bool handshake_is_open(const struct link *l)
{
	return l->state == LINK_SILENT || l->state == LINK_CHALLENGED || l->state == LINK_REFUSED;
}

static int64_t handshake_deadline(const struct tree *t)
{
	return t->now + TREE_HANDSHAKE_MS * (int64_t)TREE_NS_PER_MS;
}

int handshake_oldest(const struct tree *t)
{
	int oldest = -1;

	/* Those that have proved nothing first: a CHALLENGED one has at least sent a valid HELLO. */
	for (int pass = 0; pass < 2 && oldest < 0; pass++)
		for (int i = 0; i < t->link_max; i++) {
			const struct link *l = &t->links[i];

			if (handshake_is_open(l) && (pass || l->state != LINK_CHALLENGED) &&
			    (oldest < 0 || l->deadline < t->links[oldest].deadline))
				oldest = i;
		}
	return oldest;
}

int tree_make_room(struct tree *t, int64_t now)
{
	int oldest = handshake_oldest(t);

	t->now = now;
	if (oldest < 0)
		return -1;
	if (t->links[oldest].state != LINK_REFUSED &&
	    t->links[oldest].deadline - now > (TREE_HANDSHAKE_MS - HANDSHAKE_YOUNG_MS) * (int64_t)TREE_NS_PER_MS)
		return 0;
	tree_link_close(t, oldest);
	return 1;
}

static int handshake_slots(const struct tree *t)
{
	int slots = HANDSHAKE_SLOTS + (t->state == TREE_MEETING ? t->cfg.size : 0);

	return slots < HANDSHAKE_SLOTS_MAX ? slots : HANDSHAKE_SLOTS_MAX;
}

bool tree_accepts(const struct tree *t, enum message_purpose purpose)
{
	switch (purpose) {
	case MESSAGE_JOIN: return t->state == TREE_MEETING && tree_is_root(t);
	case MESSAGE_LOCAL: return t->state == TREE_MEETING && (tree_is_root(t) || *t->job_id);
	case MESSAGE_ATTACH:
		return *t->job_id && (t->state == TREE_MEETING || t->state == TREE_WATCHED ||
				      (t->state == TREE_LEAVING && tree_is_root(t)) || (t->state == TREE_JOINED && t->gathering));
	case MESSAGE_PURPOSE_COUNT: break;
	}
	return false;
}

int tree_on_accept(struct tree *t, enum message_purpose purpose, const struct message_address *from, const char *text, bool loopback,
		   int64_t now)
{
	int count = 0, i;

	t->now = now;
	for (i = 0; i < t->link_max; i++)
		count += handshake_is_open(&t->links[i]);
	if (count >= handshake_slots(t))
		tree_link_close(t, handshake_oldest(t));
	i = tree_link_new(t);
	if (i < 0)
		return -1;
	t->links[i].purpose = purpose;
	t->links[i].loopback = loopback;
	t->links[i].address = *from;
	t->links[i].deadline = handshake_deadline(t);
	snprintf(t->links[i].from, sizeof(t->links[i].from), "%s", text);
	tree_link_set_state(t, i, LINK_SILENT);
	return i;
}

void handshake_refuse(struct tree *t, int link, int code)
{
	struct link *l = &t->links[link];

	t->refused++;
	snprintf(t->last_refusal, sizeof(t->last_refusal), "one from %s that claimed to be rank %d: %.150s", l->from, l->member.rank,
		 error_text());
	log_warn(t->cfg.log, "bootstrap: refused %s", t->last_refusal);
	tree_send_text(t, link, MESSAGE_REFUSED, code, error_text());
	t->cfg.net->finish(t->cfg.net_arg, link);
	l->deadline = handshake_deadline(t);
	tree_link_set_state(t, link, LINK_REFUSED);
}

/* What can be judged before the proof. */
static int handshake_check_hello(const struct tree *t, const struct link *l)
{
	const char *expected = l->purpose == MESSAGE_ATTACH ? t->job_id : t->cfg.job_id;

	if (*expected && *l->member.job_id && strcmp(expected, l->member.job_id) != 0)
		return error_set(-EAGAIN, "it belongs to job %s, this is job %s", l->member.job_id, expected);
	if (l->purpose == MESSAGE_ATTACH && !*l->member.job_id)
		return error_set(-EACCES, "it does not name the job");
	if (l->member.secret != t->me.secret)
		return error_set(-EACCES, "job_secret is set on %s, not on %s; give every rank the same",
				 l->member.secret ? "that rank" : "rank 0", l->member.secret ? "rank 0" : "that rank");
	return 0;
}

static void handshake_on_hello(struct tree *t, int link, const struct frame *frame)
{
	struct link *l = &t->links[link];
	struct message_challenge challenge;
	enum message_purpose listener = l->purpose;
	int err = message_get_hello(frame_body(frame), frame->len, &l->member);

	if (!err && l->member.purpose != listener)
		err = -EPROTO;
	if (err == -EPROTONOSUPPORT) {
		handshake_refuse(t, link, err);
		return;
	}
	if (err || t->cfg.net->random(t->cfg.net_arg, l->nonce, sizeof(l->nonce)) < 0) {
		tree_link_close(t, link);
		return;
	}
	err = handshake_check_hello(t, l);
	if (err) {
		handshake_refuse(t, link, err);
		return;
	}
	memcpy(challenge.nonce, l->nonce, sizeof(challenge.nonce));
	message_put32(&challenge.secret, t->me.secret);
	tree_send(t, link, MESSAGE_CHALLENGE, &challenge, sizeof(challenge));
	tree_link_set_state(t, link, LINK_CHALLENGED);
}

static void handshake_on_proof(struct tree *t, int link, const struct frame *frame)
{
	struct link *l = &t->links[link];
	struct proof proof = t->proof;
	struct message_accepted a;
	int err = 0;

	proof.rank = l->member.rank;
	proof.size = l->member.size;
	memcpy(proof.rank_nonce, l->member.nonce, sizeof(proof.rank_nonce));
	memcpy(proof.listener_nonce, l->nonce, sizeof(proof.listener_nonce));
	if (frame->len != MESSAGE_PROOF_BYTES) {
		tree_link_close(t, link);
		return;
	}
	if (!proof_holds(&proof, PROOF_RANK, frame_body(frame)))
		err = error_set(-EACCES, "wrong job_secret; it must be the same on every rank");
	else
		err = meet_check(t, link);
	if (err) {
		handshake_refuse(t, link, err);
		return;
	}
	memset(&a, 0, sizeof(a));
	proof_make(&proof, PROOF_LISTENER, a.proof);
	message_put32(&a.rank, (uint32_t)t->cfg.rank);
	message_put32(&a.pid, (uint32_t)t->cfg.pid);
	message_put32(&a.parent, (uint32_t)t->cfg.rank);
	message_put_chars(a.job_id, sizeof(a.job_id), t->job_id);
	message_put_chars(a.host, sizeof(a.host), t->me.host);
	l->deadline = INT64_MAX;
	meet_accept(t, link, &a);
}

/* This rank's side. */

void handshake_hello(struct tree *t, int link)
{
	struct message_rank me = t->me;
	struct message_hello hello;

	me.purpose = t->links[link].purpose;
	me.left_ms = t->deadline > t->now ? (t->deadline - t->now) / TREE_NS_PER_MS : 0;
	me.port = t->seek.attach_port;
	memcpy(me.nonce, t->proof.rank_nonce, sizeof(me.nonce));
	snprintf(me.job_id, sizeof(me.job_id), "%s", *t->job_id ? t->job_id : t->cfg.job_id);
	message_put_hello(&hello, &me);
	tree_send(t, link, MESSAGE_HELLO, &hello, sizeof(hello));
	t->links[link].deadline = handshake_deadline(t);
	tree_link_set_state(t, link, LINK_HELLO);
}

static void handshake_on_refused(struct tree *t, int link, const struct frame *frame)
{
	char text[MESSAGE_TEXT_BYTES + 1], why[MESSAGE_TEXT_BYTES + 200];
	int code;

	if (message_get_text(frame_body(frame), frame->len, &code, text) < 0 || code >= 0 || code < -4095) {
		seek_on_failure(t, link, -EPROTO, "it refused without a reason", false);
		return;
	}
	snprintf(why, sizeof(why), "rank 0 at %.150s refused this rank: %s", t->cfg.where, text);
	seek_on_failure(t, link, code, why, code != -EAGAIN);
}

static void handshake_on_challenge(struct tree *t, int link, const struct frame *frame)
{
	struct message_challenge challenge;
	uint8_t mine[MESSAGE_PROOF_BYTES];
	char why[256];

	if (frame->len != sizeof(challenge)) {
		seek_on_failure(t, link, -EPROTO, "what answers there is not rank 0", false);
		return;
	}
	memcpy(&challenge, frame_body(frame), sizeof(challenge));
	if ((message_get32(&challenge.secret) != 0) != t->me.secret) {
		snprintf(why, sizeof(why),
			 "job_secret is set on one of this rank and rank 0 at %.100s, not on the other; give "
			 "every "
			 "rank the same",
			 t->cfg.where);
		seek_on_failure(t, link, -EACCES, why, true);
		return;
	}
	memcpy(t->links[link].nonce, challenge.nonce, sizeof(challenge.nonce));
	memcpy(t->proof.listener_nonce, challenge.nonce, sizeof(challenge.nonce));
	proof_make(&t->proof, PROOF_RANK, mine);
	tree_send(t, link, MESSAGE_PROOF, mine, sizeof(mine));
	/* From here on this rank counts as present: no second attempt, but the verdict of this connection. */
	tree_link_set_state(t, link, LINK_PROOF);
}

static void handshake_on_accepted(struct tree *t, int link, const struct frame *frame)
{
	struct link *l = &t->links[link];
	struct message_accepted a;
	struct proof proof = t->proof;
	char id[MESSAGE_ID_BYTES + 1], why[256];

	memset(&a, 0, sizeof(a));
	if (frame->len == sizeof(a))
		memcpy(&a, frame_body(frame), sizeof(a));
	memcpy(proof.listener_nonce, l->nonce, sizeof(proof.listener_nonce));
	if (frame->len != sizeof(a) || !proof_holds(&proof, PROOF_LISTENER, a.proof)) {
		snprintf(why, sizeof(why), "what answers at %.150s does not know the job_secret; is it another job's rank 0?",
			 t->cfg.where);
		seek_on_failure(t, link, -EACCES, why, true);
		return;
	}
	message_get_chars(id, a.job_id, MESSAGE_ID_BYTES);
	l->member.rank = (int)message_get32(&a.rank);
	l->member.pid = (int)(message_get32(&a.pid) & INT32_MAX);
	message_get_chars(l->member.host, a.host, MESSAGE_HOST_BYTES);
	if (!message_is_job_id(id) || l->member.rank < 0 || l->member.rank >= t->cfg.size || l->member.rank == t->cfg.rank ||
	    (*t->job_id && strcmp(t->job_id, id) != 0)) {
		seek_on_failure(t, link, -EPROTO, "it sent a malformed answer", false);
		return;
	}
	snprintf(t->job_id, sizeof(t->job_id), "%s", id);
	l->deadline = INT64_MAX;
	seek_on_accepted(t, link, &a);
}

void handshake_on_frame(struct tree *t, int link, struct frame *frame)
{
	enum message_kind kind = frame_kind(frame);

	if (kind == MESSAGE_HELLO)
		handshake_on_hello(t, link, frame);
	else if (kind == MESSAGE_CHALLENGE)
		handshake_on_challenge(t, link, frame);
	else if (kind == MESSAGE_PROOF)
		handshake_on_proof(t, link, frame);
	else if (kind == MESSAGE_ACCEPTED)
		handshake_on_accepted(t, link, frame);
	else if (kind == MESSAGE_REFUSED && t->links[link].state == LINK_PARENT)
		meet_on_frame(t, link, frame);
	else if (kind == MESSAGE_REFUSED)
		handshake_on_refused(t, link, frame);
}

void handshake_on_time(struct tree *t)
{
	for (int i = 0; i < t->link_max; i++) {
		struct link *l = &t->links[i];

		if (l->state == LINK_FREE || l->deadline > t->now)
			continue;
		if (handshake_is_open(l))
			tree_link_close(t, i);
		else
			seek_on_failure(t, i, -ETIMEDOUT, "something accepts connections there but does not answer", false);
	}
}
