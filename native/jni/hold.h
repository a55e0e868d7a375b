/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_HOLD_H
#define IBVX_JNI_HOLD_H
/*
 * hold: direct buffers whose memory stays registered with an adapter between messages (ibvx_buffer_register).
 *
 * Each has a global reference, so that its memory cannot be freed and given to another buffer while a registration of it stands.  The
 * settings verbs_cache_entries and verbs_cache_bytes say how many; the one that was used least recently goes first: it is released, which takes
 * its registrations away, and then the reference is deleted.  A buffer over a MemorySegment, which somebody can close, is never held.
 *
 * Any thread; the caller has a reference to the endpoint (endpoint_get) for hold_use().  No JNI is called under a lock.
 */
#include <jni.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibvx.h"

/* Shorter messages are not moved by RDMA, or gain nothing. */
#define HOLD_MIN 32768

/* Looks up what tells a buffer over a segment.  In JNI_OnLoad. */
void hold_load(JNIEnv *env);

/* A message of `length` bytes from byte `offset` of a direct buffer is about to start. NULL: memory of ours, ignored. */
void hold_note(JNIEnv *env, int64_t handle, struct ibvx *ep, jobject buffer, size_t offset, size_t length);

static inline void hold_use(JNIEnv *env, int64_t handle, struct ibvx *ep, jobject buffer, jlong offset, jlong length)
{
	if (buffer && length >= HOLD_MIN)
		hold_note(env, handle, ep, buffer, (size_t)offset, (size_t)length);
}

/* The endpoint is gone, and its registrations with it: deletes the references. */
void hold_end(JNIEnv *env, int64_t handle);
void hold_end_all(JNIEnv *env);

#endif
