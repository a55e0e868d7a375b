/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_PLACE_H
#define IBVX_JNI_PLACE_H
/*
 * place: what a message of xxdev is read from or written to (xxdev.ibvdev.Native says which kinds there are).
 *
 * A place belongs to one native call and its thread.  Java has checked kinds and ranges.
 */
#include <jni.h>
#include <stdbool.h>
#include <stddef.h>

#include "ibvx_pin.h"
#include "xxdev_ibvdev_Native.h"

struct place {
	struct ibvx_pin heap; /* first: enter and leave get this */
	JNIEnv *env;
	jobject array;
	jint kind;
	size_t offset;         /* in bytes; rows: the first row */
	size_t length;         /* in bytes; rows: how many */
};

/* Bytes up to which an array is copied by Get/Set<Type>ArrayRegion to and from the thread's stack; longer ones go straight to and
 * from the ring, in regions.  ARCHITECTURE.md has the measurements. */
#define PLACE_SMALL 4096u

/* Looks up what rows need, and finds out whether GetPrimitiveArrayCritical copies here. In JNI_OnLoad. */
int place_load(JNIEnv *env);

struct place place_of(JNIEnv *env, jobject array, jint kind, jlong offset, jlong length);

static inline bool place_is_array(const struct place *p)
{
	return p->kind < xxdev_ibvdev_Native_MEMORY;
}

static inline bool place_is_rows(const struct place *p)
{
	return p->kind >= xxdev_ibvdev_Native_ROWS;
}

/* Memory outside of the heap (MEMORY): its address. */
void *place_address(const struct place *p);

/* Can regions of this place be opened?  Not where opening one copies the array, as under -Xcheck:jni. */
bool place_direct(const struct place *p);

/* Copies [at, at + length) of an array to native memory, or from it; no region, and short enough stretches that a collector does not
 * wait long. */
void place_pull(const struct place *p, size_t at, size_t length, void *to);
void place_push(const struct place *p, size_t at, size_t length, const void *from);

/* Hands over the place, an array, to the library: a copy of it with a global reference, which any thread may serve and whose drop()
 * frees it.  NULL: no memory, text set. */
struct ibvx_pin *place_zero_copy(const struct place *p);

/* A private copy of the whole message (malloc), its length in *bytes; NULL: no memory, text set.  Of rows: the length of each
 * (int32), their number first, then all of them. */
void *place_copy(const struct place *p, size_t *bytes);

/* The most bytes that a message for this place has. */
size_t place_capacity(const struct place *p);

/* Brings a message that place_copy() made (of rows) to its place. 0, or -EMSGSIZE with text: nothing was written. */
int place_scatter(const struct place *p, const void *message, size_t bytes);

#endif
