/* SPDX-License-Identifier: MIT */
/* The collective operations of ibvx_coll.h. */
#include <errno.h>

#include "base/error.h"
#include "coll/area.h"
#include "coll/build.h"
#include "coll/shared.h"

/* The longest message (ibvx.h). */
#define BYTES_MAX ((size_t)PTRDIFF_MAX / 8)

static coll_build *const builders[IBVX_COLL_COUNT] = {
	[IBVX_BARRIER] = coll_build_barrier, [IBVX_BCAST] = coll_build_bcast,         [IBVX_GATHER] = coll_build_gather,
	[IBVX_SCATTER] = coll_build_scatter, [IBVX_ALLGATHER] = coll_build_allgather, [IBVX_ALLTOALL] = coll_build_alltoall,
	[IBVX_REDUCE] = coll_build_reduce,   [IBVX_ALLREDUCE] = coll_build_allreduce, [IBVX_REDUCE_SCATTER] = coll_build_reduce_scatter,
	[IBVX_SCAN] = coll_build_scan,       [IBVX_EXSCAN] = coll_build_scan,
};

static int check_bytes(const void *base, size_t bytes, const struct ibvx_layout *layout, const char *what)
{
	if (bytes > BYTES_MAX)
		return error_set(-EINVAL, "%s of %zu bytes: the most is %zu (was a negative count passed?)", what, bytes, BYTES_MAX);
	if (!base && bytes && !layout)
		return error_set(-EINVAL, "%s of %zu bytes at a NULL address: pass memory of that size", what, bytes);
	return 0;
}

/* One part. */
static int check_part(const struct ibvx_parts *p, const char *what)
{
	return check_bytes(p->base, p->bytes, p->layout, what);
}

static int check_parts(const struct ibvx_comm *comm, const struct ibvx_parts *p, const char *what)
{
	int rc = 0;

	if (!p->sizes)
		return check_part(p, what);
	if (!p->offsets)
		return error_set(-EINVAL, "%s has sizes but no offsets: pass both, an entry for each of %d members", what, comm->size);
	for (int i = 0; i < comm->size && rc == 0; i++)
		rc = check_bytes(p->base, p->sizes[i], p->layout, what);
	return rc;
}

static int check_moving(const struct ibvx_comm *comm, const struct ibvx_coll *a)
{
	bool root = comm->rank == a->root;
	int rc = 0;

	if (root && !a->uneven && (a->kind == IBVX_GATHER ? a->out.sizes : a->kind == IBVX_SCATTER ? a->in.sizes : NULL))
		return error_set(-EINVAL, "parts of different sizes, but ibvx_coll.uneven is 0: set it on all members");
	if (a->kind == IBVX_BCAST || a->kind == IBVX_ALLGATHER || a->kind == IBVX_GATHER)
		rc = check_part(&a->in, "the source");
	if (rc == 0 && (a->kind == IBVX_ALLTOALL || (a->kind == IBVX_SCATTER && root)))
		rc = check_parts(comm, &a->in, "the source");
	if (rc == 0 && a->kind == IBVX_SCATTER)
		rc = check_part(&a->out, "the target");
	if (rc == 0 && (a->kind == IBVX_ALLTOALL || a->kind == IBVX_ALLGATHER || (a->kind == IBVX_GATHER && root)))
		rc = check_parts(comm, &a->out, "the target");
	return rc;
}

/* The numbers of elements that the source and the target of this member have. */
static int check_counts(const struct ibvx_comm *comm, const struct ibvx_coll *a, size_t *source, size_t *target)
{
	*source = a->count;
	*target = a->count;
	if ((a->kind == IBVX_REDUCE && comm->rank != a->root) || (a->kind == IBVX_EXSCAN && comm->rank == 0))
		*target = 0;
	if (a->kind != IBVX_REDUCE_SCATTER)
		return 0;
	*source = 0;
	*target = a->counts ? a->counts[comm->rank] : a->count;
	for (int i = 0; i < comm->size; i++) {
		size_t count = a->counts ? a->counts[i] : a->count;

		if (count > BYTES_MAX || *source + count > BYTES_MAX)
			return error_set(-EINVAL, "%zu elements for member %d: the most is %zu in all (was a negative count passed?)",
					 count, i, BYTES_MAX);
		*source += count;
	}
	return 0;
}

static int check_reduction(const struct ibvx_comm *comm, const struct ibvx_coll *a, struct coll_op *op)
{
	size_t source, target;
	int rc = coll_op_find(op, a->op, a->type, a->user);

	if (rc == 0)
		rc = check_counts(comm, a, &source, &target);
	if (rc)
		return rc;
	if (source > BYTES_MAX / op->bytes)
		return error_set(-EINVAL, "%zu elements of %zu bytes: the most is %zu bytes (was a negative count passed?)", source,
				 op->bytes, BYTES_MAX);
	rc = check_bytes(a->source, source * op->bytes, NULL, "the source");
	return rc ? rc : check_bytes(a->target, target * op->bytes, NULL, "the target");
}

static bool has_root(enum ibvx_coll_kind kind)
{
	return kind == IBVX_BCAST || kind == IBVX_GATHER || kind == IBVX_SCATTER || kind == IBVX_REDUCE;
}

