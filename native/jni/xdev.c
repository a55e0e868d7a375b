/* SPDX-License-Identifier: MIT */
/*
 * The natives of xdev.ibvdev.Native.  Each one: take a reference to the endpoint, call ibvx,
 * give it back.  The answer is a negative errno or a result; Java asks errorText() and throws.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ibvx.h"
#include "jni/common.h"
#include "jni/endpoint.h"
#include "xdev_ibvdev_Native.h"
#include "xxdev_ibvdev_Native.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_xdev_ibvdev_Native_##name

typedef int blocking_fn(struct ibvx *, const struct ibvx_sbuf *, int, int, int);
typedef int nonblocking_fn(struct ibvx *, const struct ibvx_sbuf *, int, int, int, ibvx_req *);

/* What Java hands over for the opening of an endpoint. */
struct job {
	struct copy conf, settings, defaults;
	const char **settings_list, **defaults_list;
	struct ibvx_config config;
};

static void job_close(struct job *job)
{
	free(job->settings_list);
	free(job->defaults_list);
	copy_close(&job->defaults);
	copy_close(&job->settings);
	copy_close(&job->conf);
	free(job);
}

/* Every text ends with a NUL. */
static struct job *job_open(JNIEnv *env, jint rank, jbyteArray conf, jbyteArray settings, jbyteArray defaults)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		error_set(-ENOMEM, "no memory for the job's description");
		return NULL;
	}
	if (copy_open(env, conf, &job->conf) < 0 || copy_open(env, settings, &job->settings) < 0 ||
	    copy_open(env, defaults, &job->defaults) < 0)
		goto close;
	job->settings_list = split_strings(job->settings.at, job->settings.length);
	job->defaults_list = split_strings(job->defaults.at, job->defaults.length);
	if (!job->settings_list || !job->defaults_list) {
		error_set(-ENOMEM, "no memory for the settings");
		goto close;
	}
	job->config = (struct ibvx_config){
		.rank = rank,
		.conf = job->conf.length ? job->conf.at : NULL,
		.settings = job->settings_list,
		.settings_origin = "system property",
		.defaults = job->defaults_list,
	};
	return job;
close:
	job_close(job);
	return NULL;
}

NATIVE(jlong, open)(JNIEnv *env, jclass class, jint rank, jbyteArray conf, jbyteArray settings, jbyteArray defaults)
{
	struct job *job = job_open(env, rank, conf, settings, defaults);
	struct ibvx *ep = NULL;

	(void)class;
	if (!job)
		return -ENOMEM;
	jlong handle = ibvx_open(&ep, &job->config);

	job_close(job);
	if (handle < 0)
		return handle;
	handle = endpoint_add(ep);
	if (handle < 0)
		ibvx_abort(ep);
	return handle;
}

NATIVE(jint, close)(JNIEnv *env, jclass class, jlong handle)
{
	(void)env, (void)class;
	return endpoint_close(handle);
}

NATIVE(void, abort)(JNIEnv *env, jclass class, jlong handle)
{
	(void)env, (void)class;
	endpoint_abort(handle);
}

static jint number_of(jlong handle, int (*of)(const struct ibvx *))
{
	struct ibvx *ep = endpoint_get(handle);
	jint number = ep ? of(ep) : -ESHUTDOWN;

	if (ep)
		endpoint_put(handle);
	return number;
}

NATIVE(jint, size)(JNIEnv *env, jclass class, jlong handle)
{
	(void)env, (void)class;
	return number_of(handle, ibvx_size);
}

NATIVE(jint, rank)(JNIEnv *env, jclass class, jlong handle)
{
	(void)env, (void)class;
	return number_of(handle, ibvx_rank);
}

NATIVE(jbyteArray, jobId)(JNIEnv *env, jclass class, jlong handle)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)class;
	if (!ep)
		return NULL;
	const char *id = ibvx_job_id(ep);
	jbyteArray array = array_of(env, id, strlen(id));

	endpoint_put(handle);
	return array;
}

NATIVE(jbyteArray, describe)(JNIEnv *env, jclass class, jint rank, jbyteArray conf, jbyteArray settings, jbyteArray defaults)
{
	struct job *job = job_open(env, rank, conf, settings, defaults);
	jbyteArray array = NULL;
	char *text = NULL;

	(void)class;
	if (!job)
		return NULL;
	if (ibvx_describe(&job->config, &text) >= 0)
		array = array_of(env, text, strlen(text));
	ibvx_free(text);
	job_close(job);
	return array;
}

