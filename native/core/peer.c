/* SPDX-License-Identifier: MIT */
#include "core/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/complete.h"
#include "core/flow_control.h"
#include "core/pin.h"
#include "core/recv.h"
#include "core/send.h"
#include "core/progress.h"

/* Packets that one flush sends at most, so that the lock is not held for long. */
#define PEER_FLUSH_MAX 16

void peer_init(struct peer *p, struct ibvx *ep, int rank)
{
	*p = (struct peer){.ep = ep, .rank = rank};
	list_init(&p->controls);
	list_init(&p->sends);
	list_init(&p->streams);
	list_init(&p->busy);
}

void peer_fini(struct peer *p)
{
	free(p->why);
	p->why = NULL;
}

bool peer_idle(const struct peer *p)
{
	return list_empty(&p->controls) && list_empty(&p->sends) && list_empty(&p->streams) &&
	       p->pending_credit == 0 && !p->pending_emergency && !p->pending_stalled && !p->pending_bye;
}

void peer_busy(struct peer *p)
{
	if (!list_empty(&p->busy))
		return;
	list_append(&p->ep->busy, &p->busy);
	atomic_fetch_add_explicit(&p->ep->busy_count, 1, memory_order_relaxed);
}

static void peer_not_busy(struct peer *p)
{
	if (list_empty(&p->busy))
		return;
	list_remove(&p->busy);
	atomic_fetch_sub_explicit(&p->ep->busy_count, 1, memory_order_relaxed);
}

/* A packet without payload. */
static int peer_bare(struct peer *p, enum wire_kind kind, const struct wire_ctl *ctl)
{
	struct transport_slot slot;
	int rc = p->transport->ops->reserve(p->transport, p->rank, 0, &slot);

	if (rc < 0)
		return rc;
	p->talked = true;
	slot.hdr->kind = (uint8_t)kind;
	slot.hdr->flags = 0;
	slot.hdr->len = 0;
	slot.hdr->ctl = *ctl;
	p->transport->ops->commit(p->transport, p->rank, &slot);
	return 0;
}

int peer_control(struct peer *p, enum wire_kind kind, uint32_t id, uint32_t from, uint64_t value)
{
	return peer_bare(p, kind, &(struct wire_ctl){.id = id, .from = from, .value = value});
}

/* The control packet that a request pending_control. */
static int peer_emit_control(struct request *r, enum wire_kind kind)
{
	if (kind == WIRE_CTS)
		return recv_emit_cts(r);
	return peer_bare(r->peer, kind, &(struct wire_ctl){.id = r->remote, .from = request_wire_id(r)});
}

/* Credit says how much of it is a grant: that part carries envelopes only. */
static int peer_credit(struct peer *p)
{
	struct transport_slot slot;
	int rc = p->transport->ops->reserve(p->transport, p->rank, 0, &slot);

	if (rc < 0)
		return rc;
	slot.hdr->kind = WIRE_CREDIT;
	slot.hdr->flags = 0;
	slot.hdr->len = 0;
	slot.hdr->ctl = (struct wire_ctl){.offset = p->emergency, .value = p->pending_credit};
	p->transport->ops->commit(p->transport, p->rank, &slot);
	return 0;
}

/* The control packets of requests, then those of the peer itself. */
static int peer_flush_controls(struct peer *p, int *sent)
{
	int rc;

	while (!list_empty(&p->controls)) {
		struct request *r = LIST_ITEM(p->controls.next, struct request, link);

		rc = peer_emit_control(r, (enum wire_kind)r->pending_control);
		if (rc < 0)
			return rc;
		(*sent)++;
		list_remove(&r->link);
		r->pending_control = 0;
		complete_released(p->ep, r);
	}
	if (p->pending_credit || p->pending_emergency) {
		rc = peer_credit(p);
		if (rc < 0)
			return rc;
		p->pending_emergency = false;
		p->credit_out += p->pending_credit;
		p->pending_credit = 0;
		(*sent)++;
	}
	if (p->pending_stalled) {
		rc = peer_control(p, WIRE_STALLED, 0, 0, p->credit_in);
		if (rc < 0)
			return rc;
		p->pending_stalled = false;
		(*sent)++;
	}
	return 0;
}

static int peer_flush_sends(struct peer *p, int *sent)
{
	while (!list_empty(&p->sends) && *sent < PEER_FLUSH_MAX) {
		int rc = send_emit(LIST_ITEM(p->sends.next, struct request, link));

		if (rc == -ENOBUFS) { /* no credit: envelopes wait, the rest goes on */
			if (p->stalled_sent)
				return 0;
			p->stalled_sent = true;
			p->pending_stalled = true;
			return peer_flush_controls(p, sent);
		}
		if (rc < 0)
			return rc;
		(*sent)++;
	}
	return 0;
}

