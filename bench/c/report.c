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
		printf("%-10s %-6s %-10s %-10s %10s %-5s %12s %12s %12s %9s %7s %8s\n", "tool", "level", "device", "op", "bytes",
		       "state", "median us", "min us", "max us", "GB/s", "samples", "probe ns");
	fflush(stdout);
	return 0;
}

static int by_us(const void *a, const void *b)
{
	double x = ((const struct sample *)a)->us, y = ((const struct sample *)b)->us;

	return (x > y) - (x < y);
}

static double median(const struct sample *sorted, int count)
{
	return count % 2 ? sorted[count / 2].us : (sorted[count / 2 - 1].us + sorted[count / 2].us) / 2;
}

static void write_json(const struct layer *layer, const struct series *series, const char *state, double probe_ns)
{
	const struct sample *samples = series->samples;
	double us = median(samples, series->count);

	if (!json)
		return;
	fprintf(json,
		"{\"tool\": \"%s\", \"level\": \"%s\", \"device\": \"%s\", \"op\": \"%s\", \"bytes\": %zu, \"window\": %d, "
		"\"state\": \"%s\", \"median_us\": %.4f, \"min_us\": %.4f, \"max_us\": %.4f, \"samples\": %d, "
		"\"gb_per_s\": %.4f, \"probe_ns\": %.0f, \"discarded\": %d, \"values_us\": [",
		layer->tool, layer->level, layer->device, series->op, series->bytes, series->window, state, us, samples[0].us,
		samples[series->count - 1].us, series->count, (double)series->bytes / us / 1e3, probe_ns, series->discarded);
	for (int i = 0; i < series->count; i++)
		fprintf(json, "%s%.4f", i ? ", " : "", samples[i].us);
	fprintf(json, "]}\n");
}

static void report_state(const struct layer *layer, const struct options *options, const struct series *series,
			 const char *state)
{
	struct sample *samples = series->samples;
	double probe_ns = 0, us;

	for (int i = 0; i < series->count; i++)
		probe_ns += samples[i].probe_ns / series->count;
	qsort(samples, (size_t)series->count, sizeof(*samples), by_us);
	us = median(samples, series->count);
	write_json(layer, series, state, probe_ns);
	if (options->quiet)
		return;
	printf("%-10s %-6s %-10s %-10s %10zu %-5s %12.3f %12.3f %12.3f %9.2f %7d %8.0f\n", layer->tool, layer->level,
	       layer->device, series->op, series->bytes, state, us, samples[0].us, samples[series->count - 1].us,
	       (double)series->bytes / us / 1e3, series->count, probe_ns);
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
		if (part.count)
			report_state(layer, options, &part, options->keep_all ? "any" : near ? "near" : "far");
	}
	if (!series->count)
		fprintf(stderr, "bench: %s: %s of %zu bytes: no sample between two equal probes\n", layer->tool, series->op,
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
