/* SPDX-License-Identifier: MIT */
/*
 * The natives of xxdev.ibvdev.Native that xdev has not: messages straight from Java arrays.  Each one: take a
 * reference to the endpoint, call ibvx, give it back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "jni/array_ref.h"
#include "jni/common.h"
#include "jni/endpoint.h"
#include "xxdev_ibvdev_Native.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_xxdev_ibvdev_Native_##name

_Static_assert(ENOENT == xxdev_ibvdev_Native_ENOENT, "as Java knows it");
_Static_assert(ENOMEM == xxdev_ibvdev_Native_ENOMEM, "as Java knows it");
_Static_assert(EBUSY == xxdev_ibvdev_Native_EBUSY, "as Java knows it");
_Static_assert(EINVAL == xxdev_ibvdev_Native_EINVAL, "as Java knows it");
_Static_assert(EMFILE == xxdev_ibvdev_Native_EMFILE, "as Java knows it");
_Static_assert(EFBIG == xxdev_ibvdev_Native_EFBIG, "as Java knows it");
_Static_assert(ENOSPC == xxdev_ibvdev_Native_ENOSPC, "as Java knows it");
_Static_assert(EPIPE == xxdev_ibvdev_Native_EPIPE, "as Java knows it");
_Static_assert(EMSGSIZE == xxdev_ibvdev_Native_EMSGSIZE, "as Java knows it");
_Static_assert(EPROTOTYPE == xxdev_ibvdev_Native_EPROTOTYPE, "as Java knows it");
_Static_assert(ECONNRESET == xxdev_ibvdev_Native_ECONNRESET, "as Java knows it");
_Static_assert(ESHUTDOWN == xxdev_ibvdev_Native_ESHUTDOWN, "as Java knows it");
_Static_assert(ETIMEDOUT == xxdev_ibvdev_Native_ETIMEDOUT, "as Java knows it");
_Static_assert(ECANCELED == xxdev_ibvdev_Native_ECANCELED, "as Java knows it");

#define COUNTERS_MAX 64

struct route {
	jint rank, tag, context;
	jlong type;
};

static int plain_send(struct ibvx *ep, const void *body, size_t bytes, const struct route *to, bool sync)
{
	const struct ibvx_sbuf buf = {.body = body, .body_bytes = bytes, .user = (uint64_t)to->type};

	return sync ? ibvx_ssend(ep, &buf, to->rank, to->tag, to->context) : ibvx_send(ep, &buf, to->rank, to->tag, to->context);
}

static int copied_send(struct ibvx *ep, const struct array_ref *p, const struct route *to, bool sync)
{
	size_t bytes;
	void *copy = array_ref_copy(p, &bytes);
	int rc = copy ? plain_send(ep, copy, bytes, to, sync) : -ENOMEM;

	pool_put(copy);
	return rc;
}

static int small_send(struct ibvx *ep, const struct array_ref *p, const struct route *to, bool sync)
{
	char room[ARRAY_REF_SMALL];

	array_ref_pull(p, 0, p->length, room);
	return plain_send(ep, room, p->length, to, sync);
}

static jint send_now(jlong handle, struct array_ref *p, const struct route *to, bool sync)
{
	struct ibvx *ep = endpoint_get(handle);
	int rc;

	if (!ep)
		return -ESHUTDOWN;
	if (p->kind == xxdev_ibvdev_Native_MEMORY) {
		rc = plain_send(ep, array_ref_address(p), p->length, to, sync);
	} else if (array_ref_is_array(p) && p->length <= ARRAY_REF_SMALL) {
		rc = small_send(ep, p, to, sync);
	} else if (array_ref_direct(p)) {
		const struct ibvx_sbuf buf = {.body_bytes = p->length, .user = (uint64_t)to->type};

		rc = ibvx_pin_send(ep, &p->heap, &buf, to->rank, to->tag, to->context, sync);
	} else {
		rc = copied_send(ep, p, to, sync);
	}
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, send)
(JNIEnv *env, jclass class, jlong handle, jobject array, jint kind, jlong offset, jlong length, jint dest, jint tag, jint context,
 jlong type)
{
	struct array_ref ref = array_ref_of(env, array, kind, offset, length);

	(void)class;
	return send_now(handle, &ref, &(struct route){dest, tag, context, type}, false);
}

NATIVE(jint, ssend)
(JNIEnv *env, jclass class, jlong handle, jobject array, jint kind, jlong offset, jlong length, jint dest, jint tag, jint context,
 jlong type)
{
	struct array_ref ref = array_ref_of(env, array, kind, offset, length);

	(void)class;
	return send_now(handle, &ref, &(struct route){dest, tag, context, type}, true);
}

/* What is at `body` need not stay there. */
static int brief_isend(struct ibvx *ep, const void *body, size_t bytes, const struct route *to, bool sync, ibvx_req *req)
{
	const struct ibvx_sbuf buf = {.body = body, .body_bytes = bytes, .user = (uint64_t)to->type};

	return ibvx_pin_isend_copy(ep, NULL, &buf, to->rank, to->tag, to->context, sync, req);
}

