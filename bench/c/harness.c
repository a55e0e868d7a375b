/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_PER_SAMPLE 4
#define AGREE 1.3 /* two probes of one state differ by less */
#define WARMUP_FULL_BYTES 4096 /* larger messages: fewer iterations */
#define WARMUP_LIMIT_NS 3000000000
#define SAMPLES_LIMIT_NS 10000000000
#define PAGE_BYTES 4096

enum { OPT_PROBE_MS = 256, OPT_NEAR_BELOW, OPT_BUSY_ABOVE, OPT_NO_PROBE };

const char harness_usage[] =
	"  -s, --sizes LIST       bytes, such as 0,8,1k,64k,1m (default 0 to 16m)\n"
	"  -o, --op LIST          latency,bandwidth (default: latency)\n"
	"  -w, --warmup N         iterations before the first sample, up to 4 KB; fewer for larger messages\n"
	"                         (default 20000)\n"
	"  -n, --samples N        samples for each size (default 9)\n"
	"  -m, --sample-ms N      length of a sample (default 20)\n"
	"  -W, --window N         messages under way in the bandwidth test (default 16)\n"
	"  -j, --json FILE        append one JSON object for each line of the table\n"
	"  -q, --quiet            no table\n"
	"      --probe-ms N       length of the cache-line probe around each sample (default 5)\n"
	"      --near-below NS    a probe below this is \"near\" (default 130)\n"
	"      --busy-above NS    a probe above this drops its sample: others use the processors (default 600)\n"
	"      --no-probe         take every sample, in state \"any\"\n";

static const struct option own_options[] = {
	{"sizes", required_argument, NULL, 's'},
	{"op", required_argument, NULL, 'o'},
	{"warmup", required_argument, NULL, 'w'},
	{"samples", required_argument, NULL, 'n'},
	{"sample-ms", required_argument, NULL, 'm'},
	{"window", required_argument, NULL, 'W'},
	{"json", required_argument, NULL, 'j'},
	{"quiet", no_argument, NULL, 'q'},
	{"probe-ms", required_argument, NULL, OPT_PROBE_MS},
	{"near-below", required_argument, NULL, OPT_NEAR_BELOW},
	{"busy-above", required_argument, NULL, OPT_BUSY_ABOVE},
	{"no-probe", no_argument, NULL, OPT_NO_PROBE},
	{NULL, 0, NULL, 0},
};

const struct option *harness_join(const struct option *more)
{
	static struct option all[64];
	size_t count = 0;

	for (const struct option *o = own_options; o->name; o++)
		all[count++] = *o;
	for (const struct option *o = more; o->name && count < 63; o++)
		all[count++] = *o;
	return all;
}

void harness_defaults(struct options *options)
{
	static const size_t sizes[] = {0, 1, 8, 64, 256, 1024, 4096, 16384, 65536, 131072, 262144, 1 << 20, 4 << 20, 16 << 20};

	*options = (struct options){
		.size_count = sizeof(sizes) / sizeof(sizes[0]),
		.latency = true,
		.warmup = 20000,
		.samples = 9,
		.sample_ns = 20 * 1000000,
		.probe_ns = 5 * 1000000,
		.near_below_ns = 130,
		.busy_above_ns = 600,
		.window = 16,
	};
	memcpy(options->sizes, sizes, sizeof(sizes));
}

/* A number with k, m or g behind it; -1 if it is none, or out of range. */
static int64_t number(const char *text, char **end, int64_t min, int64_t max)
{
	int64_t value;
	int shift = 0;

	errno = 0;
	value = strtoll(text, end, 10);
	if (*end == text || errno || value < 0)
		return -1;
	if (**end && strchr("kmg", **end))
		shift = **end == 'k' ? 10 : **end == 'm' ? 20 : 30;
	if (shift)
		(*end)++;
	if (value > max >> shift || value << shift < min)
		return -1;
	return value << shift;
}

static int64_t whole_number(const char *text, int64_t min, int64_t max)
{
	char *end;
	int64_t value = number(text, &end, min, max);

	if (value < 0 || *end) {
		fprintf(stderr, "bench: \"%s\" is not a number from %lld to %lld\n", text, (long long)min, (long long)max);
		return -1;
	}
	return value;
}