/* PIN_ABSENT: all that are left wait for their owners. Of streams from lent memory only the first is served: so they come one after
 * the other, and who waits for the first can take it where it belongs. */
static int peer_flush_streams(struct peer *p, int *sent)
{
	const struct request *absent = NULL; /* the first of those that do, since one went on */
	bool lent = false;

	while (!list_empty(&p->streams) && *sent < PEER_FLUSH_MAX) {
		struct request *r = LIST_ITEM(p->streams.next, struct request, link);
		int rc = r == absent || (lent && pin_zero_copy(r)) ? PIN_ABSENT : send_stream(r);

		if (r == absent || (rc < 0 && rc != PIN_ABSENT))
			return rc;
		if (rc == 0) {
			absent = NULL;
			(*sent)++;
		} else {
			lent = lent || pin_zero_copy(r);
			absent = absent ? absent : r;
		}
		if (r->state == REQ_STREAMING) { /* next one's turn */
			list_remove(&r->link);
			list_append(&p->streams, &r->link);
		}
	}
	return 0;
}

/* Sends and streams take turns in going first, so that neither fills the ring for good; nor does either wait for an
 * owner of the other's. */
static int peer_flush_payload(struct peer *p, int *sent)
{
	int rc, then;

	if (list_empty(&p->streams))
		return peer_flush_sends(p, sent);
	p->streams_first = !p->streams_first;
	rc = p->streams_first ? peer_flush_streams(p, sent) : peer_flush_sends(p, sent);
	if (rc && rc != PIN_ABSENT)
		return rc;
	then = p->streams_first ? peer_flush_sends(p, sent) : peer_flush_streams(p, sent);
	return then ? then : rc;
}

static int peer_flush_bye(struct peer *p, int *sent)
{
	int rc;

	if (!p->pending_bye || !list_empty(&p->sends) || !list_empty(&p->streams))
		return 0;
	rc = peer_control(p, WIRE_BYE, 0, 0, 0);
	if (rc == 0) {
		p->pending_bye = false;
		p->sent_bye = true;
		(*sent)++;
	}
	return rc;
}

void peer_set_error(struct peer *p, int code)
{
	if (p->error)
		return;
	p->error = code;
	free(p->why);
	p->why = strdup(error_text());
	peer_busy(p);
	progress_wake(p->ep);
}

int peer_flush(struct peer *p)
{
	int sent = 0, rc;

	if (p->state != PEER_OPEN) {
		peer_not_busy(p);
		return 0;
	}
	if (p->error)
		return 0;
	rc = peer_flush_controls(p, &sent);
	if (rc == 0)
		rc = peer_flush_payload(p, &sent);
	if (rc == 0)
		rc = peer_flush_bye(p, &sent);
	if (rc < 0 && rc != -EAGAIN && rc != PIN_ABSENT) {
		peer_set_error(p, rc);
		rc = -EAGAIN;
	}
	/* sends that wait for credit alone need no polling: CREDIT flushes */
	if (rc == 0 && list_empty(&p->streams) && (list_empty(&p->sends) || p->stalled_sent))
		peer_not_busy(p);
	else
		peer_busy(p);
	return sent;
}

void peer_queue_control(struct request *r, enum wire_kind kind)
{
	struct peer *p = r->peer;

	if (p->state != PEER_OPEN)
		return;
	if (list_empty(&p->controls) && peer_emit_control(r, kind) == 0)
		return;
	r->pending_control = (uint8_t)kind;
	list_append(&p->controls, &r->link);
	peer_busy(p);
}

int peer_why_not(const struct peer *p)
{
	const struct ibvx *ep = p->ep;

	if (ep->fault_job && ep->failed_rank >= 0)
		p = &ep->peers[ep->failed_rank];
	switch (p->state) {
	case PEER_OPEN:
		return 0;
	case PEER_CLOSED:
		return error_set(-EPIPE, "rank %d has finished: nothing can be sent to it or received from it any more",
				 p->rank);
	case PEER_FAILED:
		return error_set(p->fail_code, "%s", p->why ? p->why : "the peer failed");
	}
	return -EINVAL;
}

/* Does the end of p (code) end r too? */
static bool peer_concerns(const struct peer *p, const struct request *r, int code)
{
	if (r->state == REQ_DONE || r->state == REQ_FREE)
		return false;
	if (code != -EPIPE && p->ep->fault_job)
		return r->state != REQ_MESSAGE;
	if (r->state == REQ_POSTED && r->source == IBVX_ANY_SOURCE)
		return code != -EPIPE || (p->ep->open_peers == 0 && (r->blocking || r->waiter));
	if (r->state == REQ_POSTED)
		return r->source == p->rank;
	if (r->state == REQ_MESSAGE)
		return false; /* decided when it is received */
	return r->peer == p;
}

