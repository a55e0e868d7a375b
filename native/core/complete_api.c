/* SPDX-License-Identifier: MIT */
/* wait, test, waitany, peek, cancel, free of ibvx.h */
#include <errno.h>

#include "base/error.h"
#include "base/pool.h"
#include "core/api.h"
#include "core/complete.h"
#include "core/continuation.h"
#include "core/pin.h"
#include "core/pin_serve.h"
#include "core/progress.h"
#include "core/receive.h"
#include "core/wait.h"
#include "ibvx_pin.h"

int api_not_rank(const struct ibvx *ep, int rank, const char *what)
{
	return error_set(-EINVAL, "%s %d is not a rank of this job: 0 to %d are", what, rank, ep->size - 1);
}

int api_not_open(const struct ibvx *ep)
{
	return error_set(-ESHUTDOWN, "the endpoint of rank %d is closed or closing", ep->rank);
}

struct request *api_not_found(struct ibvx *ep, const struct request *r, ibvx_req req)
{
	if (r && r->state != REQ_MESSAGE && !r->blocking)
		error_set(-EINVAL, "another thread already waits for request %#llx", (unsigned long long)req);
	else
		error_set(-EINVAL, "%#llx is not a pending request of rank %d: it was never valid or is already complete",
			  (unsigned long long)req, ep->rank);
	return NULL;
}

void api_reset_pin(struct ibvx_pin *pin)
{
	if (!pin)
		return;
	pin->wanted = false;
	pin->lease_bytes = 0;
	pin->bounce = NULL;
	pin->rest_at = 0;
	pin->rest_bytes = 0;
}

int api_consume_slow(struct ibvx *ep, struct request *r, struct ibvx_pin *pin, struct ibvx_status *status)
{
	void *body = NULL;
	int rc;

	if (status && r->error == 0)
		body = buffer_is_pinnable(&r->buffer) ? pin_take_rest(r, pin) : buffer_take_body(&r->buffer);
	pin_attend(r, NULL); /* r may outlive this call until its last control packet has gone */
	rc = complete_consume(ep, r, status);
	if (status)
		status->body = body;
	return rc;
}

/* For wait_until(): is the request (arg) complete? */
static bool api_request_done(struct ibvx *ep, void *arg)
{
	const struct request *r = arg;

	(void)ep;
	return atomic_load_explicit(&r->done, memory_order_acquire);
}

int api_wait_pending(struct ibvx *ep, struct request *r, struct ibvx_pin *pin, struct ibvx_status *status, int64_t timeout_ns)
{
	struct waiter w = {0};
	int rc = 0;

	receive_end_hopeless(ep, r);
	if (r->state != REQ_DONE) {
		pin_attend(r, pin);
		if (buffer_is_pinnable(&r->buffer) && r->buffer.pin)
			w.pinned_request = r;
		r->waiter = &w;
		rc = wait_until(ep, &w, api_request_done, r, timeout_ns);
		r->waiter = NULL;
	}
	pin_attend(r, NULL);
	if (rc == -ETIMEDOUT)
		return API_NOT_YET;
	return rc ? rc : api_consume(ep, r, pin, status);
}

static int api_null_request(struct ibvx_status *status)
{
	if (status)
		*status = (struct ibvx_status){.source = IBVX_ANY_SOURCE, .tag = IBVX_ANY_TAG};
	return 0;
}

static inline int api_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *pin, struct ibvx_status *status, int64_t timeout_ns)
{
	struct request *r;
	int rc = -EINVAL;

	if (*req == IBVX_REQ_NULL)
		return api_null_request(status);
	core_lock(ep);
	r = api_find(ep, *req);
	if (r) {
		rc = r->state == REQ_DONE ? api_consume(ep, r, pin, status) : api_wait_pending(ep, r, pin, status, timeout_ns);
		if (rc != API_NOT_YET && (!ep->aborted || rc != -ESHUTDOWN))
			*req = IBVX_REQ_NULL;
	}
	pin_unlock(ep);
	return rc;
}

int ibvx_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_status *status)
{
	return api_wait(ep, req, NULL, status, -1);
}

int ibvx_pin_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *pin, struct ibvx_status *status, int64_t timeout_ns)
{
	api_reset_pin(pin);
	return api_wait(ep, req, pin, status, timeout_ns);
}

static inline int api_test(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *pin, struct ibvx_status *status)
{
	struct request *r;
	int rc = -EINVAL;

	if (*req == IBVX_REQ_NULL) {
		api_null_request(status);
		return 1;
	}
	core_lock(ep);
	pin_serve_zero_copy(ep);
	r = api_find(ep, *req);
	if (r) {
		if (r->state != REQ_DONE)
			progress_run(ep);
		receive_end_hopeless(ep, r);
		rc = 0;
		if (r->state == REQ_DONE) {
			rc = api_consume(ep, r, pin, status);
			rc = rc ? rc : 1;
			*req = IBVX_REQ_NULL;
		}
		continuation_run_due(ep);
	}
	pin_unlock(ep);
	if (rc == 0)
		wait_idle_test(ep);
	return rc;
}

int ibvx_test(struct ibvx *ep, ibvx_req *req, struct ibvx_status *status)
{
	return api_test(ep, req, NULL, status);
}

