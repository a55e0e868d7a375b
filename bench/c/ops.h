/* SPDX-License-Identifier: MIT */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H
/*
 * ops: the operations that can be measured, what they take, and what their times are times of.
 *
 * Between ranks 0 and 1 of a job of two:
 *   latency     half a round trip of blocking send and receive
 *   bandwidth   a window of sends into as many posted receives, then an empty answer; time for each message
 *   bibandwidth the same in both directions at once
 *   rate        bandwidth of 8 bytes with a window of 64
 *   posted      latency while so many receives stand in the queue: those in front never match
 *   unexpected  latency while so many messages stand in the queue, the last of which is the next one
 *   threads     latency as each of so many threads sees it, all at once
 *   exchange    both send and receive one message, non-blocking, and wait for both
 *   exposed     the same with a computation as long as an exchange before the wait, less that computation:
 *               what of the communication was not hidden behind it
 * Between all ranks of a job:
 *   pairs       rate of all pairs (0,1), (2,3), ... at once; time for each message
 *   barrier, bcast, reduce, allreduce, allgather, alltoall
 *               one collective operation; roots take turns; reductions add doubles; bytes of each block
 *   step        every rank computes so many us, then a barrier
 *   idle        the others wait in a receive for so many ms: their processor time, us a second
 *   memory      KB of each rank once all have talked to each other (proportional set size)
 */
#include "stage.h"

#define OPS_MAX_SIZES 64
#define OPS_MAX_PARAMS 8
#define OPS_MAX_WINDOW 256
#define OPS_MAX_THREADS 64

struct op_kind {
	const char *name;
	const char *sizes;  /* default list, NULL: that of --sizes */
	const char *params; /* default list */
	bool empty_too;     /* also of 0 bytes */
	bool of_all;        /* between all ranks, else between two */
	bool prepared;      /* has setup and clear */
	int messages;       /* of one iteration, 0: one operation */
	bool windowed;      /* so many times the parameter */
	bool unprobed;      /* near and far make no difference: state "any", one sample */
	const char *unit;
};

/* One operation that was asked for. */
struct op_plan {
	enum stage_op op;
	bool own_sizes;
	size_t sizes[OPS_MAX_SIZES];
	int size_count;
	int params[OPS_MAX_PARAMS];
	int param_count;
};

extern const struct op_kind op_kinds[STAGE_OPS];

/* A list such as "latency,bandwidth=8/64k@16/64,barrier": operations, each with sizes after = and parameters after @.
 * Returns how many, or -1 after a message on stderr. */
int ops_parse(const char *list, struct op_plan plans[STAGE_OPS]);
/* Gives each plan the sizes that it left open. */
void ops_complete(struct op_plan *plans, int count, const size_t *sizes, int size_count, int window);

/* A list of sizes such as "0,8,64k,1m", up to `end`; returns how many, or -1. */
int ops_parse_sizes(const char *list, const char *end, char separator, size_t sizes[OPS_MAX_SIZES]);
/* A number with k, m or g behind it, -1 if it is none or out of range; *end is behind it. */
int64_t ops_number(const char *text, char **end, int64_t min, int64_t max);

/* How many times of one message or operation one iteration holds. */
double ops_units(const struct stage_command *command, int ranks);

#endif
