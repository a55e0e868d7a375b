/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

#define TRIES_PER_SAMPLE 4
#define AGREE 1.3              /* two probes of one state differ by less */
#define WARMUP_FULL_BYTES 4096 /* larger messages: fewer iterations */
#define WARMUP_OF_ALL 10       /* an operation of all ranks takes as long as about so many messages */
#define WARMUP_LIMIT_NS 3000000000
#define SAMPLES_LIMIT_NS 10000000000
#define PAGE_BYTES 4096
#define TIME_LIMIT_S 900
#define SEEK_LIMIT_NS 800000000 /* for the samples of one operation and size */

struct run {
	struct layer *layer;
	const struct options *options;
	struct stage stage;
	struct sample *samples; /* of rank 0 */
};

static layer_op *op_of(const struct layer *layer, enum stage_op op)
{
	if (op == STAGE_STEP)
		return layer->ops[STAGE_BARRIER];
	return layer->ops[op == STAGE_MEMORY ? STAGE_ALLTOALL : op];
}

static int step(struct layer *layer, const struct stage_command *command)
{
	struct stage_command barrier = {.op = STAGE_BARRIER, .iterations = 1};
	int rc = 0;

	for (int64_t i = 0; i < command->iterations && !rc; i++) {
		work_compute(command->work_ns);
		rc = op_of(layer, STAGE_BARRIER)(layer, &barrier);
	}
	return rc;
}

static int perform(struct run *run, const struct stage_command *command)
{
	int64_t before = work_processor_ns();
	int rc;

	if (command->op == STAGE_STEP)
		return step(run->layer, command);
	rc = op_of(run->layer, command->op)(run->layer, command);
	if (command->op == STAGE_IDLE && run->layer->rank)
		stage_add(&run->stage, work_processor_ns() - before);
	if (command->op == STAGE_MEMORY)
		stage_add(&run->stage, work_memory_kb());
	return rc;
}

/* All but rank 0: whatever rank 0 orders. */
static int follow(struct run *run)
{
	for (;;) {
		struct stage_command command = stage_hear(&run->stage);

		if (command.op == STAGE_END)
			return 0;
		if (command.op == STAGE_PROBE) {
			if (run->layer->rank == 1)
				stage_follow(&run->stage);
		} else if (command.op == STAGE_NAP) {
			stage_nap();
		} else {
			if (op_kinds[command.op].of_all)
				stage_gather(&run->stage);
			if (perform(run, &command))
				return 1;
		}
		stage_done(&run->stage);
	}
}

/* Rank 0: one run; the value for each message or operation, negative on failure. */
static double timed(struct run *run, const struct stage_command *command)
{
	bool of_all = op_kinds[command->op].of_all;
	int64_t start, took;

	stage_send(&run->stage, command);
	if (of_all)
		stage_gather(&run->stage);
	start = stage_now_ns();
	if (perform(run, command))
		return -1;
	if (of_all) /* rank 0 may be the first to leave */
		stage_await_done(&run->stage);
	took = stage_now_ns() - start;
	if (command->op == STAGE_IDLE)
		return (double)stage_take_sum(&run->stage) / (run->layer->size - 1) / ((double)took / 1e9) / 1e3;
	if (command->op == STAGE_MEMORY)
		return (double)stage_take_sum(&run->stage) / run->layer->size;
	if (command->op == STAGE_EXPOSED)
		took -= command->iterations * command->work_ns;
	return (double)took / (double)command->iterations / ops_units(command, run->layer->size) / 1e3;
}

static double probe(struct run *run, enum stage_op op)
{
	if (run->options->keep_all || op_kinds[op].unprobed)
		return 0;
	stage_send(&run->stage, &(struct stage_command){.op = STAGE_PROBE});
	return stage_probe(&run->stage, run->options->probe_ns);
}

/* Warms up, and sets the number of iterations that last as long as a sample should; at least 2.  -1: failure.
 * The parts double, so that a busy machine cannot make it last for ever. */