NATIVE(jbyteArray, describeLauncher)(JNIEnv *env, jclass class, jintArray status, jbyteArray settings, jbyteArray defaults)
{
	struct job *job = job_open(env, -1, NULL, settings, defaults);
	jbyteArray array = NULL;
	char *text = NULL;

	(void)class;
	if (!job)
		return NULL;
	jint rc = ibvx_describe_launcher(&job->config, &text);

	(*env)->SetIntArrayRegion(env, status, 0, 1, &rc);
	if (text)
		array = array_of(env, text, strlen(text));
	ibvx_free(text);
	job_close(job);
	return array;
}

NATIVE(jbyteArray, errorText)(JNIEnv *env, jclass class)
{
	const char *text = ibvx_error();

	(void)class;
	return array_of(env, text, strlen(text));
}

NATIVE(jint, errorRank)(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	return error_rank();
}

static jint send_now(JNIEnv *env, jlong handle, jobject head, jlong offset, jint length, jlong user, jbyteArray body, jint dest, jint tag,
		     jint context, blocking_fn *fn)
{
	struct ibvx *ep = endpoint_get(handle);
	struct copy copy;

	if (!ep)
		return -ESHUTDOWN;
	struct ibvx_sbuf buf = {.head = memory_at(env, head, offset), .head_bytes = (size_t)length, .user = (uint64_t)user};
	int rc;

	if (!body) {
		rc = fn(ep, &buf, dest, tag, context);
	} else if ((rc = copy_open(env, body, &copy)) == 0) {
		buf.body = copy.at;
		buf.body_bytes = copy.length;
		rc = fn(ep, &buf, dest, tag, context);
		copy_close(&copy);
	}
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, send)
(JNIEnv *env, jclass class, jlong handle, jobject head, jlong offset, jint length, jlong user, jbyteArray body, jint dest, jint tag,
 jint context)
{
	(void)class;
	return send_now(env, handle, head, offset, length, user, body, dest, tag, context, ibvx_send);
}

NATIVE(jint, ssend)
(JNIEnv *env, jclass class, jlong handle, jobject head, jlong offset, jint length, jlong user, jbyteArray body, jint dest, jint tag,
 jint context)
{
	(void)class;
	return send_now(env, handle, head, offset, length, user, body, dest, tag, context, ibvx_ssend);
}

static jlong send_later(JNIEnv *env, jlong handle, jobject head, jlong offset, jint length, jlong user, jlong body, jint body_length,
			jint dest, jint tag, jint context, nonblocking_fn *fn)
{
	struct ibvx *ep = endpoint_get(handle);
	ibvx_req req;

	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_sbuf buf = {
		.head = memory_at(env, head, offset),
		.head_bytes = (size_t)length,
		.body = (const void *)(intptr_t)body,
		.body_bytes = (size_t)body_length,
		.user = (uint64_t)user,
	};
	int rc = fn(ep, &buf, dest, tag, context, &req);

	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jlong, isend)
(JNIEnv *env, jclass class, jlong handle, jobject head, jlong offset, jint length, jlong user, jlong body, jint body_length, jint dest,
 jint tag, jint context)
{
	(void)class;
	return send_later(env, handle, head, offset, length, user, body, body_length, dest, tag, context, ibvx_isend);
}

NATIVE(jlong, issend)
(JNIEnv *env, jclass class, jlong handle, jobject head, jlong offset, jint length, jlong user, jlong body, jint body_length, jint dest,
 jint tag, jint context)
{
	(void)class;
	return send_later(env, handle, head, offset, length, user, body, body_length, dest, tag, context, ibvx_issend);
}

static struct ibvx_rbuf rbuf_of(JNIEnv *env, jobject base, jlong offset, jint capacity)
{
	return (struct ibvx_rbuf){.base = memory_at(env, base, offset), .capacity_bytes = (size_t)capacity, .split = 1};
}

NATIVE(jint, recv)
(JNIEnv *env, jclass class, jlong handle, jobject base, jlong offset, jint capacity, jint source, jint tag, jint context, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_rbuf buf = rbuf_of(env, base, offset, capacity);
	int rc = result_put(result, &status, ibvx_recv(ep, &buf, source, tag, context, &status));

	endpoint_put(handle);
	return rc;
}

NATIVE(jlong, irecv)
(JNIEnv *env, jclass class, jlong handle, jobject base, jlong offset, jint capacity, jint source, jint tag, jint context)
{
	struct ibvx *ep = endpoint_get(handle);
	ibvx_req req;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	const struct ibvx_rbuf buf = rbuf_of(env, base, offset, capacity);
	int rc = ibvx_irecv(ep, &buf, source, tag, context, &req);

	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jint, fetch)
