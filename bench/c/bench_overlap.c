/* SPDX-License-Identifier: MIT */
/*
 * bench_overlap: what the setting progress_thread does, and what it costs.
 *
 * Rank 1 posts a receive and computes without a call into the library; rank 0 sends and waits.
 *   alone     the transfer, nobody computes                    (at rank 0)
 *   behind    the transfer, while rank 1 computes              (at rank 0)
 *   compute   the computation, no transfer                     (at rank 1)
 *   both      the computation, then the wait for the receive   (at rank 1)
 * Then rank 1 is idle for some seconds, in a receive and outside of the library: its processor time.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "couple.h"
#include "ibvx.h"
#include "stage.h"

#define MAX_SAMPLES 1000
enum { TAG = 1, CONTEXT = 1 };
enum figure { ALONE, BEHIND, COMPUTE, BOTH, FIGURES };

struct plan {
	size_t sizes[8];
	int size_count;
	int samples;
	double compute_ms;
	double idle_s;
	bool pin;
	const char *json;
};

/* What both ranks write and the parent prints; shared by the fork. */
struct outcome {
	double us[8][FIGURES];
	double idle_recv_s, idle_outside_s; /* processor time */
};

struct side {
	struct ibvx *ep;
	int rank;
	const struct plan *plan;
	struct outcome *outcome;
	char *memory;
	int64_t work; /* turns of the computation */
};

static int failed(const char *what)
{
	fprintf(stderr, "bench_overlap: %s: %s\n", what, ibvx_error());
	return 1;
}

static int note_out(struct side *side)
{
	return ibvx_send(side->ep, &(struct ibvx_sbuf){0}, 1 - side->rank, TAG + 1, CONTEXT) < 0 ? failed("send") : 0;
}

static int note_in(struct side *side)
{
	return ibvx_recv(side->ep, &(struct ibvx_rbuf){0}, 1 - side->rank, TAG + 1, CONTEXT, NULL) < 0 ? failed("recv") : 0;
}

static void compute(int64_t turns)
{
	double x = 1;

	for (int64_t i = 0; i < turns; i++)
		__asm__ volatile("" : "+m"(x));
}

/* Turns that take as long as was asked for. */
static int64_t calibrate(double ms)
{
	int64_t turns = 1000000, best = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		int64_t start = stage_now_ns(), took;

		compute(turns);
		took = stage_now_ns() - start;
		best = took < best ? took : best;
	}
	return (int64_t)(ms * 1e6 * (double)turns / (double)(best > 0 ? best : 1));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Rank 0: one message, from isend to the end of its wait; negative on failure. */
static double send_one(struct side *side, size_t bytes)
{
	struct ibvx_sbuf out = {.head = side->memory, .head_bytes = bytes};
	ibvx_req request;
	int64_t start;

	if (note_in(side))
		return -1;
	start = stage_now_ns();
	if (ibvx_isend(side->ep, &out, 1, TAG, CONTEXT, &request) < 0 || ibvx_wait(side->ep, &request, NULL) < 0) {
		failed("isend");
		return -1;
	}
	return (double)(stage_now_ns() - start) / 1e3;
}

/* Rank 1: one message with a computation between irecv and wait. */
static double receive_one(struct side *side, size_t bytes, int64_t work)
{
	struct ibvx_rbuf in = {.base = side->memory, .capacity_bytes = bytes};
	ibvx_req request;
	int64_t start;

	if (ibvx_irecv(side->ep, &in, 0, TAG, CONTEXT, &request) < 0) {
		failed("irecv");
		return -1;
	}
	if (note_out(side))
		return -1;
	start = stage_now_ns();
	compute(work);
	if (ibvx_wait(side->ep, &request, NULL) < 0) {
		failed("wait");
		return -1;
	}
	return (double)(stage_now_ns() - start) / 1e3;
}

