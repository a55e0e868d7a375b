/* SPDX-License-Identifier: MIT */
#include "ibvx_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

enum { TAG = 1, ANSWER_TAG = 2, THREAD_TAG = 100, EXTRA_TAG = 1000, CONTEXT = 1, WORLD_CONTEXT = 2 };

static struct ibvx_layer *self_of(struct layer *layer)
{
	return (struct ibvx_layer *)layer;
}

static int failed(const char *what)
{
	fprintf(stderr, "bench_ibvx: %s: %s\n", what, ibvx_error());
	return 1;
}

static int pingpong_on(struct layer *layer, size_t bytes, int64_t iterations, int tag, char *from, char *to)
{
	struct ibvx *ep = self_of(layer)->ep;
	struct ibvx_sbuf out = {.head = from, .head_bytes = bytes};
	struct ibvx_rbuf in = {.base = to, .capacity_bytes = bytes};
	int other = 1 - layer->rank;

	if (layer->rank == 1 && ibvx_recv(ep, &in, other, tag, CONTEXT, NULL) < 0)
		return failed("recv");
	for (int64_t i = layer->rank; i < iterations; i++) {
		if (ibvx_send(ep, &out, other, tag, CONTEXT) < 0)
			return failed("send");
		if (ibvx_recv(ep, &in, other, tag, CONTEXT, NULL) < 0)
			return failed("recv");
	}
	if (layer->rank == 1 && ibvx_send(ep, &out, other, tag, CONTEXT) < 0)
		return failed("send");
	return 0;
}

static int pingpong(struct layer *layer, const struct stage_command *command)
{
	return pingpong_on(layer, command->bytes, command->iterations, TAG, layer->out, layer->in);
}

static int wait_all(struct ibvx *ep, ibvx_req *requests, int count)
{
	for (int k = 0; k < count; k++) {
		if (ibvx_wait(ep, &requests[k], NULL) < 0)
			return failed("wait");
	}
	return 0;
}

/* One side of a stream to or from `other`. */
static int stream(struct layer *layer, const struct stage_command *command, int other, bool sends)
{
	struct ibvx *ep = self_of(layer)->ep;
	struct ibvx_sbuf empty = {0};
	struct ibvx_rbuf nothing = {0};
	ibvx_req requests[OPS_MAX_WINDOW];

	for (int64_t i = 0; i < command->iterations; i++) {
		for (int k = 0; k < command->param; k++) {
			struct ibvx_sbuf out = {.head = harness_slot(layer->out, command, k), .head_bytes = command->bytes};
			struct ibvx_rbuf in = {.base = harness_slot(layer->in, command, k), .capacity_bytes = command->bytes};

			if ((sends ? ibvx_isend(ep, &out, other, TAG, CONTEXT, &requests[k])
				   : ibvx_irecv(ep, &in, other, TAG, CONTEXT, &requests[k])) < 0)
				return failed(sends ? "isend" : "irecv");
		}
		if (wait_all(ep, requests, command->param))
			return 1;
		if ((sends ? ibvx_recv(ep, &nothing, other, ANSWER_TAG, CONTEXT, NULL)
			   : ibvx_send(ep, &empty, other, ANSWER_TAG, CONTEXT)) < 0)
			return failed("answer");
	}
	return 0;
}

static int bandwidth(struct layer *layer, const struct stage_command *command)
{
	return stream(layer, command, 1 - layer->rank, layer->rank == 0);
}

static int pairs(struct layer *layer, const struct stage_command *command)
{
	if ((layer->rank ^ 1) >= layer->size)
		return 0;
	return stream(layer, command, layer->rank ^ 1, layer->rank % 2 == 0);
}

