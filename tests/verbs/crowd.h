/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VERBS_CROWD_H
#define TESTS_VERBS_CROWD_H
/*
 * crowd: all other ranks of a large job around one transport, each played by a few words of state.
 *
 * They speak the protocol (PROTOCOL.md section 9): connect, accept, refuse as crossed, HELLO, credit; they check that packets come once and in
 * order.  What happens next is drawn at random: which rank acts, how connecting fares, whether packets come before the event that the
 * connection stands.
 */
#include "pair.h"
#include "proto/rng.h"
#include "transport/verbs/handshake.h"

struct crowd_rank {
	int rank;
	bool calls;    /* is to send a connection request, if none is under way */
	bool accepted; /* our request was, and is not established yet */
	bool has_sent; /* our first packet has gone out */
	bool never;    /* answers no request: refuses (even ranks) or is silent (odd ranks) */
	int troubles;
	struct rdma_cm_id *called; /* the transport's end of our request */
	struct rdma_cm_id *asked;  /* of its request, not answered */
	struct rdma_cm_id *id;     /* of the connection */
	uint32_t credit, unreturned;
	uint64_t sent, got, to_send, to_get; /* packets with a value, from 1 on */
};

struct crowd {
	struct side *side;
	int size, me; /* the transport's rank */
	uint16_t port;
	struct rng rng;
	unsigned trouble_percent;
	int most; /* troubles of one rank */
	struct crowd_rank *ranks;
	uint64_t actions;  /* what has happened so far */
	unsigned troubles; /* of these: requests refused, not answered, given up */
	unsigned full;     /* and those that a full backlog refused */
	unsigned crossed;
};

/* A job of so many ranks of which rank `me` is the transport; closed by crowd_close(). */
void crowd_open(struct crowd *c, struct side *s, int size, int me, uint64_t seed, const struct settings *settings, const struct log *log);
void crowd_close(struct crowd *c);
/* Some rank, drawn at random, does what it can. */
void crowd_step(struct crowd *c);
/* Any rank but the transport's. */
int crowd_draw(struct crowd *c);
/* All have sent and received everything. */
bool crowd_done(const struct crowd *c);

#endif
