/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H
/*
 * harness: measures a message layer, the same way for every layer; ops.h lists what can be measured.
 *
 * For every operation, size and parameter: a warm-up, then samples of some milliseconds.  Before and after each sample
 * the probe of stage.h runs; a sample counts only if both probes agree, and belongs to the
 * state that they name: "near" or "far" (or "busy", and is dropped: others used the processors).  The report gives the
 * median for each state.  With --seek only samples of one state are taken: while the probe finds the other, all ranks sleep
 * for a moment and try again, up to a limit.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops.h"
#include "stage.h"

struct layer;
/* Carries out a command; 0, or non-zero after a message on stderr. */
typedef int layer_op(struct layer *layer, const struct stage_command *command);

/* A message layer. */
struct layer {
	const char *tool;   /* "ibvx", "openmpi", ... */
	const char *level;  /* "c" */
	const char *device; /* what carries it */
	int rank;           /* 0 leads, the others follow */
	int size;
	/* By operation; NULL: not measured.  STAGE_STEP needs STAGE_BARRIER only, STAGE_MEMORY STAGE_ALLTOALL. */
	layer_op *ops[STAGE_OPS];
	/* What rank 0 gives arrives at all others; once, before anything else. */
	int (*broadcast)(struct layer *layer, char *text, size_t bytes);
	char *out, *in; /* message buffers, blocks of all ranks or a whole window of messages; set by the harness */
};

/* Messages of a window lie in memory of their own, each from a cache line on: in one buffer their pieces, which take turns, would
 * find each other's in
 * the cache (4 MB, 16 under way: 2.6 times as fast as in a buffer each). */
static inline size_t harness_stride(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static inline char *harness_slot(char *buffers, const struct stage_command *command, int k)
{
	return buffers + harness_stride(command->bytes) * (size_t)k;
}

struct options {
	struct op_plan plans[STAGE_OPS];
	int plan_count;
	size_t sizes[OPS_MAX_SIZES];
	int size_count;
	int64_t warmup;
	int samples;
	int64_t sample_ns, probe_ns;
	double near_below_ns, busy_above_ns;
	int window;
	const char *json;
	bool quiet, no_heading;
	bool keep_all; /* --no-probe */
	enum seek { SEEK_ANY, SEEK_NEAR, SEEK_FAR } seek;
};

#define HARNESS_OPTIONS "s:o:w:n:m:W:j:q"
/* For usage texts. */
extern const char harness_usage[];

void harness_defaults(struct options *options);
/* One option of getopt_long: 0, or -1 if it is not one of the harness or its value is wrong. */
int harness_option(struct options *options, int c, const char *value);
/* A table of long options: those of the harness and then `more`, which ends with an empty one. */
const struct option *harness_join(const struct option *more);
/* Whether this operation was asked for. */
bool harness_wants(const struct options *options, enum stage_op op);

/* Runs everything; called by all ranks.  0, or 1 after a message on stderr. */
int harness_run(struct layer *layer, const struct options *options);

/* Samples of one operation, size and parameter, and what comes of them (report.c). */
struct sample {
	double value;
	double probe_ns;
	bool near;
};

struct series {
	enum stage_op op;
	size_t bytes;
	int param;
	struct sample *samples;
	int count;
	int discarded;
};

/* Prints the line or lines of the table and writes the JSON; state "any" where the probe was off. */
int report_open(const struct layer *layer, const struct options *options, const int cpu[2]);
void report_series(const struct layer *layer, const struct options *options, const struct series *series);
int report_close(void);

#endif
