/* SPDX-License-Identifier: MIT */
#include "mpi_layer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

enum { TAG = 1, ANSWER_TAG = 2, THREAD_TAG = 100, EXTRA_TAG = 1000 };
#define WORLD MPI_COMM_WORLD

static MPI_Request *extra; /* what stands in the queues of posted and unexpected */

static void pingpong_on(struct layer *layer, size_t bytes, int64_t iterations, int tag, char *out, char *in)
{
	int other = 1 - layer->rank, n = (int)bytes;

	if (layer->rank == 1)
		MPI_Recv(in, n, MPI_BYTE, other, tag, WORLD, MPI_STATUS_IGNORE);
	for (int64_t i = layer->rank; i < iterations; i++) {
		MPI_Send(out, n, MPI_BYTE, other, tag, WORLD);
		MPI_Recv(in, n, MPI_BYTE, other, tag, WORLD, MPI_STATUS_IGNORE);
	}
	if (layer->rank == 1)
		MPI_Send(out, n, MPI_BYTE, other, tag, WORLD);
}

static int pingpong(struct layer *layer, const struct stage_command *command)
{
	pingpong_on(layer, command->bytes, command->iterations, TAG, layer->out, layer->in);
	return 0;
}

static void stream(struct layer *layer, const struct stage_command *command, int other, bool sends)
{
	MPI_Request requests[OPS_MAX_WINDOW];
	int n = (int)command->bytes;

	for (int64_t i = 0; i < command->iterations; i++) {
		for (int k = 0; k < command->param; k++) {
			if (sends)
				MPI_Isend(harness_slot(layer->out, command, k), n, MPI_BYTE, other, TAG, WORLD, &requests[k]);
			else
				MPI_Irecv(harness_slot(layer->in, command, k), n, MPI_BYTE, other, TAG, WORLD, &requests[k]);
		}
		MPI_Waitall(command->param, requests, MPI_STATUSES_IGNORE);
		if (sends)
			MPI_Recv(NULL, 0, MPI_BYTE, other, ANSWER_TAG, WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(NULL, 0, MPI_BYTE, other, ANSWER_TAG, WORLD);
	}
}

static int bandwidth(struct layer *layer, const struct stage_command *command)
{
	stream(layer, command, 1 - layer->rank, layer->rank == 0);
	return 0;
}

static int pairs(struct layer *layer, const struct stage_command *command)
{
	if ((layer->rank ^ 1) < layer->size)
		stream(layer, command, layer->rank ^ 1, layer->rank % 2 == 0);
	return 0;
}

static int bibandwidth(struct layer *layer, const struct stage_command *command)
{
	MPI_Request requests[2 * OPS_MAX_WINDOW];
	int other = 1 - layer->rank, n = (int)command->bytes, window = command->param;

	for (int64_t i = 0; i < command->iterations; i++) {
		for (int k = 0; k < window; k++)
			MPI_Irecv(harness_slot(layer->in, command, k), n, MPI_BYTE, other, TAG, WORLD, &requests[k]);
		for (int k = 0; k < window; k++)
			MPI_Isend(harness_slot(layer->out, command, k), n, MPI_BYTE, other, TAG, WORLD, &requests[window + k]);
		MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
	}
	return 0;
}

static int exchange(struct layer *layer, const struct stage_command *command)
{
	MPI_Request requests[2];
	int other = 1 - layer->rank, n = (int)command->bytes;

	for (int64_t i = 0; i < command->iterations; i++) {
		MPI_Irecv(layer->in, n, MPI_BYTE, other, TAG, WORLD, &requests[0]);
		MPI_Isend(layer->out, n, MPI_BYTE, other, TAG, WORLD, &requests[1]);
		work_compute(command->work_ns);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	return 0;
}

static int new_extra(int count)
{
	extra = calloc((size_t)count + 1, sizeof(MPI_Request));
	if (!extra)
		fprintf(stderr, "bench_mpi: no memory for %d requests\n", count);
	return !extra;
}

static void end_extra(int count)
{
	MPI_Waitall(count, extra, MPI_STATUSES_IGNORE);
	free(extra);
	extra = NULL;
}

static int posted(struct layer *layer, const struct stage_command *command)
{
	int count = command->param - 1, other = 1 - layer->rank;

	if (command->phase == STAGE_RUN)
		return pingpong(layer, command);
	if (command->phase == STAGE_SETUP) {
		if (new_extra(count))
			return 1;
		for (int i = 0; i < count; i++)
			MPI_Irecv(NULL, 0, MPI_BYTE, other, EXTRA_TAG + i, WORLD, &extra[i]);
		return 0;
	}
	for (int i = 0; i < count; i++)
		MPI_Send(NULL, 0, MPI_BYTE, other, EXTRA_TAG + i, WORLD);
	end_extra(count);
	return 0;
}

static int unexpected(struct layer *layer, const struct stage_command *command)
{
	int count = command->param - 1, other = 1 - layer->rank, n = (int)command->bytes;

	if (command->phase == STAGE_RUN)
		return pingpong(layer, command);
	if (command->phase == STAGE_SETUP) {
		if (new_extra(count))
			return 1;
		for (int i = 0; i < count; i++)
			MPI_Isend(layer->out, n, MPI_BYTE, other, EXTRA_TAG + i, WORLD, &extra[i]);
		return 0;
	}
	for (int i = 0; i < count; i++)
		MPI_Recv(layer->in, n, MPI_BYTE, other, EXTRA_TAG + i, WORLD, MPI_STATUS_IGNORE);
	end_extra(count);
	return 0;
}

struct thread_job {
	struct layer *layer;
	const struct stage_command *command;
};

static int thread_pingpong(int thread, void *arg)
{
	struct thread_job *job = arg;
	size_t bytes = job->command->bytes;
	char *memory = calloc(2, bytes + 1);

	if (!memory)
		return 1;
	pingpong_on(job->layer, bytes, job->command->iterations, THREAD_TAG + thread, memory, memory + bytes + 1);
	free(memory);
	return 0;
}

static int threads(struct layer *layer, const struct stage_command *command)
{
	return work_threads(command->param, thread_pingpong, &(struct thread_job){layer, command});
}

static int barrier(struct layer *layer, const struct stage_command *command)
{
	(void)layer;
	for (int64_t i = 0; i < command->iterations; i++)
		MPI_Barrier(WORLD);
	return 0;
}

static int bcast(struct layer *layer, const struct stage_command *command)
{
	for (int64_t i = 0; i < command->iterations; i++)
		MPI_Bcast(layer->out, (int)command->bytes, MPI_BYTE, (int)(i % layer->size), WORLD);
	return 0;
}

static int reduce(struct layer *layer, const struct stage_command *command)
{
	int n = (int)(command->bytes / sizeof(double));

	for (int64_t i = 0; i < command->iterations; i++)
		MPI_Reduce(layer->out, layer->in, n, MPI_DOUBLE, MPI_SUM, (int)(i % layer->size), WORLD);
	return 0;
}

static int allreduce(struct layer *layer, const struct stage_command *command)
{
	int n = (int)(command->bytes / sizeof(double));

	for (int64_t i = 0; i < command->iterations; i++)
		MPI_Allreduce(layer->out, layer->in, n, MPI_DOUBLE, MPI_SUM, WORLD);
	return 0;
}

static int allgather(struct layer *layer, const struct stage_command *command)
{
	int n = (int)command->bytes;

	for (int64_t i = 0; i < command->iterations; i++)
		MPI_Allgather(layer->out, n, MPI_BYTE, layer->in, n, MPI_BYTE, WORLD);
	return 0;
}

static int alltoall(struct layer *layer, const struct stage_command *command)
{
	int n = (int)command->bytes;

	for (int64_t i = 0; i < command->iterations; i++)
		MPI_Alltoall(layer->out, n, MPI_BYTE, layer->in, n, MPI_BYTE, WORLD);
	return 0;
}

static int idle(struct layer *layer, const struct stage_command *command)
{
	if (layer->rank) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, WORLD, MPI_STATUS_IGNORE);
		return 0;
	}
	usleep((useconds_t)command->param * 1000);
	for (int r = 1; r < layer->size; r++)
		MPI_Send(NULL, 0, MPI_BYTE, r, TAG, WORLD);
	return 0;
}