static int parse_sizes(struct options *options, const char *list)
{
	char *end = NULL;

	options->size_count = 0;
	for (const char *at = list;; at = end + 1) {
		int64_t bytes = number(at, &end, 0, 1 << 30);

		if (bytes < 0 || (*end && *end != ',') || options->size_count == 64) {
			fprintf(stderr, "bench: \"%s\" is not a list of at most 64 sizes up to 1g, such as 0,8,64k,1m\n", list);
			return -1;
		}
		options->sizes[options->size_count++] = (size_t)bytes;
		if (!*end)
			return 0;
	}
}

static int parse_ops(struct options *options, const char *list)
{
	options->latency = strstr(list, "latency") != NULL;
	options->bandwidth = strstr(list, "bandwidth") != NULL;
	if (strlen(list) == (options->latency ? 7u : 0u) + (options->bandwidth ? 9u : 0u) +
				    (options->latency && options->bandwidth ? 1u : 0u) &&
	    *list)
		return 0;
	fprintf(stderr, "bench: --op takes latency, bandwidth, or latency,bandwidth; not \"%s\"\n", list);
	return -1;
}

int harness_option(struct options *options, int c, const char *value)
{
	int64_t n = 0;

	switch (c) {
	case 's': return parse_sizes(options, value);
	case 'o': return parse_ops(options, value);
	case 'w': options->warmup = n = whole_number(value, 0, 1 << 30); break;
	case 'n': options->samples = (int)(n = whole_number(value, 1, 100000)); break;
	case 'm':
		n = whole_number(value, 0, 100000);
		options->sample_ns = n * 1000000;
		break;
	case 'W': options->window = (int)(n = whole_number(value, 1, HARNESS_MAX_WINDOW)); break;
	case 'j': options->json = value; break;
	case 'q': options->quiet = true; break;
	case OPT_PROBE_MS:
		n = whole_number(value, 1, 10000);
		options->probe_ns = n * 1000000;
		break;
	case OPT_NEAR_BELOW:
		n = whole_number(value, 1, 1000000);
		options->near_below_ns = (double)n;
		break;
	case OPT_BUSY_ABOVE:
		n = whole_number(value, 1, 1000000000);
		options->busy_above_ns = (double)n;
		break;
	case OPT_NO_PROBE: options->keep_all = true; break;
	default: return -1;
	}
	return n < 0 ? -1 : 0;
}

static int perform(struct layer *layer, const struct stage_command *command)
{
	if (command->op == STAGE_LATENCY)
		return layer->pingpong(layer, command->bytes, command->iterations);
	return layer->stream(layer, command->bytes, command->iterations, command->window);
}

/* Rank 1: whatever rank 0 says. */
static int follow(struct layer *layer, struct stage *stage)
{
	uint64_t turn = 0;

	for (;;) {
		struct stage_command command = stage_hear(stage, &turn);

		if (command.op == STAGE_END)
			return 0;
		if (command.op == STAGE_PROBE)
			stage_follow(stage);
		else if (perform(layer, &command))
			return 1;
	}
}

/* Rank 0: one run; us for each half round trip or message, negative on failure. */
static double timed(struct layer *layer, struct stage *stage, const struct stage_command *command)
{
	int64_t start;
	double messages = (double)command->iterations * (command->op == STAGE_LATENCY ? 2 : command->window);

	stage_say(stage, command);
	start = stage_now_ns();
	if (perform(layer, command))
		return -1;
	return (double)(stage_now_ns() - start) / messages / 1e3;
}

static double probe(struct stage *stage, const struct options *options)
{
	if (options->keep_all)
		return 0;
	stage_say(stage, &(struct stage_command){.op = STAGE_PROBE});
	return stage_probe(stage, options->probe_ns);
}

/* Warms up, and gives the number of iterations that last as long as a sample should; at least 2.  -1: failure.
 * The parts double, so that a busy machine cannot make it last for ever. */
static int64_t calibrate(struct layer *layer, struct stage *stage, const struct options *options,
			 struct stage_command command)
{
	int64_t warmup = options->warmup, done = 0, iterations, start = stage_now_ns();
	double us = 0;

