/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *json;

int report_open(const struct layer *layer, const struct options *options, const int cpu[2])
{
	if (options->json && !(json = fopen(options->json, "ae"))) {
		fprintf(stderr, "bench: cannot write %s: %s\n", options->json, strerror(errno));
		return 1;
	}
	if (cpu[0] < 0 || cpu[1] < 0)
		fprintf(stderr, "bench: %s: the ranks are not pinned to one processor each\n", layer->tool);
	else if (cpu[0] == cpu[1])
		fprintf(stderr, "bench: %s: both ranks are on processor %d\n", layer->tool, cpu[0]);
	if (!options->quiet && !options->no_heading)
		printf("%-10s %-6s %-10s %-11s %10s %6s %-5s %12s %12s %12s %4s %7s %8s\n", "tool", "level", "device", "op", "bytes",
		       "param", "state", "median", "min", "max", "unit", "samples", "probe ns");
	fflush(stdout);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = ((const struct sample *)a)->value, y = ((const struct sample *)b)->value;

	return (x > y) - (x < y);
}

static double median(const struct sample *sorted, int count)
{
	return count % 2 ? sorted[count / 2].value : (sorted[count / 2 - 1].value + sorted[count / 2].value) / 2;
}

static void write_json(const struct layer *layer, const struct series *series, const char *state, double probe_ns)
{
	const struct sample *samples = series->samples;

	if (!json)
		return;
	fprintf(json,
		"{\"tool\": \"%s\", \"level\": \"%s\", \"device\": \"%s\", \"op\": \"%s\", \"bytes\": %zu, "
		"\"param\": %d, "
		"\"ranks\": %d, \"state\": \"%s\", \"unit\": \"%s\", \"median\": %.4f, \"samples\": %d, "
		"\"probe_ns\": %.0f, \"discarded\": %d, \"values\": [",
		layer->tool, layer->level, layer->device, op_kinds[series->op].name, series->bytes, series->param, layer->size, state,
		op_kinds[series->op].unit, median(samples, series->count), series->count, probe_ns, series->discarded);
	for (int i = 0; i < series->count; i++)
		fprintf(json, "%s%.4f", i ? ", " : "", samples[i].value);
	fprintf(json, "]}\n");
}

static void report_state(const struct layer *layer, const struct options *options, const struct series *series, const char *state)
{
	struct sample *samples = series->samples;
	double probe_ns = 0;

	for (int i = 0; i < series->count; i++)
		probe_ns += samples[i].probe_ns / series->count;
	qsort(samples, (size_t)series->count, sizeof(*samples), by_value);
	write_json(layer, series, state, probe_ns);
	if (options->quiet)
		return;
	printf("%-10s %-6s %-10s %-11s %10zu %6d %-5s %12.3f %12.3f %12.3f %4s %7d %8.0f\n", layer->tool, layer->level, layer->device,
	       op_kinds[series->op].name, series->bytes, series->param, state, median(samples, series->count), samples[0].value,
	       samples[series->count - 1].value, op_kinds[series->op].unit, series->count, probe_ns);
	fflush(stdout);
}

void report_series(const struct layer *layer, const struct options *options, const struct series *series)
{
	struct series part = *series;
	struct sample *sorted = calloc((size_t)series->count + 1, sizeof(*sorted));

	if (!sorted)
		return;
	part.samples = sorted;
	for (int near = 1; near >= 0; near--) {
		part.count = 0;
		for (int i = 0; i < series->count; i++) {
			if (series->samples[i].near == near)
				sorted[part.count++] = series->samples[i];
		}
		if (part.count) {
			report_state(layer, options, &part,
				     options->keep_all || op_kinds[series->op].unprobed ? "any"
				     : near                                             ? "near"
											: "far");
			part.discarded = 0; /* reported once */
		}
	}
	if (!series->count && options->seek == SEEK_ANY)
		fprintf(stderr, "bench: %s: %s of %zu bytes: no sample between two equal probes\n", layer->tool, op_kinds[series->op].name,
			series->bytes);
	free(sorted);
}

int report_close(void)
{
	int rc = 0;

	if (json && fclose(json) == EOF) {
		fprintf(stderr, "bench: the JSON file could not be written: %s\n", strerror(errno));
		rc = 1;
	}
	json = NULL;
	return rc;
}