static int small_isend(struct ibvx *ep, const struct array_ref *p, const struct route *to, bool sync, ibvx_req *req)
{
	char room[ARRAY_REF_SMALL];

	array_ref_pull(p, 0, p->length, room);
	return brief_isend(ep, room, p->length, to, sync, req);
}

static int zero_copy_isend(struct ibvx *ep, const struct array_ref *p, const struct route *to, bool sync, ibvx_req *req)
{
	const struct ibvx_sbuf buf = {.body_bytes = p->length, .user = (uint64_t)to->type};
	struct ibvx_pin *zero_copy = array_ref_zero_copy(p);

	return zero_copy ? ibvx_pin_isend(ep, zero_copy, &buf, to->rank, to->tag, to->context, sync, req) : -ENOMEM;
}

static jlong send_later(jlong handle, const struct array_ref *p, const struct route *to, bool sync)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_sbuf buf = {.user = (uint64_t)to->type};
	ibvx_req req = IBVX_REQ_NULL;
	int rc;

	if (!ep)
		return -ESHUTDOWN;
	if (p->kind == xxdev_ibvdev_Native_MEMORY) {
		buf.body = array_ref_address(p);
		buf.body_bytes = p->length;
		rc = sync ? ibvx_issend(ep, &buf, to->rank, to->tag, to->context, &req)
			  : ibvx_isend(ep, &buf, to->rank, to->tag, to->context, &req);
	} else if (p->kind == xxdev_ibvdev_Native_BRIEF) {
		rc = brief_isend(ep, (const void *)p->offset, p->length, to, sync, &req);
	} else if (array_ref_is_array(p) && p->length <= ARRAY_REF_SMALL) {
		rc = small_isend(ep, p, to, sync, &req);
	} else if (array_ref_direct(p) && ibvx_pin_zero_copy(ep, to->rank, p->length)) {
		rc = zero_copy_isend(ep, p, to, sync, &req);
	} else {
		void *copy = array_ref_copy(p, &buf.body_bytes);

		buf.body = copy;
		rc = copy ? ibvx_pin_isend_copy(ep, copy, &buf, to->rank, to->tag, to->context, sync, &req) : -ENOMEM;
	}
	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jlong, isend)
(JNIEnv *env, jclass class, jlong handle, jobject array, jint kind, jlong offset, jlong length, jint dest, jint tag, jint context,
 jlong type)
{
	const struct array_ref ref = array_ref_of(env, array, kind, offset, length);

	(void)class;
	return send_later(handle, &ref, &(struct route){dest, tag, context, type}, false);
}

NATIVE(jlong, issend)
(JNIEnv *env, jclass class, jlong handle, jobject array, jint kind, jlong offset, jlong length, jint dest, jint tag, jint context,
 jlong type)
{
	const struct array_ref ref = array_ref_of(env, array, kind, offset, length);

	(void)class;
	return send_later(handle, &ref, &(struct route){dest, tag, context, type}, true);
}

static struct ibvx_want want_of(const struct array_ref *p, const struct route *from)
{
	return (struct ibvx_want){
		.source = from->rank,
		.tag = from->tag,
		.context = from->context,
		.capacity_bytes = array_ref_capacity(p),
		.user = (uint64_t)from->type,
		.user_mask = from->type & xxdev_ibvdev_Native_TYPE_MASK ? xxdev_ibvdev_Native_TYPE_MASK : 0,
		.base = p->kind == xxdev_ibvdev_Native_MEMORY ? array_ref_address(p) : NULL,
	};
}