static int bibandwidth(struct layer *layer, const struct stage_command *command)
{
	struct ibvx *ep = self_of(layer)->ep;
	ibvx_req requests[2 * OPS_MAX_WINDOW];
	int other = 1 - layer->rank, window = command->param;

	for (int64_t i = 0; i < command->iterations; i++) {
		for (int k = 0; k < window; k++) {
			struct ibvx_rbuf in = {.base = harness_slot(layer->in, command, k), .capacity_bytes = command->bytes};

			if (ibvx_irecv(ep, &in, other, TAG, CONTEXT, &requests[k]) < 0)
				return failed("irecv");
		}
		for (int k = 0; k < window; k++) {
			struct ibvx_sbuf out = {.head = harness_slot(layer->out, command, k), .head_bytes = command->bytes};

			if (ibvx_isend(ep, &out, other, TAG, CONTEXT, &requests[window + k]) < 0)
				return failed("isend");
		}
		if (wait_all(ep, requests, 2 * window))
			return 1;
	}
	return 0;
}

static int exchange(struct layer *layer, const struct stage_command *command)
{
	struct ibvx *ep = self_of(layer)->ep;
	struct ibvx_sbuf out = {.head = layer->out, .head_bytes = command->bytes};
	struct ibvx_rbuf in = {.base = layer->in, .capacity_bytes = command->bytes};
	ibvx_req requests[2];
	int other = 1 - layer->rank;

	for (int64_t i = 0; i < command->iterations; i++) {
		if (ibvx_irecv(ep, &in, other, TAG, CONTEXT, &requests[0]) < 0)
			return failed("irecv");
		if (ibvx_isend(ep, &out, other, TAG, CONTEXT, &requests[1]) < 0)
			return failed("isend");
		work_compute(command->work_ns);
		if (wait_all(ep, requests, 2))
			return 1;
	}
	return 0;
}

/* Receives that nothing matches until `clear` sends for them. */
static int posted(struct layer *layer, const struct stage_command *command)
{
	struct ibvx_layer *self = self_of(layer);
	struct ibvx_sbuf empty = {0};
	struct ibvx_rbuf nothing = {0};
	int count = command->param - 1, other = 1 - layer->rank, rc = 0;

	if (command->phase == STAGE_RUN)
		return pingpong(layer, command);
	if (command->phase == STAGE_SETUP) {
		self->extra = calloc((size_t)count + 1, sizeof(*self->extra));
		for (int i = 0; self->extra && i < count; i++) {
			if (ibvx_irecv(self->ep, &nothing, other, EXTRA_TAG + i, CONTEXT, &self->extra[i]) < 0)
				return failed("irecv");
		}
		return !self->extra;
	}
	for (int i = 0; i < count; i++) {
		if (ibvx_send(self->ep, &empty, other, EXTRA_TAG + i, CONTEXT) < 0)
			return failed("send");
	}
	rc = wait_all(self->ep, self->extra, count);
	free(self->extra);
	self->extra = NULL;
	return rc;
}

/* Messages that nobody receives until `clear` does. */
static int unexpected(struct layer *layer, const struct stage_command *command)
{
	struct ibvx_layer *self = self_of(layer);
	struct ibvx_sbuf out = {.head = layer->out, .head_bytes = command->bytes};
	struct ibvx_rbuf in = {.base = layer->in, .capacity_bytes = command->bytes};
	int count = command->param - 1, other = 1 - layer->rank, rc;

	if (command->phase == STAGE_RUN)
		return pingpong(layer, command);
	if (command->phase == STAGE_SETUP) {
		self->extra = calloc((size_t)count + 1, sizeof(*self->extra));
		for (int i = 0; self->extra && i < count; i++) {
			if (ibvx_isend(self->ep, &out, other, EXTRA_TAG + i, CONTEXT, &self->extra[i]) < 0)
				return failed("isend");
		}
		return !self->extra;
	}
	for (int i = 0; i < count; i++) {
		if (ibvx_recv(self->ep, &in, other, EXTRA_TAG + i, CONTEXT, NULL) < 0)
			return failed("recv");
	}
	rc = wait_all(self->ep, self->extra, count);
	free(self->extra);
	self->extra = NULL;
	return rc;
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
	int rc = !memory || pingpong_on(job->layer, bytes, job->command->iterations, THREAD_TAG + thread, memory, memory + bytes + 1);

	free(memory);
	return rc;
}

