/* SPDX-License-Identifier: MIT */
/*
 * door: how rank 0 lets the others in.
 *
 * Whoever connects is a guest until it has proved itself:
 *
 *   SILENT --HELLO--> CHALLENGED --PROOF--> (seated: the connection moves to b->conns)
 *     |                   |
 *     `-----refusal-------+--> REFUSED --closed by the guest, or its time is up--> (gone)
 *
 * Guests cost a slot and a little time; they cannot fail the job, and none waits for another.  A
 * silent one gives way when slots or descriptors run out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/deadline.h"
#include "bootstrap/door.h"
#include "base/proof.h"
#include "bootstrap/star.h"

#define DOOR_GUESTS 128
#define DOOR_GUESTS_MAX 4096
#define DOOR_GUEST_MS 5000
#define DOOR_ACCEPTS_PER_TURN 64
/* Whoever came less than this ago may still be about to speak: it does not give way to the next. */
#define DOOR_YOUNG_MS 300
/* How long other threads of this process may keep the descriptors that the job needs. */
#define DOOR_STARVED_MS 1000

enum guest_state { GUEST_NONE, GUEST_SILENT, GUEST_CHALLENGED, GUEST_REFUSED, GUEST_STATE_COUNT };

static const bool guest_steps[GUEST_STATE_COUNT][GUEST_STATE_COUNT] = {
	[GUEST_NONE] = {[GUEST_SILENT] = true},
	[GUEST_SILENT] = {[GUEST_CHALLENGED] = true, [GUEST_REFUSED] = true, [GUEST_NONE] = true},
	[GUEST_CHALLENGED] = {[GUEST_REFUSED] = true, [GUEST_NONE] = true},
	[GUEST_REFUSED] = {[GUEST_NONE] = true},
};

struct guest {
	enum guest_state state;
	struct conn conn;
	int64_t deadline;
	struct message_rank who;
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	char from[ADDRESS_TEXT_BYTES];
};

struct door {
	struct bootstrap *b;
	struct address_listener *listener;
	struct guest *guests;
	int guest_max;
	int poll_max;
	struct pollfd *polls;   /* poll_max: listeners, then guests, then the seated; and as many for star_poll */
	int64_t starved_deadline; /* 0: there are descriptors */
	int64_t deadline;
	int missing;
	unsigned evictions;
	int refused;
	char last_refusal[256];
	const char *secret;
	const char *job_id; /* as set; "": none */
};

static void guest_set_state(struct guest *g, enum guest_state state)
{
	if (guest_steps[g->state][state])
		g->state = state;
}

static void guest_drop(struct guest *g)
{
	conn_close(&g->conn);
	guest_set_state(g, GUEST_NONE);
}

/* Tells the guest why (the present error text) and lets it close. */
static void guest_refuse(struct door *d, struct guest *g, int code)
{
	uint8_t body[4 + MESSAGE_TEXT_BYTES];

	d->refused++;
	snprintf(d->last_refusal, sizeof(d->last_refusal), "one from %s that said to be rank %d: %.150s",
		 g->from, g->who.rank, error_text());
	log_warn(d->b->log, "bootstrap: refused %s", d->last_refusal);
	conn_send(&g->conn, MESSAGE_REFUSED, body, message_put_text(body, code, error_text()));
	shutdown(g->conn.fd, SHUT_WR);
	g->deadline = deadline_after_ms(DOOR_GUEST_MS);
	guest_set_state(g, GUEST_REFUSED);
}

static void guest_challenge(struct door *d, struct guest *g)
{
	struct message_challenge challenge;

	if (proof_random(g->nonce, sizeof(g->nonce)) < 0) {
		guest_drop(g);
		return;
	}
	memcpy(challenge.nonce, g->nonce, sizeof(challenge.nonce));
	message_put32(&challenge.secret, *d->secret != '\0');
	g->conn.expects = CONN_EXPECT(MESSAGE_PROOF);
	if (conn_send(&g->conn, MESSAGE_CHALLENGE, &challenge, sizeof(challenge)) < 0)
		guest_drop(g);
	else
		guest_set_state(g, GUEST_CHALLENGED);
}