static int calibrate(struct run *run, struct stage_command *command)
{
	double warmup = (double)run->options->warmup, us;
	int64_t done = 0, start = stage_now_ns(), iterations;
	double units = ops_units(command, run->layer->size);

	if (command->bytes > WARMUP_FULL_BYTES)
		warmup *= WARMUP_FULL_BYTES / (double)command->bytes;
	warmup /= op_kinds[command->op].of_all ? units * WARMUP_OF_ALL : units / 2;
	command->iterations = 2;
	do {
		us = timed(run, command);
		if (us < 0)
			return -1;
		done += command->iterations;
		command->iterations = done;
	} while ((double)done < warmup && stage_now_ns() - start < WARMUP_LIMIT_NS);
	iterations = (int64_t)((double)run->options->sample_ns / 1e3 / (us * units + 1e-3));
	command->iterations = iterations < 2 ? 2 : iterations;
	return 0;
}

/* Everything that is known before the first sample. */
static int prepare(struct run *run, struct stage_command *command)
{
	struct stage_command exchange = *command;

	if (op_kinds[command->op].unprobed)
		return 0;
	if (command->op == STAGE_STEP)
		command->work_ns = (int64_t)command->param * 1000;
	if (command->op != STAGE_EXPOSED)
		return calibrate(run, command);
	exchange.op = STAGE_EXCHANGE; /* the computation is as long as the communication alone */
	if (calibrate(run, &exchange))
		return -1;
	command->work_ns = (int64_t)(timed(run, &exchange) * 1e3);
	command->iterations = exchange.iterations;
	return command->work_ns < 0 ? -1 : 0;
}

/* Whether two probes around a sample name one state. */
static bool agree(const struct options *options, double before, double after)
{
	if (options->keep_all)
		return true;
	return (before < options->near_below_ns) == (after < options->near_below_ns) && before < AGREE * after && after < AGREE * before &&
	       before < options->busy_above_ns;
}

/* The probe before a sample: of the state that is sought, or negative when it does not come in time. */
static double seek(struct run *run, enum stage_op op, int64_t deadline)
{
	const struct options *options = run->options;
	double distance;

	for (;;) {
		distance = probe(run, op);
		if (options->seek == SEEK_ANY || op_kinds[op].unprobed || options->keep_all)
			return distance;
		if (distance < options->busy_above_ns && (distance < options->near_below_ns) == (options->seek == SEEK_NEAR))
			return distance;
		if (stage_now_ns() > deadline)
			return -1;
		stage_send(&run->stage, &(struct stage_command){.op = STAGE_NAP});
		stage_nap();
	}
}

static int take_samples(struct run *run, const struct stage_command *command, struct series *series)
{
	const struct options *options = run->options;
	int wanted = op_kinds[command->op].unprobed ? 1 : options->samples;
	int64_t start = stage_now_ns();

	for (int tries = 0; series->count < wanted && tries < wanted * TRIES_PER_SAMPLE && stage_now_ns() - start < SAMPLES_LIMIT_NS;
	     tries++) {
		double before = seek(run, command->op, start + SEEK_LIMIT_NS), value, after;

		if (before < 0)
			break;
		value = timed(run, command);
		if (value < 0 && command->op != STAGE_EXPOSED)
			return 1;
		after = probe(run, command->op);
		if (!agree(options, before, after)) {
			series->discarded++;
			continue;
		}
		run->samples[series->count++] = (struct sample){
			.value = value, .probe_ns = (before + after) / 2, .near = (before + after) / 2 < options->near_below_ns};
	}
	return 0;
}

static int measure(struct run *run, enum stage_op op, size_t bytes, int param)
{
	struct stage_command command = {.op = op, .bytes = bytes, .param = param, .iterations = 1};
	struct series series = {.op = op, .bytes = bytes, .param = param, .samples = run->samples};

	command.phase = STAGE_SETUP;
	if (op_kinds[op].prepared && timed(run, &command) < 0)
		return 1;
	command.phase = STAGE_RUN;
	if (prepare(run, &command) || take_samples(run, &command, &series))
		return 1;
	command.phase = STAGE_CLEAR;
	if (op_kinds[op].prepared && timed(run, &command) < 0)
		return 1;
	report_series(run->layer, run->options, &series);
	return 0;
}

