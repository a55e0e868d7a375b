/* SPDX-License-Identifier: MIT */
#include "coll/schedule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Scratch memory that a schedule of the pool keeps. */
#define SCHEDULE_KEPT_BYTES (256u << 10)
#define SCHEDULE_STEPS 16
#define ERRNO_MAX 4095

/* --- running --- */

static void schedule_fail(struct schedule *s, int code, int rank, const char *why)
{
	if (s->error)
		return;
	s->error = code;
	s->error_rank = rank;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static void schedule_fail_length(struct schedule *s, const struct step *step)
{
	char why[200];

	snprintf(why, sizeof(why), "member %d sent %llu bytes where member %d expects %zu: the counts of a collective operation must agree",
		 step->member, (unsigned long long)step->done.bytes, s->comm->rank, step->size);
	schedule_fail(s, -EMSGSIZE, comm_peer(s->comm, step->member), why);
}

static void schedule_fail_reported(struct schedule *s, const struct step *step)
{
	uint64_t code = step->done.user;
	char why[200];

	code = code > ERRNO_MAX ? EPROTO : code;
	snprintf(why, sizeof(why), "member %d reports that the operation failed there or before: %s", step->member, error_words((int)code));
	schedule_fail(s, -(int)code, -1, why);
}

/* A message is complete. */
static void schedule_complete(struct schedule *s, struct step *step)
{
	step->complete = true;
	if (step->done.error)
		schedule_fail(s, step->done.error, s->continuation.why_rank, s->continuation.why);
	else if (step->kind == STEP_RECV && step->done.user)
		schedule_fail_reported(s, step);
	else if (step->kind == STEP_RECV && step->done.bytes != step->size)
		schedule_fail_length(s, step);
}

static int schedule_begin_send(struct schedule *s, struct step *step, int peer, int context)
{
	struct ibvx_sbuf buf = {0};

	if (s->error)
		buf.user = (uint64_t)-s->error;
	else if (step->layout)
		buf = (struct ibvx_sbuf){.body = step->base, .body_bytes = step->size, .layout = step->layout};
	else
		buf = (struct ibvx_sbuf){.head = step->base, .head_bytes = step->size};
	return ibvx_continuation_send(s->comm->engine->ep, &step->done, &buf, peer, s->tag, context);
}

static void schedule_begin_message(struct schedule *s, struct step *step)
{
	struct ibvx *ep = s->comm->engine->ep;
	int peer = comm_peer(s->comm, step->member), context = comm_collective_context(s->comm), rc;

	step->done.owner = &s->continuation;
	if (step->kind == STEP_SEND) {
		rc = schedule_begin_send(s, step, peer, context);
	} else {
		struct ibvx_rbuf buf = {.base = step->base, .capacity_bytes = step->size, .layout = step->layout};

		rc = ibvx_continuation_recv(ep, &step->done, &buf, peer, s->tag, context);
	}
	if (rc == 0) {
		s->pending++;
		return;
	}
	if (rc < 0) {
		step->complete = true;
		schedule_fail(s, rc, error_rank(), error_text());
	} else {
		schedule_complete(s, step);
	}
}

/* False: the step is a dependency that is not met. */
static bool schedule_begin_step(struct schedule *s, struct step *step)
{
	int rc;

	switch (step->kind) {
	case STEP_SEND:
	case STEP_RECV: schedule_begin_message(s, step); break;
	case STEP_AWAIT: return s->steps[step->member].complete;
	case STEP_AWAIT_ALL: return s->pending == 0;
	case STEP_COPY:
		if (!s->error)
			memcpy(step->base, step->from, step->size);
		break;
	case STEP_REDUCE:
		rc = s->error ? 0 : coll_op_apply(&s->op, step->from, step->base, step->size);
		if (rc)
			schedule_fail(s, rc < 0 ? rc : -EPROTO, -1, "the user operation reported an error");
		break;
	}
	return true;
}

static void schedule_run(struct ibvx_continuation *c, struct ibvx_completion *done)
{
	struct schedule *s = (struct schedule *)(void *)c; /* its first member */

	for (; done; done = done->next) {
		s->pending--;
		schedule_complete(s, (struct step *)(void *)done); /* its first member */
	}
	while (s->at < s->count && schedule_begin_step(s, &s->steps[s->at]))
		s->at++;
	if (s->at == s->count && s->pending == 0)
		c->over = true;
}

/* Any member's death ends the operation: those that depend on it may have given up, and this one on them. */
static bool schedule_needs(const struct ibvx_continuation *c, int rank)
{
	const struct ibvx_comm *comm = ((const struct schedule *)(const void *)c)->comm;

	for (int i = 0; comm->peers && i < comm->size; i++) {
		if (comm->peers[i] == rank)
			return true;
	}
	return !comm->peers;
}

static void schedule_release(struct ibvx_continuation *c)
{
	schedule_put((struct schedule *)(void *)c);
}

static void schedule_rewind(struct schedule *s, int tag)
{
	s->continuation = (struct ibvx_continuation){
		.run = schedule_run, .needs = schedule_needs, .release = schedule_release, .by_caller = s->op.user != NULL};
	s->tag = tag;
	s->error = 0;
	s->at = 0;
	s->pending = 0;
	s->active = true;
	for (int i = 0; i < s->count; i++)
		s->steps[i].complete = false;
}

int schedule_tag(struct ibvx_comm *comm)
{
	return (int)(atomic_fetch_add_explicit(&comm->sequence, 1, memory_order_relaxed) & (INT32_MAX >> 1));
}

void schedule_start(struct schedule *s, int tag)
{
	schedule_rewind(s, tag);
	ibvx_continuation_start(s->comm->engine->ep, &s->continuation);
}

int schedule_execute(struct schedule *s, int tag)
{
	schedule_rewind(s, tag);
	return ibvx_continuation_run(s->comm->engine->ep, &s->continuation);
}

int schedule_check_members(struct ibvx_comm *comm)
{
	struct schedule *s = schedule_get(comm);
	int rc;

	if (!s)
		return -ENOMEM;
	schedule_rewind(s, 0);
	rc = ibvx_continuation_check(comm->engine->ep, &s->continuation);
	schedule_put(s);
	return rc;
}

/* --- building --- */

int schedule_refuse(struct schedule *s, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, args);
	va_end(args);
	s->error = code;
	s->error_rank = -1;
	return code;
}

