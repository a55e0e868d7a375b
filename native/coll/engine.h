/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_ENGINE_H
#define IBVX_COLL_ENGINE_H
/*
 * engine: what the communicators of one world share: the pool of schedules and the ids that are free.
 *
 * engine.lock guards what is below it.  Nobody waits or starts a message while holding it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ibvx_area.h"
#include "ibvx_coll.h"

struct area;
struct area_memory;
struct schedule;

#define ENGINE_ID_WORDS (IBVX_COMM_MAX / 64)

struct engine {
	struct ibvx *ep;
	int first_context;
	pthread_mutex_t lock;
	int communicators;
	struct schedule **slots;
	uint32_t slot_count;
	struct schedule *free;
	uint64_t ids[ENGINE_ID_WORDS]; /* bit set: the id is free */
	struct engine_area {
		struct area_memory *memory; /* NULL: there is none */
		int index, members;
	} areas[IBVX_AREAS]; /* those of this rank that this engine has reserved */
};

struct ibvx_comm {
	struct engine *engine;
	int id;
	int rank, size;
	int shared_processors;     /* of the node that all members are on, if it has more ranks than that; else 0; the same on each */
	int32_t *peers;            /* rank in the endpoint of each member; NULL: the same */
	_Atomic uint32_t sequence; /* of its operations: the tag */
	_Atomic uint32_t references;
	/* of the thread that is in a blocking operation */
	struct area *area;  /* NULL: none */
	bool area_possible; /* it may still get one */
};

static inline int comm_peer(const struct ibvx_comm *comm, int rank)
{
	return comm->peers ? comm->peers[rank] : rank;
}

/* The context of the collective operations. */
static inline int comm_collective_context(const struct ibvx_comm *comm)
{
	return comm->engine->first_context + 2 * comm->id + 1;
}

static inline void comm_get(struct ibvx_comm *comm)
{
	atomic_fetch_add_explicit(&comm->references, 1, memory_order_relaxed);
}

/* The last reference frees the communicator, and the engine with its last communicator. */
void comm_put(struct ibvx_comm *comm);

/* The members are peers[0..size-1], which belongs to the new communicator, also after an error; rank is ours.  The id is
 * taken. NULL with text: no memory. */
struct ibvx_comm *comm_new(struct engine *engine, int id, int rank, int size, int32_t *peers);

/* The leaders' part of an agreement of two groups (ibvx_comm_join). */
struct comm_bridge {
	int leader;        /* a member */
	int remote_leader; /* a rank of the endpoint; significant at the leader */
	int context, tag;  /* of their messages */
};

/* Leaders exchange `bytes` bytes each; every member of comm has the other group's in `theirs` then. 0 or -errno. */
int comm_bridge_exchange(struct ibvx_comm *comm, const struct comm_bridge *bridge, const void *mine, void *theirs, size_t bytes);

/* A new id, the same on all members: collective over comm, and with a bridge over both groups.  >= 0, or a negative errno
 * with text. */
int comm_id_agree(struct ibvx_comm *comm, const struct comm_bridge *bridge);
void comm_id_release(struct engine *engine, int id);

#endif
