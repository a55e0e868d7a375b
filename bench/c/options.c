/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "harness.h"

enum { OPT_PROBE_MS = 256, OPT_NEAR_BELOW, OPT_BUSY_ABOVE, OPT_NO_PROBE, OPT_SEEK };

const char harness_usage[] = "  -s, --sizes LIST       bytes, such as 0,8,1k,64k,1m (default 0 to 16m)\n"
			     "  -o, --op LIST          operations, with sizes after = and parameters after @, such as\n"
			     "                         latency,bandwidth=8/64k@16/64,barrier (default: latency): latency "
			     "bandwidth\n"
			     "                         bibandwidth rate posted unexpected threads exchange exposed pairs barrier "
			     "bcast reduce\n"
			     "                         allreduce allgather alltoall step idle memory\n"
			     "  -w, --warmup N         iterations before the first sample, up to 4 KB; fewer for larger messages "
			     "and for\n"
			     "                         operations of all ranks (default 20000)\n"
			     "  -n, --samples N        samples for each size (default 9)\n"
			     "  -m, --sample-ms N      length of a sample (default 20)\n"
			     "  -W, --window N         messages under way in the bandwidth tests (default 16)\n"
			     "  -j, --json FILE        append one JSON object for each line of the table\n"
			     "  -q, --quiet            no table\n"
			     "      --probe-ms N       length of the cache-line probe around each sample (default 5)\n"
			     "      --near-below NS    a probe below this is \"near\" (default 130)\n"
			     "      --busy-above NS    a probe above this drops its sample: others use the processors (default "
			     "600)\n"
			     "      --no-probe         take every sample, in state \"any\"\n"
			     "      --seek STATE       near or far: try for some time to get samples of this state, take no "
			     "others\n";

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
	{"seek", required_argument, NULL, OPT_SEEK},
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
		.warmup = 20000,
		.samples = 9,
		.sample_ns = 20 * 1000000,
		.probe_ns = 5 * 1000000,
		.near_below_ns = 130,
		.busy_above_ns = 600,
		.window = 16,
	};
	memcpy(options->sizes, sizes, sizeof(sizes));
	options->plan_count = ops_parse("latency", options->plans);
}

bool harness_wants(const struct options *options, enum stage_op op)
{
	for (int i = 0; i < options->plan_count; i++) {
		if (options->plans[i].op == op)
			return true;
	}
	return false;
}

static int64_t whole_number(const char *text, int64_t min, int64_t max)
{
	char *end;
	int64_t value = ops_number(text, &end, min, max);

	if (value < 0 || *end) {
		fprintf(stderr, "bench: \"%s\" is not a number from %lld to %lld\n", text, (long long)min, (long long)max);
		return -1;
	}
	return value;
}

int harness_option(struct options *options, int c, const char *value)
{
	int64_t n = 0;

	switch (c) {
	case 's': options->size_count = (int)(n = ops_parse_sizes(value, value + strlen(value), ',', options->sizes)); break;
	case 'o': options->plan_count = (int)(n = ops_parse(value, options->plans)); break;
	case 'w': options->warmup = n = whole_number(value, 0, 1 << 30); break;
	case 'n': options->samples = (int)(n = whole_number(value, 1, 100000)); break;
	case 'm':
		n = whole_number(value, 0, 100000);
		options->sample_ns = n * 1000000;
		break;
	case 'W': options->window = (int)(n = whole_number(value, 1, OPS_MAX_WINDOW)); break;
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
	case OPT_SEEK:
		options->seek = !strcmp(value, "near") ? SEEK_NEAR : !strcmp(value, "far") ? SEEK_FAR : SEEK_ANY;
		n = options->seek ? 0 : -1;
		break;
	default: return -1;
	}
	return n < 0 ? -1 : 0;
}
