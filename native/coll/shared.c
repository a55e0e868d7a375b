/* SPDX-License-Identifier: MIT */
#include "coll/shared.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "coll/area.h"
#include "coll/build.h"

/* What one member contributes at most, and what a member reads in all where each reads every contribution: longer ones take
 * less time as messages, whose number grows with the logarithm of the members only. */
#define SHARED_BYTES 8192u
#define SHARED_READ_BYTES 32768u
static_assert(SHARED_BYTES <= AREA_DATA, "a contribution fits in a slot");

/* One operation of one member. */
struct shared {
	struct ibvx_comm *comm;
	const struct ibvx_coll *a;
	const struct coll_op *op;
	uint32_t operation;
	size_t bytes; /* of an element, a part, or all of a reduction */
	bool published;
};

static const enum setting choices[IBVX_COLL_COUNT] = {
	[IBVX_BARRIER] = SETTING_COLL_BARRIER, [IBVX_BCAST] = SETTING_COLL_BCAST,         [IBVX_GATHER] = SETTING_COLL_GATHER,
	[IBVX_SCATTER] = SETTING_COLL_SCATTER, [IBVX_ALLGATHER] = SETTING_COLL_ALLGATHER, [IBVX_ALLTOALL] = SETTING_COLL_ALLTOALL,
	[IBVX_REDUCE] = SETTING_COLL_REDUCE,   [IBVX_ALLREDUCE] = SETTING_COLL_ALLREDUCE,
};

static size_t shared_bytes(const struct ibvx_coll *a, const struct coll_op *op)
{
	if (a->kind == IBVX_BARRIER)
		return 0;
	if (a->kind < IBVX_REDUCE)
		return a->kind == IBVX_SCATTER ? a->out.bytes : a->in.bytes;
	return a->count > SHARED_BYTES ? SHARED_BYTES + 1 : a->count * op->bytes;
}

bool shared_fits(const struct ibvx_comm *comm, const struct ibvx_coll *a, const struct coll_op *op)
{
	size_t bytes = shared_bytes(a, op), members = (size_t)comm->size;
	bool set = a->kind < IBVX_SCAN && a->kind != IBVX_REDUCE_SCATTER &&
		   settings_int(ibvx_settings(comm->engine->ep), choices[a->kind]) != 0;

	if (set || bytes > SHARED_BYTES)
		return false;
	switch (a->kind) {
	case IBVX_BARRIER:
	case IBVX_BCAST: return true;
	case IBVX_GATHER: return !a->uneven && bytes * members <= SHARED_READ_BYTES;
	case IBVX_SCATTER: return !a->uneven && bytes * members <= SHARED_BYTES;
	case IBVX_ALLGATHER: return !a->out.sizes && bytes * members <= SHARED_READ_BYTES;
	case IBVX_ALLTOALL: return !a->in.sizes && !a->out.sizes && bytes * members <= SHARED_BYTES;
	case IBVX_REDUCE:
	case IBVX_ALLREDUCE:
	case IBVX_SCAN:
	case IBVX_EXSCAN: return bytes * members <= SHARED_READ_BYTES;
	case IBVX_REDUCE_SCATTER:
	case IBVX_COLL_COUNT: break;
	}
	return false;
}

static __attribute__((cold)) int shared_refuse(const struct shared *s, int member, uint64_t sent, size_t bytes)
{
	return error_concerns(
		error_set(-EMSGSIZE,
			  "member %d sent %llu bytes where member %d expects %zu: the counts of a collective operation must agree", member,
			  (unsigned long long)sent, s->comm->rank, bytes),
		comm_peer(s->comm, member));
}

/* --- contributing --- */

