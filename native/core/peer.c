/* SPDX-License-Identifier: MIT */
#include "core/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/complete.h"
#include "core/pin.h"
#include "core/waiter.h"

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
	free(p->costs);
	p->costs = NULL;
}

bool peer_idle(const struct peer *p)
{
	return list_empty(&p->controls) && list_empty(&p->sends) && list_empty(&p->streams) && p->pending_credit == 0 &&
	       !p->pending_emergency && !p->pending_stalled && !p->pending_bye;
}

void peer_busy(struct peer *p)
{
	if (!list_empty(&p->busy))
		return;
	list_append(&p->ep->busy, &p->busy);
	atomic_fetch_add_explicit(&p->ep->busy_count, 1, memory_order_relaxed);
}

void peer_not_busy(struct peer *p)
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
		return r->emit(r);
	return peer_bare(r->peer, kind, &(struct wire_ctl){.id = r->remote, .from = request_wire_id(r)});
}

/* Credit reports how much of it is emergency credit: that part carries envelopes only. */
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

static int peer_flush_hints(struct peer *p, int *sent)
{
	for (unsigned k = 0; k < COST_CLASSES; k++) {
		struct choice *c = &p->costs[k];
		int rc;

		if (!c->hint_pending)
			continue;
		rc = peer_control(p, WIRE_HINT, k, c->in_best, c->in_interval);
		if (rc < 0)
			return rc;
		c->hint_pending = false;
		(*sent)++;
	}
	p->hints_pending = false;
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
	if (p->hints_pending) {
		rc = peer_flush_hints(p, sent);
		if (rc < 0)
			return rc;
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
		struct request *r = LIST_ITEM(p->sends.next, struct request, link);
		int rc = r->emit(r);

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

/* PIN_ABSENT: all that are left wait for their owners. Of zero-copy streams only the first is served: so they come one after
 * the other, and a thread that waits for the first can take it where it belongs. */
static int peer_flush_streams(struct peer *p, int *sent)
{
	const struct request *absent = NULL; /* the first of those that do, since one went on */
	bool zero_copy = false;

	while (!list_empty(&p->streams) && *sent < PEER_FLUSH_MAX) {
		struct request *r = LIST_ITEM(p->streams.next, struct request, link);
		int rc = r == absent || (zero_copy && pin_is_zero_copy(r)) ? PIN_ABSENT : r->emit(r);

		if (r == absent || (rc < 0 && rc != PIN_ABSENT))
			return rc;
		if (rc == 0) {
			absent = NULL;
			(*sent)++;
		} else {
			zero_copy = zero_copy || pin_is_zero_copy(r);
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
	waiter_wake(p->ep);
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

int peer_text(const struct peer *p)
{
	return error_concerns(error_set(p->fail_code, "%s", p->why ? p->why : "the peer failed"), p->rank);
}

int peer_why_not(const struct peer *p)
{
	const struct ibvx *ep = p->ep;

	if (ep->fault_job && ep->failed_rank >= 0)
		p = &ep->peers[ep->failed_rank];
	switch (p->state) {
	case PEER_OPEN: return 0;
	case PEER_CLOSED:
		return error_concerns(
			error_set(-EPIPE, "rank %d has finished: nothing can be sent to it or received from it any more", p->rank),
			p->rank);
	case PEER_FAILED: return peer_text(p);
	}
	return -EINVAL;
}

/* A wildcard receive that finds nothing must learn of every death once, and must not wait
 * when nobody is left to send. */
static struct peer *peer_ended_any(struct ibvx *ep)
{
	if (ep->failed_rank < 0 && (ep->open_peers > 0 || ep->size == 1))
		return NULL;
	for (int r = 0; r < ep->size; r++) {
		if (ep->peers[r].state == PEER_FAILED && !ep->peers[r].reported)
			return &ep->peers[r];
	}
	if (ep->open_peers > 0)
		return NULL;
	for (int r = 0; r < ep->size; r++) {
		if (ep->peers[r].state != PEER_OPEN)
			return &ep->peers[r];
	}
	return NULL;
}

/* The peer whose end forbids this receive or probe to wait, or NULL. */
static struct peer *peer_ended_source_slow(struct ibvx *ep, int source)
{
	if (ep->fault_job && ep->failed_rank >= 0)
		return &ep->peers[ep->failed_rank];
	if (source == IBVX_ANY_SOURCE)
		return peer_ended_any(ep);
	return ep->peers[source].state == PEER_OPEN ? NULL : &ep->peers[source];
}

struct peer *peer_ended_source(struct ibvx *ep, int source)
{
	if (source != IBVX_ANY_SOURCE && ep->peers[source].state == PEER_OPEN && ep->failed_rank < 0)
		return NULL;
	return peer_ended_source_slow(ep, source);
}

void peer_broken(struct peer *p, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	error_set(-EPROTO, "rank %d broke the protocol (%s): do all ranks run the same version of ibvdev?", p->rank, what);
	peer_set_error(p, -EPROTO);
}
