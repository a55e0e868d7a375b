/* SPDX-License-Identifier: MIT */
#include "jni/array_ref.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "jni/common.h"

/* One stretch of a copy: the thread is not at a safepoint meanwhile, some ten microseconds. */
#define ARRAY_REF_STRETCH ((size_t)64 << 10)

/* log2 of the element size, by kind */
static const unsigned char array_ref_shift[8] = {0, 0, 1, 1, 2, 3, 2, 3};

/* GetPrimitiveArrayCritical gives the array itself. */
static bool array_ref_pins;
static JavaVM *array_ref_vm;

int array_ref_load(JNIEnv *env)
{
	jbyteArray array = (*env)->NewByteArray(env, 64);
	void *at, *again;

	if (!array || (*env)->GetJavaVM(env, &array_ref_vm) != 0)
		return -1;
	/* two copies have two addresses (-Xcheck:jni copies, but isCopy is false) */
	at = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
	again = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
	array_ref_pins = at && at == again;
	if (again)
		(*env)->ReleasePrimitiveArrayCritical(env, array, again, JNI_ABORT);
	if (at)
		(*env)->ReleasePrimitiveArrayCritical(env, array, at, JNI_ABORT);
	(*env)->DeleteLocalRef(env, array);
	return 0;
}

static void *array_ref_enter(struct ibvx_pin *heap)
{
	struct array_ref *p = (struct array_ref *)heap;
	char *at = (*p->env)->GetPrimitiveArrayCritical(p->env, p->array, NULL);

	return at ? at + p->offset : NULL;
}

static void array_ref_leave(struct ibvx_pin *heap, void *at)
{
	struct array_ref *p = (struct array_ref *)heap;

	(*p->env)->ReleasePrimitiveArrayCritical(p->env, p->array, (char *)at - p->offset, 0);
}

/* Of the calling thread; NULL: it is none of Java's. */
static JNIEnv *array_ref_env(void)
{
	void *env = NULL;

	return (*array_ref_vm)->GetEnv(array_ref_vm, &env, JNI_VERSION_10) == JNI_OK ? env : NULL;
}

static void *array_ref_enter_zero_copy(struct ibvx_pin *heap)
{
	struct array_ref *p = (struct array_ref *)heap;

	p->env = array_ref_env();
	return p->env ? array_ref_enter(heap) : NULL;
}

static void array_ref_drop(struct ibvx_pin *heap)
{
	struct array_ref *p = (struct array_ref *)heap;
	JNIEnv *env = array_ref_env();

	if (env)
		(*env)->DeleteGlobalRef(env, p->array);
	free(p);
}

struct ibvx_pin *array_ref_zero_copy(const struct array_ref *p)
{
	struct array_ref *zero_copy = malloc(sizeof(*zero_copy));
	jobject array = zero_copy ? (*p->env)->NewGlobalRef(p->env, p->array) : NULL;

	if (!array) {
		free(zero_copy);
		error_set(-ENOMEM, "no memory for a zero-copy send of an array of %zu bytes", p->length);
		return NULL;
	}
	*zero_copy = *p;
	zero_copy->array = array;
	zero_copy->heap.enter = array_ref_enter_zero_copy;
	zero_copy->heap.drop = array_ref_drop;
	return &zero_copy->heap;
}

struct array_ref array_ref_of(JNIEnv *env, jobject array, jint kind, jlong offset, jlong length)
{
	return (struct array_ref){
		.heap = {.enter = array_ref_enter, .leave = array_ref_leave},
		.env = env,
		.array = array,
		.kind = kind,
		.offset = (size_t)offset,
		.length = (size_t)length,
	};
}

void *array_ref_address(const struct array_ref *p)
{
	return memory_at(p->env, p->array, (jlong)p->offset);
}

bool array_ref_direct(const struct array_ref *p)
{
	return array_ref_pins && array_ref_is_array(p);
}

