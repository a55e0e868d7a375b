/* SPDX-License-Identifier: MIT */
/* The functions of ibvx_pin.h. */
#include "ibvx_pin.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/api.h"
#include "core/background.h"
#include "core/complete.h"
#include "core/eager.h"
#include "core/flow_control.h"
#include "core/match.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/pin_serve.h"
#include "core/progress.h"
#include "core/receive.h"
#include "core/send.h"
#include "core/wait.h"
#include "core/waiter.h"

/* Regions that the start of a send from lent memory opens: an eager message has gone by then, if there was room. */
#define PIN_START_TURNS 4

/* Waits for r with its memory at hand. Lock held. */
static int pin_await(struct ibvx *ep, struct request *r, struct ibvx_pin *heap)
{
	bool lent = pin_zero_copy(r);
	struct waiter w = {.moving = lent || (heap && r->pinnable) ? r : NULL};
	int rc;

	receive_end_hopeless(ep, r);
	if (r->state == REQ_DONE) {
		if (!lent)
			r->pin = NULL;
		return 0;
	}
	r->waiter = &w;
	if (!lent)
		r->pin = w.moving ? heap : NULL;
	rc = wait_until(ep, &w, api_request_done, r, -1);
	r->waiter = NULL;
	if (!lent)
		r->pin = NULL;
	return rc;
}

/* Consumes a complete request, and hands over what is still staged. Lock held. */
static int pin_consume(struct ibvx *ep, struct request *r, struct ibvx_pin *heap, struct ibvx_status *status)
{
	bool receive = r->kind == REQ_RECV && r->pinnable;
	size_t at = (size_t)r->bounce_at, end = (size_t)r->bounce_end;
	char *stage = r->bounce;
	int rc;

	if (receive)
		r->bounce = NULL;
	rc = complete_consume(ep, r, status);
	if (!receive)
		return rc;
	if (rc < 0 || at == end) {
		free(stage);
		stage = NULL;
		at = end;
	}
	if (heap) {
		heap->bounce = stage;
		heap->rest_at = at;
		heap->rest_bytes = end - at;
	} else {
		status->body = stage;
	}
	return rc;
}

static void pin_reset(struct ibvx_pin *heap)
{
	if (!heap)
		return;
	heap->wanted = false;
	heap->lease_bytes = 0;
	heap->bounce = NULL;
	heap->rest_at = 0;
	heap->rest_bytes = 0;
}

int ibvx_pin_send(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_sbuf *buf, int dest, int tag, int context,
		   bool sync)
{
	struct request *r = NULL;
	int rc = api_check_rank(ep, dest, "destination");

	if (rc)
		return rc;
	pin_reset(heap);
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = peer_check(&ep->peers[dest]);
	if (rc == 0) {
		r = api_new_send(ep, buf, dest, tag, context, sync);
		rc = r ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		r->blocking = true;
		pin_mark(r);
		r->pin = heap;
		send_start(r);
		rc = pin_await(ep, r, heap);
	}
	if (rc == 0)
		rc = complete_consume(ep, r, NULL);
	core_unlock(ep);
	return rc;
}

bool ibvx_pin_lends(struct ibvx *ep, int dest, size_t bytes)
{
	const struct transport_ops *ops;
	struct transport *t;
	bool moves;

	if (api_check_rank(ep, dest, "destination"))
		return false;
	if (bytes <= ep->peers[dest].eager_max)
		return true;
	core_lock(ep);
	t = ep->peers[dest].transport;
	ops = t->ops;
	moves = (ops->get && ops->prefers_get(t, dest, bytes) && !(ops->learns_get && ops->learns_get(t, dest, bytes))) || (ops->prefers_put && ops->prefers_put(t, dest, bytes));
	core_unlock(ep);
	return !moves;
}

/* A fresh request of a non-blocking send, if there may be one. Lock held. */
static int pin_new_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
			 struct request **out)
{
	int rc = api_check_open(ep);

	if (rc == 0)
		rc = peer_check(&ep->peers[dest]);
	if (rc)
		return rc;
	*out = api_new_send(ep, buf, dest, tag, context, sync);
	return *out ? 0 : -ENOMEM;
}

/* Sends from lent memory what can leave at once. Lock held, released meanwhile. */
static void pin_start_zero_copy(struct ibvx *ep, struct request *r)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);

	if (total <= p->eager_max && !flow_allows_eager(p, total))
		progress_run(ep); /* credit may have come back */
	r->served = true; /* by us: nobody else need come */
	if (p->state == PEER_OPEN)
		send_start(r);
	else
		complete_request(ep, r, p->state == PEER_CLOSED ? -EPIPE : p->fail_code);
	background_start(ep, r); /* before the lock is released: r may be consumed then */
	r->served = false;
	for (int n = 0; n < PIN_START_TURNS && r->state != REQ_DONE && r->pin->wanted; n++)
		pin_serve(ep, r);
	if (!list_empty(&ep->wanting))
		waiter_call_any(ep);
}

