/* SPDX-License-Identifier: MIT */
#include "coll/area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "coll/schedule.h"
#include "ibvx_area.h"

/* Operations of a communicator before it gets an area: many communicators do not live longer. */
#define AREA_AFTER 4
/* Operations between two polls by a member that never waits. */
#define AREA_POLL 16
/* Looks at a stamp before the clock is looked at, where the other members have processors. */
#define AREA_LOOKS 100

/* --- waiting and publishing --- */

struct area_look {
	const struct area_slot *slot;
	uint32_t operation;
};

static bool area_published(const struct area_slot *slot, uint32_t operation)
{
	return (int32_t)(atomic_load_explicit(&slot->stamp, memory_order_acquire) - (operation + 1)) >= 0;
}

static bool area_look(const void *arg)
{
	const struct area_look *l = arg;

	return area_published(l->slot, l->operation);
}

/* The wake-up of a member. */
static int area_receive(struct ibvx_comm *comm, int member)
{
	struct schedule *s = schedule_get(comm);
	int rc;

	if (!s)
		return -ENOMEM;
	schedule_recv(s, member, NULL, 0, NULL);
	rc = s->error ? error_set(s->error, "%s", s->why) : schedule_execute(s, AREA_TAG);
	if (rc == 0 && s->error)
		rc = error_concerns(error_set(s->error, "%s", s->why), s->error_rank);
	schedule_put(s);
	return rc;
}

static int area_sleep(struct ibvx_comm *comm, int member, const struct area_look *look)
{
	struct area_memory *memory = comm->area->memory;
	_Atomic uint32_t *waits_for = &memory->members[comm->rank].waits_for;
	uint32_t name = (uint32_t)member + 1;
	int rc = 0;

	atomic_store(waits_for, name);
	atomic_fetch_add(&memory->waiting, 1);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with that of area_publish() */
	if (!area_look(look) || !atomic_compare_exchange_strong(waits_for, &name, 0))
		rc = area_receive(comm, member);
	if (rc)
		atomic_store(waits_for, 0);
	atomic_fetch_sub(&memory->waiting, 1);
	return rc;
}

int area_await(struct ibvx_comm *comm, int member, uint32_t operation)
{
	const struct area_look look = {area_slot(comm->area, member, operation), operation};
	int rc = 0;

	for (int i = 0; i < AREA_LOOKS && !comm->shared_processors; i++) {
		if (area_look(&look))
			return 0;
		cpu_relax();
	}
	while (rc == 0 && !area_look(&look)) {
		if (!ibvx_area_spin(comm->engine->ep, area_look, &look))
			rc = area_sleep(comm, member, &look);
	}
	return rc;
}

int area_await_all(struct ibvx_comm *comm, uint32_t operation)
{
	int rc = 0;

	for (int i = 0; i < comm->size && rc == 0; i++)
		rc = area_await(comm, i, operation);
	if (rc == 0)
		comm->area->all_published = operation + 1;
	return rc;
}

/* How far a member is, as far as it matters: the last operation before `end` that it has published, or the one before `first`. */
static uint32_t area_progress(const struct area *area, int member, uint32_t first, uint32_t end)
{
	while (end != first && !area_published(area_slot(area, member, end - 1), end - 1))
		end--;
	return end - 1;
}

/* All members have published operation `first`; how much more than that is remembered. */
static int area_catch_up(struct ibvx_comm *comm, uint32_t first, uint32_t end)
{
	struct area *area = comm->area;
	uint32_t least = end - 1;
	int rc = 0;

	for (int i = 0; i < comm->size && rc == 0; i++) {
		uint32_t at = i == comm->rank ? end - 1 : area_progress(area, i, first, end);

		if (at == first - 1) {
			rc = area_await(comm, i, first);
			at = first;
		}
		least = (int32_t)(at - least) < 0 ? at : least;
	}
	if (rc == 0)
		area->all_published = least + 1;
	return rc;
}

int area_begin(struct ibvx_comm *comm, uint32_t operation)
{
	uint32_t first = operation - AREA_DEPTH + 1;

	if (operation % AREA_POLL == 0)
		ibvx_area_poll(comm->engine->ep);
	if (ibvx_any_died(comm->engine->ep)) {
		int rc = schedule_check_members(comm);

		if (rc)
			return rc;
	}
	if ((int32_t)(comm->area->all_published - first) > 0)
		return 0;
	return area_catch_up(comm, first, operation);
}

static __attribute__((noinline)) void area_wake(struct ibvx_comm *comm)
{
	struct area_memory *memory = comm->area->memory;

	for (int i = 0; i < comm->size; i++) {
		_Atomic uint32_t *waits_for = &memory->members[i].waits_for;
		uint32_t name = (uint32_t)comm->rank + 1;
		const struct ibvx_sbuf nothing = {0};

		if (atomic_load(waits_for) != name || !atomic_compare_exchange_strong(waits_for, &name, 0))
			continue;
		if (ibvx_send(comm->engine->ep, &nothing, comm_peer(comm, i), AREA_TAG, comm_collective_context(comm))) {
			uint32_t nobody = 0;

			/* it has died; or no memory: the next one that is published wakes it */
			atomic_compare_exchange_strong(waits_for, &nobody, name);
		}
	}
}

