/* SPDX-License-Identifier: MIT */
/* The natives of xxdev.ibvdev.Native by which virtual threads park (ibvx_watch.h). */
#include "ibvx_watch.h"

#include <errno.h>

#include "jni/common.h"
#include "jni/endpoint.h"
#include "xxdev_ibvdev_Native.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_xxdev_ibvdev_Native_##name

/* Requests that one watched() returns. */
#define WATCHED_MAX 64

NATIVE(jint, watch)(JNIEnv *env, jclass class, jlong handle, jlong request)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_watch(ep, (ibvx_req)request);

	endpoint_put(handle);
	return rc;
}

NATIVE(void, unwatch)(JNIEnv *env, jclass class, jlong handle, jlong request)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return;
	ibvx_unwatch(ep, (ibvx_req)request);
	endpoint_put(handle);
}

NATIVE(void, watchMessages)(JNIEnv *env, jclass class, jlong handle, jint by)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return;
	ibvx_watch_messages(ep, by);
	endpoint_put(handle);
}

NATIVE(jint, watched)(JNIEnv *env, jclass class, jlong handle, jlongArray requests)
{
	struct ibvx *ep = endpoint_get(handle);
	ibvx_req list[WATCHED_MAX];
	jsize count;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	count = (*env)->GetArrayLength(env, requests);
	int rc = ibvx_watched(ep, count < WATCHED_MAX ? count : WATCHED_MAX, list);

	if (rc > 0)
		(*env)->SetLongArrayRegion(env, requests, 0, rc, (const jlong *)list);
	endpoint_put(handle);
	return rc;
}

NATIVE(jlong, look)
(JNIEnv *env, jclass class, jlong handle, jboolean take, jint source, jint tag, jint context, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};
	ibvx_req message = IBVX_REQ_NULL;

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_look(ep, source, tag, context, take ? &message : NULL, &status);

	if (rc > 0)
		result_put(result, &status, rc);
	endpoint_put(handle);
	return rc > 0 && take ? (jlong)message : rc;
}