/* A step that may be filled in, also after an error. */
static struct step *schedule_add(struct schedule *s, enum step_kind kind)
{
	struct step *step;

	if (s->count == s->room) {
		int room = s->room ? 2 * s->room : SCHEDULE_STEPS;
		struct step *more = realloc(s->steps, (size_t)room * sizeof(*more));

		if (!more) {
			schedule_refuse(s, -ENOMEM, "no memory for a schedule of %d steps", room);
			if (!s->steps)
				return NULL;
			s->count = 0;
		} else {
			s->steps = more;
			s->room = room;
		}
	}
	step = &s->steps[s->count++];
	*step = (struct step){.kind = kind};
	return step;
}

static int schedule_message(struct schedule *s, enum step_kind kind, int member, void *base, size_t bytes, const struct ibvx_layout *layout)
{
	struct step *step = schedule_add(s, kind);

	if (!step)
		return 0;
	step->member = member;
	step->base = base;
	step->size = bytes;
	step->layout = layout;
	return s->count - 1;
}

int schedule_send(struct schedule *s, int member, const void *base, size_t bytes, const struct ibvx_layout *layout)
{
	return schedule_message(s, STEP_SEND, member, (void *)(uintptr_t)base, bytes, layout);
}

int schedule_recv(struct schedule *s, int member, void *base, size_t bytes, const struct ibvx_layout *layout)
{
	return schedule_message(s, STEP_RECV, member, base, bytes, layout);
}

void schedule_await(struct schedule *s, int step)
{
	schedule_message(s, STEP_AWAIT, step, NULL, 0, NULL);
}

void schedule_await_all(struct schedule *s)
{
	schedule_add(s, STEP_AWAIT_ALL);
}

static void schedule_local(struct schedule *s, enum step_kind kind, const void *from, void *to, size_t size)
{
	struct step *step = from == to || size == 0 ? NULL : schedule_add(s, kind);

	if (!step)
		return;
	step->from = from;
	step->base = to;
	step->size = size;
}

void schedule_copy(struct schedule *s, const void *from, void *to, size_t bytes)
{
	schedule_local(s, STEP_COPY, from, to, bytes);
}