int ibvx_pin_test(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *pin, struct ibvx_status *status)
{
	api_reset_pin(pin);
	return api_test(ep, req, pin, status);
}

struct api_any {
	int count;
	const ibvx_req *reqs;
	int found;
};

static bool api_any_done(struct ibvx *ep, void *arg)
{
	struct api_any *a = arg;

	for (int i = 0; i < a->count; i++) {
		struct request *r = request_find(&ep->requests, a->reqs[i]);

		if (r && r->state == REQ_DONE) {
			a->found = i;
			return true;
		}
	}
	return false;
}

/* Marks all requests as waited for by w, or none. Returns how many there are, or -EINVAL. */
static int api_any_mark(struct ibvx *ep, int count, const ibvx_req reqs[], struct waiter *w)
{
	int live = 0;

	for (int i = 0; i < count; i++) {
		struct request *r;

		if (reqs[i] == IBVX_REQ_NULL)
			continue;
		r = api_find(ep, reqs[i]);
		if (!r) {
			for (int j = 0; j < i; j++) {
				r = request_find(&ep->requests, reqs[j]);
				if (r && r->waiter == w)
					r->waiter = NULL;
			}
			return -EINVAL;
		}
		receive_end_hopeless(ep, r);
		r->waiter = w;
		live++;
	}
	return live;
}

/* Waits until one of the requests is complete; its index, or an error. Lock held. */
static int api_any(struct ibvx *ep, int count, const ibvx_req reqs[])
{
	struct api_any a = {count, reqs, -1};
	struct waiter w = {0};
	int rc = api_any_mark(ep, count, reqs, &w);

	if (rc == 0)
		rc = error_set(-ENOENT, "waitany over %d null requests", count);
	if (rc > 0) {
		rc = wait_until(ep, &w, api_any_done, &a, -1);
		for (int i = 0; i < count; i++) {
			struct request *r = request_find(&ep->requests, reqs[i]);

			if (r && r->waiter == &w)
				r->waiter = NULL;
		}
	}
	return rc ? rc : a.found;
}

int ibvx_waitany(struct ibvx *ep, int count, ibvx_req reqs[], struct ibvx_status *status)
{
	int rc;

	core_lock(ep);
	rc = api_any(ep, count, reqs);
	if (rc >= 0) {
		api_consume(ep, request_find(&ep->requests, reqs[rc]), NULL, status);
		reqs[rc] = IBVX_REQ_NULL;
	}
	core_unlock(ep);
	return rc;
}

int ibvx_pin_any(struct ibvx *ep, int count, const ibvx_req reqs[])
{
	int rc;

	core_lock(ep);
	rc = api_any(ep, count, reqs);
	core_unlock(ep);
	return rc;
}

static bool api_peeked(struct ibvx *ep, void *arg)
{
	struct request **out = arg;

	for (struct list *l = ep->finished.prev; l != &ep->finished; l = l->prev) {
		struct request *r = LIST_ITEM(l, struct request, finished);

		if (r->waiter)
			continue;
		*out = r;
		return true;
	}
	return false;
}

int ibvx_peek(struct ibvx *ep, ibvx_req *req)
{
	struct waiter w = {.wants_any = true};
	struct request *r = NULL;
	int rc;

	*req = IBVX_REQ_NULL;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = wait_until(ep, &w, api_peeked, &r, -1);
	if (rc == 0) {
		list_remove(&r->finished);
		*req = request_handle(r);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_cancel(struct ibvx *ep, ibvx_req req)
{
	struct request *r;
	int rc = 0;

	core_lock(ep);
	r = request_find(&ep->requests, req);
	if (!r || r->state == REQ_MESSAGE || r->blocking)
		rc = error_set(-EINVAL, "%#llx is not a pending request of rank %d", (unsigned long long)req, ep->rank);
	else if (r->kind == REQ_SEND)
		rc = error_set(-EOPNOTSUPP, "a send cannot be cancelled: receive it, or close the endpoint");
	else if (r->state == REQ_DONE)
		rc = error_set(-EBUSY, "the receive is complete already, with or without success: wait for it");
	else if (r->state != REQ_POSTED)
		rc = error_set(-EBUSY, "the receive has matched already: wait for it");
	if (rc == 0) {
		match_unpost(ep, r);
		complete_request(ep, r, -ECANCELED);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_request_free(struct ibvx *ep, ibvx_req *req)
{
	struct request *r;
	int rc = -EINVAL;

	if (*req == IBVX_REQ_NULL)
		return 0;
	core_lock(ep);
	r = request_find(&ep->requests, *req);
	if (r && r->state == REQ_MESSAGE) {
		struct umsg *u = r->message;

		r->message = NULL;
		request_put(&ep->requests, r);
		receive_discard(ep, u);
		rc = 0;
	} else {
		r = api_find(ep, *req);
	}
	if (rc && r) {
		rc = 0;
		if (r->state == REQ_DONE) {
			complete_consume(ep, r, NULL);
		} else {
			r->detached = true;
		}
	}
	if (rc == 0)
		*req = IBVX_REQ_NULL;
	core_unlock(ep);
	return rc;
}

void ibvx_free(void *memory)
{
	pool_put(memory);
}
