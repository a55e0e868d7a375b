/* SPDX-License-Identifier: MIT */
/* Sends, receives and probes of ibvx.h; complete_api.c has waiting and testing. */
#include "core/api.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
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
#include "ibvx_pin.h"

int api_not_rank(const struct ibvx *ep, int rank, const char *what)
{
	return error_set(-EINVAL, "%s %d is not a rank of this job: 0 to %d are", what, rank, ep->size - 1);
}

static inline int api_check_source(const struct ibvx *ep, int source)
{
	return source == IBVX_ANY_SOURCE ? 0 : api_check_rank(ep, source, "source");
}

int api_not_open(const struct ibvx *ep)
{
	return error_set(-ESHUTDOWN, "the endpoint of rank %d is closed or closing", ep->rank);
}

int api_not_send(const struct ibvx_sbuf *buf)
{
	if (buf->head_bytes > API_BYTES_MAX || buf->body_bytes > API_BYTES_MAX)
		return error_set(-EINVAL, "a send of %zu + %zu bytes: the most is %zu", buf->head_bytes,
				 buf->body_bytes, API_BYTES_MAX);
	return error_set(-EINVAL, "a send of %zu + %zu bytes from a NULL address", buf->head_bytes, buf->body_bytes);
}

bool api_request_done(struct ibvx *ep, void *arg)
{
	const struct request *r = arg;

	(void)ep;
	return atomic_load_explicit(&r->done, memory_order_acquire);
}

int api_wait_pending(struct ibvx *ep, struct request *r, struct ibvx_status *status)
{
	struct waiter w = {0};
	int rc = 0;

	receive_end_hopeless(ep, r);
	if (r->state != REQ_DONE) {
		r->waiter = &w;
		rc = wait_until(ep, &w, api_request_done, r, -1);
		r->waiter = NULL;
	}
	return rc ? rc : complete_consume(ep, r, status);
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
	return rc ? rc : eager_try(p, buf, tag, context);
}

/* 1: it has left as one packet; 0: it takes the general way. */
int api_at_once(struct peer *p, const struct ibvx_sbuf *buf, int tag, int context)
{
	int rc = eager_try(p, buf, tag, context);

	return rc ? rc : api_look_for_credit(p, buf, tag, context);
}

static int api_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync)
{
	int rc = api_check_send(ep, buf, dest);
	struct request *r;

	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = peer_check(&ep->peers[dest]);
	if (rc == 0 && !sync)
		rc = api_at_once(&ep->peers[dest], buf, tag, context);
	if (rc) {
		core_unlock(ep);
		return rc < 0 ? rc : 0;
	}
	r = api_new_send(ep, buf, dest, tag, context, sync);
	if (!r) {
		core_unlock(ep);
		return -ENOMEM;
	}
	r->blocking = true;
	send_start(r);
	rc = api_wait_request(ep, r, NULL);
	core_unlock(ep);
	return rc;
}

int ibvx_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	return api_send(ep, buf, dest, tag, context, false);
}

int ibvx_ssend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	return api_send(ep, buf, dest, tag, context, true);
}

int ibvx_send_at_once(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context)
{
	int rc = api_check_send(ep, buf, dest);

	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = peer_check(&ep->peers[dest]);
	if (rc == 0)
		rc = api_at_once(&ep->peers[dest], buf, tag, context);
	core_unlock(ep);
	return rc;
}

void api_start_send(struct ibvx *ep, struct request *r, const struct ibvx_sbuf *buf)
{
	int rc = r->sync ? 0 : api_at_once(r->peer, buf, r->tag, r->context);

	if (rc == 0)
		send_start(r);
	else
		complete_request(ep, r, rc > 0 ? 0 : rc);
}

static int api_isend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
		     ibvx_req *req)
{
	int rc = api_check_send(ep, buf, dest);
	struct request *r = NULL;

	*req = IBVX_REQ_NULL;
	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = peer_check(&ep->peers[dest]);
	if (rc == 0) {
		r = api_new_send(ep, buf, dest, tag, context, sync);
		if (!r)
			rc = -ENOMEM;
	}
	if (rc == 0) {
		*req = request_handle(r);
		api_start_send(ep, r, buf);
		background_start(ep, r);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_isend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, ibvx_req *req)
{
	return api_isend(ep, buf, dest, tag, context, false, req);
}

int ibvx_issend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, ibvx_req *req)
{
	return api_isend(ep, buf, dest, tag, context, true, req);
}