/* Every request that the end of p ends, through the same door as success. */
static void peer_end_requests(struct peer *p, int code)
{
	struct ibvx *ep = p->ep;
	uint32_t slots = ep->requests.chunk_count * REQUEST_CHUNK;

	for (uint32_t i = 0; i < slots; i++) {
		struct request *r = request_at(&ep->requests, i);

		if (!r)
			continue;
		if (r->pending_control && r->peer == p) {
			list_remove(&r->link);
			r->pending_control = 0;
			complete_released(ep, r);
			if (r->state == REQ_FREE)
				continue;
		}
		if (!peer_concerns(p, r, code))
			continue;
		if (r->state == REQ_POSTED)
			recv_unpost(ep, r);
		if (r->state == REQ_GETTING || r->state == REQ_PUTTING)
			r->peer->transport->ops->cancel(r->peer->transport, r->peer->rank, request_handle(r));
		if (r->peer && r->peer->inflow_request == r) {
			r->peer->inflow = INFLOW_DROP;
			r->peer->inflow_request = NULL;
		}
		list_remove(&r->link);
		r->pending_control = 0;
		complete_release_rkey(r); /* its memory is known to its own peer's transport, p is only to blame */
		if (r->kind == REQ_RECV)
			r->peer = p;
		complete_request(ep, r, code);
	}
}

static void peer_gone(struct peer *p, enum peer_state state)
{
	if (p->state == PEER_OPEN && p->rank != p->ep->rank)
		p->ep->open_peers--;
	p->state = state;
	flow_stalled(p, false);
	p->pending_credit = 0;
	p->pending_emergency = false;
	p->pending_stalled = false;
	p->pending_bye = false;
	peer_not_busy(p);
}

void peer_on_bye(struct peer *p)
{
	if (p->state != PEER_OPEN)
		return;
	log_debug(&p->ep->log, "rank %d has finished", p->rank);
	peer_gone(p, PEER_CLOSED);
	peer_end_requests(p, -EPIPE);
	progress_signal_all(p->ep);
}

void peer_left(struct peer *p)
{
	const struct transport *t = p->transport;

	p->left = true;
	/* the star is another way than that of the messages, and may be faster */
	if (p->state != PEER_OPEN || !t || !t->ops->awaits || !t->ops->awaits(t, p->rank))
		peer_on_bye(p);
}

/* The first death that this rank learns of: if we end because of it, others should name it. */
static void peer_blame(const struct peer *p)
{
	struct ibvx *ep = p->ep;

	ep->failed_rank = p->rank;
	for (int i = 0; i < ep->transport_count; i++) {
		if (ep->transports[i]->ops->blame)
			ep->transports[i]->ops->blame(ep->transports[i], p->rank);
	}
}

void peer_fail(struct peer *p, int code, const char *why)
{
	struct ibvx *ep = p->ep;

	if (p->state != PEER_OPEN || p->rank == ep->rank)
		return;
	log_warn(&ep->log, "rank %d failed: %s", p->rank, why);
	if (why != p->why) {
		free(p->why);
		p->why = strdup(why);
	}
	p->fail_code = code;
	if (ep->failed_rank < 0)
		peer_blame(p);
	peer_gone(p, PEER_FAILED);
	p->transport->ops->forget(p->transport, p->rank);
	/* the end of a process shows in the star by itself, a dead link does not: who only waits has to be told */
	if (ep->fault_job && code != -ECONNRESET && ep->bootstrap)
		bootstrap_report_lost(ep->bootstrap, p->rank, why);
	peer_end_requests(p, code);
	progress_signal_all(ep);
}

void peer_died(struct peer *p, const char *why)
{
	struct ibvx *ep = p->ep;
	char first[160];

	for (int i = 0; p->state == PEER_OPEN && i < ep->transport_count; i++) {
		const struct transport *t = ep->transports[i];
		int cause = t->ops->cause ? t->ops->cause(t, p->rank) : -1;

		if (cause < 0 || cause == p->rank)
			continue;
		snprintf(first, sizeof(first), "rank %d died, and rank %d gave up because of it", cause, p->rank);
		peer_fail(&ep->peers[cause], -ECONNRESET, first);
	}
	peer_fail(p, -ECONNRESET, why);
}

void peer_broken(struct peer *p, const char *fmt, ...)
{
	char what[200], why[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(why, sizeof(why), "rank %d broke the protocol (%s): do all ranks run the same version of ibvdev?",
		 p->rank, what);
	peer_fail(p, -EPROTO, why);
}
