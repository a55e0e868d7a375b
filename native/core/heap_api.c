/* SPDX-License-Identifier: MIT */
/* The functions of ibvx_heap.h. */
#include "ibvx_heap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "core/api.h"
#include "core/complete.h"
#include "core/heap.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/send.h"
#include "core/wait.h"

/* Waits for r with its memory at hand. Lock held. */
static int heap_await(struct ibvx *ep, struct request *r, struct ibvx_heap *heap)
{
	struct waiter w = {.moving = heap && r->heap ? r : NULL};
	int rc;

	recv_end_hopeless(ep, r);
	if (r->state == REQ_DONE)
		return 0;
	r->waiter = &w;
	r->place = w.moving ? heap : NULL;
	rc = wait_until(ep, &w, api_request_done, r, -1);
	r->waiter = NULL;
	r->place = NULL;
	return rc;
}

/* Consumes a complete request, and hands over what is still staged. Lock held. */
static int heap_consume(struct ibvx *ep, struct request *r, struct ibvx_heap *heap, struct ibvx_status *status)
{
	bool receive = r->kind == REQ_RECV && r->heap;
	size_t at = (size_t)r->stage_at, end = (size_t)r->stage_end;
	char *stage = r->stage;
	int rc;

	if (receive)
		r->stage = NULL;
	rc = complete_consume(ep, r, status);
	if (!receive)
		return rc;
	if (rc < 0 || at == end) {
		free(stage);
		stage = NULL;
		at = end;
	}
	if (heap) {
		heap->stage = stage;
		heap->rest_at = at;
		heap->rest_bytes = end - at;
	} else {
		status->body = stage;
	}
	return rc;
}

int ibvx_heap_send(struct ibvx *ep, struct ibvx_heap *heap, const struct ibvx_sbuf *buf, int dest, int tag, int context,
		   bool sync)
{
	struct request *r = NULL;
	int rc = api_check_rank(ep, dest, "destination");

	if (rc)
		return rc;
	heap->wanted = false;
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
		r->heap = true;
		r->place = heap;
		send_start(r);
		rc = heap_await(ep, r, heap);
	}
	if (rc == 0)
		rc = complete_consume(ep, r, NULL);
	core_unlock(ep);
	return rc;
}

int ibvx_heap_isend(struct ibvx *ep, void *copy, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
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
	rc = api_check_open(ep);
	if (rc == 0)
		rc = peer_check(&ep->peers[dest]);
	if (rc == 0) {
		r = api_new_send(ep, buf, dest, tag, context, sync);
		rc = r ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		r->stage = copy;
		copy = NULL;
		*req = request_handle(r);
		api_start_send(ep, r, buf);
	}
	core_unlock(ep);
	free(copy);
	return rc;
}

static int heap_check_want(const struct ibvx *ep, const struct ibvx_want *want)
{
	return want->source == IBVX_ANY_SOURCE ? 0 : api_check_rank(ep, want->source, "source");
}

static struct request *heap_new_recv(struct ibvx *ep, const struct ibvx_want *want)
{
	struct ibvx_rbuf buf = {.base = want->base, .capacity_bytes = want->capacity_bytes};
	struct request *r = api_new_recv(ep, &buf, want->source, want->tag, want->context);

	if (!r)
		return NULL;
	r->heap = !want->base;
	r->want = want->user;
	r->want_mask = want->user_mask;
	return r;
}

/* A region for a message that is here already, at least its first bytes; NULL: there is none, or no region. Releases
 * the lock: whatever was looked at before may have changed. */
static void *heap_enter_early(struct ibvx *ep, struct ibvx_heap *heap, const struct ibvx_want *want,
			      const struct umsg *message)
{
	const struct umsg *u = message ? message : recv_peek(ep, want->source, want->tag, want->context);
	void *at;

	if (!heap || want->base || !u || u->at == 0)
		return NULL;
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	at = heap->enter(heap);
	core_lock(ep);
	ep->users--;
	return at;
}

static void heap_leave_early(struct ibvx *ep, struct ibvx_heap *heap, void *at, int64_t begin_ns)
{
	if (!at)
		return;
	heap_count_region(ep, clock_now_ns() - begin_ns);
	ep->users++;
	core_unlock(ep);
	heap->leave(heap, at);
	core_lock(ep);
	ep->users--;
}