(JNIEnv *env, jclass class, jlong handle, jobject base, jlong offset, jint capacity, jint source, jint tag, jint context, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};
	ibvx_req message;

	(void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_improbe(ep, source, tag, context, &message, &status);

	if (rc > 0) {
		const struct ibvx_rbuf buf = rbuf_of(env, base, offset, capacity);
		int err = ibvx_mrecv(ep, &message, &buf, &status);

		rc = result_put(result, &status, err < 0 ? err : 1);
	}
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, waitFor)(JNIEnv *env, jclass class, jlong handle, jlong request, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};
	ibvx_req req = (ibvx_req)request;

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = result_put(result, &status, ibvx_wait(ep, &req, &status));

	endpoint_put(handle);
	return rc;
}

NATIVE(jint, test)(JNIEnv *env, jclass class, jlong handle, jlong request, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};
	ibvx_req req = (ibvx_req)request;

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_test(ep, &req, &status);

	if (rc)
		rc = result_put(result, &status, rc);
	endpoint_put(handle);
	return rc;
}

NATIVE(jlong, peek)(JNIEnv *env, jclass class, jlong handle)
{
	struct ibvx *ep = endpoint_get(handle);
	ibvx_req req;

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_peek(ep, &req);

	endpoint_put(handle);
	return rc < 0 ? rc : (jlong)req;
}

NATIVE(jint, cancel)(JNIEnv *env, jclass class, jlong handle, jlong request)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_cancel(ep, (ibvx_req)request);

	endpoint_put(handle);
	return rc;
}

NATIVE(jint, probe)(JNIEnv *env, jclass class, jlong handle, jint source, jint tag, jint context, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_probe(ep, source, tag, context, &status);

	status.body = NULL;
	rc = result_put(result, &status, rc);
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, iprobe)(JNIEnv *env, jclass class, jlong handle, jint source, jint tag, jint context, jlong result)
{
	struct ibvx *ep = endpoint_get(handle);
	struct ibvx_status status = {0};

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_iprobe(ep, source, tag, context, &status);

	status.body = NULL;
	if (rc)
		rc = result_put(result, &status, rc);
	endpoint_put(handle);
	return rc;
}

NATIVE(jint, register)(JNIEnv *env, jclass class, jlong handle, jlong address, jlong bytes)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_buffer_register(ep, (void *)(intptr_t)address, (size_t)bytes);

	endpoint_put(handle);
	return rc;
}

NATIVE(jint, unregister)(JNIEnv *env, jclass class, jlong handle, jlong address, jlong bytes)
{
	struct ibvx *ep = endpoint_get(handle);

	(void)env, (void)class;
	if (!ep)
		return -ESHUTDOWN;
	int rc = ibvx_buffer_release(ep, (void *)(intptr_t)address, (size_t)bytes);

	endpoint_put(handle);
	return rc;
}

NATIVE(jlong, address)(JNIEnv *env, jclass class, jobject buffer)
{
	(void)class;
	return (intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}

NATIVE(jlong, allocate)(JNIEnv *env, jclass class, jint length)
{
	void *at = malloc(length > 0 ? (size_t)length : 1);

	(void)env, (void)class;
	return at ? (intptr_t)at : error_set(-ENOMEM, "no memory for a bounce buffer of %d bytes", (int)length);
}

NATIVE(void, release)(JNIEnv *env, jclass class, jlong address)
{
	(void)env, (void)class;
	free((void *)(intptr_t)address);
}

NATIVE(void, copyIn)(JNIEnv *env, jclass class, jbyteArray array, jint offset, jint length, jlong address)
{
	(void)class;
	(*env)->GetByteArrayRegion(env, array, offset, length, (jbyte *)(intptr_t)address);
}

NATIVE(void, copyOut)(JNIEnv *env, jclass class, jlong address, jbyteArray array, jint offset, jint length)
{
	(void)class;
	(*env)->SetByteArrayRegion(env, array, offset, length, (const jbyte *)(intptr_t)address);
}

NATIVE(jbyteArray, body)(JNIEnv *env, jclass class, jlong address, jint length)
{
	(void)class;
	jbyteArray array = array_of(env, (const void *)(intptr_t)address, (size_t)length);

	ibvx_free((void *)(intptr_t)address);
	return array;
}

/* The device xxdev has the same natives where the signatures are the same. */
#define SHARED(name)                                                                                \
	JNIEXPORT extern __typeof__(Java_xdev_ibvdev_Native_##name) Java_xxdev_ibvdev_Native_##name \
		__attribute__((alias("Java_xdev_ibvdev_Native_" #name)))

SHARED(open);
SHARED(close);
SHARED(abort);
SHARED(size);
SHARED(rank);
SHARED(jobId);
SHARED(errorText);
SHARED(errorRank);
SHARED(peek);
SHARED(cancel);
SHARED(probe);
SHARED(iprobe);
SHARED(release);
SHARED(body);
