/* SPDX-License-Identifier: MIT */
/* Ways from a Java array to native memory, for bench/jmh; see Access.java. */
#include <jni.h>
#include <string.h>

#define ACCESS(name) JNIEXPORT void JNICALL Java_xxdev_ibvdev_Access_##name
#define LARGEST (1 << 20)

static char memory[LARGEST];

static size_t limited(jint n)
{
	return n < 0 ? 0 : n > LARGEST ? LARGEST : (size_t)n;
}

ACCESS(nothing)(JNIEnv *env, jclass class);
ACCESS(nothing)(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
}

ACCESS(region)(JNIEnv *env, jclass class, jbyteArray array, jint n);
ACCESS(region)(JNIEnv *env, jclass class, jbyteArray array, jint n)
{
	(void)class;
	(*env)->GetByteArrayRegion(env, array, 0, (jsize)limited(n), (jbyte *)memory);
}

ACCESS(critical)(JNIEnv *env, jclass class, jbyteArray array, jint n);
ACCESS(critical)(JNIEnv *env, jclass class, jbyteArray array, jint n)
{
	(void)class;
	void *at = (*env)->GetPrimitiveArrayCritical(env, array, NULL);

	if (!at)
		return;
	memcpy(memory, at, limited(n));
	(*env)->ReleasePrimitiveArrayCritical(env, array, at, JNI_ABORT);
}

ACCESS(elements)(JNIEnv *env, jclass class, jbyteArray array, jint n);
ACCESS(elements)(JNIEnv *env, jclass class, jbyteArray array, jint n)
{
	(void)class;
	jbyte *at = (*env)->GetByteArrayElements(env, array, NULL);

	if (!at)
		return;
	memcpy(memory, at, limited(n));
	(*env)->ReleaseByteArrayElements(env, array, at, JNI_ABORT);
}

ACCESS(direct)(JNIEnv *env, jclass class, jobject buffer, jint n);
ACCESS(direct)(JNIEnv *env, jclass class, jobject buffer, jint n)
{
	(void)class;
	memcpy(memory, (*env)->GetDirectBufferAddress(env, buffer), limited(n));
}
