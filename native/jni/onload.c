/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "ibvx.h"
#include "jni/array_ref.h"
#include "jni/endpoint.h"
#include "jni/ids.h"
#include "xdev_ibvdev_Native.h"

struct jni_ids jni_ids;

/* Makes System.load() fail with this text; the JDK unloads the library then. */
static jint refuse(JNIEnv *env, const char *text)
{
	jclass error = (*env)->FindClass(env, "java/lang/UnsatisfiedLinkError");

	if (error)
		(*env)->ThrowNew(env, error, text);
	return JNI_ERR;
}

/* The jar and the library may come from different builds: both sides know the
 * interface number that they were compiled with, and the version. */
static int check_jar(JNIEnv *env, char *text, size_t size)
{
	jclass native = (*env)->FindClass(env, "xdev/ibvdev/Native");
	jfieldID abi_id = native ? (*env)->GetStaticFieldID(env, native, "ABI", "I") : NULL;
	jfieldID version_id = abi_id ? (*env)->GetStaticFieldID(env, native, "VERSION", "Ljava/lang/String;") : NULL;

	if (!version_id)
		return -1;
	jint abi = (*env)->GetStaticIntField(env, native, abi_id);
	jstring version = (*env)->GetStaticObjectField(env, native, version_id);
	const char *chars = version ? (*env)->GetStringUTFChars(env, version, NULL) : NULL;

	if (!chars)
		return -1;
	int same = abi == xdev_ibvdev_Native_ABI && strcmp(chars, ibvx_version()) == 0;

	snprintf(text, size,
		 "this library is version %s (interface %d), the jar is version %s (interface %d): "
		 "install both from one build",
		 ibvx_version(), (int)xdev_ibvdev_Native_ABI, chars, (int)abi);
	(*env)->ReleaseStringUTFChars(env, version, chars);
	(*env)->DeleteLocalRef(env, version);
	(*env)->DeleteLocalRef(env, native);
	return same ? 0 : 1;
}

static int look_up(JNIEnv *env)
{
	jclass buffer = (*env)->FindClass(env, "java/nio/Buffer");

	if (!buffer)
		return -1;
	jni_ids.buffer_address = (*env)->GetFieldID(env, buffer, "address", "J");
	if (!jni_ids.buffer_address)
		(*env)->ExceptionClear(env); /* another JDK: the slower path serves */
	(*env)->DeleteLocalRef(env, buffer);
	return 0;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
	JNIEnv *env;
	char text[256];

	(void)reserved;
	if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK)
		return JNI_ERR;
	int rc = check_jar(env, text, sizeof(text));

	if (rc > 0)
		return refuse(env, text);
	if (rc < 0 || look_up(env) < 0 || array_ref_load(env) < 0) {
		/* The JVM's own exception names the class or field that is missing. */
		return (*env)->ExceptionCheck(env) ? JNI_ERR : refuse(env, "a class or field is missing");
	}
	endpoint_load();
	return JNI_VERSION_1_8;
}

JNIEXPORT void JNICALL Java_xdev_ibvdev_Native_abortAll(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	endpoint_abort_all();
}

JNIEXPORT void JNICALL JNI_OnUnload(JavaVM *vm, void *reserved)
{
	(void)vm, (void)reserved;
	endpoint_unload();
	jni_ids.buffer_address = NULL;
	error_unload();
}
