/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_API_H
#define IBVX_CORE_API_H
/*
 * api: what the files behind ibvx.h share.  The caller holds the core's lock.
 */
#include "core/complete.h"
#include "core/core.h"

/* The texts of the three below. */
int api_not_open(const struct ibvx *ep) __attribute__((cold));
int api_not_rank(const struct ibvx *ep, int rank, const char *what) __attribute__((cold));
int api_not_send(const struct ibvx_sbuf *buf) __attribute__((cold));

/* More than any memory holds, and far from overflowing a sum. */
#define API_BYTES_MAX ((size_t)PTRDIFF_MAX / 8)

/* -ESHUTDOWN with its text once the endpoint is closing. */
static inline int api_check_open(const struct ibvx *ep)
{
	return ep->closing || ep->aborted ? api_not_open(ep) : 0;
}

/* 0, or -EINVAL with a text that says what the rank is of. */
static inline int api_check_rank(const struct ibvx *ep, int rank, const char *what)
{
	return rank >= 0 && rank < ep->size ? 0 : api_not_rank(ep, rank, what);
}

static inline int api_check_send(const struct ibvx *ep, const struct ibvx_sbuf *buf, int dest)
{
	if (dest < 0 || dest >= ep->size)
		return api_not_rank(ep, dest, "destination");
	if (buf->head_bytes > API_BYTES_MAX || buf->body_bytes > API_BYTES_MAX || (!buf->head && buf->head_bytes) ||
	    (!buf->body && buf->body_bytes))
		return api_not_send(buf);
	return 0;
}

/* A fresh request, or NULL with the text set. The arguments have been checked. */
static inline struct request *api_new_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context,
					   bool sync)
{
	struct request *r = request_get(&ep->requests, REQ_SEND, REQ_QUEUED);

	if (!r)
		return NULL;
	r->peer = &ep->peers[dest];
	r->base[0] = (char *)(uintptr_t)buf->head;
	r->base[1] = (char *)(uintptr_t)buf->body;
	r->bytes[0] = buf->head_bytes;
	r->bytes[1] = buf->body_bytes;
	r->context = context;
	r->source = dest;
	r->tag = tag;
	r->user = buf->user;
	r->sync = sync;
	return r;
}

/* 1: the message has left as one packet; 0: it takes the general way; or an error. */
int api_at_once(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context);

/* Sets a non-blocking send going; it may be complete afterwards. */
void api_start_send(struct ibvx *ep, struct request *r, const struct ibvx_sbuf *buf);

/* Takes the message out of its handle, which is gone; NULL with the text set. */
struct umsg *api_take_message(struct ibvx *ep, ibvx_req *message);

/* The request behind a handle that may be waited for, or NULL with the text set. */
struct request *api_not_found(struct ibvx *ep, const struct request *r, ibvx_req req) __attribute__((cold));

static inline struct request *api_find(struct ibvx *ep, ibvx_req req)
{
	struct request *r = request_find(&ep->requests, req);

	return r && r->state != REQ_MESSAGE && !r->blocking && !r->waiter ? r : api_not_found(ep, r, req);
}

/* For wait_until(): is the request (arg) complete? */
bool api_request_done(struct ibvx *ep, void *arg);

/* Waits for a request that no other thread waits for, and consumes it. */
int api_wait_pending(struct ibvx *ep, struct request *r, struct ibvx_status *status);

static inline int api_wait_request(struct ibvx *ep, struct request *r, struct ibvx_status *status)
{
	return r->state == REQ_DONE ? complete_consume(ep, r, status) : api_wait_pending(ep, r, status);
}

#endif
