/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_STAR_H
#define IBVX_BOOTSTRAP_STAR_H
/*
 * star: the inside of struct bootstrap, shared by the files of this folder.
 *
 *   NEW ---join---> JOINED ---watch---> WATCHED
 *    |                |  \                 |
 *    |                |   `----leave----.  | leave
 *    v                v                 v  v
 *  FAILED <-----------'------leave----> LEFT
 *
 * A death while NEW or JOINED fails the whole start (FAILED, with one text for all).  After
 * watch a death is an event of one rank, and the star goes on.
 */
#include <poll.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/conn.h"
#include "bootstrap/launch.h"

/* How much longer than its own time limit a rank waits for the verdict of rank 0, which
 * ends at the earliest limit of all. */
#define STAR_GRACE_MS 2000
#define STAR_NAME_BYTES 192

enum star_state { STAR_NEW, STAR_JOINED, STAR_WATCHED, STAR_FAILED, STAR_LEFT, STAR_STATE_COUNT };

enum peer_state { PEER_PRESENT, PEER_LEFT, PEER_LOST };

struct peer {
	struct message_rank who;
	enum peer_state state;
	char *hearsay; /* rank 0: another rank says that it is dead, and why */
	bool stuck;    /* dropped because it did not read */
	char name[STAR_NAME_BYTES];
};

struct bootstrap {
	int rank, size;
	struct launch *launch;
	struct settings *settings;
	const struct log *log;
	int64_t timeout_ms;
	char job_id[MESSAGE_ID_BYTES + 1];
	char unknown_name[32];

	enum star_state state;
	char failure[MESSAGE_TEXT_BYTES + 1];
	int failure_code;

	struct peer *peers; /* size */
	struct conn *conns; /* rank 0: size, index == rank, [0] closed; others: one, to rank 0 */
	int conn_count;
	struct pollfd *polls; /* 2 * conn_count: for star_poll */
	int epoll_fd;
	uint32_t gather_number;
	int hearsay_count;

	struct bootstrap_events events;
};

/* The one door to b->state.  An illegal step is logged and not made. */
void star_set_state(struct bootstrap *b, enum star_state state);

/* The rank at the other end of connection i, and the reverse. */
static inline int star_rank_of(const struct bootstrap *b, int i)
{
	return b->rank == 0 ? i : 0;
}

static inline struct conn *star_conn_of(struct bootstrap *b, int rank)
{
	return &b->conns[b->rank == 0 ? rank : 0];
}

/* Makes names from what is known: before the join the conf, afterwards pid and host. */
void star_name_peer(struct bootstrap *b, int rank);

/* The start has failed with the calling thread's error text: remembers it for later calls; returns code. */
int star_fail(struct bootstrap *b, int code);
/* star_fail, with "rank 3 (pid ..) died while the job was starting: <the present error text>"; rank 0 tells the others. */
int star_fail_lost(struct bootstrap *b, int rank);
/* star_fail, and on rank 0: tells the others code and text, waiting up to a second for them to take it. */
int star_fail_all(struct bootstrap *b, int code);
/* What the star said the last time it failed. */
int star_failed(const struct bootstrap *b);

/* LOST, LEFT or FAILED that came during the start: sets the error and fails the star. */
int star_bad_news(struct bootstrap *b, int from, const struct conn_frame *frame);

/* Sends one frame to every connection but that to `except`; connections that break are left to be
 * noticed by reading, one that is stuck is shut down. */
void star_tell(struct bootstrap *b, enum message_kind kind, const void *body, size_t len, int except);

/* Until every queue is empty. 0; -ETIMEDOUT with text; the failure of a rank with *rank set and text. */
int star_flush(struct bootstrap *b, int64_t deadline, int *rank);

/* Waits for one frame of connection i.  1, 0 at the deadline, -errno with text. */
int star_receive(struct bootstrap *b, int i, struct conn_frame *frame, int64_t deadline);

/* poll(2) that survives signals: >= 0 or -errno with text.  `live` has room for count entries: poll gets only
 * the entries that have a descriptor, as it refuses more entries than RLIMIT_NOFILE; NULL: all of them. */
int star_poll(struct pollfd *fds, int count, struct pollfd *live, int64_t deadline);

/* Sets the error for a process without free descriptors that wants `more` of them: the limit, the need, the
 * remedy.  -EMFILE. */
int star_no_descriptors(const char *what, int more);

/* watch.c: the epoll descriptor that bundles the connections. */
int watch_open(struct bootstrap *b);

#endif
