/* SPDX-License-Identifier: MIT */
#include "jni/hold.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "jni/common.h"

#define HOLD_TABLES 256
/* Buffers that may have to go for a new one; more would make one message pay for many. */
#define HOLD_EVICT_MAX 16

struct hold {
	char *base;
	size_t bytes;
	jobject reference;
};

/* Of one endpoint; the buffer that was used last stands first. */
struct hold_table {
	int64_t handle; /* 0: free */
	bool useless;   /* nothing there keeps registrations */
	uint32_t count, room;
	struct hold *hold;
};

/* What has to be let go of once no lock is held. */
struct hold_dropped {
	int count;
	jobject reference[HOLD_EVICT_MAX + 1];
};

static struct hold_table tables[HOLD_TABLES];
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
/* java.nio.Buffer.segment; NULL: this JDK has none */
static jfieldID hold_segment;
static bool hold_unknown; /* a JDK that may have segments, and where this cannot be told */

void hold_load(JNIEnv *env)
{
	static const char *const types[] = {"Ljava/lang/foreign/MemorySegment;", "Ljdk/internal/access/foreign/MemorySegmentProxy;"};
	jclass buffer = (*env)->FindClass(env, "java/nio/Buffer");

	for (unsigned i = 0; buffer && !hold_segment && i < sizeof(types) / sizeof(types[0]); i++) {
		hold_segment = (*env)->GetFieldID(env, buffer, "segment", types[i]);
		(*env)->ExceptionClear(env);
	}
	(*env)->ExceptionClear(env);
	hold_unknown = !hold_segment && (*env)->GetVersion(env) > JNI_VERSION_10;
	if (buffer)
		(*env)->DeleteLocalRef(env, buffer);
}

static struct hold_table *hold_table_of(int64_t handle)
{
	return &tables[(uint64_t)handle % HOLD_TABLES];
}

/* Moves the i-th to the front. */
static void hold_front(struct hold_table *t, uint32_t i)
{
	struct hold used = t->hold[i];

	memmove(t->hold + 1, t->hold, i * sizeof(*t->hold));
	t->hold[0] = used;
}

/* Is this memory held, or is there no point in holding it? */
static bool hold_known(struct hold_table *t, int64_t handle, const char *at, size_t length)
{
	if (t->handle == 0)
		t->handle = handle;
	if (t->handle != handle || t->useless) /* another: the endpoint that had the slot is still being cleared away */
		return true;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct hold *h = &t->hold[i];

		if (at < h->base || length > h->bytes || (size_t)(at - h->base) > h->bytes - length)
			continue;
		hold_front(t, i);
		return true;
	}
	return false;
}

static bool hold_grow(struct hold_table *t)
{
	uint32_t room = t->room ? 2 * t->room : 16;
	struct hold *hold;

	if (t->count < t->room)
		return true;
	hold = realloc(t->hold, room * sizeof(*hold));
	if (!hold)
		return false;
	t->hold = hold;
	t->room = room;
	return true;
}

/* The least recently used: out of the adapter first, the reference later. */
static void hold_evict(struct hold_table *t, struct ibvx *ep, struct hold_dropped *dropped)
{
	struct hold *h = &t->hold[--t->count];

	ibvx_buffer_release(ep, h->base, h->bytes);
	dropped->reference[dropped->count++] = h->reference;
}

static void hold_add(struct hold_table *t, struct ibvx *ep, const struct hold *fresh, struct hold_dropped *dropped)
{
	int rc = hold_grow(t) ? ibvx_buffer_register(ep, fresh->base, fresh->bytes) : -ENOMEM;

	while (rc == -ENOSPC && t->count > 0 && dropped->count < HOLD_EVICT_MAX) {
		hold_evict(t, ep, dropped);
		rc = ibvx_buffer_register(ep, fresh->base, fresh->bytes);
	}
	if (rc > 0) {
		t->hold[t->count++] = *fresh;
		hold_front(t, t->count - 1);
		return;
	}
	t->useless = rc == 0;
	dropped->reference[dropped->count++] = fresh->reference;
}

static bool hold_closable(JNIEnv *env, jobject buffer)
{
	jobject segment = hold_segment ? (*env)->GetObjectField(env, buffer, hold_segment) : NULL;

	if (segment)
		(*env)->DeleteLocalRef(env, segment);
	return segment || hold_unknown;
}

void hold_note(JNIEnv *env, int64_t handle, struct ibvx *ep, jobject buffer, size_t offset, size_t length)
{
	struct hold_table *t = hold_table_of(handle);
	struct hold_dropped dropped = {.count = 0};
	struct hold fresh = {.base = memory_at(env, buffer, 0)};
	jlong capacity;
	bool known;

	pthread_mutex_lock(&hold_lock);
	known = hold_known(t, handle, fresh.base + offset, length);
	pthread_mutex_unlock(&hold_lock);
	if (known || hold_closable(env, buffer))
		return;
	capacity = (*env)->GetDirectBufferCapacity(env, buffer); /* in elements: of a byte at least */
	fresh.bytes = capacity > 0 && (size_t)capacity > offset + length ? (size_t)capacity : offset + length;
	fresh.reference = (*env)->NewGlobalRef(env, buffer);
	if (!fresh.reference)
		return;
	pthread_mutex_lock(&hold_lock);
	if (hold_known(t, handle, fresh.base + offset, length))
		dropped.reference[dropped.count++] = fresh.reference;
	else
		hold_add(t, ep, &fresh, &dropped);
	pthread_mutex_unlock(&hold_lock);
	while (dropped.count > 0)
		(*env)->DeleteGlobalRef(env, dropped.reference[--dropped.count]);
}

static void hold_end_table(JNIEnv *env, struct hold_table *t, int64_t handle)
{
	struct hold_table was = {.handle = 0};

	pthread_mutex_lock(&hold_lock);
	if (t->handle == handle && handle != 0) {
		was = *t;
		*t = (struct hold_table){.handle = 0};
	}
	pthread_mutex_unlock(&hold_lock);
	while (was.count > 0)
		(*env)->DeleteGlobalRef(env, was.hold[--was.count].reference);
	free(was.hold);
}

void hold_end(JNIEnv *env, int64_t handle)
{
	hold_end_table(env, hold_table_of(handle), handle);
}

void hold_end_all(JNIEnv *env)
{
	for (int i = 0; i < HOLD_TABLES; i++)
		hold_end_table(env, &tables[i], tables[i].handle);
}
