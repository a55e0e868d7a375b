/* SPDX-License-Identifier: MIT */
#include "jni/common.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "xdev_ibvdev_Native.h"

_Static_assert(offsetof(struct result, source) == xdev_ibvdev_Native_RESULT_SOURCE, "as Java reads it");
_Static_assert(offsetof(struct result, tag) == xdev_ibvdev_Native_RESULT_TAG, "as Java reads it");
_Static_assert(offsetof(struct result, head_bytes) == xdev_ibvdev_Native_RESULT_HEAD_BYTES, "as Java reads it");
_Static_assert(offsetof(struct result, body_bytes) == xdev_ibvdev_Native_RESULT_BODY_BYTES, "as Java reads it");
_Static_assert(offsetof(struct result, user) == xdev_ibvdev_Native_RESULT_USER, "as Java reads it");
_Static_assert(offsetof(struct result, body) == xdev_ibvdev_Native_RESULT_BODY, "as Java reads it");
_Static_assert(ENOMEM == xdev_ibvdev_Native_ENOMEM, "as Java knows it");
_Static_assert(EBUSY == xdev_ibvdev_Native_EBUSY, "as Java knows it");
_Static_assert(EINVAL == xdev_ibvdev_Native_EINVAL, "as Java knows it");
_Static_assert(ELIBACC == xdev_ibvdev_Native_ELIBACC, "as Java knows it");
_Static_assert(ESHUTDOWN == xdev_ibvdev_Native_ESHUTDOWN, "as Java knows it");
_Static_assert(ETIMEDOUT == xdev_ibvdev_Native_ETIMEDOUT, "as Java knows it");
_Static_assert(ECANCELED == xdev_ibvdev_Native_ECANCELED, "as Java knows it");
_Static_assert(sizeof(struct result) == xdev_ibvdev_Native_RESULT_BYTES, "as Java allocates it");

int result_put(jlong result, struct ibvx_status *status, int rc)
{
	struct result *to = (struct result *)(intptr_t)result;

	if (!to || rc < 0 || (status->body && status->body_bytes > INT_MAX)) {
		ibvx_free(status->body);
		if (to && rc >= 0)
			rc = error_set(-EMSGSIZE, "the dynamic section from rank %d has %llu bytes, a Java array holds %d at most",
				       status->source, (unsigned long long)status->body_bytes, INT_MAX);
		return rc;
	}
	to->source = status->source;
	to->tag = status->tag;
	to->head_bytes = (int64_t)status->head_bytes;
	to->body_bytes = (int64_t)status->body_bytes;
	to->user = (int64_t)status->user;
	to->body = (intptr_t)status->body;
	return rc;
}

int copy_open(JNIEnv *env, jbyteArray array, struct copy *copy)
{
	jsize length = array ? (*env)->GetArrayLength(env, array) : 0;

	copy->length = (size_t)length;
	copy->at = copy->length <= sizeof(copy->room) ? copy->room : malloc(copy->length);
	if (!copy->at)
		return error_set(-ENOMEM, "no memory for a copy of a %zu-byte dynamic section", copy->length);
	if (length)
		(*env)->GetByteArrayRegion(env, array, 0, length, copy->at);
	/* The whole array is asked for, so this cannot be out of bounds; -Xcheck:jni wants to see
	 * the question asked. */
	if (length && (*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	return 0;
}

void copy_close(struct copy *copy)
{
	if (copy->at != copy->room)
		free(copy->at);
}

jbyteArray array_of(JNIEnv *env, const void *bytes, size_t length)
{
	jbyteArray array = (*env)->NewByteArray(env, (jsize)length);

	if (array && length)
		(*env)->SetByteArrayRegion(env, array, 0, (jsize)length, bytes);
	return array;
}

const char **split_strings(char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += text[i] == '\0';
	const char **list = calloc(count + 1, sizeof(*list));

	for (size_t i = 0, at = 0; list && i < count; i++) {
		list[i] = text + at;
		at += strlen(text + at) + 1;
	}
	return list;
}