static int check(const struct ibvx_comm *comm, const struct ibvx_coll *a, struct coll_op *op)
{
	if (!comm)
		return error_set(-EINVAL, "a collective operation on a NULL communicator: it was never made or has been freed");
	if ((unsigned)a->kind >= IBVX_COLL_COUNT)
		return error_set(-EINVAL, "%d is not an operation of enum ibvx_coll_kind", (int)a->kind);
	if (has_root(a->kind) && (a->root < 0 || a->root >= comm->size))
		return error_set(-EINVAL, "root %d is not a rank of this communicator: 0 to %d are", a->root, comm->size - 1);
	return a->kind >= IBVX_REDUCE ? check_reduction(comm, a, op) : check_moving(comm, a);
}

/* A schedule that is ready to begin, or NULL with the text set and *rc.  The arguments have been checked. */
static struct schedule *build(struct ibvx_comm *comm, const struct ibvx_coll *a, const struct coll_op *op, int *rc)
{
	struct schedule *s = schedule_get(comm);

	*rc = s ? 0 : -ENOMEM;
	if (!s)
		return NULL;
	s->op = *op;
	builders[a->kind](s, a);
	if (!s->error)
		return s;
	*rc = error_set(s->error, "%s", s->why);
	schedule_put(s);
	return NULL;
}

static struct schedule *prepare(struct ibvx_comm *comm, const struct ibvx_coll *a, int *rc)
{
	struct coll_op op = {0};

	*rc = check(comm, a, &op);
	return *rc ? NULL : build(comm, a, &op, rc);
}

/* The result of an operation that is over. */
static int outcome(const struct schedule *s)
{
	return s->error ? error_concerns(error_set(s->error, "%s", s->why), s->error_rank) : 0;
}

int ibvx_coll_run(struct ibvx_comm *comm, const struct ibvx_coll *coll)
{
	struct coll_op op = {0};
	int rc = check(comm, coll, &op);
	struct schedule *s;

	rc = rc ? rc : area_ready(comm);
	if (rc > 0 && shared_fits(comm, coll, &op))
		return shared_run(comm, coll, &op);
	s = rc < 0 ? NULL : build(comm, coll, &op, &rc);
	if (!s)
		return rc;
	rc = schedule_execute(s, schedule_tag(comm));
	rc = rc ? rc : outcome(s);
	schedule_put(s);
	return rc;
}

int ibvx_coll_start(struct ibvx_comm *comm, const struct ibvx_coll *coll, ibvx_coll_req *req)
{
	int rc;
	struct schedule *s = prepare(comm, coll, &rc);

	*req = s ? schedule_handle(s) : 0;
	if (s)
		schedule_start(s, schedule_tag(comm));
	return s ? 0 : rc;
}

int ibvx_coll_init(struct ibvx_comm *comm, const struct ibvx_coll *coll, ibvx_coll_req *req)
{
	int rc;
	struct schedule *s = prepare(comm, coll, &rc);

	*req = s ? schedule_handle(s) : 0;
	if (s)
		s->persistent = true;
	return s ? 0 : rc;
}

int ibvx_coll_begin(struct ibvx_comm *comm, ibvx_coll_req req)
{
	struct schedule *s = schedule_take(comm->engine, req);
	int rc = 0;

	if (!s)
		return -EINVAL;
	if (!s->persistent)
		rc = error_set(-EINVAL, "collective operation %#llx is not persistent: make it by ibvx_coll_init()",
			       (unsigned long long)req);
	else if (s->active)
		rc = error_set(-EBUSY, "collective operation %#llx is under way: wait for it first", (unsigned long long)req);
	else
		schedule_start(s, schedule_tag(s->comm));
	schedule_leave(s);
	return rc;
}

/* The operation is over: its result; the handle is consumed unless it is persistent. */
static int finish(struct schedule *s, ibvx_coll_req *req)
{
	int rc = outcome(s);

	s->active = false;
	if (s->persistent) {
		schedule_leave(s);
		return rc;
	}
	*req = 0;
	schedule_put(s);
	return rc;
}

int ibvx_coll_wait(struct ibvx_comm *comm, ibvx_coll_req *req)
{
	struct schedule *s;
	int rc;

	if (*req == 0)
		return 0;
	s = schedule_take(comm->engine, *req);
	if (!s)
		return -EINVAL;
	if (!s->active) { /* persistent */
		schedule_leave(s);
		return 0;
	}
	rc = ibvx_continuation_wait(comm->engine->ep, &s->continuation);
	if (rc == 0)
		return finish(s, req);
	*req = 0;
	schedule_put(s);
	return rc;
}

int ibvx_coll_test(struct ibvx_comm *comm, ibvx_coll_req *req)
{
	struct schedule *s;
	int rc;

	if (*req == 0)
		return 1;
	s = schedule_take(comm->engine, *req);
	if (!s)
		return -EINVAL;
	if (!s->active || !ibvx_continuation_test(comm->engine->ep, &s->continuation)) {
		rc = s->active ? 0 : 1;
		schedule_leave(s);
		return rc;
	}
	rc = finish(s, req);
	return rc ? rc : 1;
}

int ibvx_coll_free(struct ibvx_comm *comm, ibvx_coll_req *req)
{
	struct schedule *s;
	int rc = 0;

	if (*req == 0)
		return 0;
	s = schedule_take(comm->engine, *req);
	if (!s)
		return -EINVAL;
	if (s->active && s->op.user) /* no thread of the caller's may come any more to call its function */
		rc = ibvx_continuation_wait(comm->engine->ep, &s->continuation);
	*req = 0;
	if (!s->active || rc || ibvx_continuation_abandon(comm->engine->ep, &s->continuation))
		schedule_put(s);
	return rc;
}
