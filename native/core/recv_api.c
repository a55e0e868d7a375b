/* SPDX-License-Identifier: MIT */
/* The receives and probes of ibvx.h and ibvx_pin.h. */
#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/api.h"
#include "core/background.h"
#include "core/continuation.h"
#include "core/flow_control.h"
#include "core/match.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/pin_serve.h"
#include "core/progress.h"
#include "core/receive.h"
#include "core/wait.h"
#include "ibvx_pin.h"
#include "ibvx_watch.h"

#define API_NOT_DIRECT 1

static __attribute__((cold)) int api_check_recv_slow(const struct ibvx_rbuf *buf, bool has_status)
{
	if (buf->split && !has_status)
		return error_set(-EINVAL, "a split receive needs a status, which hands over the body");
	if (buf->split && buf->layout)
		return error_set(-EINVAL, "a split receive allocates its body: it cannot have a layout");
	if (!buf->base && buf->capacity_bytes && !buf->layout)
		return error_set(-EINVAL, "a receive of up to %zu bytes to a NULL address", buf->capacity_bytes);
	if (buf->layout && buf->capacity_bytes > LAYOUT_BYTES_MAX)
		return error_set(-EINVAL, "a receive of up to %zu bytes with a layout: the most is %zu", buf->capacity_bytes,
				 LAYOUT_BYTES_MAX);
	if (buf->layout && layout_check(buf->layout, buf->capacity_bytes))
		return -EINVAL;
	return buf->layout ? API_NOT_DIRECT : 0;
}

/* 0; API_NOT_DIRECT: legal, but not for a direct receive; or -EINVAL with text. */
static inline int api_check_recv(const struct ibvx_rbuf *buf, bool has_status)
{
	if ((buf->split && !has_status) || (!buf->base && buf->capacity_bytes) || buf->layout)
		return api_check_recv_slow(buf, has_status);
	return 0;
}

/* --- receives --- */

/* Pins the memory of a receive whose message, or its first bytes, are here already. NULL: they are not, or it cannot be pinned
 * now.  Releases the lock: whatever was looked at before may have changed. */
static void *api_pin_early(struct ibvx *ep, struct ibvx_pin *pin, const struct recv_args *a, const struct umsg *message)
{
	const struct umsg *u = message ? message : match_peek(ep, a->source, a->tag, a->context);
	void *at;

	if (!u || u->at == 0)
		return NULL;
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	at = pin->enter(pin);
	core_lock(ep);
	ep->users--;
	return at;
}

static void api_unpin_early(struct ibvx *ep, struct ibvx_pin *pin, void *at, int64_t begin_ns)
{
	pin_count(ep, clock_now_ns() - begin_ns);
	ep->users++;
	core_unlock(ep);
	pin->leave(pin, at);
	core_lock(ep);
	ep->users--;
}

/* Posts the receive, or has it receive *message, which is gone then.  at: where its memory is pinned just now, or NULL.
 * The lock is not released. */
static int api_post(struct ibvx *ep, const struct recv_args *a, struct umsg *message, bool blocking, struct ibvx_pin *pin, void *at,
		    struct request **out)
{
	int rc = api_check_open(ep);
	struct request *r = rc ? NULL : receive_new(ep, a);

	if (!r) {
		if (message)
			receive_discard(ep, message);
		return rc ? rc : -ENOMEM;
	}
	*out = r;
	r->blocking = blocking;
	pin_attend(r, pin);
	if (at)
		buffer_set_address(&r->buffer, at);
	if (message)
		receive_extracted(ep, r, message);
	else
		receive_post(ep, r);
	if (at)
		buffer_set_address(&r->buffer, NULL);
	return 0;
}

/* A blocking receive that was not delivered directly. */
static int api_recv_request(struct ibvx *ep, const struct recv_args *a, struct umsg *message, struct ibvx_pin *pin,
			    struct ibvx_status *status)
{
	void *at = pin && a->pinnable ? api_pin_early(ep, pin, a, message) : NULL;
	int64_t begin_ns = at ? clock_now_ns() : 0;
	struct request *r;
	int rc = api_post(ep, a, message, true, pin, at, &r);

	if (at)
		api_unpin_early(ep, pin, at, begin_ns);
	return rc ? rc : api_wait_request(ep, r, pin, status);
}

/* d->args have been checked.  Locks. */
static inline __attribute__((always_inline)) int api_recv(struct ibvx *ep, struct direct_recv *d, bool direct, struct ibvx_pin *pin,
							  struct ibvx_status *status)
{
	int rc;

	d->done = false;
	d->request = NULL;
	core_lock(ep);
	if (direct)
		direct_recv_poll(ep, d);
	if (d->done) {
		core_unlock(ep);
		if (status)
			*status = d->status;
		return 0;
	}
	rc = d->request ? api_wait_request(ep, d->request, NULL, status) : api_recv_request(ep, &d->args, NULL, pin, status);
	core_unlock(ep);
	return rc;
}