/* What pins p, or NULL if all of the message goes through bounce buffers. */
static struct ibvx_pin *heap_of(struct array_ref *p)
{
	return array_ref_direct(p) ? &p->heap : NULL;
}

/* Copies what is in a bounce buffer to its destination, and reports to Java. */
static int received(struct array_ref *p, struct ibvx_status *status, int rc, jlong result)
{
	size_t bytes = (size_t)(status->head_bytes + status->body_bytes);
	bool filled = rc >= 0 || rc == -EMSGSIZE || rc == -EPROTOTYPE;

	if (rc >= 0 && array_ref_direct(p)) {
		array_ref_push(p, p->heap.rest_at, p->heap.rest_bytes, p->heap.bounce + p->heap.rest_at);
		ibvx_free(p->heap.bounce);
	} else if (rc >= 0 && array_ref_is_array(p) && status->body) {
		array_ref_push(p, 0, bytes, status->body);
	} else if (rc >= 0 && array_ref_is_rows(p)) {
		int shape = array_ref_scatter(p, status->body, bytes);

		rc = shape < 0 ? shape : rc;
		if (shape == 0)
			status->body_bytes -= (1 + p->length) * sizeof(int32_t);
	}
	if (p->kind != xxdev_ibvdev_Native_BODY || rc < 0 || !result) {
		ibvx_free(status->body);
		status->body = NULL;
	}
	if (result && filled) {
		struct result *to = (struct result *)(intptr_t)result;

		*to = (struct result){
			.source = status->source,
			.tag = status->tag,
			.head_bytes = (int64_t)status->head_bytes,
			.body_bytes = (int64_t)status->body_bytes,
			.user = (int64_t)status->user,
			.body = (intptr_t)status->body,
		};
	}
	return rc;
}

/* An array of a few KB: by way of the stack. */
static int small_recv(struct ibvx *ep, const struct array_ref *p, struct ibvx_want want, struct ibvx_status *status)
{
	char room[ARRAY_REF_SMALL];
	int rc;

	want.base = room;
	rc = ibvx_pin_recv(ep, NULL, &want, status);
	if (rc == 0)
		array_ref_push(p, 0, (size_t)(status->head_bytes + status->body_bytes), room);
	return rc;
}

NATIVE(jint, recv)
(JNIEnv *env, jclass class, jlong handle, jobject array, jint kind, jlong offset, jlong length, jint source, jint tag, jint context,
 jlong type, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct array_ref ref = array_ref_of(env, array, kind, offset, length);
	struct ibvx_status status = {0};
	int rc;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_want want = want_of(&ref, &(struct route){source, tag, context, type});

	if (array_ref_is_array(&ref) && ref.length <= ARRAY_REF_SMALL)
		rc = small_recv(ep, &ref, want, &status);
	else
		rc = ibvx_pin_recv(ep, heap_of(&ref), &want, &status);
	rc = received(&ref, &status, rc, result);
	endpoint_put(handle);
	return rc;
}

NATIVE(jlong, irecv)
(JNIEnv *env, jclass class, jlong handle, jobject array, jint kind, jlong offset, jlong length, jint source, jint tag, jint context,
 jlong type)
{
	struct ibvx *ep = endpoint_get(handle);
	const struct array_ref ref = array_ref_of(env, array, kind, offset, length);
	ibvx_req req;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_want want = want_of(&ref, &(struct route){source, tag, context, type});
	int rc = ibvx_pin_irecv(ep, &want, &req);

	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jint, waitFor)
(JNIEnv *env, jclass class, jlong handle, jlong request, jlong timeout_ns, jobject array, jint kind, jlong offset, jlong length,
 jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct array_ref ref = array_ref_of(env, array, kind, offset, length);
	struct ibvx_status status = {0};
	ibvx_req req = (ibvx_req)request;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_pin_wait(ep, &req, heap_of(&ref), &status, timeout_ns);
	bool over = rc == 1;

	if (!over)
		rc = received(&ref, &status, rc, result);
	endpoint_put(handle);
	return rc < 0 ? rc : !over;
}

