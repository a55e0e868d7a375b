/* SPDX-License-Identifier: MIT */
/*
 * Ids of communicators.  Every member offers the ids that are free with it; a bitwise AND leaves those that are free with
 * all.  Each member then tries to take the chosen one, which a creation over another communicator may have taken
 * meanwhile; a second AND shows whether all succeeded, else they choose again.  No member ever holds ids back while it
 * waits, so two creations in different order on two members cannot block each other.  After a failure each communicator
 * begins its search somewhere else, so that two of them do not meet again and again.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "coll/engine.h"

#define ID_ATTEMPTS 1000

int comm_bridge_exchange(struct ibvx_comm *comm, const struct comm_bridge *bridge, const void *mine, void *theirs, size_t bytes)
{
	struct ibvx *ep = comm->engine->ep;
	struct ibvx_coll bcast = {.kind = IBVX_BCAST, .root = bridge->leader, .in = {.base = theirs, .bytes = bytes}};
	int rc = 0;

	if (comm->rank == bridge->leader) {
		struct ibvx_rbuf in = {.base = theirs, .capacity_bytes = bytes};
		struct ibvx_sbuf out = {.head = mine, .head_bytes = bytes};
		ibvx_req req;

		rc = ibvx_irecv(ep, &in, bridge->remote_leader, bridge->tag, bridge->context, &req);
		if (rc)
			return rc;
		rc = ibvx_send(ep, &out, bridge->remote_leader, bridge->tag, bridge->context);
		if (rc)
			ibvx_cancel(ep, req);
		rc = ibvx_wait(ep, &req, NULL);
		if (rc)
			return rc;
	}
	return ibvx_coll_run(comm, &bcast);
}

/* The AND of `words` over all members, and over those of the other group. */
static int id_and(struct ibvx_comm *comm, const struct comm_bridge *bridge, uint64_t *words, size_t count)
{
	uint64_t theirs[ENGINE_ID_WORDS];
	struct ibvx_coll all = {
		.kind = IBVX_ALLREDUCE, .source = words, .target = words, .count = count, .type = IBVX_INT64, .op = IBVX_BAND};
	int rc = ibvx_coll_run(comm, &all);

	if (rc || !bridge)
		return rc;
	rc = comm_bridge_exchange(comm, bridge, words, theirs, count * sizeof(*words));
	for (size_t i = 0; i < count; i++)
		words[i] &= theirs[i];
	return rc;
}

/* The first set bit from `start` on, around the end; -1: there is none. */
static int id_first(const uint64_t *words, int start)
{
	for (int n = 0; n < IBVX_COMM_MAX; n++) {
		int id = (start + n) % IBVX_COMM_MAX;

		if (words[id / 64] >> (id % 64) & 1u)
			return id;
	}
	return -1;
}

static bool id_take(struct engine *engine, int id)
{
	uint64_t bit = UINT64_C(1) << (id % 64);
	bool is_free;

	pthread_mutex_lock(&engine->lock);
	is_free = engine->ids[id / 64] & bit;
	engine->ids[id / 64] &= ~bit;
	pthread_mutex_unlock(&engine->lock);
	return is_free;
}

void comm_id_release(struct engine *engine, int id)
{
	pthread_mutex_lock(&engine->lock);
	engine->ids[id / 64] |= UINT64_C(1) << (id % 64);
	pthread_mutex_unlock(&engine->lock);
}

/* An id, -EAGAIN: some member has lost it to another creation; or an error with text. */
static int id_attempt(struct ibvx_comm *comm, const struct comm_bridge *bridge, int start)
{
	struct engine *engine = comm->engine;
	uint64_t words[ENGINE_ID_WORDS], taken;
	int rc, id;

	pthread_mutex_lock(&engine->lock);
	memcpy(words, engine->ids, sizeof(words));
	pthread_mutex_unlock(&engine->lock);
	rc = id_and(comm, bridge, words, ENGINE_ID_WORDS);
	if (rc)
		return rc;
	id = id_first(words, start);
	if (id < 0)
		return error_set(-ENOSPC, "no id is free on all members: at most %d communicators can exist at once, free some",
				 IBVX_COMM_MAX);
	taken = id_take(engine, id) ? ~UINT64_C(0) : 0;
	words[0] = taken;
	rc = id_and(comm, bridge, words, 1);
	if (rc == 0 && words[0])
		return id;
	if (taken)
		comm_id_release(engine, id);
	return rc ? rc : -EAGAIN;
}

int comm_id_agree(struct ibvx_comm *comm, const struct comm_bridge *bridge)
{
	for (int attempt = 0; attempt < ID_ATTEMPTS; attempt++) {
		/* both groups of a bridge must begin their search at the same id */
		int start = bridge ? attempt * 101 : attempt * (comm->id * 61 + 97);
		int rc = id_attempt(comm, bridge, start % IBVX_COMM_MAX);

		if (rc != -EAGAIN)
			return rc;
	}
	return error_set(-EAGAIN, "%d other communicators were made meanwhile: make fewer at once", ID_ATTEMPTS);
}
