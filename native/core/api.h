/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_API_H
#define IBVX_CORE_API_H
/*
 * api: what the files behind ibvx.h and ibvx_pin.h share.  The functions of ibvx_pin.h are those of
 * ibvx.h with another buffer.  The caller holds the core's lock.
 */
#include "core/complete.h"
#include "core/core.h"
#include "core/layout.h"

/* The seldom parts of the three below: the texts, and the check of a send with a layout. */
int api_not_open(const struct ibvx *ep) __attribute__((cold));
int api_not_rank(const struct ibvx *ep, int rank, const char *what) __attribute__((cold));
int api_check_send_slow(const struct ibvx_sbuf *buf) __attribute__((cold));

static_assert((LAYOUT_BYTES_MAX & (LAYOUT_BYTES_MAX + 1)) == 0, "two lengths can be compared with it at once");

/* -ESHUTDOWN with its text once the endpoint is closing. */
static inline int api_check_open(const struct ibvx *ep)
{
	return ep->closing || ep->aborted ? api_not_open(ep) : 0;
}

/* 0, or -EINVAL with a text that states what the rank is of. */
static inline int api_check_rank(const struct ibvx *ep, int rank, const char *what)
{
	return rank >= 0 && rank < ep->size ? 0 : api_not_rank(ep, rank, what);
}

static inline int api_check_source(const struct ibvx *ep, int source)
{
	return source == IBVX_ANY_SOURCE ? 0 : api_check_rank(ep, source, "source");
}

static inline int api_check_send(const struct ibvx *ep, const struct ibvx_sbuf *buf, int dest)
{
	if (dest < 0 || dest >= ep->size)
		return api_not_rank(ep, dest, "destination");
	if ((buf->head_bytes | buf->body_bytes) > LAYOUT_BYTES_MAX || (!buf->head && buf->head_bytes) || (!buf->body && buf->body_bytes) ||
	    buf->layout)
		return api_check_send_slow(buf);
	return 0;
}

/* The request behind a handle that may be waited for, or NULL with the text set. */
struct request *api_not_found(struct ibvx *ep, const struct request *r, ibvx_req req) __attribute__((cold));

static inline struct request *api_find(struct ibvx *ep, ibvx_req req)
{
	struct request *r = request_find(&ep->requests, req);

	return r && r->state != REQ_MESSAGE && !r->blocking && !r->waiter && !r->watched ? r : api_not_found(ep, r, req);
}

/* Of a wait with a limit: the time is over, and the request is as it was. */
#define API_NOT_YET 1

/* Waits for a request that no other thread waits for, and consumes it.  pin: the memory of a pinnable receive or blocking
 * send; NULL: of a pinnable receive all stays in the bounce buffer, which becomes status->body.  timeout_ns < 0: no limit. */
int api_wait_pending(struct ibvx *ep, struct request *r, struct ibvx_pin *pin, struct ibvx_status *status, int64_t timeout_ns);

/* complete_consume(), and hands over what the buffer owns: the body of a split receive, what has bounced of a pinnable one. */
int api_consume_slow(struct ibvx *ep, struct request *r, struct ibvx_pin *pin, struct ibvx_status *status);

static inline int api_consume(struct ibvx *ep, struct request *r, struct ibvx_pin *pin, struct ibvx_status *status)
{
	if (buffer_needs_fini(&r->buffer))
		return api_consume_slow(ep, r, pin, status);
	return complete_consume(ep, r, status);
}

static inline int api_wait_request(struct ibvx *ep, struct request *r, struct ibvx_pin *pin, struct ibvx_status *status)
{
	return r->state == REQ_DONE ? api_consume(ep, r, pin, status) : api_wait_pending(ep, r, pin, status, -1);
}

struct ibvx_completion;
struct ibvx_continuation;

/* An error with text if a rank that c needs has died, else 0. */
int api_check_needs(const struct ibvx *ep, const struct ibvx_continuation *c);

/* Gives r, a request that its call has just started, to `done`: 1: it is complete and was consumed; 0: it is under way. */
int api_attach(struct ibvx *ep, struct request *r, struct ibvx_completion *done);

/* The library's fields of a pin are those of a new operation. NULL allowed. */
void api_reset_pin(struct ibvx_pin *pin);

#endif
