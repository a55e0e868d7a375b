/* SPDX-License-Identifier: MIT */
/* Communicators. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coll/area.h"
#include "coll/schedule.h"

static void engine_free(struct engine *engine)
{
	schedule_free_all(engine);
	area_free_all(engine);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

void comm_put(struct ibvx_comm *comm)
{
	struct engine *engine = comm->engine;
	bool last;

	if (atomic_fetch_sub_explicit(&comm->references, 1, memory_order_acq_rel) != 1)
		return;
	area_leave(comm);
	comm_id_release(engine, comm->id);
	free(comm->peers);
	free(comm);
	pthread_mutex_lock(&engine->lock);
	last = --engine->communicators == 0;
	pthread_mutex_unlock(&engine->lock);
	if (last)
		engine_free(engine);
}

static int comm_shared_processors(const struct ibvx_comm *comm)
{
	int processors = 0;

	for (int i = 0; i < comm->size; i++) {
		processors = ibvx_shared_processors(comm->engine->ep, comm_peer(comm, i));
		if (!processors)
			break;
	}
	return processors;
}

struct ibvx_comm *comm_new(struct engine *engine, int id, int rank, int size, int32_t *peers)
{
	struct ibvx_comm *comm = calloc(1, sizeof(*comm));

	if (!comm) {
		free(peers);
		error_set(-ENOMEM, "no memory for a communicator");
		return NULL;
	}
	comm->engine = engine;
	comm->id = id;
	comm->rank = rank;
	comm->size = size;
	comm->peers = peers;
	comm->shared_processors = comm_shared_processors(comm);
	area_possible(comm);
	atomic_init(&comm->references, 1);
	pthread_mutex_lock(&engine->lock);
	engine->communicators++;
	pthread_mutex_unlock(&engine->lock);
	return comm;
}

int ibvx_comm_world(struct ibvx_comm **out, struct ibvx *ep, int first_context)
{
	struct engine *engine;

	*out = NULL;
	if (first_context < 0 || first_context > INT_MAX - 2 * IBVX_COMM_MAX)
		return error_set(-EINVAL, "the first context %d: 0 to %d are possible", first_context, INT_MAX - 2 * IBVX_COMM_MAX);
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return error_set(-ENOMEM, "no memory for the collective operations");
	engine->ep = ep;
	engine->first_context = first_context;
	pthread_mutex_init(&engine->lock, NULL);
	memset(engine->ids, 0xff, sizeof(engine->ids));
	engine->ids[0] &= ~UINT64_C(1);
	*out = comm_new(engine, 0, ibvx_rank(ep), ibvx_size(ep), NULL);
	if (!*out)
		engine_free(engine);
	return *out ? 0 : -ENOMEM;
}

int ibvx_comm_rank(const struct ibvx_comm *comm)
{
	return comm->rank;
}

int ibvx_comm_size(const struct ibvx_comm *comm)
{
	return comm->size;
}

struct ibvx *ibvx_comm_endpoint(const struct ibvx_comm *comm)
{
	return comm->engine->ep;
}

int ibvx_comm_context(const struct ibvx_comm *comm)
{
	return comm->engine->first_context + 2 * comm->id;
}

static int comm_not_member(const struct ibvx_comm *comm, int rank, const char *what)
{
	return error_set(-EINVAL, "%s %d is not a rank of this communicator: 0 to %d are", what, rank, comm->size - 1);
}

int ibvx_comm_peer(const struct ibvx_comm *comm, int rank)
{
	if (rank < 0 || rank >= comm->size)
		return comm_not_member(comm, rank, "member");
	return comm_peer(comm, rank);
}

void ibvx_comm_free(struct ibvx_comm *comm)
{
	if (comm)
		comm_put(comm);
}

/* A communicator with the members of comm in ranks[0..size-1] and this id; or gives the id back: this rank is not among them. */
static int comm_finish(struct ibvx_comm *comm, int id, const int *ranks, int size, struct ibvx_comm **out)
{
	int32_t *peers;
	int rank = -1;

	if (id < 0)
		return id;
	peers = malloc(((size_t)size + 1) * sizeof(*peers));
	for (int i = 0; peers && i < size; i++) {
		peers[i] = comm_peer(comm, ranks[i]);
		rank = ranks[i] == comm->rank ? i : rank;
	}
	if (peers && rank >= 0) {
		*out = comm_new(comm->engine, id, rank, size, peers);
		peers = NULL;
		if (*out)
			return 0;
	}
	comm_id_release(comm->engine, id);
	if (rank < 0 && peers) {
		free(peers);
		return 0;
	}
	return error_set(-ENOMEM, "no memory for a communicator of %d members", size);
}

int ibvx_comm_dup(struct ibvx_comm *comm, struct ibvx_comm **out)
{
	int id = comm_id_agree(comm, NULL), rc;
	int *ranks;

	*out = NULL;
	if (id < 0)
		return id;
	ranks = malloc((size_t)comm->size * sizeof(*ranks));
	if (!ranks) {
		comm_id_release(comm->engine, id);
		return error_set(-ENOMEM, "no memory for a communicator of %d members", comm->size);
	}
	for (int i = 0; i < comm->size; i++)
		ranks[i] = i;
	rc = comm_finish(comm, id, ranks, comm->size, out);
	free(ranks);
	return rc;
}