int ibvx_pin_isend(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_sbuf *buf, int dest, int tag, int context,
		    bool sync, ibvx_req *req)
{
	struct request *r = NULL;
	int rc = api_check_rank(ep, dest, "destination");

	*req = IBVX_REQ_NULL;
	heap->wanted = false;
	heap->next = NULL;
	if (rc) {
		heap->drop(heap);
		return rc;
	}
	core_lock(ep);
	rc = pin_new_send(ep, buf, dest, tag, context, sync, &r);
	if (rc == 0) {
		pin_mark(r);
		r->pin = heap;
		*req = request_handle(r);
		pin_start_zero_copy(ep, r);
	}
	pin_unlock(ep);
	if (rc)
		heap->drop(heap);
	return rc;
}

/* From memory that is only valid during the call: copied if the message cannot leave at once. Lock held. */
static int pin_start_copy(struct ibvx *ep, struct request *r, const struct ibvx_sbuf *buf)
{
	int rc = r->sync ? 0 : api_at_once(r->peer, buf, r->tag, r->context);

	if (rc == 0) {
		r->bounce = malloc(request_total(r) + 1);
		if (!r->bounce) {
			request_put(&ep->requests, r);
			return error_set(-ENOMEM, "no memory for a copy of a message of %zu bytes", buf->head_bytes + buf->body_bytes);
		}
		request_read(r, 0, r->bounce, request_total(r));
		r->base[0] = r->bounce;
		r->base[1] = r->bounce + r->bytes[0];
		send_start(r);
		return 0;
	}
	complete_request(ep, r, rc > 0 ? 0 : rc);
	return 0;
}

int ibvx_pin_isend_copy(struct ibvx *ep, void *copy, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
			 ibvx_req *req)
{
	struct request *r = NULL;
	int rc = api_check_send(ep, buf, dest);

	*req = IBVX_REQ_NULL;
	if (rc) {
		free(copy);
		return rc;
	}
	core_lock(ep);
	rc = pin_new_send(ep, buf, dest, tag, context, sync, &r);
	if (rc == 0) {
		*req = request_handle(r);
		if (copy) {
			r->bounce = copy;
			copy = NULL;
			api_start_send(ep, r, buf);
		} else {
			rc = pin_start_copy(ep, r, buf);
		}
	}
	if (rc == 0)
		background_start(ep, r);
	else
		*req = IBVX_REQ_NULL;
	core_unlock(ep);
	free(copy);
	return rc;
}

static int pin_check_want(const struct ibvx *ep, const struct ibvx_want *want)
{
	return want->source == IBVX_ANY_SOURCE ? 0 : api_check_rank(ep, want->source, "source");
}

static struct request *pin_new_recv(struct ibvx *ep, const struct ibvx_want *want)
{
	struct ibvx_rbuf buf = {.base = want->base, .capacity_bytes = want->capacity_bytes};
	struct request *r = receive_new(ep, &buf, want->source, want->tag, want->context);

	if (!r)
		return NULL;
	if (!want->base)
		pin_mark(r);
	r->want = want->user;
	r->want_mask = want->user_mask;
	return r;
}

/* A region for a message that is here already, at least its first bytes; NULL: there is none, or no region. Releases
 * the lock: whatever was looked at before may have changed. */
static void *pin_enter_early(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_want *want,
			      const struct umsg *message)
{
	const struct umsg *u = message;
	void *at;

	if (!heap || want->base)
		return NULL;
	if (!u)
		u = match_peek(ep, want->source, want->tag, want->context);
	if (!u || u->at == 0)
		return NULL;
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	at = heap->enter(heap);
	core_lock(ep);
	ep->users--;
	return at;
}

static void pin_leave_early(struct ibvx *ep, struct ibvx_pin *heap, void *at, int64_t begin_ns)
{
	if (!at)
		return;
	pin_count(ep, clock_now_ns() - begin_ns);
	ep->users++;
	core_unlock(ep);
	heap->leave(heap, at);
	core_lock(ep);
	ep->users--;
}

/* Posts a receive, or has it receive *message, which is gone then. Lock held, not released. */
static int pin_post(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_want *want, struct umsg *message, void *at,
		     struct request **out)
{
	int rc = api_check_open(ep);
	struct request *r = rc ? NULL : pin_new_recv(ep, want);

