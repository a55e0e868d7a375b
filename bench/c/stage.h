/* SPDX-License-Identifier: MIT */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H
/*
 * stage: a small shared mapping of the ranks of a benchmark, beside whatever carries their messages.
 *
 * Rank 0 leads: it sends the next command over the stage, so that this costs the measured library
 * nothing.  The probe measures how far apart the processors of ranks 0 and 1 are right now: a cache line that goes back
 * and forth for some milliseconds.  On a virtual machine this flips between "near" and "far" within
 * seconds, and a time without the state in which it was taken means nothing.  The other ranks sleep meanwhile.
 *
 * A failure of one rank is not noticed here: the launcher has to end the others.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGE_LINE_BYTES 128 /* two lines: neighbours are fetched in pairs */
#define STAGE_PATH_BYTES 64

/* What can be measured; ops.h describes each. */
enum stage_op {
	STAGE_LATENCY,
	STAGE_BANDWIDTH,
	STAGE_BIBANDWIDTH,
	STAGE_RATE,
	STAGE_POSTED,
	STAGE_UNEXPECTED,
	STAGE_THREADS,
	STAGE_EXCHANGE,
	STAGE_EXPOSED,
	STAGE_PAIRS,
	STAGE_BARRIER,
	STAGE_BCAST,
	STAGE_REDUCE,
	STAGE_ALLREDUCE,
	STAGE_ALLGATHER,
	STAGE_ALLTOALL,
	STAGE_STEP,
	STAGE_IDLE,
	STAGE_MEMORY,
	STAGE_OPS,
	STAGE_PROBE = STAGE_OPS,
	STAGE_NAP,
	STAGE_END
};

/* Some operations need something set up before the clock starts, and cleared when it has stopped. */
enum stage_phase { STAGE_RUN, STAGE_SETUP, STAGE_CLEAR };

/* What rank 0 wants all to do. */
struct stage_command {
	enum stage_op op;
	enum stage_phase phase;
	uint64_t bytes;
	int64_t iterations;
	int64_t work_ns; /* computation in each iteration */
	int param;       /* window, depth of a queue, threads: see ops.h */
};

/* The mapping. */
struct stage_board {
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t ball; /* odd: thrown by rank 0, even: by rank 1 */
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t turn; /* raised by rank 0 when command is written */
	struct stage_command command;
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t done;    /* commands carried out, of all followers together */
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t arrived; /* at stage_gather(), of all ranks together */
	_Alignas(STAGE_LINE_BYTES) int cpu[2];               /* where ranks 0 and 1 are pinned, -1: nowhere */
	_Atomic int64_t sum;                                 /* of what the ranks report */
};

/* One rank's side of it. */
struct stage {
	struct stage_board *board;
	int rank, size;
	uint64_t turn;     /* commands sent or received */
	uint64_t gathered; /* times */
};

/* Rank 0: a new mapping in a file whose name goes into path; stage_unlink() it when the others have
 * it.  The others: map the file.  -1 and a message on stderr if that fails. */
int stage_create(struct stage *stage, int size, char path[STAGE_PATH_BYTES]);
int stage_attach(struct stage *stage, int rank, int size, const char *path);
void stage_unlink(const char *path);

/* All ranks: returns when all have called it. */
void stage_gather(struct stage *stage);

/* Rank 0 gives a command when the last one is done; the others take it and report when they have carried it out. */
void stage_send(struct stage *stage, const struct stage_command *command);
void stage_await_done(struct stage *stage);
struct stage_command stage_hear(struct stage *stage);
void stage_done(struct stage *stage);

/* Adds to the board's sum; takes it, which leaves zero. */
void stage_add(struct stage *stage, int64_t value);
int64_t stage_take_sum(struct stage *stage);

/* Half round trip of a cache line in ns: rank 0 leads for duration_ns, rank 1 follows until that is over. */
double stage_probe(struct stage *stage, int64_t duration_ns);
void stage_follow(struct stage *stage);

/* Sleeps for some milliseconds; what the host makes of an idle machine decides on near or far. */
void stage_nap(void);

int64_t stage_now_ns(void);
/* Pins the caller to the rank-th processor it may use, or to each in turn if there are fewer. */
void stage_pin(int rank);
/* The processor that the caller is pinned to, or -1. */
int stage_pinned_cpu(void);

#endif
