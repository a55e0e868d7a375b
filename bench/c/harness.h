/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H
/*
 * harness: measures a message layer between two ranks, the same way for every layer.
 *
 * For every operation and size: a warm-up, then samples of some milliseconds.  Before and after each sample the
 * probe of stage.h runs; a sample counts only if both probes say the same, and belongs to the
 * state that they name: "near" or "far" (or "busy", and is dropped: others used the processors).  The report gives the median for each state.
 *
 * latency:   half a round trip of blocking send and receive, in us
 * bandwidth: a window of non-blocking sends into as many posted receives, then an empty answer; us for each message
 */
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage.h"

/* A message layer.  The functions return 0, or non-zero after a message on stderr. */
struct layer {
	const char *tool;   /* "ibvx", "openmpi", ... */
	const char *level;  /* "c" */
	const char *device; /* what carries it */
	int rank;           /* 0 leads, 1 follows */
	/* Rank 0: send, receive; rank 1: receive, send. */
	int (*pingpong)(struct layer *layer, size_t bytes, int64_t iterations);
	/* Rank 0: a window of isends, wait for all, receive the answer; rank 1 the mirror.  NULL: not measured. */
	int (*stream)(struct layer *layer, size_t bytes, int64_t iterations, int window);
	/* Rank 0 sends these bytes, rank 1 receives them; once, before anything else. */
	int (*tell)(struct layer *layer, char *text, size_t bytes);
	char *out, *in; /* message buffers of the largest size; set by the harness */
};

struct options {
	size_t sizes[64];
	int size_count;
	bool latency, bandwidth;
	int64_t warmup;
	int samples;
	int64_t sample_ns, probe_ns;
	double near_below_ns, busy_above_ns;
	int window;
	const char *json;
	bool quiet, no_heading;
	bool keep_all; /* --no-probe */
};

#define HARNESS_MAX_WINDOW 256
#define HARNESS_OPTIONS "s:o:w:n:m:W:j:q"
/* For usage texts. */
extern const char harness_usage[];

void harness_defaults(struct options *options);
/* One option of getopt_long: 0, or -1 if it is not one of the harness or its value is wrong. */
int harness_option(struct options *options, int c, const char *value);

/* A table of long options: those of the harness and then `more`, which ends with an empty one. */
const struct option *harness_join(const struct option *more);

/* Runs everything; called by both ranks.  0, or 1 after a message on stderr. */
int harness_run(struct layer *layer, const struct options *options);

/* Samples of one operation and size, and what comes of them (report.c). */
struct sample {
	double us;
	double probe_ns;
	bool near;
};

struct series {
	const char *op;
	size_t bytes;
	int window;
	struct sample *samples;
	int count;
	int discarded;
};

/* Prints the line or lines of the table and writes the JSON; state "any" where the probe was off. */
int report_open(const struct layer *layer, const struct options *options, const int cpu[2]);
void report_series(const struct layer *layer, const struct options *options, const struct series *series);
int report_close(void);

#endif