static int comm_check_list(const struct ibvx_comm *comm, int count, const int ranks[])
{
	unsigned char *seen;
	int rc = 0;

	if (count < 0 || count > comm->size)
		return error_set(-EINVAL, "a communicator of %d members: this one has %d", count, comm->size);
	seen = calloc((size_t)comm->size, 1);
	if (!seen)
		return error_set(-ENOMEM, "no memory for a list of %d ranks", comm->size);
	for (int i = 0; i < count && rc == 0; i++) {
		if (ranks[i] < 0 || ranks[i] >= comm->size)
			rc = comm_not_member(comm, ranks[i], "member");
		else if (seen[ranks[i]]++)
			rc = error_set(-EINVAL, "rank %d is twice in the list: name every member once", ranks[i]);
	}
	free(seen);
	return rc;
}

int ibvx_comm_create(struct ibvx_comm *comm, int count, const int ranks[], struct ibvx_comm **out)
{
	int rc = comm_check_list(comm, count, ranks);

	*out = NULL;
	return rc ? rc : comm_finish(comm, comm_id_agree(comm, NULL), ranks, count, out);
}

struct comm_choice {
	int32_t color, key, rank;
};

static int comm_choice_compare(const void *a, const void *b)
{
	const struct comm_choice *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The members of our color, in order, in ranks. How many. */
static int comm_choose(struct comm_choice *all, int size, int color, int *ranks)
{
	int count = 0;

	for (int i = 0; i < size; i++) {
		if (all[i].color == color)
			all[count++] = all[i];
	}
	qsort(all, (size_t)count, sizeof(*all), comm_choice_compare);
	for (int i = 0; i < count; i++)
		ranks[i] = all[i].rank;
	return count;
}

int ibvx_comm_split(struct ibvx_comm *comm, int color, int key, struct ibvx_comm **out)
{
	struct comm_choice mine = {color, key, comm->rank};
	struct comm_choice *all = malloc((size_t)comm->size * sizeof(*all));
	int *ranks = malloc((size_t)comm->size * sizeof(*ranks));
	struct ibvx_coll gather = {.kind = IBVX_ALLGATHER,
				   .in = {.base = &mine, .bytes = sizeof(mine)},
				   .out = {.base = all, .bytes = sizeof(mine), .stride_bytes = sizeof(mine)}};
	int rc = -ENOMEM, count = 0;

	*out = NULL;
	if (all && ranks)
		rc = ibvx_coll_run(comm, &gather);
	else
		error_set(rc, "no memory for a split of %d members", comm->size);
	if (all && ranks && rc == 0) {
		if (color != IBVX_UNDEFINED)
			count = comm_choose(all, comm->size, color, ranks);
		rc = comm_finish(comm, comm_id_agree(comm, NULL), ranks, count, out);
	}
	free(all);
	free(ranks);
	return rc;
}

/* The ranks of both groups in the endpoint, first's before second's, in peers. */
static int comm_join_lists(struct ibvx_comm *local, const struct comm_bridge *bridge, bool first, int remote_size, int32_t *peers)
{
	size_t larger = (size_t)(local->size > remote_size ? local->size : remote_size);
	int32_t *mine = calloc(2 * larger, sizeof(*mine)), *theirs;
	int rc;

	if (!mine)
		return error_set(-ENOMEM, "no memory for two groups of %zu ranks", larger);
	theirs = mine + larger;
	for (int i = 0; i < local->size; i++)
		mine[i] = comm_peer(local, i);
	rc = comm_bridge_exchange(local, bridge, mine, theirs, larger * sizeof(*mine));
	if (rc == 0) {
		memcpy(peers + (first ? 0 : remote_size), mine, (size_t)local->size * sizeof(*peers));
		memcpy(peers + (first ? local->size : 0), theirs, (size_t)remote_size * sizeof(*peers));
	}
	free(mine);
	return rc;
}

int ibvx_comm_join(struct ibvx_comm *local, int leader, int remote_leader, int context, int tag, int first, struct ibvx_comm **out,
		   int *remote_size)
{
	const struct comm_bridge bridge = {leader, remote_leader, context, tag};
	int32_t size = local->size, theirs = 0;
	int32_t *peers;
	int rc, id;

	*out = NULL;
	*remote_size = 0;
	if (leader < 0 || leader >= local->size)
		return comm_not_member(local, leader, "leader");
	rc = comm_bridge_exchange(local, &bridge, &size, &theirs, sizeof(size));
	if (rc)
		return rc;
	id = comm_id_agree(local, &bridge);
	if (id < 0)
		return id;
	peers = calloc((size_t)size + (size_t)theirs, sizeof(*peers));
	rc = peers ? comm_join_lists(local, &bridge, first != 0, theirs, peers)
		   : error_set(-ENOMEM, "no memory for a communicator of %d members", size + theirs);
	if (rc == 0) {
		*out = comm_new(local->engine, id, first ? local->rank : theirs + local->rank, size + theirs, peers);
		peers = NULL;
		rc = *out ? 0 : -ENOMEM;
	}
	if (rc) {
		free(peers);
		comm_id_release(local->engine, id);
		return rc;
	}
	*remote_size = theirs;
	return 0;
}
