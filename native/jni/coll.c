/* SPDX-License-Identifier: MIT */
/* The natives of xxdev.ibvdev.CollNative: communicators and collective operations (ibvx_coll.h), one crossing for each. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "ibvx_coll.h"
#include "jni/common.h"
#include "jni/endpoint.h"
#include "xxdev_ibvdev_CollNative.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_xxdev_ibvdev_CollNative_##name

_Static_assert(IBVX_BARRIER == xxdev_ibvdev_CollNative_BARRIER, "as Java knows it");
_Static_assert(IBVX_ALLTOALL == xxdev_ibvdev_CollNative_ALLTOALL, "as Java knows it");
_Static_assert(IBVX_REDUCE == xxdev_ibvdev_CollNative_REDUCE, "as Java knows it");
_Static_assert(IBVX_SCAN == xxdev_ibvdev_CollNative_SCAN, "as Java knows it");
_Static_assert(IBVX_SUM == xxdev_ibvdev_CollNative_SUM, "as Java knows it");
_Static_assert(IBVX_MAXLOC == xxdev_ibvdev_CollNative_MAXLOC, "as Java knows it");
_Static_assert(IBVX_INT8 == xxdev_ibvdev_CollNative_INT8, "as Java knows it");
_Static_assert(ENOSPC == xxdev_ibvdev_CollNative_ENOSPC, "as Java knows it");
_Static_assert(IBVX_BOOLEAN == xxdev_ibvdev_CollNative_BOOLEAN, "as Java knows it");

/* A handle is a slot and its generation, never a pointer. */
#define SLOT_BITS 13
#define SLOT_COUNT (1 << SLOT_BITS)

struct slot {
	struct ibvx_comm *comm;
	uint32_t generation;
	uint32_t users; /* calls inside */
	bool ending;
};

static struct slot slots[SLOT_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Takes the communicator over. */
static jlong comm_add(struct ibvx_comm *comm)
{
	jlong handle = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < SLOT_COUNT && !handle; i++) {
		if (slots[i].comm)
			continue;
		slots[i].comm = comm;
		slots[i].ending = false;
		slots[i].generation = (slots[i].generation + 1) & 0x7fffffff;
		if (slots[i].generation == 0)
			slots[i].generation = 1;
		handle = (jlong)slots[i].generation << SLOT_BITS | i;
	}
	pthread_mutex_unlock(&lock);
	if (handle)
		return handle;
	ibvx_comm_free(comm);
	return error_set(-ENOSPC, "this process has %d communicators already: free some first", SLOT_COUNT);
}

static struct slot *comm_get(jlong handle)
{
	struct slot *slot = &slots[handle & (SLOT_COUNT - 1)];
	bool valid;

	pthread_mutex_lock(&lock);
	valid = slot->comm && !slot->ending && slot->generation == (uint32_t)(handle >> SLOT_BITS);
	if (valid)
		slot->users++;
	pthread_mutex_unlock(&lock);
	if (!valid)
		error_set(-EINVAL, "the communicator has been freed: use another");
	return valid ? slot : NULL;
}

static void comm_put(struct slot *slot)
{
	struct ibvx_comm *last = NULL;

	pthread_mutex_lock(&lock);
	if (--slot->users == 0 && slot->ending) {
		last = slot->comm;
		slot->comm = NULL;
	}
	pthread_mutex_unlock(&lock);
	ibvx_comm_free(last);
}

/* Both the endpoint and the communicator, or NULL: *rc is the error, text set. */
static struct slot *enter(jlong endpoint, jlong handle, int *rc)
{
	struct slot *slot;

	*rc = -ESHUTDOWN;
	if (!endpoint_get(endpoint))
		return NULL;
	*rc = -EINVAL;
	slot = comm_get(handle);
	if (!slot)
		endpoint_put(endpoint);
	return slot;
}

static void leave(jlong endpoint, struct slot *slot)
{
	comm_put(slot);
	endpoint_put(endpoint);
}

NATIVE(jlong, world)(JNIEnv *env, jclass class, jlong endpoint, jint context)
{
	struct ibvx *ep = endpoint_get(endpoint);
	struct ibvx_comm *comm;
	jlong handle;
	int rc;

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	rc = ibvx_comm_world(&comm, ep, context);
	handle = rc < 0 ? rc : comm_add(comm);
	endpoint_put(endpoint);
	return handle;
}