static void guest_on_hello(struct door *d, struct guest *g, const struct conn_frame *frame)
{
	int err = message_get_hello(frame->body, frame->len, &g->who);

	if (err == -EPROTONOSUPPORT) {
		guest_refuse(d, g, err);
	} else if (err) {
		guest_drop(g);
	} else if (*d->job_id && *g->who.job_id && strcmp(d->job_id, g->who.job_id) != 0) {
		error_set(-EAGAIN, "it belongs to job %s, this is job %s", g->who.job_id, d->job_id);
		guest_refuse(d, g, -EAGAIN);
	} else if (g->who.secret != (*d->secret != '\0')) {
		error_set(-EACCES, "job_secret is set on %s, not on %s; give every rank the same",
			  g->who.secret ? "that rank" : "rank 0", g->who.secret ? "rank 0" : "that rank");
		guest_refuse(d, g, -EACCES);
	} else {
		guest_challenge(d, g);
	}
}

static int guest_check_rank(struct door *d, struct guest *g)
{
	struct bootstrap *b = d->b;

	if (g->who.size != b->size)
		return error_set(-EINVAL, "it was started for %d ranks, rank 0 for %d; use one conf for all",
				 g->who.size, b->size);
	if (g->who.rank <= 0 || g->who.rank >= b->size)
		return error_set(-EINVAL, "rank %d does not exist among %d", g->who.rank, b->size);
	if (b->conns[g->who.rank].fd >= 0)
		return error_set(
			-EEXIST,
			"%s is already there; does another job use the same conf? End it, or use other ports",
			b->peers[g->who.rank].name);
	return 0;
}

static void guest_seat(struct door *d, struct guest *g, struct proof *proof)
{
	struct bootstrap *b = d->b;
	int rank = g->who.rank;
	uint8_t mine[MESSAGE_PROOF_BYTES];

	proof_make(proof, PROOF_DOOR, mine);
	g->conn.expects = 0; /* from here until WELCOME it has nothing to say */
	if (conn_send(&g->conn, MESSAGE_ACCEPTED, mine, sizeof(mine)) < 0) {
		guest_drop(g);
		return;
	}
	b->conns[rank] = g->conn;
	memset(&g->conn, 0, sizeof(g->conn));
	g->conn.fd = -1;
	guest_set_state(g, GUEST_NONE);
	b->peers[rank].who = g->who;
	star_name_peer(b, rank);
	d->missing--;
	d->deadline = deadline_earlier(d->deadline, deadline_after_ms(g->who.left_ms));
	log_debug(b->log, "bootstrap: %s has come, %d missing", b->peers[rank].name, d->missing);
}

static void guest_on_proof(struct door *d, struct guest *g, const struct conn_frame *frame)
{
	struct proof proof = {.rank = g->who.rank, .size = g->who.size};
	int err;

	memcpy(proof.rank_nonce, g->who.nonce, sizeof(proof.rank_nonce));
	memcpy(proof.door_nonce, g->nonce, sizeof(proof.door_nonce));
	proof_set_key(&proof, d->secret);
	if (frame->len != MESSAGE_PROOF_BYTES) {
		guest_drop(g);
		return;
	}
	if (!proof_holds(&proof, PROOF_RANK, frame->body))
		err = error_set(-EACCES, "wrong job_secret; it must be the same on every rank");
	else
		err = guest_check_rank(d, g);
	if (err)
		guest_refuse(d, g, err);
	else
		guest_seat(d, g, &proof);
}