int ibvx_recv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context, struct ibvx_status *status)
{
	struct direct_recv d;
	int rc = api_check_source(ep, source);

	if (rc == 0)
		rc = api_check_recv(buf, status != NULL);
	if (rc < 0)
		return rc;
	d.args = (struct recv_args){.buf = buf, .source = source, .tag = tag, .context = context};
	return api_recv(ep, &d, rc == 0, NULL, status);
}

static inline int api_irecv(struct ibvx *ep, const struct recv_args *a, ibvx_req *req)
{
	struct request *r = NULL;
	int rc;

	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0) {
		r = receive_new(ep, a);
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

int ibvx_irecv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context, ibvx_req *req)
{
	const struct recv_args a = {.buf = buf, .source = source, .tag = tag, .context = context};
	int rc = api_check_source(ep, source);

	*req = IBVX_REQ_NULL;
	if (rc == 0)
		rc = api_check_recv(buf, true);
	return rc < 0 ? rc : api_irecv(ep, &a, req);
}

int ibvx_continuation_recv(struct ibvx *ep, struct ibvx_completion *done, const struct ibvx_rbuf *buf, int source, int tag, int context)
{
	const struct recv_args a = {.buf = buf, .source = source, .tag = tag, .context = context};
	struct request *r;
	int rc = api_check_recv(buf, true);

	if (rc < 0)
		return rc;
	core_lock(ep);
	rc = api_check_needs(ep, done->owner);
	if (rc == 0)
		rc = api_post(ep, &a, NULL, false, NULL, NULL, &r);
	if (rc == 0)
		rc = api_attach(ep, r, done);
	core_unlock(ep);
	return rc;
}

/* Takes the message out of its handle, which is gone; NULL with the text set. */
static struct umsg *api_take_message(struct ibvx *ep, ibvx_req *message)
{
	struct request *r = request_find(&ep->requests, *message);
	struct umsg *u;

	if (!r || r->state != REQ_MESSAGE) {
		error_set(-EINVAL, "%#llx is not the handle of a probed message", (unsigned long long)*message);
		return NULL;
	}
	u = r->message;
	r->message = NULL;
	request_put(&ep->requests, r);
	*message = IBVX_REQ_NULL;
	return u;
}

/* What all receives of a probed message begin with: *a gets its envelope, *u the message. */
static int api_begin_mrecv(struct ibvx *ep, ibvx_req *message, struct recv_args *a, struct umsg **u)
{
	int rc = api_check_open(ep);

	if (rc)
		return rc;
	*u = api_take_message(ep, message);
	if (!*u)
		return -EINVAL;
	a->source = (*u)->peer->rank;
	a->tag = (*u)->tag;
	a->context = (*u)->context;
	return 0;
}

static int api_mrecv(struct ibvx *ep, ibvx_req *message, struct recv_args *a, struct ibvx_pin *pin, struct ibvx_status *status)
{
	struct umsg *u;
	int rc;

	core_lock(ep);
	rc = api_begin_mrecv(ep, message, a, &u);
	if (rc == 0)
		rc = api_recv_request(ep, a, u, pin, status);
	core_unlock(ep);
	return rc;
}

int ibvx_mrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, struct ibvx_status *status)
{
	struct recv_args a = {.buf = buf};
	int rc = api_check_recv(buf, status != NULL);

	return rc < 0 ? rc : api_mrecv(ep, message, &a, NULL, status);
}

static int api_imrecv(struct ibvx *ep, ibvx_req *message, struct recv_args *a, ibvx_req *req)
{
	struct request *r;
	struct umsg *u;
	int rc;

	core_lock(ep);
	rc = api_begin_mrecv(ep, message, a, &u);
	if (rc == 0)
		rc = api_post(ep, a, u, false, NULL, NULL, &r);
	if (rc == 0) {
		*req = request_handle(r);
		background_start(ep, r);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_imrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, ibvx_req *req)
{
	struct recv_args a = {.buf = buf};
	int rc = api_check_recv(buf, true);

	*req = IBVX_REQ_NULL;
	return rc < 0 ? rc : api_imrecv(ep, message, &a, req);
}

/* --- the receives of ibvx_pin.h --- */

/* What a struct ibvx_want asks for; buf is filled in and lives as long. */
static struct recv_args api_want(const struct ibvx_want *want, struct ibvx_rbuf *buf)
{
	*buf = (struct ibvx_rbuf){.base = want->base, .capacity_bytes = want->capacity_bytes};
	return (struct recv_args){.buf = buf,
				  .pinnable = !want->base,
				  .source = want->source,
				  .tag = want->tag,
				  .context = want->context,
				  .want = want->user,
				  .want_mask = want->user_mask};
}

int ibvx_pin_recv(struct ibvx *ep, struct ibvx_pin *pin, const struct ibvx_want *want, struct ibvx_status *status)
{
	struct ibvx_rbuf buf;
	struct direct_recv d;
	int rc = api_check_source(ep, want->source);

	api_reset_pin(pin);
	if (rc)
		return rc;
	d.args = api_want(want, &buf);
	return api_recv(ep, &d, !d.args.pinnable, pin, status);
}

int ibvx_pin_irecv(struct ibvx *ep, const struct ibvx_want *want, ibvx_req *req)
{
	struct ibvx_rbuf buf;
	const struct recv_args a = api_want(want, &buf);
	int rc = api_check_source(ep, want->source);

	*req = IBVX_REQ_NULL;
	return rc ? rc : api_irecv(ep, &a, req);
}

int ibvx_pin_mrecv(struct ibvx *ep, ibvx_req *message, struct ibvx_pin *pin, const struct ibvx_want *want, struct ibvx_status *status)
{
	struct ibvx_rbuf buf;
	struct recv_args a = api_want(want, &buf);

	api_reset_pin(pin);
	return api_mrecv(ep, message, &a, pin, status);
}

int ibvx_pin_imrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_want *want, ibvx_req *req)
{
	struct ibvx_rbuf buf;
	struct recv_args a = api_want(want, &buf);

	*req = IBVX_REQ_NULL;
	return api_imrecv(ep, message, &a, req);
}