/* The parts of all members, one behind the other. */
static int shared_put_parts(const struct shared *s, unsigned char *to)
{
	int rc = s->a->in.bytes == s->bytes ? 0 : shared_refuse(s, s->comm->rank, s->a->in.bytes, s->bytes);

	for (int i = 0; i < s->comm->size && rc == 0; i++)
		rc = ibvx_area_pack(s->a->in.layout, part_base(&s->a->in, i), to + (size_t)i * s->bytes, s->bytes);
	return rc;
}

/* Does this member contribute anything, or wait for nobody before it is to be waited for? */
static bool shared_gives(const struct shared *s)
{
	return (s->a->kind != IBVX_BCAST && s->a->kind != IBVX_SCATTER) || s->comm->rank == s->a->root;
}

static int shared_give(struct shared *s)
{
	struct area_slot *slot = area_slot(s->comm->area, s->comm->rank, s->operation);
	size_t bytes = s->bytes;
	int rc = 0;

	if (s->a->kind == IBVX_SCATTER || s->a->kind == IBVX_ALLTOALL) {
		rc = shared_put_parts(s, slot->data);
		bytes *= (size_t)s->comm->size;
	} else if (s->a->kind >= IBVX_REDUCE) {
		rc = ibvx_area_pack(NULL, s->a->source, slot->data, bytes);
	} else if (s->a->kind != IBVX_BARRIER) {
		rc = ibvx_area_pack(s->a->in.layout, s->a->in.base, slot->data, bytes);
	}
	if (rc)
		return rc;
	area_publish(s->comm, s->operation, bytes, 0);
	s->published = true;
	return 0;
}

/* --- reading --- */

static int shared_check_slot(const struct shared *s, int member, const struct area_slot *slot, size_t bytes)
{
	if (slot->error)
		return error_set(slot->error, "member %d reports that the operation failed there or before: %s", member,
				 error_words(-slot->error));
	if (atomic_load_explicit(&slot->stamp, memory_order_relaxed) != s->operation + 1)
		return error_set(-ECONNRESET, "member %d has given this operation up", member);
	return slot->bytes == bytes ? 0 : shared_refuse(s, member, slot->bytes, bytes);
}

/* What a member has contributed, `bytes` bytes, or NULL after an error. */
static const unsigned char *shared_await(const struct shared *s, int member, size_t bytes, int *rc)
{
	const struct area_slot *slot = area_slot(s->comm->area, member, s->operation);

	*rc = area_await(s->comm, member, s->operation);
	*rc = *rc ? *rc : shared_check_slot(s, member, slot, bytes);
	return *rc ? NULL : slot->data;
}

/* All members' contributions are there, and as long as ours. */
static int shared_await_all(const struct shared *s, size_t bytes)
{
	int rc = area_await_all(s->comm, s->operation);

	for (int i = 0; i < s->comm->size && rc == 0; i++)
		rc = shared_check_slot(s, i, area_slot(s->comm->area, i, s->operation), bytes);
	return rc;
}

static int shared_take_bcast(const struct shared *s)
{
	const unsigned char *from;
	int rc;

	if (s->comm->rank == s->a->root)
		return 0;
	from = shared_await(s, s->a->root, s->bytes, &rc);
	return rc ? rc : ibvx_area_unpack(s->a->in.layout, s->a->in.base, from, s->bytes);
}

static int shared_take_scatter(const struct shared *s)
{
	const unsigned char *from;
	int rc;

	if (s->comm->rank == s->a->root && part_base(&s->a->in, s->comm->rank) == s->a->out.base)
		return 0;
	from = shared_await(s, s->a->root, (size_t)s->comm->size * s->bytes, &rc);
	return rc ? rc : ibvx_area_unpack(s->a->out.layout, s->a->out.base, from + (size_t)s->comm->rank * s->bytes, s->bytes);
}

