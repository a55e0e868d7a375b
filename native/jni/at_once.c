/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "ibvx_pin.h"
#include "jni/common.h"
#include "jni/endpoint.h"
#include "xxdev_ibvdev_Native.h"

JNIEXPORT jint JNICALL Java_xxdev_ibvdev_Native_sendAtOnce(JNIEnv *env, jclass class, jlong handle, jbyteArray message, jint dest, jint tag,
							   jint context, jlong type)
{
	struct ibvx *ep = endpoint_get(handle);
	struct copy copy;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = copy_open(env, message, &copy);

	if (rc == 0) {
		const struct ibvx_sbuf buf = {.body = copy.at, .body_bytes = copy.length, .user = (uint64_t)type};

		rc = ibvx_send_at_once(ep, &buf, dest, tag, context);
		copy_close(&copy);
	}
	endpoint_put(handle);
	return rc;
}