NATIVE(jlong, split)(JNIEnv *env, jclass class, jlong endpoint, jlong parent, jint colour, jint key)
{
	struct ibvx_comm *comm;
	jlong handle;
	int rc;
	struct slot *slot = enter(endpoint, parent, &rc);

	(void)env, (void)class;
	if (!slot)
		return rc;
	rc = ibvx_comm_split(slot->comm, colour < 0 ? IBVX_UNDEFINED : colour, key, &comm);
	handle = rc < 0 || !comm ? rc : comm_add(comm);
	leave(endpoint, slot);
	return handle;
}

NATIVE(void, free)(JNIEnv *env, jclass class, jlong endpoint, jlong handle)
{
	int rc;
	struct slot *slot = enter(endpoint, handle, &rc);

	(void)env, (void)class;
	if (!slot)
		return;
	pthread_mutex_lock(&lock);
	slot->ending = true;
	pthread_mutex_unlock(&lock);
	leave(endpoint, slot);
}

/* The beginning of an operation's memory.  Offsets are bytes from there; of a table 0: there is none. */
struct description {
	int64_t kind;
	int64_t root;
	int64_t uneven;
	struct {
		int64_t offset;
		int64_t bytes;
		int64_t table; /* for each rank a size, then for each an offset from the first part */
	} in, out;
	int64_t count;
	int64_t type;
	int64_t op;
	int64_t shares; /* counts of elements */
};
_Static_assert(sizeof(struct description) <= xxdev_ibvdev_CollNative_DESCRIPTION_BYTES, "as Java knows it");
_Static_assert(offsetof(struct description, shares) == 96, "as Java knows it");
_Static_assert(sizeof(size_t) == sizeof(int64_t), "tables are the library's");

/* These fill in all fields one by one: the fields of the description were written just now, each by one store, and cost most of the time
 * if they are read two at a time. */
static void parts_at(struct ibvx_parts *parts, char *base, const volatile int64_t *from, int size)
{
	int64_t table = from[2];

	parts->base = base + from[0];
	parts->bytes = (size_t)from[1];
	parts->stride_bytes = from[1];
	parts->sizes = table ? (const size_t *)(const void *)(base + table) : NULL;
	parts->offsets = table ? (const ptrdiff_t *)(const void *)(base + table) + size : NULL;
	parts->layout = NULL;
}

static void coll_at(struct ibvx_coll *coll, JNIEnv *env, jobject memory, int size)
{
	char *base = memory_at(env, memory, 0);
	const volatile struct description *d = (const struct description *)(const void *)base;

	coll->kind = (enum ibvx_coll_kind)d->kind;
	coll->root = (int)d->root;
	coll->uneven = (int)d->uneven;
	parts_at(&coll->in, base, &d->in.offset, size);
	parts_at(&coll->out, base, &d->out.offset, size);
	coll->source = coll->in.base;
	coll->target = coll->out.base;
	coll->count = (size_t)d->count;
	coll->counts = d->shares ? (const size_t *)(const void *)(base + d->shares) : NULL;
	coll->type = (enum ibvx_type)d->type;
	coll->op = (enum ibvx_op)d->op;
	coll->user = NULL;
}

NATIVE(jint, run)(JNIEnv *env, jclass class, jlong endpoint, jlong handle, jobject memory)
{
	struct ibvx_coll coll;
	int rc;
	struct slot *slot = enter(endpoint, handle, &rc);

	(void)class;
	if (!slot)
		return rc;
	coll_at(&coll, env, memory, ibvx_comm_size(slot->comm));
	rc = ibvx_coll_run(slot->comm, &coll);
	leave(endpoint, slot);
	return rc;
}

NATIVE(jlong, start)(JNIEnv *env, jclass class, jlong endpoint, jlong handle, jobject memory)
{
	struct ibvx_coll coll;
	ibvx_coll_req req = 0;
	int rc;
	struct slot *slot = enter(endpoint, handle, &rc);

	(void)class;
	if (!slot)
		return rc;
	coll_at(&coll, env, memory, ibvx_comm_size(slot->comm));
	rc = ibvx_coll_start(slot->comm, &coll, &req);
	leave(endpoint, slot);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jint, complete)(JNIEnv *env, jclass class, jlong endpoint, jlong handle, jlong operation, jboolean block)
{
	ibvx_coll_req req = (ibvx_coll_req)operation;
	int rc;
	struct slot *slot = enter(endpoint, handle, &rc);

	(void)env, (void)class;
	if (!slot)
		return rc;
	rc = block ? ibvx_coll_wait(slot->comm, &req) : ibvx_coll_test(slot->comm, &req);
	leave(endpoint, slot);
	return block && rc == 0 ? 1 : rc;
}