NATIVE(jint, test)
(JNIEnv *env, jclass class, jlong handle, jlong request, jobject array, jint kind, jlong offset, jlong length, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct array_ref ref = array_ref_of(env, array, kind, offset, length);
	struct ibvx_status status = {0};
	ibvx_req req = (ibvx_req)request;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_pin_test(ep, &req, heap_of(&ref), &status);

	if (rc)
		rc = received(&ref, &status, rc, result);
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, waitAny)(JNIEnv *env, jclass class, jlong handle, jlongArray requests)
{
	struct ibvx *ep = endpoint_get(handle);
	jsize count;
	jlong *list;
	int rc;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	count = (*env)->GetArrayLength(env, requests);
	list = malloc((size_t)count * sizeof(*list) + 1);
	if (list) {
		(*env)->GetLongArrayRegion(env, requests, 0, count, list);
		rc = ibvx_pin_any(ep, count, (const ibvx_req *)list);
	} else {
		rc = error_set(-ENOMEM, "no memory to wait for %d requests", (int)count);
	}
	free(list);
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, free)(JNIEnv *env, jclass class, jlong handle, jlong request)
{
	struct ibvx *ep = endpoint_get(handle);
	ibvx_req req = (ibvx_req)request;

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_request_free(ep, &req);

	endpoint_put(handle);
	return rc;
}

/* A message handle, 0, or an error. */
static jlong take(jlong handle, bool wait, const struct route *from, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};
	ibvx_req message = IBVX_REQ_NULL;
	int rc;

	if (!ep)
		return -ESHUTDOWN;
	do { /* another thread may be quicker */
		rc = wait ? ibvx_probe(ep, from->rank, from->tag, from->context, &status) : 0;
		if (rc == 0)
			rc = ibvx_improbe(ep, from->rank, from->tag, from->context, &message, &status);
	} while (wait && rc == 0);
	if (rc > 0)
		result_put(result, &status, rc);
	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)message;
}

NATIVE(jlong, improbe)(JNIEnv *env, jclass class, jlong handle, jint source, jint tag, jint context, jlong result)
{
	(void)env, (void)class;
	return take(handle, false, &(struct route){source, tag, context, 0}, result);
}

NATIVE(jlong, mprobe)(JNIEnv *env, jclass class, jlong handle, jint source, jint tag, jint context, jlong result)
{
	(void)env, (void)class;
	return take(handle, true, &(struct route){source, tag, context, 0}, result);
}

NATIVE(jint, mrecv)
(JNIEnv *env, jclass class, jlong handle, jlong message, jobject array, jint kind, jlong offset, jlong length, jlong type, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct array_ref ref = array_ref_of(env, array, kind, offset, length);
	struct ibvx_status status = {0};
	ibvx_req req = (ibvx_req)message;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_want want = want_of(&ref, &(struct route){.type = type});
	int rc = ibvx_pin_mrecv(ep, &req, heap_of(&ref), &want, &status);

	rc = received(&ref, &status, rc, result);
	endpoint_put(handle);
	return rc;
}

NATIVE(jlong, imrecv)
(JNIEnv *env, jclass class, jlong handle, jlong message, jobject array, jint kind, jlong offset, jlong length, jlong type)
{
	struct ibvx *ep = endpoint_get(handle);
	const struct array_ref ref = array_ref_of(env, array, kind, offset, length);
	ibvx_req probed = (ibvx_req)message, req;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_want want = want_of(&ref, &(struct route){.type = type});
	int rc = ibvx_pin_imrecv(ep, &probed, &want, &req);

	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jbyteArray, counters)(JNIEnv *env, jclass class, jlong handle, jint peer)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_counter list[COUNTERS_MAX];
	char text[COUNTERS_MAX * 64];
	size_t at = 0;

	(void)class;
	if (!ep)
		return NULL;
	int count = ibvx_counters(ep, peer, list, COUNTERS_MAX);

	endpoint_put(handle);
	if (count < 0)
		return NULL;
	for (int i = 0; i < count && i < COUNTERS_MAX && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %llu\n", list[i].name, (unsigned long long)list[i].value);
	return array_of(env, text, at < sizeof(text) ? at : sizeof(text) - 1);
}
