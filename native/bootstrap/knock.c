/* SPDX-License-Identifier: MIT */
/*
 * knock: one connection at a time, again and again, until rank 0 opens.
 *
 * Up to PROOF a connection may be given up and tried anew: rank 0 forgets it.  From PROOF on
 * this rank counts as present, and waits for the verdict on this very connection.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/deadline.h"
#include "bootstrap/knock.h"
#include "base/proof.h"
#include "bootstrap/star.h"

#define KNOCK_CONNECT_MS 3000
#define KNOCK_ANSWER_MS 5000
#define KNOCK_UNREACHABLE_MS 3000
#define KNOCK_PAUSE_FIRST_MS 4
#define KNOCK_PAUSE_MAX_MS 200

/* What one attempt came to, besides 0 and final errors. */
#define KNOCK_AGAIN 1

struct knocker {
	struct bootstrap *b;
	const char *where;
	const char *secret;
	const char *job_id;
	int64_t deadline;
	struct proof proof;
	int last;      /* -errno of the last attempt */
	char why[256]; /* and its text */
	bool accepted;
};

static int knock_again(struct knocker *k, int err)
{
	/* The attempt that our own deadline cuts short says less than the one before. */
	if (err == -ETIMEDOUT && k->why[0] && deadline_left_ms(k->deadline) == 0)
		return KNOCK_AGAIN;
	k->last = err;
	snprintf(k->why, sizeof(k->why), "%s", error_text());
	return KNOCK_AGAIN;
}

static int64_t knock_within(const struct knocker *k, int ms)
{
	return deadline_earlier(k->deadline, deadline_after_ms(ms));
}

static int knock_connect(struct knocker *k, const struct card *card, uint32_t *tried)
{
	int which = 0, fd = address_connect_any(&card->addresses, tried, knock_within(k, KNOCK_CONNECT_MS), &which);

	if (fd == -EMFILE)
		return star_no_descriptors("connecting to rank 0", 1);
	if (fd < 0)
		return knock_again(k, error_sys(fd, "connecting to %s", k->where));
	address_tune(fd);
	conn_open(&k->b->conns[0], fd, k->b->size);
	return 0;
}

static int knock_hello(struct knocker *k)
{
	struct message_rank who = k->b->peers[k->b->rank].who;
	struct message_hello hello;

	who.left_ms = deadline_left_ms(k->deadline);
	who.secret = *k->secret != '\0';
	memcpy(who.nonce, k->proof.rank_nonce, sizeof(who.nonce));
	snprintf(who.job_id, sizeof(who.job_id), "%s", k->job_id);
	message_put_hello(&hello, &who);
	if (conn_send(&k->b->conns[0], MESSAGE_HELLO, &hello, sizeof(hello)) < 0)
		return knock_again(k, -ECONNRESET);
	return 0;
}

static int knock_refused(struct knocker *k, const struct conn_frame *frame)
{
	char text[MESSAGE_TEXT_BYTES + 1];
	int code;

	if (message_get_text(frame->body, frame->len, &code, text) < 0 || code >= 0 || code < -4095)
		return knock_again(k, error_set(-EPROTO, "it refused without a reason"));
	error_set(code, "rank 0 at %s refused this rank: %s", k->where, text);
	return code == -EAGAIN ? knock_again(k, code) : code;
}

