/* SPDX-License-Identifier: MIT */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H
/*
 * stage: a small shared mapping of the two ranks of a benchmark, beside whatever carries their messages.
 *
 * Rank 0 leads: it says over the stage what is done next, so that this costs the measured library
 * nothing.  The probe measures how far apart the two processors are right now: a cache line that goes back
 * and forth for some milliseconds.  On a virtual machine this flips between "near" and "far" within
 * seconds, and a time that does not say in which state it was taken says nothing.
 *
 * A failure of one rank is not noticed here: the launcher has to end the other.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGE_LINE_BYTES 128 /* two lines: neighbours are fetched in pairs */
#define STAGE_PATH_BYTES 64

enum stage_op { STAGE_PROBE, STAGE_LATENCY, STAGE_BANDWIDTH, STAGE_END };

/* What rank 0 wants both to do. */
struct stage_command {
	enum stage_op op;
	uint64_t bytes;
	int64_t iterations;
	int window;
};

struct stage {
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t ball; /* odd: thrown by rank 0, even: by rank 1 */
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t turn; /* raised by rank 0 when command is written */
	struct stage_command command;
	_Alignas(STAGE_LINE_BYTES) int cpu[2]; /* where each rank is pinned, -1: nowhere */
	_Atomic bool met;                      /* rank 1 is here */
};

/* Rank 0: a new mapping in a file whose name goes into path; stage_unlink() it when rank 1 has
 * it.  Rank 1: maps the file.  NULL and a message on stderr if that fails. */
struct stage *stage_create(char path[STAGE_PATH_BYTES]);
struct stage *stage_attach(const char *path);
void stage_unlink(const char *path);
/* Rank 1 says that it is here, rank 0 waits for that. */
void stage_meet(struct stage *stage, int rank);

/* Rank 0 gives a command, rank 1 takes it. */
void stage_say(struct stage *stage, const struct stage_command *command);
struct stage_command stage_hear(struct stage *stage, uint64_t *turn);

/* Half round trip of a cache line in ns: rank 0 leads for duration_ns, rank 1 follows until that is over. */
double stage_probe(struct stage *stage, int64_t duration_ns);
void stage_follow(struct stage *stage);

int64_t stage_now_ns(void);
/* Pins the caller to the rank-th processor it may use. */
void stage_pin(int rank);
/* The processor that the caller is pinned to, or -1. */
int stage_pinned_cpu(void);

#endif
