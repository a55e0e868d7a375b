/* SPDX-License-Identifier: MIT */
#ifndef IBVX_COLL_H
#define IBVX_COLL_H
/*
 * ibvx_coll: communicators and collective operations on the endpoints of ibvx.h.
 *
 * A communicator (struct ibvx_comm) is an ordered group of ranks and two contexts of the endpoint: the first is free for
 * the caller's own messages, the second belongs to the collective operations.  The ranks of its members begin at 0.
 *
 * A collective operation is described by a struct ibvx_coll.  ibvx_coll_run() executes it, ibvx_coll_start() begins
 * it, ibvx_coll_init() prepares it to be begun any number of times: a schedule of sends, receives, copies and
 * reductions.  A blocking operation with little data may do without messages, so it matches blocking ones only, as in
 * MPI.  Every member calls the same operations in the same order on one communicator (MPI 4.0, section 6.14); as many
 * as wanted may be under way at once.  The v forms are used by all members of an operation or by none.
 *
 * Threads: every function may be called from any thread; the order of the operations of one communicator is then the
 * caller's business.  Whatever thread of this rank waits or tests inside the library, in a receive for example, continues all
 * operations; those with long messages go on by the progress thread while no thread does (unless progress_thread=0).
 *
 * Failure: an operation ends with an error on a rank that took part in it after a member died, or where lengths
 * disagree (-EMSGSIZE).  That rank passes the error on in place of its messages, so nobody waits for a rank that has given
 * up.  Others may succeed, as MPI allows.  Lengths on two sides of a limit where the algorithm changes (8 KB, for example) may
 * block instead.
 *
 * Errors are those of ibvx.h, with their text in ibvx_error().
 */
#include "ibvx.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ibvx_comm;

/* The communicator of all ranks.  It and those that are made of it use the contexts first_context to first_context +
 * 2 * IBVX_COMM_MAX - 1 of the endpoint, so call it once for an endpoint, or with distant contexts.  Exchanges no
 * message.  -EINVAL: first_context is negative or too large. */
#define IBVX_COMM_MAX 2048
int ibvx_comm_world(struct ibvx_comm **out, struct ibvx *ep, int first_context);

int ibvx_comm_rank(const struct ibvx_comm *comm);
int ibvx_comm_size(const struct ibvx_comm *comm);
struct ibvx *ibvx_comm_endpoint(const struct ibvx_comm *comm);
/* The context for the caller's own messages. */
int ibvx_comm_context(const struct ibvx_comm *comm);
/* The rank of a member in the endpoint, for ibvx_send() and its like; -EINVAL: there is no such member. */
int ibvx_comm_peer(const struct ibvx_comm *comm, int rank);

/* New communicators; collective over `comm`, blocking.  -ENOSPC: IBVX_COMM_MAX communicators exist on some member.
 * After an error *out is NULL. */
int ibvx_comm_dup(struct ibvx_comm *comm, struct ibvx_comm **out);
/* The members with one color, ordered by key, then by rank in `comm`.  color IBVX_UNDEFINED: *out is NULL, and 0. */
#define IBVX_UNDEFINED (-32766)
int ibvx_comm_split(struct ibvx_comm *comm, int color, int key, struct ibvx_comm **out);
/* The members of `comm` in ranks[0..count-1], in this order; every member passes the same list.  A
 * member that is not in it gets NULL, and 0. */
int ibvx_comm_create(struct ibvx_comm *comm, int count, const int ranks[], struct ibvx_comm **out);
/* Both groups of an inter-communicator as one communicator: first the members of the group that passes `first` != 0
 * (all its members do), then the others.  Collective over both groups; `local` is this rank's.  The two leaders exchange
 * messages with `tag` in `context` of the endpoint: leader is a rank of `local`, remote_leader (significant at the
 * leader) a rank of the endpoint.  *remote_size is the size of the other group. */
int ibvx_comm_join(struct ibvx_comm *local, int leader, int remote_leader, int context, int tag, int first, struct ibvx_comm **out,
		   int *remote_size);
/* Gives the communicator up; operations under way end as they would.  Exchanges no message.  NULL is allowed. */
void ibvx_comm_free(struct ibvx_comm *comm);

/* Types of reductions: values in the machine's order.  IBVX_BOOLEAN is a byte, 0 or not. */
enum ibvx_type { IBVX_INT8, IBVX_UINT16, IBVX_INT16, IBVX_INT32, IBVX_INT64, IBVX_FLOAT, IBVX_DOUBLE, IBVX_BOOLEAN, IBVX_TYPE_COUNT };

/* Operations.  The logical ones exist for every integer type and IBVX_BOOLEAN, and give 0 or 1; the bitwise ones for
 * integers and IBVX_BOOLEAN; sum to max not for IBVX_BOOLEAN.  Integer overflow wraps around.  min and max of a NaN
 * and a number are the number, minloc and maxloc the pair with it.  IBVX_MINLOC and IBVX_MAXLOC take pairs of one type, (value, index): a count of pairs; of
 * equal values the one with the lower index wins. */
enum ibvx_op {
	IBVX_SUM,
	IBVX_PROD,
	IBVX_MIN,
	IBVX_MAX,
	IBVX_LAND,
	IBVX_LOR,
	IBVX_LXOR,
	IBVX_BAND,
	IBVX_BOR,
	IBVX_BXOR,
	IBVX_MINLOC,
	IBVX_MAXLOC,
	IBVX_USER, /* see struct ibvx_user_op */
	IBVX_OP_COUNT
};

