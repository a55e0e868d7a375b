/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_AREA_H
#define IBVX_COLL_AREA_H
/*
 * area: shared memory of the members of a communicator on one node, through which they pass short contributions without messages.
 *
 * The operations that use it are numbered from 0 on, the same on all members.  A member has AREA_DEPTH slots; in operation n it
 * publishes slot n % AREA_DEPTH once: what it contributes, if anything, and the stamp n + 1.  One that contributes nothing does so
 * when it has read what it needs.  So a member that has published n is done with every operation before n, and a slot
 * may be filled again for n when all have published n - AREA_DEPTH + 1.
 *
 * Waiting: a member looks at the stamp as long as a blocking call spins and yields.  Then it names the member that it waits for
 * (`waits_for`), looks once more and receives an empty message from it, with the tag AREA_TAG: so it sleeps, and learns of
 * deaths, as every receive does.  A member that has published looks, a full fence later, whether anybody waits for it, and sends that
 * message to those.  Taking `waits_for` back and taking the order to send are exchanges of one word, so that exactly one of them succeeds.
 *
 * The area belongs to the rank of member 0, which gives it to another communicator when all members have left it.
 */
#include <assert.h>
#include <limits.h>

#include "coll/engine.h"

#define AREA_MEMBERS_MAX 32
#define AREA_DEPTH 4u
#define AREA_LINE 64u
/* With the head 129 lines: slots do not begin at the same offset of a page, which slows copies (transport/shm/ring.h). */
#define AREA_DATA 8240u
/* Of the wake-ups, in the context of the collective operations; no schedule has it (schedule_tag()). */
#define AREA_TAG INT_MAX

struct area_slot {
	_Alignas(AREA_LINE) _Atomic uint32_t stamp; /* operation + 1 */
	int32_t error;                              /* 0, or the negative errno with which the member has given up */
	uint64_t bytes;
	unsigned char data[AREA_DATA];
};
static_assert(sizeof(struct area_slot) == 129 * AREA_LINE, "whole lines, an odd number");

struct area_member {
	_Alignas(AREA_LINE) _Atomic uint32_t waits_for; /* 1 + a member, or 0 */
	struct area_slot slots[AREA_DEPTH];
};

struct area_memory {
	_Alignas(AREA_LINE) _Atomic uint32_t waiting; /* members whose waits_for is set; may be more for a moment */
	_Alignas(AREA_LINE) _Atomic uint32_t left;    /* members that do not use it any more */
	struct area_member members[];
};

/* A communicator's view. */
struct area {
	struct area_memory *memory;
	uint32_t operation;     /* the next one */
	uint32_t all_published; /* by all members: those before this number */
};

/* Of a new communicator: may it get one?  The same on all members. */
void area_possible(struct ibvx_comm *comm);
/* Has the communicator an area?  1; 0: no, as all its members find; or a negative errno with text.  Before a blocking operation, whatever
 * it is: the members agree in one of the first of these calls, the same on all, because they count the operations alike. */
int area_ready(struct ibvx_comm *comm);
void area_leave(struct ibvx_comm *comm);
void area_free_all(struct engine *engine);

/* The steps of an operation: begin, publish once, await any member's slot.  0, or a negative errno with text; an operation that
 * fails is published all the same, with its error. */
int area_begin(struct ibvx_comm *comm, uint32_t operation);
void area_publish(struct ibvx_comm *comm, uint32_t operation, size_t bytes, int error);
int area_await(struct ibvx_comm *comm, int member, uint32_t operation);
/* All members have published it. */
int area_await_all(struct ibvx_comm *comm, uint32_t operation);

static inline struct area_slot *area_slot(const struct area *area, int member, uint32_t operation)
{
	return &area->memory->members[member].slots[operation % AREA_DEPTH];
}

#endif