void area_publish(struct ibvx_comm *comm, uint32_t operation, size_t bytes, int error)
{
	struct area_slot *slot = area_slot(comm->area, comm->rank, operation);

	slot->bytes = bytes;
	slot->error = error;
	atomic_store_explicit(&slot->stamp, operation + 1, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with that of area_sleep() */
	if (atomic_load_explicit(&comm->area->memory->waiting, memory_order_relaxed))
		area_wake(comm);
}

/* --- life --- */

static size_t area_bytes(int members)
{
	return sizeof(struct area_memory) + (size_t)members * sizeof(struct area_member);
}

/* Memory for so many members, zero: the area that stands here, or a new one of this rank.  False: there is none. */
static bool area_fill(struct engine *engine, struct engine_area *a, int members)
{
	void *memory = NULL;

	if (a->memory)
		ibvx_area_unmap(a->memory, area_bytes(a->members));
	else
		a->index = ibvx_area_reserve(engine->ep);
	a->memory = NULL;
	if (a->index >= 0 && ibvx_area_map(engine->ep, ibvx_rank(engine->ep), (unsigned)a->index, area_bytes(members), &memory) == 0) {
		memset(memory, 0, area_bytes(members));
		a->memory = memory;
		a->members = members;
	}
	return a->memory;
}

/* Of our areas one that nobody uses; -1: all are in use, or there is no memory. */
static int area_take(struct engine *engine, int members)
{
	int i = 0;

	pthread_mutex_lock(&engine->lock);
	while (i < IBVX_AREAS && engine->areas[i].memory &&
	       atomic_load_explicit(&engine->areas[i].memory->left, memory_order_acquire) != (uint32_t)engine->areas[i].members)
		i++;
	i = i < IBVX_AREAS && area_fill(engine, &engine->areas[i], members) ? i : -1;
	pthread_mutex_unlock(&engine->lock);
	return i;
}

static struct area_memory *area_memory(struct ibvx_comm *comm, int taken, unsigned index)
{
	void *memory = NULL;

	if (taken >= 0)
		return comm->engine->areas[taken].memory;
	ibvx_area_map(comm->engine->ep, comm_peer(comm, 0), index, area_bytes(comm->size), &memory);
	return memory;
}

/* No member has used it. */
static void area_give_back(struct ibvx_comm *comm, int taken)
{
	if (taken >= 0)
		atomic_store(&comm->engine->areas[taken].memory->left, (uint32_t)comm->size);
}

static int area_and(struct ibvx_comm *comm, uint64_t *word)
{
	struct ibvx_coll all = {.kind = IBVX_ALLREDUCE, .source = word, .target = word, .count = 1, .type = IBVX_INT64, .op = IBVX_BAND};

	return ibvx_coll_run(comm, &all);
}

/* Member 0 names an area of its own: 0 is none. */
static int area_agree(struct ibvx_comm *comm)
{
	struct area *area = calloc(1, sizeof(*area));
	int taken = comm->rank == 0 && area ? area_take(comm->engine, comm->size) : -1, rc;
	uint64_t word = area ? ~UINT64_C(0) : 0, ready;

	if (comm->rank == 0)
		word = taken < 0 ? 0 : (uint64_t)comm->engine->areas[taken].index + 1;
	rc = area_and(comm, &word);
	if (rc || word == 0) {
		if (rc == 0)
			area_give_back(comm, taken);
		free(area); /* after an error another member may use it: it stays taken */
		return rc;
	}
	area->memory = area_memory(comm, taken, (unsigned)word - 1);
	ready = area->memory ? ~UINT64_C(0) : 0;
	rc = area_and(comm, &ready);
	if (rc == 0 && ready) {
		comm->area = area;
		return 1;
	}
	if (rc == 0)
		area_give_back(comm, taken);
	if (area->memory && taken < 0)
		ibvx_area_unmap(area->memory, area_bytes(comm->size));
	free(area);
	return rc;
}

void area_possible(struct ibvx_comm *comm)
{
	const struct settings *settings = ibvx_settings(comm->engine->ep);

	comm->area_possible = false;
	if (comm->size < 2 || comm->size > AREA_MEMBERS_MAX || !settings_int(settings, SETTING_COLL_SHARED))
		return;
	for (int i = 0; i < comm->size; i++) {
		if (!ibvx_same_node(comm->engine->ep, comm_peer(comm, i)))
			return;
	}
	comm->area_possible = true;
}

int area_ready(struct ibvx_comm *comm)
{
	int rc;

	if (comm->area)
		return 1;
	if (!comm->area_possible || atomic_load_explicit(&comm->sequence, memory_order_relaxed) < AREA_AFTER)
		return 0;
	comm->area_possible = false; /* the agreement itself needs none; there is no second one */
	rc = ibvx_area_enter(comm->engine->ep);
	if (rc)
		return rc;
	rc = area_agree(comm);
	ibvx_area_exit(comm->engine->ep);
	return rc;
}

void area_leave(struct ibvx_comm *comm)
{
	if (!comm->area)
		return;
	atomic_fetch_add_explicit(&comm->area->memory->left, 1, memory_order_release);
	if (comm->rank != 0)
		ibvx_area_unmap(comm->area->memory, area_bytes(comm->size));
	free(comm->area);
	comm->area = NULL;
}

void area_free_all(struct engine *engine)
{
	for (int i = 0; i < IBVX_AREAS; i++) {
		if (engine->areas[i].memory)
			ibvx_area_unmap(engine->areas[i].memory, area_bytes(engine->areas[i].members));
	}
}
