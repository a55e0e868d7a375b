/* SPDX-License-Identifier: MIT */
#include "ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (1 << 30)
#define MAX_PARAM 1000000
#define NAME_BYTES 16

const struct op_kind op_kinds[STAGE_OPS] = {
	[STAGE_LATENCY] = {.name = "latency", .params = "1", .empty_too = true, .unit = "us", .messages = 2},
	[STAGE_BANDWIDTH] = {.name = "bandwidth", .unit = "us", .windowed = true},
	[STAGE_BIBANDWIDTH] = {.name = "bibandwidth", .unit = "us", .messages = 2, .windowed = true},
	[STAGE_RATE] = {.name = "rate", .sizes = "8", .params = "64", .unit = "us", .windowed = true},
	[STAGE_POSTED] = {.name = "posted", .sizes = "8", .params = "1/100/10000", .prepared = true, .unit = "us", .messages = 2},
	[STAGE_UNEXPECTED] = {.name = "unexpected", .sizes = "8", .params = "1/100/10000", .prepared = true, .unit = "us", .messages = 2},
	[STAGE_THREADS] = {.name = "threads", .sizes = "8", .params = "1/2/4", .unit = "us", .messages = 2},
	[STAGE_EXCHANGE] = {.name = "exchange", .sizes = "64k/1m", .params = "1", .unit = "us"},
	[STAGE_EXPOSED] = {.name = "exposed", .sizes = "64k/1m", .params = "1", .unit = "us"},
	[STAGE_PAIRS] = {.name = "pairs", .sizes = "8", .params = "64", .of_all = true, .unit = "us", .windowed = true},
	[STAGE_BARRIER] = {.name = "barrier", .sizes = "0", .params = "1", .empty_too = true, .of_all = true, .unit = "us"},
	[STAGE_BCAST] = {.name = "bcast", .sizes = "1k/1m", .params = "1", .of_all = true, .unit = "us"},
	[STAGE_REDUCE] = {.name = "reduce", .sizes = "1k/1m", .params = "1", .of_all = true, .unit = "us"},
	[STAGE_ALLREDUCE] = {.name = "allreduce", .sizes = "8/1k/1m", .params = "1", .of_all = true, .unit = "us"},
	[STAGE_ALLGATHER] = {.name = "allgather", .sizes = "1k/1m", .params = "1", .of_all = true, .unit = "us"},
	[STAGE_ALLTOALL] = {.name = "alltoall", .sizes = "1k/1m", .params = "1", .of_all = true, .unit = "us"},
	[STAGE_STEP] = {.name = "step", .sizes = "0", .params = "200", .empty_too = true, .of_all = true, .unit = "us"},
	[STAGE_IDLE] = {.name = "idle", .sizes = "0", .params = "500", .empty_too = true, .of_all = true, .unit = "us", .unprobed = true},
	[STAGE_MEMORY] = {.name = "memory", .sizes = "8", .params = "1", .of_all = true, .unit = "KB", .unprobed = true},
};

int64_t ops_number(const char *text, char **end, int64_t min, int64_t max)
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

int ops_parse_sizes(const char *list, const char *end, char separator, size_t sizes[OPS_MAX_SIZES])
{
	int count = 0;

	for (const char *at = list;; at++) {
		char *stop;
		int64_t bytes = ops_number(at, &stop, 0, MAX_BYTES);

		if (bytes < 0 || stop > end || count == OPS_MAX_SIZES || (stop < end && *stop != separator)) {
			fprintf(stderr,
				"bench: \"%.*s\" is not a list of at most %d sizes up to 1g, such as "
				"0%c8%c64k\n",
				(int)(end - list), list, OPS_MAX_SIZES, separator, separator);
			return -1;
		}
		sizes[count++] = (size_t)bytes;
		at = stop;
		if (at == end)
			return count;
	}
}

static int parse_params(const char *list, const char *end, struct op_plan *plan)
{
	enum stage_op op = plan->op;
	int64_t max = op == STAGE_THREADS ? OPS_MAX_THREADS : op_kinds[op].windowed ? OPS_MAX_WINDOW : MAX_PARAM;

	plan->param_count = 0;
	for (const char *at = list;; at++) {
		char *stop;
		int64_t value = ops_number(at, &stop, 1, max);

		if (value < 0 || stop > end || plan->param_count == OPS_MAX_PARAMS || (stop < end && *stop != '/')) {
			fprintf(stderr,
				"bench: %s takes at most %d parameters from 1 to %lld, such as 1/100; not "
				"\"%.*s\"\n",
				op_kinds[op].name, OPS_MAX_PARAMS, (long long)max, (int)(end - list), list);
			return -1;
		}
		plan->params[plan->param_count++] = (int)value;
		at = stop;
		if (at == end)
			return 0;
	}
}

static int parse_one(const char *word, const char *end, struct op_plan *plan)
{
	const char *sizes = memchr(word, '=', (size_t)(end - word)), *params = memchr(word, '@', (size_t)(end - word));
	const char *name_end = sizes ? sizes : params ? params : end;
	const struct op_kind *kind;

	*plan = (struct op_plan){.own_sizes = sizes != NULL};
	while (plan->op < STAGE_OPS && (strlen(op_kinds[plan->op].name) != (size_t)(name_end - word) ||
					memcmp(op_kinds[plan->op].name, word, (size_t)(name_end - word)) != 0))
		plan->op++;
	if (plan->op == STAGE_OPS) {
		fprintf(stderr, "bench: --op: there is no \"%.*s\"; there are", (int)(name_end - word), word);
		for (int i = 0; i < STAGE_OPS; i++)
			fprintf(stderr, " %s", op_kinds[i].name);
		fputc('\n', stderr);
		return -1;
	}
	kind = &op_kinds[plan->op];
	if (!sizes && kind->sizes) {
		plan->own_sizes = true;
		plan->size_count = ops_parse_sizes(kind->sizes, kind->sizes + strlen(kind->sizes), '/', plan->sizes);
	} else if (sizes) {
		plan->size_count = ops_parse_sizes(sizes + 1, params && params > sizes ? params : end, '/', plan->sizes);
	}
	if (plan->size_count < 0)
		return -1;
	if (params)
		return parse_params(params + 1, end, plan);
	return kind->params ? parse_params(kind->params, kind->params + strlen(kind->params), plan) : 0;
}

int ops_parse(const char *list, struct op_plan plans[STAGE_OPS])
{
	int count = 0;

	for (const char *at = list;; at++) {
		const char *end = strchr(at, ',') ? strchr(at, ',') : at + strlen(at);

		if (count == STAGE_OPS || parse_one(at, end, &plans[count]))
			return -1;
		count++;
		if (!*end)
			return count;
		at = end;
	}
}

void ops_complete(struct op_plan *plans, int count, const size_t *sizes, int size_count, int window)
{
	for (struct op_plan *plan = plans; plan < plans + count; plan++) {
		if (!plan->own_sizes) {
			plan->size_count = 0;
			for (int i = 0; i < size_count; i++) {
				if (sizes[i] || op_kinds[plan->op].empty_too)
					plan->sizes[plan->size_count++] = sizes[i];
			}
		}
		if (!plan->param_count) {
			plan->param_count = 1;
			plan->params[0] = window;
		}
	}
}

double ops_units(const struct stage_command *command, int ranks)
{
	const struct op_kind *kind = &op_kinds[command->op];

	return (kind->messages ? kind->messages : 1) * (kind->windowed ? command->param : 1) * (command->op == STAGE_PAIRS ? ranks / 2 : 1);
}
