/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_IDS_H
#define IBVX_JNI_IDS_H
/*
 * ids: what JNI_OnLoad looks up once.  Written before any native can run, read-only
 * afterwards; any thread.
 */
#include <jni.h>

struct jni_ids {
	/* java.nio.Buffer.address; NULL where the JDK has no such field, then
	 * GetDirectBufferAddress is asked (17 ns more). */
	jfieldID buffer_address;
};

extern struct jni_ids jni_ids;

#endif