/* A user operation: inout[i] = in[i] op inout[i] for `count` elements of element_bytes.  `in` comes from lower ranks
 * than `inout`, unless it is commutative.  It is called without a lock held by whatever thread of the caller's is
 * inside a call of this endpoint that starts an operation, waits, tests or probes, never by the progress thread.  The function must not call the library.  A value other than 0 is a negative errno: the operation fails with it. */
struct ibvx_user_op {
	int (*apply)(void *arg, const void *in, void *inout, size_t count);
	void *arg;
	size_t element_bytes;
	int commutative;
};

enum ibvx_coll_kind {
	IBVX_BARRIER,
	IBVX_BCAST,
	IBVX_GATHER,
	IBVX_SCATTER,
	IBVX_ALLGATHER,
	IBVX_ALLTOALL,
	IBVX_REDUCE,
	IBVX_ALLREDUCE,
	IBVX_REDUCE_SCATTER,
	IBVX_SCAN,
	IBVX_EXSCAN,
	IBVX_COLL_COUNT
};

/* Memory of a data-moving operation: one part, or one for each member.
 *   one part     `bytes` bytes from base on (of bcast: of all members)
 *   regular      part i has `bytes` bytes from base + i * stride_bytes on
 *   v form       sizes != NULL: part i has sizes[i] bytes from base + offsets[i] on; both have an entry for each member
 * With a layout the bytes are those that it selects, as in struct ibvx_sbuf; every part uses it from its beginning. */
struct ibvx_parts {
	void *base; /* of a source, only read */
	size_t bytes;
	ptrdiff_t stride_bytes;
	const size_t *sizes;
	const ptrdiff_t *offsets;
	const struct ibvx_layout *layout;
};

/* What a collective operation does.  Zero it first.  What is read and written:
 *
 *                        reads                             writes
 *   BARRIER              nothing                           nothing
 *   BCAST                in (one part) at root             in elsewhere
 *   GATHER               in (one part)                     out (a part for each member) at root
 *   SCATTER              in (a part for each) at root      out (one part)
 *   ALLGATHER            in (one part)                     out (a part for each)
 *   ALLTOALL             in (a part for each)              out (a part for each)
 *   REDUCE               source                            target at root
 *   ALLREDUCE, SCAN      source                            target
 *   EXSCAN               source                            target, but not at member 0
 *   REDUCE_SCATTER       source: the sum of all counts     target: counts[rank] elements
 *
 * What is not named is not looked at: a root's fields may be NULL elsewhere.  Gather, allgather and scatter copy nothing
 * where a member's own part is the very same address in both (in place); reductions work in place where source ==
 * target.  Other overlaps are errors of the program.  The lengths that a sender and its receiver name must agree.
 *
 * The memory must stay valid until the operation is complete, of a persistent one until it is freed; so must the arrays
 * counts, sizes, offsets, and a user operation.  The struct itself is copied. */
struct ibvx_coll {
	enum ibvx_coll_kind kind;
	int root;
	int uneven; /* GATHER, SCATTER: not 0, on all members, if the root uses the v form */
	struct ibvx_parts in, out;
	const void *source;
	void *target;
	size_t count;         /* elements (of MINLOC, MAXLOC: pairs); REDUCE_SCATTER without counts: for each member */
	const size_t *counts; /* REDUCE_SCATTER: elements of each member, or NULL */
	enum ibvx_type type;  /* not looked at with IBVX_USER */
	enum ibvx_op op;
	const struct ibvx_user_op *user;
};

/* Executes it: 0 when this member's part is done. */
int ibvx_coll_run(struct ibvx_comm *comm, const struct ibvx_coll *coll);

/* A handle, as ibvx_req: slot and generation. */
typedef uint64_t ibvx_coll_req;

/* Begins it.  The handle is consumed (and *req set to 0) by the call of test or wait that reports it complete. */
int ibvx_coll_start(struct ibvx_comm *comm, const struct ibvx_coll *coll, ibvx_coll_req *req);

/* Prepares it; the order of these calls, too, is the same on all members.  Then ibvx_coll_begin(), test or wait, begin
 * again, and at last ibvx_coll_free().  The handle stays. */
int ibvx_coll_init(struct ibvx_comm *comm, const struct ibvx_coll *coll, ibvx_coll_req *req);
/* -EBUSY: it is under way. */
int ibvx_coll_begin(struct ibvx_comm *comm, ibvx_coll_req req);

/* comm: any communicator made of the same world.  Wait blocks; test: 1 complete, 0 not yet.  The error of the operation
 * is the value.  Handle 0, and a persistent one that is not under way, are complete.  Two threads must not wait for one handle, or
 * test it, at the same time (-EINVAL). */
int ibvx_coll_wait(struct ibvx_comm *comm, ibvx_coll_req *req);
int ibvx_coll_test(struct ibvx_comm *comm, ibvx_coll_req *req);
/* Gives a handle up: it is released when the operation is complete.  With a user operation it waits for that. */
int ibvx_coll_free(struct ibvx_comm *comm, ibvx_coll_req *req);

/* The number of bytes of an element; 0: no such type. */
size_t ibvx_type_bytes(enum ibvx_type type);
/* inout[i] = in[i] op inout[i], as the operations do it.  -EINVAL: the type has no such operation. */
int ibvx_op_apply(enum ibvx_op op, enum ibvx_type type, const void *in, void *inout, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
