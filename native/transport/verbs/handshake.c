/* SPDX-License-Identifier: MIT */
#include "transport/verbs/handshake.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* The first wait for an answer; each is twice as long as the one before it. */
#define HANDSHAKE_HELLO_MS 20

struct private_data handshake_data(const struct verbs *v, const struct verbs_conn *c, enum refusal why)
{
	struct private_data d = {.magic = PRIVATE_DATA_MAGIC, .rank = (uint32_t)v->env.rank, .refusal = (uint16_t)why};

	memcpy(d.job, v->job, sizeof(d.job));
	if (c) {
		d.credit = (uint16_t)c->quota;
		d.credit_max = (uint16_t)(c->device->srq ? v->slots : c->quota);
		d.reads = c->device->reads_in;
	}
	return d;
}

struct verbs_peer *handshake_requester(struct verbs *v, const struct private_data *d, bool readable, enum refusal *why)
{
	struct verbs_peer *p;

	*why = REFUSAL_STRANGER;
	if (!readable || !v->peers || memcmp(d->job, v->job, sizeof(d->job)) != 0 || d->rank >= (uint32_t)v->env.size ||
	    d->rank == (uint32_t)v->env.rank)
		return NULL;
	*why = REFUSAL_GONE;
	p = &v->peers[d->rank];
	switch (p->state) {
	case PEER_IDLE:
	case PEER_AWAITING: return v->leaving ? NULL : p;
	case PEER_RESOLVING:
	case PEER_CONNECTING:
		/* a lower rank that still reads an old request of ours would close the one that we accept */
		if (p->rank > v->env.rank || (!p->conn && !p->unanswered))
			return p;
		*why = REFUSAL_CROSSED;
		return NULL;
	case PEER_ACCEPTING:
		if (p->conn && p->conn->id && !p->conn->hello_received) /* RDMA CM: it repeats the request that it has given up */
			return p;
		*why = REFUSAL_CROSSED;
		return NULL;
	case PEER_UP: *why = REFUSAL_CROSSED; return NULL;
	case PEER_ENDING:
	case PEER_DOWN:
	case PEER_STATE_COUNT: return NULL;
	}
	return NULL;
}

struct verbs_conn *handshake_accept(struct verbs_peer *p)
{
	struct verbs_conn *c;

	if (p->state != PEER_ACCEPTING)
		peer_set_state(p, PEER_ACCEPTING);
	if (p->conn)
		connection_close(p->conn);
	if (p->state != PEER_ACCEPTING) { /* given up meanwhile */
		error_set(-ECANCELED, "it was given up meanwhile");
		return NULL;
	}
	c = connection_open(p, false);
	if (!c)
		peer_end(p, -ENOMEM, "rank %d connected: %s", p->rank, error_text());
	return c;
}

static void handshake_maybe_up(struct verbs_conn *c)
{
	if (!connection_in(c, PEER_ACCEPTING) || !c->established || !c->hello_received)
		return;
	peer_set_state(c->peer, PEER_UP);
	post_own(c, OWN_HELLO, false); /* ends the connecting side's HELLOs */
}

void handshake_first_packet(struct verbs_conn *c)
{
	c->hello_received = true;
	handshake_maybe_up(c);
}

void handshake_given_up(struct verbs_conn *c)
{
	peer_set_state(c->peer, PEER_IDLE);
	connection_close(c);
}

static void handshake_start_timer(struct verbs *v, uint32_t hellos)
{
	int64_t ns = HANDSHAKE_HELLO_MS * CLOCK_NS_PER_MS << hellos;
	struct itimerspec t = {.it_value = {.tv_sec = ns / CLOCK_NS_PER_S, .tv_nsec = ns % CLOCK_NS_PER_S}};

	if (timerfd_settime(v->timer_fd, 0, &t, NULL) < 0)
		log_warn(v->env.log, "verbs: timerfd_settime: %s", strerror(errno));
}

void handshake_on_timer(void *verbs)
{
	struct verbs *v = verbs;
	uint32_t next = POST_HELLOS;
	uint64_t n;

	if (read(v->timer_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_warn(v->env.log, "verbs: timerfd: %s", strerror(errno));
	for (uint32_t i = 0; i < v->conn_count; i++) {
		struct verbs_conn *c = v->conns[i];

		if (!c || !c->active || c->hello_received || !connection_in(c, PEER_UP) || c->hellos >= POST_HELLOS)
			continue;
		/* where credit is short the late ones count most */
		if (c->credit > POST_HELLOS - c->hellos)
			post_own(c, OWN_HELLO, false);
		c->hellos++;
		if (c->hellos < next)
			next = c->hellos;
	}
	if (next < POST_HELLOS)
		handshake_start_timer(v, next);
}

void handshake_established(struct verbs_conn *c, const struct private_data *d, bool readable)
{
	struct verbs_peer *p = c->peer;

	c->established = true;
	if (!c->active) {
		handshake_maybe_up(c);
		return;
	}
	if (p->state != PEER_CONNECTING)
		return;
	if (!readable || memcmp(d->job, c->verbs->job, sizeof(d->job)) != 0 || d->rank != (uint32_t)p->rank ||
	    !connection_take_credit(c, d)) {
		peer_end(p, -EPROTO, "what answers at the address of rank %d is not of this job", p->rank);
		return;
	}
	peer_set_state(p, PEER_UP);
	post_own(c, OWN_HELLO, false);
	if (c->device->iwarp)
		handshake_start_timer(c->verbs, 0);
}

void handshake_refused(struct verbs_conn *c, int status, const struct private_data *d, bool readable)
{
	struct verbs_peer *p = c->peer;

	if (readable && d->refusal == REFUSAL_CROSSED && p->state == PEER_CONNECTING && p->rank > c->verbs->env.rank) {
		peer_set_state(p, PEER_AWAITING);
		connection_close(c);
		return;
	}
	peer_end(p, -ECONNREFUSED, "rank %d refused the connection (%s, status %d)", p->rank,
		 !readable                        ? "no process listens there any more: it may have ended"
		 : d->refusal == REFUSAL_GONE     ? "it has given this rank up, or is finishing"
		 : d->refusal == REFUSAL_STRANGER ? "it belongs to another job"
						  : "it reports that a connection exists",
		 status);
}

void handshake_disconnected(struct verbs_conn *c)
{
	struct verbs_peer *p = c->peer;

	if (c->left)
		peer_end(p, -EPIPE, "left");
	else
		peer_end(p, -ECONNRESET, "rank %d closed its connection without finish: its process has died or was ended", p->rank);
}
