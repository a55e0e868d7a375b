/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_COMMON_H
#define IBVX_JNI_COMMON_H
/*
 * common: how natives see Java's memory and how results go back.
 *
 * Memory is named by a pair (buffer, offset): a direct buffer and a byte offset into it,
 * or NULL and an address (of a bounce buffer).  Java has checked the range.
 */
#include <jni.h>
#include <stdint.h>

#include "ibvx.h"
#include "jni/ids.h"

/* The result block: native memory of one Java thread, read there through a direct
 * buffer. The offsets are constants of xdev.ibvdev.Native. */
struct result {
	int32_t source;
	int32_t tag;
	int64_t head_bytes;
	int64_t body_bytes;
	int64_t user;
	int64_t body; /* address; Java passes it to Native.body() */
};

static inline char *memory_at(JNIEnv *env, jobject buffer, jlong offset)
{
	if (!buffer)
		return (char *)(intptr_t)offset;
	if (jni_ids.buffer_address)
		return (char *)(intptr_t)(*env)->GetLongField(env, buffer, jni_ids.buffer_address) + offset;
	return (char *)(*env)->GetDirectBufferAddress(env, buffer) + offset;
}

/* Puts the status into the result block (0: drops it).  rc: what the operation returned; the same comes
 * back, or -EMSGSIZE for a body that no Java array can hold. */
int result_put(jlong result, struct ibvx_status *status, int rc);

/* A private copy of a whole byte[]; small ones live in `room`. */
struct copy {
	void *at;
	size_t length;
	char room[1024];
};
/* array may be NULL.  0 or -ENOMEM with text. */
int copy_open(JNIEnv *env, jbyteArray array, struct copy *copy);
void copy_close(struct copy *copy);

/* A fresh byte[] with these bytes; NULL with a pending OutOfMemoryError. */
jbyteArray array_of(JNIEnv *env, const void *bytes, size_t length);

/* Cuts "a\0b\0" into a NULL-terminated vector of pointers into text (free it with free()); NULL: no memory. */
const char **split_strings(char *text, size_t length);

#endif