	if (!r) {
		if (message)
			receive_discard(ep, message);
		return rc ? rc : -ENOMEM;
	}
	*out = r;
	r->blocking = true;
	r->pin = r->pinnable ? heap : NULL;
	if (at)
		pin_set_address(r, at);
	if (message)
		receive_extracted(ep, r, message);
	else
		receive_post(ep, r);
	if (at)
		pin_set_address(r, NULL);
	return 0;
}

static int pin_start_recv(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_want *want,
			   struct umsg *message, struct ibvx_status *status)
{
	void *at = pin_enter_early(ep, heap, want, message);
	int64_t begin_ns = at ? clock_now_ns() : 0;
	struct request *r = NULL;
	int rc = pin_post(ep, heap, want, message, at, &r);

	pin_leave_early(ep, heap, at, begin_ns);
	if (rc == 0)
		rc = pin_await(ep, r, heap);
	return rc ? rc : pin_consume(ep, r, heap, status);
}

/* To ordinary memory: as ibvx_recv(). Lock held. */
static int pin_recv_direct(struct ibvx *ep, const struct ibvx_want *want, struct ibvx_status *status)
{
	const struct ibvx_rbuf buf = {.base = want->base, .capacity_bytes = want->capacity_bytes};
	struct direct_recv l = {.buf = &buf, .source = want->source, .tag = want->tag, .context = want->context,
			    .want = want->user, .want_mask = want->user_mask};
	int rc;

	direct_recv_poll(ep, &l);
	if (l.done && status)
		*status = l.status;
	if (l.done)
		return 1;
	if (!l.request)
		return 0;
	rc = pin_await(ep, l.request, NULL);
	rc = rc ? rc : pin_consume(ep, l.request, NULL, status);
	return rc ? rc : 1;
}

int ibvx_pin_recv(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_want *want, struct ibvx_status *status)
{
	int rc = pin_check_want(ep, want);

	pin_reset(heap);
	if (rc)
		return rc;
	core_lock(ep);
	if (want->base)
		rc = pin_recv_direct(ep, want, status);
	if (rc == 0)
		rc = api_check_open(ep);
	if (rc == 0)
		rc = pin_start_recv(ep, heap, want, NULL, status);
	core_unlock(ep);
	return rc < 0 ? rc : 0;
}

int ibvx_pin_irecv(struct ibvx *ep, const struct ibvx_want *want, ibvx_req *req)
{
	struct request *r;
	int rc = pin_check_want(ep, want);

	*req = IBVX_REQ_NULL;
	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0) {
		r = pin_new_recv(ep, want);
		rc = r ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		*req = request_handle(r);
		receive_post(ep, r);
		background_start(ep, r);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_pin_mrecv(struct ibvx *ep, ibvx_req *message, struct ibvx_pin *heap, const struct ibvx_want *want,
		    struct ibvx_status *status)
{
	struct ibvx_want named = *want;
	struct umsg *u;
	int rc;

	pin_reset(heap);
	core_lock(ep);
	rc = api_check_open(ep);
	u = rc ? NULL : api_take_message(ep, message);
	if (u) {
		named.source = u->peer->rank;
		named.tag = u->tag;
		named.context = u->context;
		rc = pin_start_recv(ep, heap, &named, u, status);
	}
	core_unlock(ep);
	return u || rc ? rc : -EINVAL;
}

int ibvx_pin_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *heap, struct ibvx_status *status)
{
	struct request *r;
	int rc = -EINVAL;

	pin_reset(heap);
	core_lock(ep);
	r = api_find(ep, *req);
	if (r) {
		rc = pin_await(ep, r, heap);
		if (rc == 0) {
			*req = IBVX_REQ_NULL;
			rc = pin_consume(ep, r, heap, status);
		}
	}
	pin_unlock(ep);
	return rc;
}

int ibvx_pin_test(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *heap, struct ibvx_status *status)
{
	struct request *r;
	int rc = -EINVAL;

	pin_reset(heap);
	core_lock(ep);
	pin_serve_zero_copy(ep);
	r = api_find(ep, *req);
	if (r) {
		if (r->state != REQ_DONE)
			progress_run(ep);
		receive_end_hopeless(ep, r);
		rc = 0;
		if (r->state == REQ_DONE) {
			rc = pin_consume(ep, r, heap, status);
			rc = rc ? rc : 1;
			*req = IBVX_REQ_NULL;
		}
	}
	pin_unlock(ep);
	if (rc == 0)
		wait_idle_test(ep);
	return rc;
}
