/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_TRAFFIC_H
#define TESTS_PROTO_TRAFFIC_H
/*
 * traffic: random traffic over ibvx.h, with a reference matcher.
 *
 * Every rank has `channels` channels.  A channel is a stream of messages from each rank and, on each rank,
 * the receives for them; it has a context of its own (or, with `shared`, all channels
 * have one).  An actor sends and/or receives for one channel of one rank; it belongs to one
 * thread at a time.  What each rank sends in which round is a pure function of the seed (plan.c), so
 * any rank, in any process, can check what it receives.
 *
 * A failed check prints what was wrong and the command that replays it, and ends the process.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibvx_pin.h"
#include "rng.h"

#define TRAFFIC_EDGES 8
#define TRAFFIC_CHANNELS_MAX 4
#define TRAFFIC_OPS_MAX 200

struct traffic_config {
	uint64_t seed;
	int ranks;
	int channels;
	int rounds;
	unsigned messages; /* of one rank in one channel in one round */
	unsigned ops;      /* operations that an actor keeps open, at most (< TRAFFIC_OPS_MAX) */
	int tags;          /* tags in use: 0 .. tags - 1, and seldom IBVX_ANY_TAG's value */
	size_t size_max;
	size_t edges[TRAFFIC_EDGES]; /* sizes next to which something changes; 0: unused */
	bool shared;                 /* all channels in one context */
	bool blocking;               /* each actor has its own thread and may block */
	bool halves;                 /* a channel's sender and receiver are two actors (needs `blocking`) */
	const char *replay;          /* the command line that brings this run again */
};

/* Everything but seed and replay, by seed; messages scales with `messages`. */
void traffic_config_random(struct traffic_config *cfg, uint64_t seed, int ranks, unsigned messages);

/* --- plan.c --- */

struct message {
	int src, dst, channel, round;
	unsigned seq;
	int context, tag;
	size_t bytes[2];
	bool sync, detach;
	uint64_t user; /* names the message: src, channel, round, seq */
};

int traffic_context(const struct traffic_config *cfg, int channel);
void message_make(const struct traffic_config *cfg, int src, int channel, int round, unsigned seq, struct message *m);
/* false if no message of the job has this word */
bool message_of_user(const struct traffic_config *cfg, uint64_t user, struct message *m);
/* The bytes of a message from position `at` on (the body follows the head). */
void pattern_fill(const struct traffic_config *cfg, uint64_t user, size_t at, void *to, size_t len);
bool pattern_holds(const struct traffic_config *cfg, uint64_t user, size_t at, const void *from, size_t len);