void schedule_reduce(struct schedule *s, const void *in, void *inout, size_t elements)
{
	schedule_local(s, STEP_REDUCE, in, inout, elements);
}

void *schedule_scratch(struct schedule *s, size_t bytes)
{
	int i = s->block_count;

	bytes = bytes ? bytes : 1;
	if (s->error)
		return NULL;
	s->block_count++;
	if (s->blocks[i].bytes >= bytes)
		return s->blocks[i].memory;
	free(s->blocks[i].memory);
	s->blocks[i].memory = malloc(bytes);
	s->blocks[i].bytes = s->blocks[i].memory ? bytes : 0;
	if (!s->blocks[i].memory)
		schedule_refuse(s, -ENOMEM, "no memory for %zu bytes of a collective operation", bytes);
	return s->blocks[i].memory;
}

/* --- the pool --- */

/* A new slot. Lock held. */
static struct schedule *schedule_grow(struct engine *engine)
{
	struct schedule *s = calloc(1, sizeof(*s));
	struct schedule **slots = realloc(engine->slots, (engine->slot_count + 1) * sizeof(*slots));

	if (slots)
		engine->slots = slots;
	if (!s || !slots) {
		free(s);
		error_set(-ENOMEM, "no memory for %u collective operations", engine->slot_count + 1);
		return NULL;
	}
	s->slot = engine->slot_count;
	s->generation = 1;
	slots[engine->slot_count++] = s;
	return s;
}

struct schedule *schedule_get(struct ibvx_comm *comm)
{
	struct engine *engine = comm->engine;
	struct schedule *s;

	pthread_mutex_lock(&engine->lock);
	s = engine->free;
	if (s)
		engine->free = s->next_free;
	else
		s = schedule_grow(engine);
	pthread_mutex_unlock(&engine->lock);
	if (!s)
		return NULL;
	comm_get(comm);
	s->comm = comm;
	s->op = (struct coll_op){0};
	s->persistent = false;
	s->active = false;
	s->waited = false;
	s->error = 0;
	s->count = 0;
	s->block_count = 0;
	return s;
}

void schedule_put(struct schedule *s)
{
	struct ibvx_comm *comm = s->comm;
	struct engine *engine = comm->engine;

	for (int i = 0; i < SCHEDULE_BLOCKS; i++) {
		if (s->blocks[i].bytes <= SCHEDULE_KEPT_BYTES)
			continue;
		free(s->blocks[i].memory);
		s->blocks[i].memory = NULL;
		s->blocks[i].bytes = 0;
	}
	pthread_mutex_lock(&engine->lock);
	s->comm = NULL;
	s->generation++;
	s->generation += s->generation == 0;
	s->next_free = engine->free;
	engine->free = s;
	pthread_mutex_unlock(&engine->lock);
	comm_put(comm);
}

void schedule_free_all(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->slot_count; i++) {
		struct schedule *s = engine->slots[i];

		for (int k = 0; k < SCHEDULE_BLOCKS; k++)
			free(s->blocks[k].memory);
		free(s->steps);
		free(s);
	}
	free(engine->slots);
}

ibvx_coll_req schedule_handle(const struct schedule *s)
{
	return (uint64_t)s->generation << 32 | (s->slot + 1u);
}

struct schedule *schedule_take(struct engine *engine, ibvx_coll_req req)
{
	uint32_t slot = (uint32_t)req - 1u;
	struct schedule *s = NULL;
	bool taken = false;

	pthread_mutex_lock(&engine->lock);
	if (slot < engine->slot_count && engine->slots[slot]->generation == (uint32_t)(req >> 32) && engine->slots[slot]->comm) {
		s = engine->slots[slot];
		taken = s->waited;
		s->waited = true;
	}
	pthread_mutex_unlock(&engine->lock);
	if (s && !taken)
		return s;
	if (taken)
		error_set(-EINVAL, "another thread waits for collective operation %#llx or tests it already", (unsigned long long)req);
	else
		error_set(-EINVAL, "%#llx is not a collective operation: it was never valid or is already complete",
			  (unsigned long long)req);
	return NULL;
}

void schedule_leave(struct schedule *s)
{
	struct engine *engine = s->comm->engine;

	pthread_mutex_lock(&engine->lock);
	s->waited = false;
	pthread_mutex_unlock(&engine->lock);
}