	if (command.bytes > WARMUP_FULL_BYTES)
		warmup = (int64_t)((double)warmup * WARMUP_FULL_BYTES / (double)command.bytes);
	if (command.op == STAGE_BANDWIDTH)
		warmup /= command.window;
	command.iterations = 2;
	do {
		us = timed(layer, stage, &command);
		if (us < 0)
			return -1;
		done += command.iterations;
		command.iterations = done;
	} while (done < warmup && stage_now_ns() - start < WARMUP_LIMIT_NS);
	us *= command.op == STAGE_LATENCY ? 2 : command.window;
	iterations = (int64_t)((double)options->sample_ns / 1e3 / us);
	return iterations < 2 ? 2 : iterations;
}

/* Whether two probes around a sample name one state. */
static bool agree(const struct options *options, double before, double after)
{
	if (options->keep_all)
		return true;
	return (before < options->near_below_ns) == (after < options->near_below_ns) && before < AGREE * after &&
	       after < AGREE * before && before < options->busy_above_ns;
}

static int measure(struct layer *layer, struct stage *stage, const struct options *options, enum stage_op op,
		   size_t bytes, struct sample *samples)
{
	struct stage_command command = {.op = op, .bytes = bytes, .window = options->window};
	struct series series = {.op = op == STAGE_LATENCY ? "latency" : "bandwidth",
				.bytes = bytes,
				.window = op == STAGE_LATENCY ? 1 : options->window,
				.samples = samples};
	int64_t start;

	command.iterations = calibrate(layer, stage, options, command);
	if (command.iterations < 0)
		return 1;
	start = stage_now_ns();
	for (int tries = 0; series.count < options->samples && tries < options->samples * TRIES_PER_SAMPLE &&
			    stage_now_ns() - start < SAMPLES_LIMIT_NS;
	     tries++) {
		double before = probe(stage, options), after;
		double us = timed(layer, stage, &command);

		if (us < 0)
			return 1;
		after = probe(stage, options);
		if (!agree(options, before, after)) {
			series.discarded++;
			continue;
		}
		samples[series.count++] = (struct sample){.us = us,
							  .probe_ns = (before + after) / 2,
							  .near = (before + after) / 2 < options->near_below_ns};
	}
	report_series(layer, options, &series);
	return 0;
}

static int lead(struct layer *layer, struct stage *stage, const struct options *options)
{
	struct sample *samples = calloc((size_t)options->samples, sizeof(*samples));
	int rc = !samples || report_open(layer, options, stage->cpu);

	for (int i = 0; i < options->size_count && options->latency && !rc; i++)
		rc = measure(layer, stage, options, STAGE_LATENCY, options->sizes[i], samples);
	for (int i = 0; i < options->size_count && options->bandwidth && layer->stream && !rc; i++) {
		if (options->sizes[i]) /* nothing has no bandwidth */
			rc = measure(layer, stage, options, STAGE_BANDWIDTH, options->sizes[i], samples);
	}
	stage_say(stage, &(struct stage_command){.op = STAGE_END});
	free(samples);
	return report_close() || rc;
}

/* The stage is named by rank 0 over the layer that is measured. */
static struct stage *meet(struct layer *layer)
{
	char path[STAGE_PATH_BYTES] = "";
	struct stage *stage = NULL;

	if (layer->rank == 0 && !(stage = stage_create(path)))
		return NULL;
	if (layer->tell(layer, path, sizeof(path)))
		return NULL;
	if (layer->rank == 1 && !(stage = stage_attach(path)))
		return NULL;
	stage_meet(stage, layer->rank);
	if (layer->rank == 0)
		stage_unlink(path);
	return stage;
}

static char *new_buffer(size_t bytes, int fill)
{
	char *buffer = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES);

	if (buffer)
		memset(buffer, fill, bytes);
	return buffer;
}

int harness_run(struct layer *layer, const struct options *options)
{
	size_t largest = STAGE_PATH_BYTES;
	struct stage *stage;
	int rc = 1;

	for (int i = 0; i < options->size_count; i++)
		largest = options->sizes[i] > largest ? options->sizes[i] : largest;
	layer->out = new_buffer(largest, 1);
	layer->in = new_buffer(largest, 2);
	if (!layer->out || !layer->in)
		fprintf(stderr, "bench: no memory for two buffers of %zu bytes\n", largest);
	else if ((stage = meet(layer)))
		rc = layer->rank == 0 ? lead(layer, stage, options) : follow(layer, stage);
	free(layer->out);
	free(layer->in);
	return rc;
}