void traffic_fail(const struct traffic_config *cfg, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* --- actor.c, operation.c --- */

enum event_kind { EVENT_RECEIVE, EVENT_PROBE };

/* One receive or probe that got a message; index: the order of the calls. */
struct event {
	enum event_kind kind;
	unsigned index;
	int source, tag; /* as asked */
	uint64_t user;   /* what it got */
};

struct inbox {
	atomic_uint remaining; /* messages of this round that have not been received */
	atomic_uchar *seen;    /* [channel][src][seq] */
};

/* Memory that a layout describes (operation_layout.c); base == NULL: none. */
struct spread {
	struct ibvx_layout *layout;
	char *base;
	size_t total;        /* bytes of a message that it holds, at most */
	size_t memory_bytes; /* and with what lies between them */
	size_t block, stride;
	size_t *order;  /* segments: where they lie */
	bool backwards; /* callbacks */
};

struct operation {
	bool send;
	ibvx_req req;
	struct message m;     /* send */
	char *memory[2];      /* send: segments; receive: [0] */
	struct spread spread; /* send: what the body is read from; receive: what is written in place of memory[0] */
	int source, tag;      /* receive */
	size_t capacity;
	bool split, cancelled, probed;
	bool pinnable;        /* receive: its memory is pinnable */
	uint64_t probed_user; /* the message that it must get */
	unsigned index;
};

struct actor {
	const struct traffic_config *cfg;
	struct ibvx *ep;
	int rank, channel, round;
	bool sends, receives;
	bool alone; /* the only actor of its rank */
	struct inbox *inbox;
	struct rng rng;
	unsigned seq; /* messages sent */
	struct operation *ops[TRAFFIC_OPS_MAX];
	unsigned op_count;
	unsigned next_index;
	struct event *events;
	unsigned event_count, event_room;
	void **kept; /* memory of sends whose handles were given up */
	unsigned kept_count;
	unsigned idle; /* steps without success in a row */
	atomic_ulong steps, successes;
	const char *_Atomic doing;
};

/* One random step; true when the actor's round is finished. */
bool actor_step(struct actor *a);

/* operation.c: one call of ibvx.h each, with all its checks. */
void op_start_send(struct actor *a);
void op_blocking_send(struct actor *a);
/* source and tag as asked; expect: the user word it must get, or NULL */
void op_start_receive(struct actor *a, int source, int tag, const uint64_t *expect);
void op_blocking_receive(struct actor *a, int source, int tag);
void op_matched(struct actor *a, int source, int tag, bool blocking);
bool op_probe(struct actor *a, int source, int tag, bool blocking);
bool op_test(struct actor *a, unsigned i);
void op_wait(struct actor *a, unsigned i);
void op_waitany(struct actor *a);
void op_peek(struct actor *a);
void op_cancel(struct actor *a, unsigned i, bool must);

/* operation_layout.c */
/* A random layout for up to `total` bytes. */
void spread_init(struct actor *a, struct spread *s, size_t total);
/* What ibvx_sbuf.body or ibvx_rbuf.base is to be. */
void *spread_base(const struct spread *s);
/* Fills in a message. */
void spread_put(struct spread *s, const char *message, size_t bytes);
/* Takes a message out, and checks that nothing else was written. */
void spread_take(struct actor *a, struct spread *s, char *message, size_t bytes);
void spread_fini(struct spread *s);
/* Is a buffer of so many bytes to have a layout?  Large ones seldom: they are looked at byte by byte. */
bool spread_draw(struct actor *a, size_t bytes);
/* Sends whose body may have one; what the call returned. */
int op_spread_isend(struct actor *a, struct operation *op, struct ibvx_sbuf *buf);
int op_spread_send(struct actor *a, struct operation *op, struct ibvx_sbuf *buf);

/* operation_pinned.c: the same calls with pinnable memory; what the call returned. */
int op_copied_send(struct actor *a, struct operation *op);
int op_zero_copy_send(struct actor *a, struct operation *op);
int op_pinned_send(struct actor *a, struct operation *op);
enum pin_call { PIN_RECV, PIN_MRECV, PIN_WAIT, PIN_TEST };
int op_heap_receive(struct actor *a, struct operation *op, enum pin_call call, ibvx_req *req, struct ibvx_status *s);

/* --- rank.c --- */

/* All channels of one rank. */
struct traffic_rank {
	const struct traffic_config *cfg;
	struct ibvx *ep;
	int rank, round;
	struct inbox inbox[TRAFFIC_CHANNELS_MAX];
	struct actor actors[2 * TRAFFIC_CHANNELS_MAX];
	int actor_count;
};

/* NULL only without memory. */
struct traffic_rank *traffic_rank_new(const struct traffic_config *cfg, struct ibvx *ep, int rank);
void traffic_rank_begin(struct traffic_rank *t, int round);
/* The round is over: everything received once, in a legal order. */
void traffic_rank_check(struct traffic_rank *t);
/* After the endpoint was closed (sends that were given up may read until then). */
void traffic_rank_free(struct traffic_rank *t);
/* What every actor is at, on stderr. */
void traffic_rank_print(const struct traffic_rank *t);

/* --- verify.c --- */

/* All receives of a context were called by one actor: does an order of arrival exist for which MPI's rules give
 * what they got? */
void verify_exact(const struct actor *a);
/* Several actors share the context: no two receives of one actor were overtaken. */
void verify_pairwise(const struct actor *a);

#endif
