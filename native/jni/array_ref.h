/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_ARRAY_REF_H
#define IBVX_JNI_ARRAY_REF_H
/*
 * array_ref: what a message of xxdev is read from or written to (xxdev.ibvdev.Native lists the kinds).
 *
 * An array reference belongs to one native call and its thread.  Java has checked kinds and ranges.
 */
#include <jni.h>
#include <stdbool.h>
#include <stddef.h>

#include "ibvx_pin.h"
#include "xxdev_ibvdev_Native.h"

struct array_ref {
	struct ibvx_pin heap; /* first: enter and leave get this */
	JNIEnv *env;
	jobject array;
	jint kind;
	size_t offset; /* in bytes; rows: the first row */
	size_t length; /* in bytes; rows: how many */
};

/* Bytes up to which an array is copied by Get/Set<Type>ArrayRegion to and from the thread's stack; longer ones go straight to and
 * from the ring, pinned.  bench/RESULTS.md has the measurements. */
#define ARRAY_REF_SMALL 4096u

/* Looks up what rows need, and finds out whether GetPrimitiveArrayCritical copies here. In JNI_OnLoad. */
int array_ref_load(JNIEnv *env);

struct array_ref array_ref_of(JNIEnv *env, jobject array, jint kind, jlong offset, jlong length);

static inline bool array_ref_is_array(const struct array_ref *p)
{
	return p->kind < xxdev_ibvdev_Native_MEMORY;
}

static inline bool array_ref_is_rows(const struct array_ref *p)
{
	return p->kind >= xxdev_ibvdev_Native_ROWS;
}

/* Memory outside of the heap (MEMORY): its address. */
void *array_ref_address(const struct array_ref *p);

/* Can this array be pinned?  Not where pinning copies the array, as under -Xcheck:jni. */
bool array_ref_direct(const struct array_ref *p);

/* Copies [at, at + length) of an array to native memory, or from it; not pinned, and in short enough pieces that a collector does not
 * wait long. */
void array_ref_pull(const struct array_ref *p, size_t at, size_t length, void *to);
void array_ref_push(const struct array_ref *p, size_t at, size_t length, const void *from);

/* Hands over the array to the library: a copy of it with a global reference, which any thread may serve and whose drop()
 * frees it.  NULL: no memory, text set. */
struct ibvx_pin *array_ref_zero_copy(const struct array_ref *p);

/* A private copy of the whole message (malloc), its length in *bytes; NULL: no memory, text set.  Of rows: the length of each
 * (int32), their number first, then all of them. */
void *array_ref_copy(const struct array_ref *p, size_t *bytes);

/* The most bytes that a message for this array has. */
size_t array_ref_capacity(const struct array_ref *p);

/* Brings a message that array_ref_copy() made (of rows) to the arrays. 0, or -EMSGSIZE with text: nothing was written. */
int array_ref_scatter(const struct array_ref *p, const void *message, size_t bytes);

#endif