/* Posts a receive, or has it receive *message, which is gone then. Lock held, not released. */
static int heap_post(struct ibvx *ep, const struct ibvx_want *want, struct umsg *message, void *at,
		     struct request **out)
{
	int rc = api_check_open(ep);
	struct request *r = rc ? NULL : heap_new_recv(ep, want);

	if (!r) {
		if (message)
			recv_discard(ep, message);
		return rc ? rc : -ENOMEM;
	}
	*out = r;
	r->blocking = true;
	if (at)
		heap_reach(r, at);
	if (message)
		recv_extracted(ep, r, message);
	else
		recv_post(ep, r);
	if (at)
		heap_reach(r, NULL);
	return 0;
}

static int heap_start_recv(struct ibvx *ep, struct ibvx_heap *heap, const struct ibvx_want *want,
			   struct umsg *message, struct ibvx_status *status)
{
	void *at = heap_enter_early(ep, heap, want, message);
	int64_t begin_ns = at ? clock_now_ns() : 0;
	struct request *r = NULL;
	int rc = heap_post(ep, want, message, at, &r);

	heap_leave_early(ep, heap, at, begin_ns);
	if (rc == 0)
		rc = heap_await(ep, r, heap);
	return rc ? rc : heap_consume(ep, r, heap, status);
}

static void heap_reset(struct ibvx_heap *heap)
{
	if (!heap)
		return;
	heap->wanted = false;
	heap->stage = NULL;
	heap->rest_at = 0;
	heap->rest_bytes = 0;
}

int ibvx_heap_recv(struct ibvx *ep, struct ibvx_heap *heap, const struct ibvx_want *want, struct ibvx_status *status)
{
	int rc = heap_check_want(ep, want);

	heap_reset(heap);
	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = heap_start_recv(ep, heap, want, NULL, status);
	core_unlock(ep);
	return rc;
}

int ibvx_heap_irecv(struct ibvx *ep, const struct ibvx_want *want, ibvx_req *req)
{
	struct request *r;
	int rc = heap_check_want(ep, want);

	*req = IBVX_REQ_NULL;
	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0) {
		r = heap_new_recv(ep, want);
		rc = r ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		*req = request_handle(r);
		recv_post(ep, r);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_heap_mrecv(struct ibvx *ep, ibvx_req *message, struct ibvx_heap *heap, const struct ibvx_want *want,
		    struct ibvx_status *status)
{
	struct ibvx_want named = *want;
	struct umsg *u;
	int rc;

	heap_reset(heap);
	core_lock(ep);
	rc = api_check_open(ep);
	u = rc ? NULL : api_take_message(ep, message);
	if (u) {
		named.source = u->peer->rank;
		named.tag = u->tag;
		named.context = u->context;
		rc = heap_start_recv(ep, heap, &named, u, status);
	}
	core_unlock(ep);
	return u || rc ? rc : -EINVAL;
}

int ibvx_heap_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_heap *heap, struct ibvx_status *status)
{
	struct request *r;
	int rc = -EINVAL;

	heap_reset(heap);
	core_lock(ep);
	r = api_find(ep, *req);
	if (r) {
		rc = heap_await(ep, r, heap);
		if (rc == 0) {
			*req = IBVX_REQ_NULL;
			rc = heap_consume(ep, r, heap, status);
		}
	}
	core_unlock(ep);
	return rc;
}

int ibvx_heap_test(struct ibvx *ep, ibvx_req *req, struct ibvx_heap *heap, struct ibvx_status *status)
{
	struct request *r;
	int rc = -EINVAL;

	heap_reset(heap);
	core_lock(ep);
	r = api_find(ep, *req);
	if (r) {
		if (r->state != REQ_DONE)
			wait_progress(ep);
		recv_end_hopeless(ep, r);
		rc = 0;
		if (r->state == REQ_DONE) {
			rc = heap_consume(ep, r, heap, status);
			rc = rc ? rc : 1;
			*req = IBVX_REQ_NULL;
		}
	}
	core_unlock(ep);
	if (rc == 0)
		wait_idle_test(ep);
	return rc;
}