static bool can_measure(const struct layer *layer, enum stage_op op)
{
	return op_of(layer, op) && (op_kinds[op].of_all || layer->size == 2);
}

static int lead(struct run *run)
{
	const struct options *options = run->options;
	int rc = report_open(run->layer, options, run->stage.board->cpu);

	run->samples = calloc((size_t)options->samples, sizeof(*run->samples));
	rc |= !run->samples;
	for (int i = 0; i < options->plan_count && !rc; i++) {
		const struct op_plan *plan = &options->plans[i];

		if (!can_measure(run->layer, plan->op))
			continue;
		for (int s = 0; s < plan->size_count && !rc; s++) {
			for (int p = 0; p < plan->param_count && !rc; p++)
				rc = measure(run, plan->op, plan->sizes[s], plan->params[p]);
		}
	}
	if (!rc) /* else the others may wait for a message: they are ended, not notified */
		stage_send(&run->stage, &(struct stage_command){.op = STAGE_END});
	free(run->samples);
	return report_close() || rc;
}

/* The stage is named by rank 0 over the layer that is measured. */
static int meet(struct run *run)
{
	struct layer *layer = run->layer;
	char path[STAGE_PATH_BYTES] = "";
	int rc = 0;

	if (layer->rank == 0 && stage_create(&run->stage, layer->size, path))
		return 1;
	if (layer->broadcast(layer, path, sizeof(path)))
		rc = 1;
	else if (layer->rank && stage_attach(&run->stage, layer->rank, layer->size, path))
		rc = 1;
	if (!rc)
		stage_gather(&run->stage);
	if (layer->rank == 0)
		stage_unlink(path);
	return rc;
}

static char *new_buffer(size_t bytes, int fill)
{
	char *buffer = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES);

	if (buffer)
		memset(buffer, fill, bytes);
	return buffer;
}

/* Messages for which an operation needs room: blocks of all ranks for the collective operations, those under way for the
 * windowed, one for the others. */
static size_t room_messages(const struct layer *layer, const struct op_plan *plan)
{
	int most = op_kinds[plan->op].of_all ? layer->size : 1;

	for (int i = 0; i < plan->param_count && op_kinds[plan->op].windowed; i++)
		most = plan->params[i] > most ? plan->params[i] : most;
	return (size_t)most;
}

static size_t room(const struct layer *layer, const struct options *options)
{
	size_t largest = STAGE_PATH_BYTES;

	for (int i = 0; i < options->plan_count; i++) {
		const struct op_plan *plan = &options->plans[i];

		for (int s = 0; s < plan->size_count; s++) {
			size_t bytes = harness_stride(plan->sizes[s]) * room_messages(layer, plan);

			largest = bytes > largest ? bytes : largest;
		}
	}
	return largest;
}

int harness_run(struct layer *layer, const struct options *options)
{
	struct options own = *options;
	struct run run = {.layer = layer, .options = &own};
	size_t bytes;
	int rc = 1;

	ops_complete(own.plans, own.plan_count, own.sizes, own.size_count, own.window);
	bytes = room(layer, &own);
	alarm(TIME_LIMIT_S);               /* nothing spins on for ever, whatever became of the launcher */
	layer->out = new_buffer(bytes, 0); /* zero: reductions shall not meet numbers that are slow to add */
	layer->in = new_buffer(bytes, 0);
	work_compute(1);
	if (!layer->out || !layer->in)
		fprintf(stderr, "bench: no memory for two buffers of %zu bytes\n", bytes);
	else if (!meet(&run))
		rc = layer->rank == 0 ? lead(&run) : follow(&run);
	free(layer->out);
	free(layer->in);
	return rc;
}
