/* SPDX-License-Identifier: MIT */
/* The heap of the JVM, registered as a whole. */
#include <errno.h>

#include "ibvx_heap.h"
#include "jni/common.h"
#include "jni/endpoint.h"
#include "xxdev_ibvdev_Native.h"

JNIEXPORT jint JNICALL Java_xxdev_ibvdev_Native_registersHeap(JNIEnv *env, jclass class, jlong handle)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int wanted = ibvx_heap_registers(ep);

	endpoint_put(handle);
	return wanted;
}

JNIEXPORT jint JNICALL Java_xxdev_ibvdev_Native_registerHeap(JNIEnv *env, jclass class, jlong handle, jlong base, jlong bytes)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_heap_register(ep, (void *)(intptr_t)base, (size_t)bytes);

	endpoint_put(handle);
	return rc;
}
