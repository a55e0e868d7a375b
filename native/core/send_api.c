/* SPDX-License-Identifier: MIT */
/* The sends of ibvx.h and ibvx_pin.h. */
#include <errno.h>

#include "base/error.h"
#include "base/pool.h"
#include "core/api.h"
#include "core/background.h"
#include "core/continuation.h"
#include "core/eager.h"
#include "core/flow_control.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/pin_serve.h"
#include "core/progress.h"
#include "core/send.h"
#include "core/waiter.h"
#include "ibvx_pin.h"

/* Times that the start of a zero-copy send pins its memory: an eager message has left by then, if there was room. */
#define PIN_START_TURNS 4

int api_check_send_slow(const struct ibvx_sbuf *buf)
{
	if (buf->head_bytes > LAYOUT_BYTES_MAX || buf->body_bytes > LAYOUT_BYTES_MAX)
		return error_set(-EINVAL, "a send of %zu + %zu bytes: the most is %zu", buf->head_bytes, buf->body_bytes, LAYOUT_BYTES_MAX);
	if ((!buf->head && buf->head_bytes) || (!buf->body && buf->body_bytes && !buf->layout))
		return error_set(-EINVAL, "a send of %zu + %zu bytes from a NULL address", buf->head_bytes, buf->body_bytes);
	return buf->layout ? layout_check(buf->layout, buf->body_bytes) : 0;
}

/* A sender that only sends has not seen the credit that came back: it looks before it announces what could go eagerly. */
static int api_look_for_credit(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context)
{
	size_t total = buf->head_bytes + buf->body_bytes;
	int rc;

	if (total > p->eager_max || flow_allows_eager(p, total))
		return 0;
	progress_run(p->ep);
	rc = peer_check(p);
	return rc || buf->layout ? rc : eager_try(p, buf, tag, context);
}

/* 1: the message has left as one packet; 0: it needs a request; or an error. */
static int api_at_once(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context)
{
	int rc = buf->layout ? 0 : eager_try(p, buf, tag, context);

	return rc ? rc : api_look_for_credit(p, buf, tag, context);
}

static inline int api_check_peer(const struct ibvx *ep, int dest)
{
	int rc = api_check_open(ep);

	return rc ? rc : peer_check(&ep->peers[dest]);
}

/* A fresh request, or NULL with the text set. The arguments have been checked. */
static inline struct request *api_new_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync)
{
	struct request *r = request_get(&ep->requests, REQ_SEND, REQ_QUEUED);

	if (!r)
		return NULL;
	r->peer = &ep->peers[dest];
	buffer_init_send(&r->buffer, buf);
	r->context = context;
	r->source = dest;
	r->tag = tag;
	r->user = buf->user;
	r->sync = sync;
	return r;
}

/* The general path of a blocking send. */
static int api_send_request(struct ibvx *ep, const struct ibvx_sbuf *buf, struct ibvx_pin *pin, int dest, int tag, int context, bool sync)
{
	struct request *r = api_new_send(ep, buf, dest, tag, context, sync);

	if (!r)
		return -ENOMEM;
	r->blocking = true;
	if (pin)
		buffer_set_pinnable(&r->buffer, pin);
	send_start(r);
	return api_wait_request(ep, r, pin, NULL);
}

static int api_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync)
{
	int rc = api_check_send(ep, buf, dest);

	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_peer(ep, dest);
	if (rc == 0 && !sync)
		rc = api_at_once(&ep->peers[dest], buf, tag, context);
	if (rc == 0)
		rc = api_send_request(ep, buf, NULL, dest, tag, context, sync);
	core_unlock(ep);
	return rc < 0 ? rc : 0;
}

int ibvx_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	return api_send(ep, buf, dest, tag, context, false);
}

int ibvx_ssend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	return api_send(ep, buf, dest, tag, context, true);
}

int ibvx_pin_send(struct ibvx *ep, struct ibvx_pin *pin, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync)
{
	int rc = api_check_rank(ep, dest, "destination");

	if (rc)
		return rc;
	api_reset_pin(pin);
	core_lock(ep);
	rc = api_check_peer(ep, dest);
	if (rc == 0)
		rc = api_send_request(ep, buf, pin, dest, tag, context, sync);
	core_unlock(ep);
	return rc;
}

int ibvx_send_at_once(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	int rc = api_check_send(ep, buf, dest);

	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_peer(ep, dest);
	if (rc == 0)
		rc = api_at_once(&ep->peers[dest], buf, tag, context);
	core_unlock(ep);
	return rc;
}

/* What keeps the message of a non-blocking send until it has left. */
struct api_source {
	struct ibvx_pin *pin; /* zero-copy send: the layer does, until it is dropped */
	void *copy;           /* the library, in this block of the pool: NULL once it is taken over */
	bool brief;           /* the library copies what cannot leave at once */
};

