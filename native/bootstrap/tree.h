/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_TREE_H
#define IBVX_BOOTSTRAP_TREE_H
/*
 * tree: the protocol by which the ranks of a job meet, gather, and hear of each other's end.
 *
 * The protocol engine knows neither sockets nor clocks: the caller hands in events (a connection stands, a frame has
 * come, a connection has ended, time has passed) and the engine asks for actions through struct tree_net.  net.c
 * makes it work over sockets, tests/bootstrap/simulate.c runs thousands of ranks in memory.  PROTOCOL.md section 8
 * draws the states and frames.
 *
 *   NEW --start--> MEETING --all have come--> JOINED --watch--> WATCHED --leave--> LEAVING --> LEFT
 *                     |                        |  \                                  ^
 *                     v                        v   `---------------leave-------------'
 *                  FAILING ---verdict---> FAILED
 *
 * Every call takes the present time in ns of one monotonic clock.  Calls of struct tree_net must not call back into
 * the engine.  Not thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/message.h"

/* Leaders of nodes that one parent takes. */
#define TREE_RADIX 32
#define TREE_NS_PER_MS 1000000

struct tree;

enum tree_state {
	TREE_NEW,
	TREE_MEETING,
	TREE_JOINED,
	TREE_WATCHED,
	TREE_FAILING, /* waits for the verdict of rank 0 */
	TREE_FAILED,
	TREE_LEAVING,
	TREE_LEFT,
	TREE_STATE_COUNT
};

/* The listeners of a rank are numbered by the purpose of those that come (enum message_purpose): JOIN is the known
 * port of rank 0 and open before the start; LOCAL has a name that only ranks of one node and job know; ATTACH is any
 * port. */
struct tree_net {
	/* Starts a connection of number `link`.  LOCAL: to the leader of this node; JOIN: to any address of rank 0 that was
	 * not tried since index 0; ATTACH: to `address`.  Exactly one of tree_on_connected and tree_on_down follows, later.
	 * 0; or -errno (with text, except LOCAL): nothing follows; JOIN: -EALREADY: every address was tried. */
	int (*connect)(void *net, int link, enum message_purpose purpose, int index, const struct message_address *address);
	/* Queues a frame and takes a reference of its own. */
	void (*send)(void *net, int link, struct frame *frame);
	/* Ends a connection, after what is queued has gone.  Nothing more is reported of it. */
	void (*close)(void *net, int link);
	/* No more will be sent on this connection: the other end reads its end of stream. */
	void (*finish)(void *net, int link);
	/* Opens a listener: its port (LOCAL: 0), or -errno; -EADDRINUSE: another rank has it. */
	int (*listen)(void *net, enum message_purpose purpose, bool loopback);
	void (*unlisten)(void *net, enum message_purpose purpose); /* closed ones too */
	int (*random)(void *net, void *out, size_t len);
};

struct tree_config {
	int rank, size, pid;
	const char *host;
	const char *node;     /* 16 hex digits */
	const char *secret;   /* "": none; copied */
	const char *job_id;   /* ranks that name another one are of another job; "": whichever */
	const char *drawn_id; /* rank 0: the job's id, if that is not known before */
	int64_t timeout_ms;
	int64_t local_ms;  /* others: how long to look for a leader on this node before asking rank 0 */
	int addresses;     /* others: how many addresses of rank 0 are known */
	bool loopback;     /* rank 0: it listens on loopback addresses only */
	const char *where; /* rank 0's address in texts; must outlive the tree */
	const struct log *log;
	const struct tree_net *net;
	void *net_arg;
	/* What is known of a rank before it is known from itself: "rank 3 (host:port)". */
	void (*name)(void *arg, int rank, char *out, size_t size);
};

/* 0 or -ENOMEM with text. */
int tree_new(struct tree **out, const struct tree_config *cfg);
void tree_free(struct tree *t); /* NULL allowed; closes nothing */

/* Begins to meet the others; bounded by timeout_ms. */
void tree_start(struct tree *t, int64_t now);
/* JOINED: begins an allgather.  tree_busy() is false when it is over. */
int tree_gather(struct tree *t, const void *mine, size_t len, int64_t now);
/* JOINED, not busy: the result: number, lengths, data (gather.c).  Owned by t until the next tree_gather or tree_watch. */
const struct frame *tree_gathered(const struct tree *t);
/* JOINED -> WATCHED */
void tree_watch(struct tree *t, const struct bootstrap_events *events);
/* As bootstrap_report_lost. */
void tree_report_lost(struct tree *t, int rank, const char *why, int64_t now);
/* No event is wanted any more. */
void tree_ignore(struct tree *t);
/* The start fails with the calling thread's error text, for all. */
void tree_give_up(struct tree *t, int code);
/* How many ranks have not come yet, as far as this one knows. */
int tree_missing(const struct tree *t);
/* Begins to leave; over when tree_state is LEFT, soon and without outside help. */
void tree_leave(struct tree *t, int64_t now);

/* A connection that tree_net.connect began stands.  loopback: it does not leave this machine. */
void tree_on_connected(struct tree *t, int link, bool loopback, const struct message_address *peer, int64_t now);
/* Somebody has come to a listener; `from` is for texts.  The number of the link; -1: close it, there is no room. */
int tree_on_accept(struct tree *t, enum message_purpose purpose, const struct message_address *from, const char *text, bool loopback,
		   int64_t now);
/* May a connection that waits at this listener be taken now? */
bool tree_accepts(const struct tree *t, enum message_purpose purpose);
/* The longest body of a frame of this kind on this link now; -1: it is not expected.  Every frame is asked about before it is read. */
int64_t tree_expects(const struct tree *t, int link, enum message_kind kind);
void tree_on_frame(struct tree *t, int link, struct frame *frame, int64_t now);
/* The link has ended or could not be made: err is -errno, why a text.  The number is free for other links. */
void tree_on_down(struct tree *t, int link, int err, const char *why, int64_t now);
/* Time has passed.  To be called at the latest at tree_next(). */
void tree_on_time(struct tree *t, int64_t now);
/* When the engine next wants to be called; INT64_MAX: never. */
int64_t tree_next(const struct tree *t);
/* No descriptor is left for a connection that waits at a listener: the oldest unauthenticated link is closed.  1; 0: it may still be
 * about to speak, wait a moment; -1: there is none. */
int tree_make_room(struct tree *t, int64_t now);

enum tree_state tree_state(const struct tree *t);
/* The call that was begun (start, gather, leave) is not over. */
bool tree_busy(const struct tree *t);
/* FAILED: sets the calling thread's error and returns its code. */
int tree_error(const struct tree *t);
const char *tree_job_id(const struct tree *t);
/* Links, so that the caller can end them all. */
int tree_link_max(const struct tree *t);
bool tree_link_is_open(const struct tree *t, int link);

void tree_name(const struct tree *t, int rank, char *out, size_t size);
int tree_pid(const struct tree *t, int rank);            /* 0 before the join */
bool tree_same_node(const struct tree *t, int a, int b); /* false before the join */

#endif