static void guest_on_readable(struct door *d, struct guest *g)
{
	struct conn_frame frame;
	int got;

	if (g->state == GUEST_REFUSED) {
		uint8_t byte;

		conn_discard_input(&g->conn);
		if (recv(g->conn.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
			guest_drop(g);
		return;
	}
	got = conn_receive(&g->conn, &frame);
	if (got < 0) {
		log_debug(d->b->log, "bootstrap: dropped a connection from %s: %s", g->from, error_text());
		guest_drop(g);
	} else if (got > 0 && g->state == GUEST_SILENT) {
		guest_on_hello(d, g, &frame);
	} else if (got > 0) {
		guest_on_proof(d, g, &frame);
	}
}

/* A free slot, or that of whoever has said nothing for longest. */
static struct guest *door_slot(struct door *d)
{
	struct guest *oldest = NULL;

	for (int i = 0; i < d->guest_max; i++) {
		struct guest *g = &d->guests[i];

		if (g->state == GUEST_NONE)
			return g;
		if (g->state != GUEST_CHALLENGED && (!oldest || g->deadline < oldest->deadline))
			oldest = g;
	}
	/* All have said HELLO: still nobody may lock the door for the rest. */
	if (!oldest)
		oldest = &d->guests[d->evictions++ % (unsigned)d->guest_max];
	guest_drop(oldest);
	return oldest;
}

static void door_admit(struct door *d, int fd)
{
	struct guest *g = door_slot(d);

	address_tune(fd);
	conn_open(&g->conn, fd, d->b->size);
	g->conn.expects = CONN_EXPECT(MESSAGE_HELLO);
	g->deadline = deadline_after_ms(DOOR_GUEST_MS);
	memset(&g->who, 0, sizeof(g->who));
	address_peer_text(fd, g->from);
	guest_set_state(g, GUEST_SILENT);
}

static bool guest_stays(const struct guest *g)
{
	return g->state == GUEST_CHALLENGED ||
	       (g->state == GUEST_SILENT && deadline_left_ms(g->deadline) > DOOR_GUEST_MS - DOOR_YOUNG_MS);
}

/* No descriptors left (accept says so even if nobody waits): the silent have to go. */
static void door_make_room(struct door *d)
{
	static const struct timespec moment = {.tv_nsec = 10 * CLOCK_NS_PER_MS};
	int dropped = 0, kept = 0;

	for (int i = 0; i < d->guest_max; i++)
		if (guest_stays(&d->guests[i])) {
			kept++;
		} else if (d->guests[i].state != GUEST_NONE) {
			guest_drop(&d->guests[i]);
			dropped++;
		}
	if (dropped)
		log_warn(d->b->log, "bootstrap: out of file descriptors; dropped %d unproved connections",
			 dropped);
	if (!dropped && !kept && !d->starved_deadline)
		d->starved_deadline = deadline_after_ms(DOOR_STARVED_MS);
	if (!dropped)
		nanosleep(&moment, NULL);
}

static void door_accept(struct door *d, int listen_fd)
{
	for (int i = 0; i < DOOR_ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			d->starved_deadline = 0;
			door_admit(d, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			door_make_room(d);
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static int door_missing(struct door *d)
{
	struct bootstrap *b = d->b;
	char names[256] = "", refusals[400] = "";
	size_t used = 0;
	int named = 0;

	for (int i = 1; i < b->size && named < 4; i++)
		if (b->conns[i].fd < 0) {
			int n = snprintf(names + used, sizeof(names) - used, "%s%s", named ? ", " : "",
					 b->peers[i].name);

			used += (size_t)n < sizeof(names) - used ? (size_t)n : 0;
			named++;
		}
	if (d->starved_deadline)
		return star_no_descriptors("rank 0 cannot let the other ranks in", d->missing + 1);
	if (d->refused)
		snprintf(refusals, sizeof(refusals), "; rank 0 refused %d connections, the last was %s",
			 d->refused, d->last_refusal);
	return error_set(-ETIMEDOUT,
			 "%d of %d ranks did not come within %lld ms (start_timeout_ms): %s%s; check that "
			 "they were started "
			 "and can reach rank 0%s",
			 d->missing, b->size, (long long)b->timeout_ms, names,
			 d->missing > named ? " and others" : "", refusals);
}

static int door_poll(struct door *d)
{
	struct bootstrap *b = d->b;
	int64_t next = d->deadline;
	int n = 0;

	for (int i = 0; i < d->listener->count; i++)
		d->polls[n++] = (struct pollfd){.fd = d->listener->fds[i], .events = POLLIN};
	for (int i = 0; i < d->guest_max; i++) {
		struct guest *g = &d->guests[i];

		if (g->state != GUEST_NONE && deadline_left_ms(g->deadline) == 0)
			guest_drop(g);
		if (g->state != GUEST_NONE)
			next = deadline_earlier(next, g->deadline);
		d->polls[n++] =
			(struct pollfd){.fd = g->state != GUEST_NONE ? g->conn.fd : -1, .events = POLLIN};
	}
	for (int i = 0; i < b->size; i++)
		d->polls[n++] = (struct pollfd){.fd = b->conns[i].fd, .events = POLLIN};
	return star_poll(d->polls, n, d->polls + d->poll_max, next);
}

/* The seated first: a slot that has died must not look taken. */
static int door_turn(struct door *d)
{
	struct bootstrap *b = d->b;
	const struct pollfd *guests = d->polls + d->listener->count;
	const struct pollfd *seated = guests + d->guest_max;
	struct conn_frame frame;
	int err = door_poll(d);

	if (err < 0)
		return star_fail_all(b, err);
	for (int i = 1; i < b->size; i++)
		if (seated[i].revents && conn_receive(&b->conns[i], &frame) < 0)
			return star_fail_lost(b, i);
	for (int i = 0; i < d->guest_max; i++)
		if (guests[i].revents && d->guests[i].state != GUEST_NONE)
			guest_on_readable(d, &d->guests[i]);
	for (int i = 0; i < d->listener->count; i++)
		if (d->polls[i].revents)
			door_accept(d, d->listener->fds[i]);
	return 0;
}

static uint8_t *door_make_welcome(struct bootstrap *b, size_t *len)
{
	struct message_welcome *welcome;
	uint8_t *body;

	*len = sizeof(struct message_welcome) + (size_t)b->size * sizeof(struct message_member);
	body = malloc(*len);
	if (!body)
		return NULL;
	welcome = (struct message_welcome *)body;
	memcpy(welcome->job_id, b->job_id, sizeof(welcome->job_id));
	message_put32(&welcome->size, (uint32_t)b->size);
	for (int i = 0; i < b->size; i++) {
		struct message_member member;

		message_put_member(&member, &b->peers[i].who);
		memcpy(body + sizeof(*welcome) + (size_t)i * sizeof(member), &member, sizeof(member));
	}
	return body;
}

static int door_welcome(struct door *d)
{
	struct bootstrap *b = d->b;
	size_t len;
	uint8_t *body = door_make_welcome(b, &len);
	int rank = 0, err = 0;

	if (!body)
		return star_fail_all(b, error_set(-ENOMEM, "no memory for %d ranks", b->size));
	for (int i = 1; i < b->size && !err; i++) {
		b->conns[i].expects =
			CONN_EXPECT(MESSAGE_GATHER) | CONN_EXPECT(MESSAGE_LOST) | CONN_EXPECT(MESSAGE_LEFT);
		rank = i;
		err = conn_lend(&b->conns[i], MESSAGE_WELCOME, body, len);
	}
	if (!err)
		err = star_flush(b, d->deadline + STAR_GRACE_MS * CLOCK_NS_PER_MS, &rank);
	if (err)
		err = star_fail_lost(b, rank);
	for (int i = 1; i < b->size; i++)
		conn_own(&b->conns[i]);
	free(body);
	return err;
}

int door_meet(struct bootstrap *b, struct address_listener *listener, const char *secret, const char *job_id,
	      int64_t deadline)
{
	struct door d = {.b = b,
			 .listener = listener,
			 .deadline = deadline,
			 .missing = b->size - 1,
			 .secret = secret,
			 .job_id = job_id};
	int err = 0;

	d.guest_max = b->size + DOOR_GUESTS < DOOR_GUESTS_MAX ? b->size + DOOR_GUESTS : DOOR_GUESTS_MAX;
	d.guests = calloc((size_t)d.guest_max, sizeof(*d.guests));
	d.poll_max = ADDRESS_MAX + d.guest_max + b->size;
	d.polls = calloc(2 * (size_t)d.poll_max, sizeof(*d.polls));
	if (!d.guests || !d.polls)
		err = star_fail(b, error_set(-ENOMEM, "no memory for %d ranks", b->size));
	for (int i = 0; d.guests && i < d.guest_max; i++)
		d.guests[i].conn.fd = -1;
	while (!err && d.missing > 0) {
		if (deadline_left_ms(d.deadline) == 0 ||
		    (d.starved_deadline && deadline_left_ms(d.starved_deadline) == 0))
			err = star_fail_all(b, door_missing(&d));
		else
			err = door_turn(&d);
	}
	/* Before anybody is welcome: a knock for the next round must not reach this one's door. */
	address_unlisten(listener);
	for (int i = 0; d.guests && i < d.guest_max; i++)
		guest_drop(&d.guests[i]);
	free(d.guests);
	free(d.polls);
	return err ? err : door_welcome(&d);
}