/* CHALLENGE in, PROOF out. */
static int knock_answer(struct knocker *k)
{
	struct conn *c = &k->b->conns[0];
	struct conn_frame frame;
	struct message_challenge challenge;
	uint8_t mine[MESSAGE_PROOF_BYTES];
	int got;

	c->expects = CONN_EXPECT(MESSAGE_CHALLENGE) | CONN_EXPECT(MESSAGE_REFUSED);
	got = star_receive(k->b, 0, &frame, knock_within(k, KNOCK_ANSWER_MS));
	if (got == 0)
		return knock_again(k, error_set(-ETIMEDOUT,
						"something accepts connections at %s but does not answer",
						k->where));
	if (got < 0)
		return knock_again(k, error_prefix(got, "what answers at %s", k->where));
	if (frame.kind == MESSAGE_REFUSED)
		return knock_refused(k, &frame);
	if (frame.len != sizeof(challenge))
		return knock_again(k, error_set(-EPROTO, "what answers at %s is not rank 0", k->where));
	memcpy(&challenge, frame.body, sizeof(challenge));
	if ((message_get32(&challenge.secret) != 0) != (*k->secret != '\0'))
		return error_set(
			-EACCES,
			"job_secret is set on one of this rank and rank 0 at %s, not on the other; give "
			"every rank the same",
			k->where);
	memcpy(k->proof.door_nonce, challenge.nonce, sizeof(challenge.nonce));
	proof_make(&k->proof, PROOF_RANK, mine);
	c->expects = CONN_EXPECT(MESSAGE_ACCEPTED) | CONN_EXPECT(MESSAGE_REFUSED);
	if (conn_send(c, MESSAGE_PROOF, mine, sizeof(mine)) < 0)
		return knock_again(k, -ECONNRESET);
	return 0;
}

static int knock_late(struct knocker *k)
{
	return error_set(-ETIMEDOUT, "%s has not let the job begin within %lld ms (start_timeout_ms)",
			 k->b->peers[0].name, (long long)k->b->timeout_ms);
}

static int knock_accepted(struct knocker *k)
{
	struct conn *c = &k->b->conns[0];
	struct conn_frame frame;
	int got = star_receive(k->b, 0, &frame, k->deadline + STAR_GRACE_MS * CLOCK_NS_PER_MS);

	if (got == 0)
		return knock_late(k);
	if (got < 0)
		return knock_again(k, error_prefix(got, "what answers at %s", k->where));
	if (frame.kind == MESSAGE_REFUSED)
		return knock_refused(k, &frame);
	if (frame.len != MESSAGE_PROOF_BYTES || !proof_holds(&k->proof, PROOF_DOOR, frame.body))
		return error_set(
			-EACCES,
			"what answers at %s does not know the job_secret; is it another job's rank 0?",
			k->where);
	k->accepted = true;
	c->expects = CONN_EXPECT(MESSAGE_WELCOME) | CONN_EXPECT(MESSAGE_FAILED) | CONN_EXPECT(MESSAGE_LOST);
	return 0;
}

static int knock_take_welcome(struct bootstrap *b, const struct conn_frame *frame)
{
	struct message_welcome welcome;
	size_t head = sizeof(welcome);

	if (frame->len != head + (size_t)b->size * sizeof(struct message_member))
		return error_set(-EPROTO, "it sent a malformed welcome");
	memcpy(&welcome, frame->body, head);
	if (message_get32(&welcome.size) != (uint32_t)b->size)
		return error_set(-EPROTO, "it sent a malformed welcome");
	for (int i = 0; i < MESSAGE_ID_BYTES; i++)
		if (!strchr("0123456789abcdefABCDEF", welcome.job_id[i]) || !welcome.job_id[i])
			return error_set(-EPROTO, "it sent a malformed job id");
	memcpy(b->job_id, welcome.job_id, MESSAGE_ID_BYTES);
	for (int i = 0; i < b->size; i++) {
		struct message_member member;

		memcpy(&member, frame->body + head + (size_t)i * sizeof(member), sizeof(member));
		message_get_member(&member, &b->peers[i].who);
		star_name_peer(b, i);
	}
	return 0;
}