static int broadcast(struct layer *layer, char *text, size_t bytes)
{
	(void)layer;
	MPI_Bcast(text, (int)bytes, MPI_BYTE, 0, WORLD);
	return 0;
}

void mpi_layer_init(struct layer *layer)
{
	MPI_Comm_rank(WORLD, &layer->rank);
	MPI_Comm_size(WORLD, &layer->size);
	layer->broadcast = broadcast;
	layer->ops[STAGE_LATENCY] = pingpong;
	layer->ops[STAGE_BANDWIDTH] = layer->ops[STAGE_RATE] = bandwidth;
	layer->ops[STAGE_BIBANDWIDTH] = bibandwidth;
	layer->ops[STAGE_POSTED] = posted;
	layer->ops[STAGE_UNEXPECTED] = unexpected;
	layer->ops[STAGE_THREADS] = threads;
	layer->ops[STAGE_EXCHANGE] = layer->ops[STAGE_EXPOSED] = exchange;
	layer->ops[STAGE_PAIRS] = pairs;
	layer->ops[STAGE_BARRIER] = barrier;
	layer->ops[STAGE_BCAST] = bcast;
	layer->ops[STAGE_REDUCE] = reduce;
	layer->ops[STAGE_ALLREDUCE] = allreduce;
	layer->ops[STAGE_ALLGATHER] = allgather;
	layer->ops[STAGE_ALLTOALL] = alltoall;
	layer->ops[STAGE_IDLE] = idle;
}
