/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_TREE_STATE_H
#define IBVX_BOOTSTRAP_TREE_STATE_H
/*
 * tree_state: the inside of struct tree, shared by the files of the engine: tree.c (states, links, events), failure.c,
 * handshake.c, seek.c (finding a parent), meet.c (the start), gather.c, notice.c (the end of ranks), leave.c.
 */
#include "base/proof.h"
#include "bootstrap/roster.h"
#include "bootstrap/tree.h"

/* How much longer than its own time limit a rank waits for the verdict of rank 0, which
 * ends at the earliest limit of all. */
#define TREE_GRACE_MS 2000
/* How long a rank that has seen the start fail waits for the text that all report. */
#define TREE_VERDICT_MS 1000
/* One side of a handshake. */
#define TREE_HANDSHAKE_MS 5000
#define TREE_NAME_BYTES 192

/*   outgoing: FREE --> CONNECTING --> HELLO --> PROOF --> PARENT
 *                                                 `--> REGISTERED --> PARENT, or FREE when attached elsewhere
 *   incoming: FREE --> SILENT --> CHALLENGED --> CHILD
 *                         |            |`----> ASSIGNED --> CHILD, or FREE when attached elsewhere
 *                         `---> REFUSED <'
 *   From every state to FREE: the connection has ended. */
enum link_state {
	LINK_FREE,
	LINK_CONNECTING,
	LINK_HELLO,      /* awaits CHALLENGE */
	LINK_PROOF,      /* awaits ACCEPTED */
	LINK_REGISTERED, /* rank 0 has accepted this leader and named another parent */
	LINK_PARENT,
	LINK_SILENT,     /* awaits HELLO */
	LINK_CHALLENGED, /* awaits PROOF */
	LINK_REFUSED,    /* awaits the end */
	LINK_ASSIGNED,   /* rank 0: a leader that attaches to another parent */
	LINK_CHILD,
	LINK_STATE_COUNT
};

struct link {
	enum link_state state;
	enum message_purpose purpose;
	bool loopback;
	bool leader; /* a child that may have children of its own */
	bool sealed;
	int64_t deadline;                   /* of the handshake; INT64_MAX: none */
	struct message_rank member;         /* of the other end */
	uint8_t nonce[MESSAGE_NONCE_BYTES]; /* incoming: ours */
	struct message_address address;     /* of the other end */
	struct frame *gather;               /* GATHER that has come for this allgather */
	char from[64];
};

enum seek_state { SEEK_NONE, SEEK_PAUSE, SEEK_LOCAL, SEEK_ROOT, SEEK_ATTACH };

/* How this rank looks for its parent (seek.c). */
struct seek {
	enum seek_state state;
	int link;            /* under way, or -1 */
	int index;           /* of rank 0's addresses, or of the ancestors */
	int assigned_rank;   /* the parent that rank 0 has named */
	int64_t until;       /* PAUSE */
	int64_t local_until; /* until then only leaders on this node are asked */
	int64_t unreachable; /* since when no address of rank 0 has a route; 0: it has */
	int64_t give_up;     /* orphan: when nobody is asked any more */
	int pause_ms;
	bool local_bad; /* the owner of the name of the local listener is not of this job */
	bool local_bound, attach_bound;
	int attach_port;
	bool orphan; /* after the start: the parent is gone */
	int orphan_of;
	int last; /* -errno of the last attempt */
	char why[256];
};

/* Of a rank: what has been heard of it. */
enum {
	RANK_LEFT = 1,
	RANK_LOST = 2,
	RANK_GONE = RANK_LEFT | RANK_LOST,
	RANK_REPORTED = 4, /* the event was given, or is not wanted */
	RANK_SUSPECT = 8,
	RANK_SEATED = 16, /* rank 0: it has come */
};

struct leader {
	int rank;
	bool loopback;
	struct message_address address;
};

struct orphan {
	int rank;
	int64_t deadline;
};

struct loss {
	struct loss *next;
	int rank;
	int64_t due; /* of a suspicion: when it is judged */
	char why[MESSAGE_TEXT_BYTES + 1];
};

struct tree {
	struct tree_config cfg;
	char job_id[MESSAGE_ID_BYTES + 1]; /* "" until known */
	struct proof proof;                /* key, rank's nonce, rank, size */
	char secret_set;
	struct message_rank me;
	enum tree_state state;
	int64_t now;
	int64_t deadline; /* of the meeting, the allgather, the verdict, or the farewell */
	char failure[MESSAGE_TEXT_BYTES + 1];
	int failure_code;

	struct link *links;
	int link_max;
	int parent;       /* link, or -1 */
	int registration; /* link to rank 0 while attaching elsewhere, or -1 */
	int children;     /* links in CHILD */
	struct seek seek;
	struct message_ancestor ancestors[MESSAGE_ANCESTORS_MAX];
	int ancestor_count;
	struct message_ancestor root;          /* rank 0 as a last resort; port 0: none */
	struct message_address parent_address; /* where this rank's parent takes orphans; port 0: nowhere */