/* Sends what can leave at once of a zero-copy send. Lock released meanwhile. */
static void api_start_zero_copy(struct ibvx *ep, struct request *r)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);

	if (total <= p->eager_max && !flow_allows_eager(p, total))
		progress_run(ep); /* credit may have come back */
	r->served = true;         /* by us: no other thread need come */
	if (r->state == REQ_QUEUED)
		send_start(r);
	background_start(ep, r); /* before the lock is released: r may be consumed then */
	r->served = false;
	for (int n = 0; n < PIN_START_TURNS && r->state != REQ_DONE && r->buffer.pin->wanted; n++)
		pin_serve(ep, r);
	if (!list_empty(&ep->wanting))
		waiter_call_any(ep);
}

/* Sets a non-blocking send going; it may be complete afterwards.  -ENOMEM: the request is gone, nothing was sent. */
static inline int api_start_send(struct ibvx *ep, struct request *r, const struct ibvx_sbuf *buf, bool brief)
{
	int rc = r->sync ? 0 : api_at_once(r->peer, buf, r->tag, r->context);

	if (rc > 0) {
		complete_request(ep, r, 0);
		return 0;
	}
	if (r->state != REQ_QUEUED) /* its peer has ended meanwhile */
		return 0;
	if (brief && !buffer_take_copy(&r->buffer)) {
		rc = error_set(-ENOMEM, "no memory for a copy of a message of %zu bytes", request_total(r));
		request_put(&ep->requests, r);
		return rc;
	}
	send_start(r);
	return 0;
}

static int api_start_sourced(struct ibvx *ep, struct request *r, const struct ibvx_sbuf *buf, struct api_source *source)
{
	if (source->pin) {
		buffer_set_pinnable(&r->buffer, source->pin);
		api_start_zero_copy(ep, r);
		return 0;
	}
	if (source->copy) {
		buffer_adopt_copy(&r->buffer, source->copy);
		source->copy = NULL;
	}
	return api_start_send(ep, r, buf, source->brief);
}

/* source == NULL: the caller does.  Specialised for that. */
static inline __attribute__((always_inline)) int api_isend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context,
							   bool sync, struct api_source *source, ibvx_req *req)
{
	int rc = source && source->pin ? api_check_rank(ep, dest, "destination") : api_check_send(ep, buf, dest);
	struct request *r = NULL;

	*req = IBVX_REQ_NULL;
	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_peer(ep, dest);
	if (rc == 0) {
		r = api_new_send(ep, buf, dest, tag, context, sync);
		rc = r ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		*req = request_handle(r);
		rc = source ? api_start_sourced(ep, r, buf, source) : api_start_send(ep, r, buf, false);
		if (rc)
			*req = IBVX_REQ_NULL;
		else if (!source || !source->pin)
			background_start(ep, r);
	}
	if (source && source->pin)
		pin_unlock(ep);
	else
		core_unlock(ep);
	return rc;
}

int ibvx_isend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, ibvx_req *req)
{
	return api_isend(ep, buf, dest, tag, context, false, NULL, req);
}

int ibvx_issend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, ibvx_req *req)
{
	return api_isend(ep, buf, dest, tag, context, true, NULL, req);
}

int ibvx_continuation_send(struct ibvx *ep, struct ibvx_completion *done, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	struct request *r;
	int rc = api_check_send(ep, buf, dest);

	if (rc)
		return rc;
	done->error = 0;
	core_lock(ep);
	rc = api_check_needs(ep, done->owner);
	if (rc == 0)
		rc = api_check_peer(ep, dest);
	if (rc == 0)
		rc = api_at_once(&ep->peers[dest], buf, tag, context);
	if (rc == 0) {
		r = api_new_send(ep, buf, dest, tag, context, false);
		rc = r ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		send_start(r);
		rc = api_attach(ep, r, done);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_pin_isend(struct ibvx *ep, struct ibvx_pin *pin, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
		   ibvx_req *req)
{
	int rc;

	pin->wanted = false;
	pin->next = NULL;
	rc = api_isend(ep, buf, dest, tag, context, sync, &(struct api_source){.pin = pin}, req);
	if (rc)
		pin->drop(pin);
	return rc;
}

int ibvx_pin_isend_copy(struct ibvx *ep, void *copy, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync, ibvx_req *req)
{
	struct api_source source = {.copy = copy, .brief = !copy};
	int rc = api_isend(ep, buf, dest, tag, context, sync, &source, req);

	pool_put(source.copy);
	return rc;
}

bool ibvx_pin_zero_copy(struct ibvx *ep, int dest, size_t bytes)
{
	const struct transport_ops *ops;
	struct transport *t;
	bool offers_rma;

	if (api_check_rank(ep, dest, "destination"))
		return false;
	if (bytes <= ep->peers[dest].eager_max)
		return true;
	core_lock(ep);
	t = ep->peers[dest].transport;
	ops = t->ops;
	offers_rma = (ops->get && ops->prefers_get(t, dest, bytes) && !(ops->learns_get && ops->learns_get(t, dest, bytes))) ||
		     (ops->prefers_put && ops->prefers_put(t, dest, bytes));
	core_unlock(ep);
	return !offers_rma;
}
