/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_SCHEDULE_H
#define IBVX_COLL_SCHEDULE_H
/*
 * schedule: a collective operation as a list of steps.
 *
 * Steps begin in the order of the list.  Sends and receives are non-blocking; copies and reductions are done at once; an
 * `await` is a dependency: what stands behind it begins when an earlier step, or all of them, are complete.  The schedule is
 * over when all are.
 *
 *   building --start--> running --(every step complete)--> over --(its owner looks)--> free, or of a persistent one idle
 *
 * After an error the steps go on, so that no member waits in vain: sends become empty messages whose user word is the
 * error, receives are posted as before, copies and reductions are left out.
 *
 * One thread builds, and one at a time runs (ibvx_continue.h).
 */
#include "coll/engine.h"
#include "coll/op.h"
#include "ibvx_continue.h"

enum step_kind { STEP_SEND, STEP_RECV, STEP_AWAIT, STEP_AWAIT_ALL, STEP_COPY, STEP_REDUCE };

struct step {
	struct ibvx_completion done;
	enum step_kind kind;
	bool complete;
	int member; /* send, receive: the other; await: the step */
	void *base; /* send: only read; copy, reduce: the target */
	const void *from;
	size_t size; /* bytes; reduce: elements */
	const struct ibvx_layout *layout;
};

#define SCHEDULE_BLOCKS 4

struct schedule {
	struct ibvx_continuation continuation;
	struct ibvx_comm *comm;
	struct coll_op op;
	uint32_t slot, generation;
	bool persistent;
	bool active; /* begun, and its end was not reported yet */
	bool waited; /* a thread waits for it or tests it */
	int tag;
	int error, error_rank; /* the rank that it concerns, in the endpoint; -1: none */
	char why[256];
	struct step *steps;
	int count, room;
	int at, pending; /* the next step; messages under way */
	struct {
		void *memory;
		size_t bytes;
	} blocks[SCHEDULE_BLOCKS]; /* scratch */
	int block_count;
	struct schedule *next_free;
};

/* Out of the pool, empty; NULL with text: no memory.  Back to it, when it is over. */
struct schedule *schedule_get(struct ibvx_comm *comm);
void schedule_put(struct schedule *s);
/* The memory of the pool. */
void schedule_free_all(struct engine *engine);

/* Building.  An error sticks: s->error, and nothing more is added.  Each returns the number of its step. */
int schedule_send(struct schedule *s, int member, const void *base, size_t bytes, const struct ibvx_layout *layout);
int schedule_recv(struct schedule *s, int member, void *base, size_t bytes, const struct ibvx_layout *layout);
void schedule_await(struct schedule *s, int step);
void schedule_await_all(struct schedule *s);
void schedule_copy(struct schedule *s, const void *from, void *to, size_t bytes);
/* inout = in op inout, by s->op */
void schedule_reduce(struct schedule *s, const void *in, void *inout, size_t elements);
/* Memory for the steps, at least one byte; NULL after an error. */
void *schedule_scratch(struct schedule *s, size_t bytes);
/* Sets the error of the building: code. */
int schedule_refuse(struct schedule *s, int code, const char *fmt, ...) __attribute__((cold, format(printf, 3, 4)));

/* The tag of a communicator's next operation: the same on all members, and not AREA_TAG. */
int schedule_tag(struct ibvx_comm *comm);
/* Begins it, with the tag of all its messages. */
void schedule_start(struct schedule *s, int tag);
/* The same, and waits: what ibvx_continuation_wait() returns. */
int schedule_execute(struct schedule *s, int tag);
/* Some rank has died: an error with text if that concerns this communicator, else 0. */
int schedule_check_members(struct ibvx_comm *comm);

/* Handles: NULL with text for a stale one.  Taken handles are waited for by the calling thread alone. */
ibvx_coll_req schedule_handle(const struct schedule *s);
struct schedule *schedule_take(struct engine *engine, ibvx_coll_req req);
void schedule_leave(struct schedule *s);

#endif