static int knock_welcome(struct knocker *k)
{
	struct bootstrap *b = k->b;
	struct conn_frame frame;
	int got = star_receive(b, 0, &frame, k->deadline + STAR_GRACE_MS * CLOCK_NS_PER_MS);

	if (got == 0)
		return star_fail(b, knock_late(k));
	if (got > 0 && frame.kind != MESSAGE_WELCOME)
		return star_bad_news(b, 0, &frame);
	if (got > 0)
		got = knock_take_welcome(b, &frame);
	if (got < 0)
		return star_fail_lost(b, 0);
	b->conns[0].expects = CONN_EXPECT(MESSAGE_GATHERED) | CONN_EXPECT(MESSAGE_FAILED) |
			      CONN_EXPECT(MESSAGE_LOST) | CONN_EXPECT(MESSAGE_LEFT);
	return 0;
}

static int knock_once(struct knocker *k, const struct card *card, uint32_t *tried)
{
	int err = knock_connect(k, card, tried);

	if (!err)
		err = knock_hello(k);
	if (!err)
		err = knock_answer(k);
	if (!err)
		err = knock_accepted(k);
	if (!err)
		err = knock_welcome(k);
	if (err)
		conn_close(&k->b->conns[0]);
	return err;
}

static bool knock_unreachable(int err)
{
	return err == -EHOSTUNREACH || err == -ENETUNREACH || err == -ENETDOWN || err == -EHOSTDOWN;
}

static void knock_pause(struct knocker *k, int *pause_ms)
{
	int ms = *pause_ms + (k->b->rank % 8) * *pause_ms / 16;
	int left = deadline_left_ms(k->deadline);
	struct timespec ts;

	ms = ms < left ? ms : left;
	ts = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * CLOCK_NS_PER_MS};
	nanosleep(&ts, NULL);
	*pause_ms = *pause_ms * 2 < KNOCK_PAUSE_MAX_MS ? *pause_ms * 2 : KNOCK_PAUSE_MAX_MS;
}

static int knock_given_up(struct knocker *k)
{
	if (knock_unreachable(k->last))
		return error_set(-EHOSTUNREACH,
				 "rank 0 at %s cannot be reached: %s; check the host's name and the network",
				 k->where, k->why);
	return error_set(-ETIMEDOUT,
			 "rank 0 at %s did not let this rank in within %lld ms (start_timeout_ms), the last "
			 "attempt: %s; check "
			 "that rank 0 was started and that no firewall is between%s",
			 k->where, (long long)k->b->timeout_ms, k->why[0] ? k->why : "cut short",
			 k->last == -ECONNREFUSED
				 ? ", or this rank has joined already (another job with the same conf?)"
				 : "");
}

int knock(struct bootstrap *b, const struct card *card, const char *where, const char *secret, const char *job_id,
	  int64_t deadline)
{
	struct knocker k = {.b = b,
			    .where = where,
			    .secret = secret,
			    .job_id = job_id,
			    .deadline = deadline,
			    .last = -ETIMEDOUT,
			    .proof = {.rank = b->rank, .size = b->size}};
	int64_t unreachable = 0;
	const uint32_t all = (UINT32_C(1) << card->addresses.count) - 1;
	int pause_ms = KNOCK_PAUSE_FIRST_MS;
	int err = proof_random(k.proof.rank_nonce, sizeof(k.proof.rank_nonce));

	if (err)
		return star_fail(b, err);
	proof_set_key(&k.proof, secret);
	for (;;) {
		uint32_t tried = 0;
		bool reached = false;

		/* Behind one address may be another machine, or a port forwarder: the next one then. */
		do {
			err = knock_once(&k, card, &tried);
			if (err != KNOCK_AGAIN)
				return err ? star_fail(b, err) : 0;
			reached = reached || !knock_unreachable(k.last);
		} while (tried != all && deadline_left_ms(deadline) > 0);
		if (reached)
			unreachable = 0;
		else if (!unreachable)
			unreachable = deadline_after_ms(KNOCK_UNREACHABLE_MS);
		knock_pause(&k, &pause_ms);
		if (deadline_left_ms(k.deadline) == 0 || (unreachable && deadline_left_ms(unreachable) == 0))
			return star_fail(b, knock_given_up(&k));
	}
}