static int api_check_recv(const struct ibvx_rbuf *buf, bool has_status)
{
	if (buf->split && !has_status)
		return error_set(-EINVAL, "a split receive needs a status, which hands over the body");
	if (!buf->base && buf->capacity_bytes)
		return error_set(-EINVAL, "a receive of up to %zu bytes to a NULL address", buf->capacity_bytes);
	return 0;
}

/* Posts a receive, or takes *message if it is not NULL. Lock held. */
static int api_start_recv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context,
			  struct umsg *message, bool blocking, struct request **out)
{
	struct request *r = receive_new(ep, buf, source, tag, context);

	if (!r)
		return -ENOMEM;
	r->blocking = blocking;
	*out = r;
	if (message)
		receive_extracted(ep, r, message);
	else
		receive_post(ep, r);
	return 0;
}

int ibvx_recv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context,
	      struct ibvx_status *status)
{
	struct direct_recv l = {.buf = buf, .source = source, .tag = tag, .context = context};
	int rc = api_check_source(ep, source);

	if (rc == 0)
		rc = api_check_recv(buf, status != NULL);
	if (rc)
		return rc;
	core_lock(ep);
	direct_recv_poll(ep, &l);
	if (l.done) {
		core_unlock(ep);
		if (status)
			*status = l.status;
		return 0;
	}
	if (!l.request) {
		rc = api_check_open(ep);
		if (rc == 0)
			rc = api_start_recv(ep, buf, source, tag, context, NULL, true, &l.request);
	}
	if (rc == 0)
		rc = api_wait_request(ep, l.request, status);
	core_unlock(ep);
	return rc;
}

int ibvx_irecv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context, ibvx_req *req)
{
	struct request *r;
	int rc = api_check_source(ep, source);

	*req = IBVX_REQ_NULL;
	if (rc == 0)
		rc = api_check_recv(buf, true);
	if (rc)
		return rc;
	core_lock(ep);
	rc = api_check_open(ep);
	if (rc == 0)
		rc = api_start_recv(ep, buf, source, tag, context, NULL, false, &r);
	if (rc == 0) {
		*req = request_handle(r);
		background_start(ep, r);
	}
	core_unlock(ep);
	return rc;
}

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
	return gone->state == PEER_FAILED
		       ? error_set(gone->fail_code, "%s", gone->why ? gone->why : "the peer failed")
		       : error_set(-EPIPE, "rank %d has finished: no message of it will come any more", gone->rank);
}

/* iprobe and improbe: message == NULL leaves it in the queue. */
static int api_iprobe(struct ibvx *ep, int source, int tag, int context, ibvx_req *message,
		      struct ibvx_status *status)
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
		rc = api_look(ep, source, tag, context, false, &u);
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
	core_unlock(ep);
	if (rc == 0)
		wait_idle_test(ep);
	return rc;
}

int ibvx_iprobe(struct ibvx *ep, int source, int tag, int context, struct ibvx_status *status)
{
	return api_iprobe(ep, source, tag, context, NULL, status);
}

int ibvx_improbe(struct ibvx *ep, int source, int tag, int context, ibvx_req *message,
		 struct ibvx_status *status)
{
	*message = IBVX_REQ_NULL;
	return api_iprobe(ep, source, tag, context, message, status);
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

/* Takes the message out of its handle; the handle is gone. Lock held. */
struct umsg *api_take_message(struct ibvx *ep, ibvx_req *message)
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

static int api_mrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, bool blocking,
		     bool has_status, struct request **out)
{
	int rc = api_check_recv(buf, has_status);
	struct umsg *u;

	if (rc == 0)
		rc = api_check_open(ep);
	if (rc)
		return rc;
	u = api_take_message(ep, message);
	if (!u)
		return -EINVAL;
	rc = api_start_recv(ep, buf, u->peer->rank, u->tag, u->context, u, blocking, out);
	if (rc)
		receive_discard(ep, u);
	return rc;
}

int ibvx_mrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, struct ibvx_status *status)
{
	struct request *r;
	int rc;

	core_lock(ep);
	rc = api_mrecv(ep, message, buf, true, status != NULL, &r);
	if (rc == 0)
		rc = api_wait_request(ep, r, status);
	core_unlock(ep);
	return rc;
}

int ibvx_imrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, ibvx_req *req)
{
	struct request *r;
	int rc;

	*req = IBVX_REQ_NULL;
	core_lock(ep);
	rc = api_mrecv(ep, message, buf, false, true, &r);
	if (rc == 0) {
		*req = request_handle(r);
		background_start(ep, r);
	}
	core_unlock(ep);
	return rc;
}