/* Java has checked the range, so nothing was out of bounds; -Xcheck:jni wants to see the question asked. */
static void array_ref_asked(JNIEnv *env)
{
	if (!array_ref_pins && (*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

static void array_ref_get(JNIEnv *env, jobject array, jint kind, jsize first, jsize count, void *to)
{
	switch (kind) {
	case xxdev_ibvdev_Native_BOOLEAN: (*env)->GetBooleanArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_BYTE: (*env)->GetByteArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_CHAR: (*env)->GetCharArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_SHORT: (*env)->GetShortArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_INT: (*env)->GetIntArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_LONG: (*env)->GetLongArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_FLOAT: (*env)->GetFloatArrayRegion(env, array, first, count, to); break;
	case xxdev_ibvdev_Native_DOUBLE: (*env)->GetDoubleArrayRegion(env, array, first, count, to); break;
	}
	array_ref_asked(env);
}

static void array_ref_set(JNIEnv *env, jobject array, jint kind, jsize first, jsize count, const void *from)
{
	switch (kind) {
	case xxdev_ibvdev_Native_BOOLEAN: (*env)->SetBooleanArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_BYTE: (*env)->SetByteArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_CHAR: (*env)->SetCharArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_SHORT: (*env)->SetShortArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_INT: (*env)->SetIntArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_LONG: (*env)->SetLongArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_FLOAT: (*env)->SetFloatArrayRegion(env, array, first, count, from); break;
	case xxdev_ibvdev_Native_DOUBLE: (*env)->SetDoubleArrayRegion(env, array, first, count, from); break;
	}
	array_ref_asked(env);
}

/* length is that of a message: it may end within an element if its sender had other elements, and then so much is left out. */
static void array_ref_pull_array(JNIEnv *env, jobject array, jint kind, size_t at, size_t length, char *to)
{
	unsigned shift = array_ref_shift[kind];

	while (length > 0) {
		size_t n = length < ARRAY_REF_STRETCH ? length : ARRAY_REF_STRETCH;

		array_ref_get(env, array, kind, (jsize)(at >> shift), (jsize)(n >> shift), to);
		at += n;
		to += n;
		length -= n;
	}
}

static void array_ref_push_array(JNIEnv *env, jobject array, jint kind, size_t at, size_t length, const char *from)
{
	unsigned shift = array_ref_shift[kind];

	while (length > 0) {
		size_t n = length < ARRAY_REF_STRETCH ? length : ARRAY_REF_STRETCH;

		array_ref_set(env, array, kind, (jsize)(at >> shift), (jsize)(n >> shift), from);
		at += n;
		from += n;
		length -= n;
	}
}

void array_ref_pull(const struct array_ref *p, size_t at, size_t length, void *to)
{
	array_ref_pull_array(p->env, p->array, p->kind, p->offset + at, length, to);
}

void array_ref_push(const struct array_ref *p, size_t at, size_t length, const void *from)
{
	array_ref_push_array(p->env, p->array, p->kind, p->offset + at, length, from);
}

/* The bytes of one row; the row itself in *row, a local reference to be deleted, unless row is NULL. */
static size_t array_ref_row(const struct array_ref *p, size_t i, jobject *row)
{
	jobject array = (*p->env)->GetObjectArrayElement(p->env, p->array, (jsize)(p->offset + i));
	size_t bytes = (size_t)(*p->env)->GetArrayLength(p->env, array) << array_ref_shift[p->kind - xxdev_ibvdev_Native_ROWS];

	if (row)
		*row = array;
	else
		(*p->env)->DeleteLocalRef(p->env, array);
	return bytes;
}

static size_t array_ref_table_bytes(const struct array_ref *p)
{
	return (1 + p->length) * sizeof(int32_t);
}

size_t array_ref_capacity(const struct array_ref *p)
{
	size_t bytes;

	if (!array_ref_is_rows(p))
		return p->length;
	bytes = array_ref_table_bytes(p);
	for (size_t i = 0; i < p->length; i++)
		bytes += array_ref_row(p, i, NULL);
	return bytes;
}

static void *array_ref_copy_rows(const struct array_ref *p, size_t *bytes)
{
	size_t at = array_ref_table_bytes(p);
	int32_t *table;

	*bytes = array_ref_capacity(p);
	table = pool_get(*bytes);
	if (!table)
		return NULL;
	table[0] = (int32_t)p->length;
	for (size_t i = 0; i < p->length; i++) {
		jobject row;
		size_t length = array_ref_row(p, i, &row);

		table[1 + i] = (int32_t)(length >> array_ref_shift[p->kind - xxdev_ibvdev_Native_ROWS]);
		array_ref_pull_array(p->env, row, p->kind - xxdev_ibvdev_Native_ROWS, 0, length, (char *)table + at);
		(*p->env)->DeleteLocalRef(p->env, row);
		at += length;
	}
	return table;
}

void *array_ref_copy(const struct array_ref *p, size_t *bytes)
{
	void *copy;

	if (array_ref_is_rows(p)) {
		copy = array_ref_copy_rows(p, bytes);
	} else {
		*bytes = p->length;
		copy = pool_get(p->length ? p->length : 1);
		if (copy)
			array_ref_pull(p, 0, p->length, copy);
	}
	if (!copy)
		error_set(-ENOMEM, "no memory for a copy of a message of %zu bytes", *bytes);
	return copy;
}

/* Does the message's table fit its length and the array? */
static int array_ref_check_rows(const struct array_ref *p, const int32_t *table, size_t bytes)
{
	unsigned shift = array_ref_shift[p->kind - xxdev_ibvdev_Native_ROWS];
	size_t at = array_ref_table_bytes(p);

	if (bytes < sizeof(int32_t) || (size_t)table[0] != p->length || bytes < at)
		return error_set(-EMSGSIZE, "a message of %d rows met a receive of %zu", bytes < sizeof(int32_t) ? 0 : table[0], p->length);
	for (size_t i = 0; i < p->length; i++) {
		size_t room = array_ref_row(p, i, NULL) >> shift;

		if (table[1 + i] < 0 || (size_t)table[1 + i] > room)
			return error_set(-EMSGSIZE, "row %zu of the message has %d elements, the receive's has %zu", i, table[1 + i], room);
		at += (size_t)table[1 + i] << shift;
	}
	return at == bytes ? 0 : error_set(-EMSGSIZE, "a message of rows has %zu bytes, but its table describes %zu", bytes, at);
}

int array_ref_scatter(const struct array_ref *p, const void *message, size_t bytes)
{
	const int32_t *table = message;
	size_t at = array_ref_table_bytes(p);
	int rc = array_ref_check_rows(p, table, bytes);

	for (size_t i = 0; rc == 0 && i < p->length; i++) {
		size_t length = (size_t)table[1 + i] << array_ref_shift[p->kind - xxdev_ibvdev_Native_ROWS];
		jobject row;

		array_ref_row(p, i, &row);
		array_ref_push_array(p->env, row, p->kind - xxdev_ibvdev_Native_ROWS, 0, length, (const char *)message + at);
		(*p->env)->DeleteLocalRef(p->env, row);
		at += length;
	}
	return rc;
}