static int measure_size(struct side *side, int index, double *values)
{
	size_t bytes = side->plan->sizes[index];
	double *us = side->outcome->us[index];

	for (int computing = 0; computing < 2; computing++) {
		for (int i = -1; i < side->plan->samples; i++) { /* one for warming up */
			double took = side->rank == 0 ? send_one(side, bytes) : receive_one(side, bytes, computing ? side->work : 0);

			if (took < 0)
				return 1;
			if (i >= 0)
				values[i] = took;
		}
		if (side->rank == 0)
			us[computing ? BEHIND : ALONE] = median(values, side->plan->samples);
		else if (computing)
			us[BOTH] = median(values, side->plan->samples);
	}
	for (int i = 0; i < side->plan->samples && side->rank == 1; i++) {
		int64_t start = stage_now_ns();

		compute(side->work);
		values[i] = (double)(stage_now_ns() - start) / 1e3;
	}
	if (side->rank == 1)
		us[COMPUTE] = median(values, side->plan->samples);
	return 0;
}

static double processor_s(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static int measure_idle(struct side *side)
{
	useconds_t us = (useconds_t)(side->plan->idle_s * 1e6);
	double before;

	if (side->rank == 0) {
		if (note_in(side))
			return 1;
		usleep(us);
		return note_out(side);
	}
	if (note_out(side))
		return 1;
	before = processor_s();
	if (note_in(side))
		return 1;
	side->outcome->idle_recv_s = processor_s() - before;
	before = processor_s();
	usleep(us);
	side->outcome->idle_outside_s = processor_s() - before;
	return 0;
}

struct run {
	const char *setting;
	const struct plan *plan;
	struct outcome *outcome;
	char addresses[2][COUPLE_ADDRESS_BYTES];
	const char *peers[2];
};

static int run_rank(int rank, void *arg)
{
	struct run *run = arg;
	const struct plan *plan = run->plan;
	const char *settings[] = {run->setting, NULL};
	struct ibvx_config cfg = {.rank = rank, .peers = run->peers, .size = 2, .settings = settings, .settings_origin = "bench_overlap"};
	struct side side = {.rank = rank, .plan = plan, .outcome = run->outcome};
	double values[MAX_SAMPLES];
	size_t largest = 1;
	int rc = 0;

	if (plan->pin)
		stage_pin(rank);
	for (int i = 0; i < plan->size_count; i++)
		largest = plan->sizes[i] > largest ? plan->sizes[i] : largest;
	if (!(side.memory = calloc(1, largest)))
		return 1;
	memset(side.memory, rank, largest);
	side.work = calibrate(plan->compute_ms);
	if (ibvx_open(&side.ep, &cfg) < 0)
		rc = failed("open");
	for (int i = 0; i < plan->size_count && !rc; i++)
		rc = measure_size(&side, i, values);
	if (!rc)
		rc = measure_idle(&side);
	if (!rc && ibvx_close(side.ep) < 0)
		rc = failed("close");
	free(side.memory);
	return rc;
}

static int run_pair(const char *setting, const struct plan *plan, struct outcome *outcome)
{
	struct run run = {.setting = setting, .plan = plan, .outcome = outcome};

	couple_addresses(run.peers, run.addresses);
	return couple_run(run_rank, &run);
}

static void print(const char *setting, const struct plan *plan, const struct outcome *outcome, FILE *json)
{
	static const char *const names[FIGURES] = {"alone", "behind", "compute", "both"};

	for (int i = 0; i < plan->size_count; i++) {
		const double *us = outcome->us[i];

		printf("%-18s %10zu %12.1f %12.1f %12.1f %12.1f\n", setting, plan->sizes[i], us[ALONE], us[BEHIND], us[COMPUTE], us[BOTH]);
		for (int f = 0; f < FIGURES && json; f++)
			fprintf(json,
				"{\"tool\": \"ibvx\", \"level\": \"c\", \"device\": \"ibvdev %s\", \"op\": \"overlap_%s\", "
				"\"bytes\": %zu, \"state\": \"any\", \"median_us\": %.2f, \"samples\": %d}\n",
				setting, names[f], plan->sizes[i], us[f], plan->samples);
	}
	printf("%-18s idle for %.1f s: processor time in a receive %.4f s, outside of the library %.4f s\n", setting, plan->idle_s,
	       outcome->idle_recv_s, outcome->idle_outside_s);
	if (json)
		fprintf(json,
			"{\"tool\": \"ibvx\", \"level\": \"c\", \"device\": \"ibvdev %s\", \"op\": \"idle\", \"idle_s\": %.2f, "
			"\"recv_processor_s\": %.5f, \"outside_processor_s\": %.5f}\n",
			setting, plan->idle_s, outcome->idle_recv_s, outcome->idle_outside_s);
}

static int compare_settings(const struct plan *plan)
{
	static const char *const settings[] = {"progress_thread=0", "progress_thread=1"};
	struct outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FILE *json = plan->json ? fopen(plan->json, "ae") : NULL;
	int rc = outcome == MAP_FAILED || (plan->json && !json);

	if (rc)
		fprintf(stderr, "bench_overlap: %s: %s\n", plan->json ? plan->json : "memory", strerror(errno));
	else
		printf("%-18s %10s %12s %12s %12s %12s  (us)\n", "setting", "bytes", "alone", "behind", "compute", "both");
	for (int i = 0; i < 2 && !rc; i++) {
		rc = run_pair(settings[i], plan, outcome);
		if (!rc)
			print(settings[i], plan, outcome, json);
	}
	if (json && fclose(json))
		rc = 1;
	return rc;
}

static int usage(FILE *to)
{
	fprintf(to, "usage: bench_overlap [options]\n"
		    "  -s, --sizes LIST       bytes, at most 8 sizes (default 65536,1048576,16777216)\n"
		    "  -n, --samples N        for each size (default 15)\n"
		    "  -c, --compute-ms N     length of the computation (default 20)\n"
		    "  -i, --idle-s N         seconds of idleness (default 10)\n"
		    "  -p, --pin              one processor for each rank: its progress thread shares it\n"
		    "  -j, --json FILE        append JSON lines\n");
	return to == stderr ? 2 : 0;
}

static int parse_sizes(struct plan *plan, char *list)
{
	char *end;

	for (plan->size_count = 0; plan->size_count < 8; list = end + 1) {
		plan->sizes[plan->size_count++] = strtoul(list, &end, 10);
		if (end == list || (*end && *end != ','))
			return -1;
		if (!*end)
			return 0;
	}
	return -1;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"sizes", required_argument, NULL, 's'},
		{"samples", required_argument, NULL, 'n'},
		{"compute-ms", required_argument, NULL, 'c'},
		{"idle-s", required_argument, NULL, 'i'},
		{"pin", no_argument, NULL, 'p'},
		{"json", required_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct plan plan = {.sizes = {65536, 1048576, 16777216}, .size_count = 3, .samples = 15, .compute_ms = 20, .idle_s = 10};
	int c;

	while ((c = getopt_long(argc, argv, "s:n:c:i:pj:h", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			if (parse_sizes(&plan, optarg) < 0)
				return usage(stderr);
			break;
		case 'n': plan.samples = atoi(optarg); break;
		case 'c': plan.compute_ms = atof(optarg); break;
		case 'i': plan.idle_s = atof(optarg); break;
		case 'p': plan.pin = true; break;
		case 'j': plan.json = optarg; break;
		case 'h': return usage(stdout);
		default: return usage(stderr);
		}
	}
	if (optind < argc || plan.samples < 1 || plan.samples > MAX_SAMPLES || plan.compute_ms < 0 || plan.idle_s < 0)
		return usage(stderr);
	return compare_settings(&plan);
}