static int threads(struct layer *layer, const struct stage_command *command)
{
	return work_threads(command->param, thread_pingpong, &(struct thread_job){layer, command});
}

/* The operation again and again; roots take turns, if it has one. */
static int collective(struct layer *layer, const struct stage_command *command, struct ibvx_coll coll)
{
	for (int64_t i = 0; i < command->iterations; i++) {
		coll.root = (int)(i % layer->size);
		if (ibvx_coll_run(self_of(layer)->world, &coll) < 0)
			return failed("collective operation");
	}
	return 0;
}

static int barrier(struct layer *layer, const struct stage_command *command)
{
	return collective(layer, command, (struct ibvx_coll){.kind = IBVX_BARRIER});
}

static int bcast(struct layer *layer, const struct stage_command *command)
{
	return collective(layer, command, (struct ibvx_coll){.kind = IBVX_BCAST, .in = {.base = layer->out, .bytes = command->bytes}});
}

static struct ibvx_coll reduction(const struct layer *layer, const struct stage_command *command, enum ibvx_coll_kind kind)
{
	return (struct ibvx_coll){
		.kind = kind, .source = layer->out, .target = layer->in, .count = command->bytes / sizeof(double), .type = IBVX_DOUBLE};
}

static int reduce(struct layer *layer, const struct stage_command *command)
{
	return collective(layer, command, reduction(layer, command, IBVX_REDUCE));
}

static int allreduce(struct layer *layer, const struct stage_command *command)
{
	return collective(layer, command, reduction(layer, command, IBVX_ALLREDUCE));
}

static struct ibvx_coll blocks(const struct layer *layer, const struct stage_command *command, enum ibvx_coll_kind kind)
{
	const struct ibvx_parts in = {.base = layer->out, .bytes = command->bytes, .stride_bytes = (ptrdiff_t)command->bytes};
	const struct ibvx_parts out = {.base = layer->in, .bytes = command->bytes, .stride_bytes = (ptrdiff_t)command->bytes};

	return (struct ibvx_coll){.kind = kind, .in = in, .out = out};
}

static int allgather(struct layer *layer, const struct stage_command *command)
{
	return collective(layer, command, blocks(layer, command, IBVX_ALLGATHER));
}

static int alltoall(struct layer *layer, const struct stage_command *command)
{
	return collective(layer, command, blocks(layer, command, IBVX_ALLTOALL));
}

static int idle(struct layer *layer, const struct stage_command *command)
{
	struct ibvx *ep = self_of(layer)->ep;

	if (layer->rank)
		return ibvx_recv(ep, &(struct ibvx_rbuf){0}, 0, TAG, CONTEXT, NULL) < 0 ? failed("recv") : 0;
	usleep((useconds_t)command->param * 1000);
	for (int r = 1; r < layer->size; r++) {
		if (ibvx_send(ep, &(struct ibvx_sbuf){0}, r, TAG, CONTEXT) < 0)
			return failed("send");
	}
	return 0;
}

static int broadcast(struct layer *layer, char *text, size_t bytes)
{
	struct ibvx *ep = self_of(layer)->ep;
	struct ibvx_sbuf out = {.head = text, .head_bytes = bytes};
	struct ibvx_rbuf in = {.base = text, .capacity_bytes = bytes};

	if (layer->rank)
		return ibvx_recv(ep, &in, 0, TAG, CONTEXT, NULL) < 0 ? failed("the first message") : 0;
	for (int r = 1; r < layer->size; r++) {
		if (ibvx_send(ep, &out, r, TAG, CONTEXT) < 0)
			return failed("the first message");
	}
	return 0;
}

int ibvx_layer_init(struct ibvx_layer *self)
{
	struct layer *layer = &self->layer;

	if (ibvx_comm_world(&self->world, self->ep, WORLD_CONTEXT) < 0)
		return failed("comm_world");
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
	return 0;
}