/* A part from each member: of the `parts` parts that it has contributed that with this index. */
static int shared_take_parts(const struct shared *s, int parts, int index, bool in_place)
{
	size_t bytes = s->a->out.bytes, at = (size_t)index * bytes;
	int rc = shared_await_all(s, (size_t)parts * bytes);

	for (int i = 0; i < s->comm->size && rc == 0; i++) {
		const struct area_slot *slot = area_slot(s->comm->area, i, s->operation);

		if (!in_place || i != s->comm->rank)
			rc = ibvx_area_unpack(s->a->out.layout, part_base(&s->a->out, i), slot->data + at, bytes);
	}
	return rc;
}

/* The values of members 0 to last, in this order; the same on every member that has the same `last`. */
static int shared_take_sum(const struct shared *s, int last)
{
	struct area *area = s->comm->area;
	int rc = 0;

	if (last == s->comm->size - 1)
		rc = shared_await_all(s, s->bytes);
	for (int i = 0; i <= last && rc == 0; i++)
		shared_await(s, i, s->bytes, &rc);
	if (rc || last < 0 || s->bytes == 0)
		return rc;
	memcpy(s->a->target, area_slot(area, last, s->operation)->data, s->bytes);
	for (int i = last - 1; i >= 0 && rc == 0; i--)
		rc = coll_op_apply(s->op, area_slot(area, i, s->operation)->data, s->a->target, s->a->count);
	return rc ? error_set(rc < 0 ? rc : -EPROTO, "the user operation reported an error") : 0;
}

static int shared_take(const struct shared *s)
{
	const struct ibvx_coll *a = s->a;
	int rank = s->comm->rank, last = s->comm->size - 1;

	switch (a->kind) {
	case IBVX_BARRIER: return shared_await_all(s, 0);
	case IBVX_BCAST: return shared_take_bcast(s);
	case IBVX_SCATTER: return shared_take_scatter(s);
	case IBVX_GATHER:
		if (rank != a->root)
			return 0;
		return shared_take_parts(s, 1, 0, part_base(&a->out, rank) == a->in.base);
	case IBVX_ALLGATHER: return shared_take_parts(s, 1, 0, part_base(&a->out, rank) == a->in.base);
	case IBVX_ALLTOALL: return shared_take_parts(s, s->comm->size, rank, false);
	case IBVX_REDUCE: return rank == a->root ? shared_take_sum(s, last) : 0;
	case IBVX_SCAN: return shared_take_sum(s, rank);
	case IBVX_EXSCAN: return shared_take_sum(s, rank - 1);
	case IBVX_ALLREDUCE: return shared_take_sum(s, last);
	case IBVX_REDUCE_SCATTER: /* shared_fits() */
	case IBVX_COLL_COUNT: break;
	}
	return 0;
}

/* The operation failed here: others learn of it, unless they have what they need. */
static __attribute__((cold)) int shared_fail(struct shared *s, int rc)
{
	char why[256];
	int rank = error_rank();

	snprintf(why, sizeof(why), "%s", error_text());
	if (!s->published)
		area_publish(s->comm, s->operation, 0, rc);
	return error_concerns(error_set(rc, "%s", why), rank);
}

static int shared_execute(struct ibvx_comm *comm, const struct ibvx_coll *a, const struct coll_op *op)
{
	struct shared s = {comm, a, op, comm->area->operation++, shared_bytes(a, op), false};
	int rc = area_begin(comm, s.operation);

	if (rc == 0 && shared_gives(&s))
		rc = shared_give(&s);
	rc = rc ? rc : shared_take(&s);
	if (rc)
		return shared_fail(&s, rc);
	if (!s.published)
		area_publish(comm, s.operation, 0, 0);
	return 0;
}

int shared_run(struct ibvx_comm *comm, const struct ibvx_coll *a, const struct coll_op *op)
{
	struct ibvx *ep = comm->engine->ep;
	int rc = ibvx_area_enter(ep);

	if (rc)
		return rc;
	comm_get(comm); /* another thread may free it meanwhile */
	rc = shared_execute(comm, a, op);
	comm_put(comm);
	ibvx_area_exit(ep);
	return rc;
}