/* --- probes --- */

static void api_probe_status(const struct umsg *u, struct ibvx_status *status)
{
	if (!status)
		return;
	*status = (struct ibvx_status){.source = u->peer->rank,
				       .tag = u->tag,
				       .context = u->context,
				       .head_bytes = u->bytes[0],
				       .body_bytes = u->bytes[1],
				       .user = u->user};
}

/* One look, with progress if the first finds nothing. 1, 0, or why it is hopeless. Lock held. */
static int api_look(struct ibvx *ep, int source, int tag, int context, bool blocking, struct umsg **out)
{
	struct peer *gone;

	*out = match_peek(ep, source, tag, context);
	if (!*out && progress_run(ep) > 0)
		*out = match_peek(ep, source, tag, context);
	if (*out)
		return 1;
	flow_emergency_source(ep, source);
	gone = peer_ended_source(ep, source);
	if (!gone || (gone->state == PEER_CLOSED && !blocking))
		return 0;
	gone->reported = true;
	if (gone->state == PEER_FAILED)
		return peer_text(gone);
	return error_concerns(error_set(-EPIPE, "rank %d has finished: no message of it will come any more", gone->rank), gone->rank);
}

/* iprobe and improbe: message == NULL leaves it in the queue.  waits: so does the caller, in its own layer. */
static int api_iprobe(struct ibvx *ep, int source, int tag, int context, bool waits, ibvx_req *message, struct ibvx_status *status)
{
	struct request *r = NULL;
	struct umsg *u;
	int rc = api_check_source(ep, source);

	if (rc)
		return rc;
	core_lock(ep);
	pin_serve_zero_copy(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = api_look(ep, source, tag, context, waits, &u);
	if (rc == 1 && message) {
		r = request_get(&ep->requests, REQ_PROBED, REQ_MESSAGE);
		rc = r ? 1 : -ENOMEM;
	}
	if (rc == 1)
		api_probe_status(u, status);
	if (r) {
		match_extract(ep, u);
		r->message = u;
		r->peer = u->peer;
		*message = request_handle(r);
	}
	continuation_run_due(ep);
	core_unlock(ep);
	if (rc == 0)
		wait_idle_test(ep);
	return rc;
}

int ibvx_iprobe(struct ibvx *ep, int source, int tag, int context, struct ibvx_status *status)
{
	return api_iprobe(ep, source, tag, context, false, NULL, status);
}

int ibvx_improbe(struct ibvx *ep, int source, int tag, int context, ibvx_req *message, struct ibvx_status *status)
{
	*message = IBVX_REQ_NULL;
	return api_iprobe(ep, source, tag, context, false, message, status);
}

int ibvx_look(struct ibvx *ep, int source, int tag, int context, ibvx_req *message, struct ibvx_status *status)
{
	if (message)
		*message = IBVX_REQ_NULL;
	return api_iprobe(ep, source, tag, context, true, message, status);
}

struct api_probe {
	int source, tag, context, found;
	struct umsg *message;
};

static bool api_probed(struct ibvx *ep, void *arg)
{
	struct api_probe *a = arg;

	a->message = match_peek(ep, a->source, a->tag, a->context);
	if (a->message || peer_ended_source(ep, a->source))
		return true;
	flow_emergency_source(ep, a->source);
	return false;
}

int ibvx_probe(struct ibvx *ep, int source, int tag, int context, struct ibvx_status *status)
{
	struct api_probe a = {source, tag, context, 0, NULL};
	struct waiter w = {.wants_message = true};
	struct umsg *u;
	int rc = api_check_source(ep, source);

	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0) {
		match_interest(ep, source, 1);
		rc = wait_until(ep, &w, api_probed, &a, -1);
		match_interest(ep, source, -1);
	}
	if (rc == 0)
		rc = api_look(ep, source, tag, context, true, &u);
	if (rc == 1)
		api_probe_status(u, status);
	core_unlock(ep);
	return rc > 0 ? 0 : rc;
}