	/* the meeting */
	uint8_t *joined; /* records that wait to go up */
	size_t joined_len, joined_room;
	int missing; /* rank 0 */
	bool sealing, sealed;
	int refused;
	char last_refusal[256];
	struct leader *leaders; /* rank 0: [0] is itself */
	int leader_count, leader_room;
	int attach_port;  /* rank 0's listener for orphans */
	int32_t *parents; /* rank 0: of every rank */

	struct roster roster;
	struct roster_builder builder; /* rank 0, until the join */
	uint8_t *ranks;                /* flags of every rank */

	/* the allgather */
	uint32_t gather_number;
	bool gathering;
	struct frame *gather_own, *gathered;

	/* notices */
	struct bootstrap_events events;
	int32_t *left_out; /* ranks that have left, to be relayed with the next flush; pairs (rank, link it came by) */
	int left_count, left_room;
	struct loss *losses, *suspects;
	struct orphan *orphans;
	int orphan_count, orphan_room;
	bool finishing; /* LEAVING: children were sent elsewhere */
};

static inline bool tree_is_root(const struct tree *t)
{
	return t->cfg.rank == 0;
}

/* tree.c */
void tree_set_state(struct tree *t, enum tree_state state);
void tree_link_set_state(struct tree *t, int i, enum link_state state);
int tree_link_new(struct tree *t); /* -1: no memory */
/* Closes and forgets. */
void tree_link_close(struct tree *t, int i);
void tree_send(struct tree *t, int link, enum message_kind kind, const void *body, size_t len);
/* To every child but that of link `except`; LINK_CHILD only. */
void tree_send_children(struct tree *t, struct frame *frame, int except);
/* To parent and children. */
void tree_send_all(struct tree *t, struct frame *frame, int except);
void tree_send_text(struct tree *t, int link, enum message_kind kind, int code, const char *text);
int tree_child_of(const struct tree *t, int rank); /* its link, or -1 */
/* The other end of a link breaks the protocol: the calling thread's error text becomes the reason of its end. */
void tree_break(struct tree *t, int link);

/* failure.c */
void tree_member_name(const struct tree *t, const struct message_rank *member, char *out, size_t size);
/* The start has failed with the calling thread's error text. */
void tree_fail(struct tree *t, int code);
/* The start has failed: `rank` ended.  member: what its connection is known by, or NULL. */
void tree_fail_lost(struct tree *t, int rank, const struct message_rank *member, const char *why);
/* The failure is what all are going to report. */
void failure_verdict(struct tree *t);
/* FAILED, from either side. */
void failure_on_frame(struct tree *t, int link, const struct frame *frame);
/* A link that counted as a rank has ended. */
void failure_member_down(struct tree *t, const struct link *gone, int err, const char *why);

/* handshake.c */
void handshake_hello(struct tree *t, int link);
void handshake_on_frame(struct tree *t, int link, struct frame *frame);
void handshake_refuse(struct tree *t, int link, int code);
void handshake_on_time(struct tree *t);
int handshake_oldest(const struct tree *t); /* the unauthenticated link to give up first, or -1 */

/* seek.c */
void seek_start(struct tree *t);
void seek_orphan(struct tree *t, int parent_rank);
void seek_on_connected(struct tree *t, int link);
void seek_on_accepted(struct tree *t, int link, const struct message_accepted *a);
/* The attempt over this link has failed; `final`: it is the end of the start. */
void seek_on_failure(struct tree *t, int link, int err, const char *why, bool final);
void seek_on_time(struct tree *t);
int64_t seek_next(const struct tree *t);
void seek_stop(struct tree *t);
/* The error of a rank that never came in. */
int seek_given_up(struct tree *t);

/* meet.c */
void meet_start(struct tree *t);
/* Checks whether l->member may join: 0 or -errno with text. */
int meet_check(struct tree *t, int link);
/* l->member has proved itself: what it is answered. */
void meet_accept(struct tree *t, int link, struct message_accepted *a);
/* This rank has a parent. */
void meet_attached(struct tree *t);
void meet_seat(struct tree *t, const struct message_rank *member, int parent);
void meet_on_frame(struct tree *t, int link, struct frame *frame);
void meet_flush(struct tree *t);
void meet_late(struct tree *t);

/* gather.c */
void gather_on_frame(struct tree *t, int link, struct frame *frame);
void gather_late(struct tree *t);
void gather_reset(struct tree *t);

/* notice.c */
void notice_lost(struct tree *t, int rank, const char *why, int from);
void notice_left(struct tree *t, int rank, int from);
void notice_on_frame(struct tree *t, int link, const struct frame *frame);
void notice_child_down(struct tree *t, const struct link *gone, int err, const char *why);
void notice_parent_down(struct tree *t, const struct link *gone, int err, const char *why);
/* A new parent, or a new child: both learn what the other has missed. */
void notice_sync(struct tree *t, int link);
void notice_ancestors(struct tree *t, int link); /* -1: all children */
void notice_moved(struct tree *t, int rank, int parent);
void notice_flush(struct tree *t);
void notice_on_time(struct tree *t);
int64_t notice_next(const struct tree *t);
void notice_fini(struct tree *t);

/* leave.c */
void leave_close_all(struct tree *t);
/* LEAVING is over when nobody depends on this rank any more and its own farewell has gone. */
void leave_check(struct tree *t);
/* The time to serve the children is over. */
void leave_late(struct tree *t);

#endif
