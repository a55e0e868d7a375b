/* SPDX-License-Identifier: MIT */
#include "core/window.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/complete.h"
#include "core/heap.h"
#include "core/peer.h"
#include "core/send.h"
#include "core/wait.h"

/* Looks at a window between two looks at the clock. */
#define WINDOW_LOOKS 32
/* Packets taken in at a time while a region is open. */
#define WINDOW_BUDGET 4
static_assert(WINDOW_BUDGET < TRANSPORT_BUDGET, "a collector may wait");

static_assert(sizeof(((struct ibvx_heap *)0)->window) == WIRE_WINDOW_BYTES, "a description fits");

static const struct transport_window *window_ops(const struct peer *p)
{
	return p->transport->ops->window;
}

static bool window_pays(const struct peer *p, size_t bytes)
{
	return window_ops(p)->pays(p->transport, p->rank, bytes);
}

bool window_waits(const struct request *r)
{
	const struct peer *p = r->peer;

	return r->heap && r->place && !heap_lent(r) && window_ops(p) && !p->no_get && !p->ep->oversubscribed &&
	       window_pays(p, request_total(r));
}

/* The word says what becomes of the window: no lock.  What end() says in the end. */
static int window_watch(const struct ibvx *ep, const struct peer *p)
{
	const struct transport_window *ops = window_ops(p);
	int64_t begin_ns = clock_now_ns(), open_ns = 0;
	enum transport_window_end how = TRANSPORT_LOOK;
	int rc;

	for (unsigned n = 1; (rc = ops->end(p->transport, p->rank, how)) == -EAGAIN; n++) {
		cpu_relax();
		if (n % WINDOW_LOOKS && open_ns < ep->window_ns)
			continue;
		open_ns = clock_now_ns() - begin_ns;
		how = open_ns < ep->window_ns           ? TRANSPORT_LOOK
		      : open_ns < ep->window_claimed_ns ? TRANSPORT_REVOKE
							: TRANSPORT_ABANDON;
		if (how != TRANSPORT_LOOK)
			sched_yield();
	}
	return rc;
}

/* Offers the next `bytes` bytes of r. 0, or what reserve() or open() says. */
static int window_offer(struct request *r, const char *at, size_t bytes)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	struct transport_slot slot;
	int rc = ops->reserve(p->transport, p->rank, WIRE_WINDOW_BYTES, &slot);

	if (rc < 0)
		return rc;
	rc = ops->window->open(p->transport, p->rank, at + r->at, bytes, slot.payload);
	if (rc < 0) {
		ops->discard(p->transport, p->rank, &slot);
		return rc;
	}
	slot.hdr->kind = WIRE_WINDOW;
	slot.hdr->flags = 0;
	slot.hdr->len = WIRE_WINDOW_BYTES;
	slot.hdr->ctl = (struct wire_ctl){.id = r->remote, .from = request_wire_id(r), .offset = r->at, .value = bytes};
	ops->commit(p->transport, p->rank, &slot);
	return 0;
}

/* A window whose word both sides see. */
static void window_push_seen(struct ibvx *ep, struct request *r, size_t bytes)
{
	struct peer *p = r->peer;
	struct waiter *w = r->waiter;
	int rc;

	wait_away(ep, w);
	core_unlock(ep);
	rc = window_watch(ep, p);
	core_lock(ep);
	w->away = false;
	p->windows += rc == 1;
	p->windows_missed += rc != 1;
	if (r->state == REQ_STREAMING && rc == 1) {
		r->at += bytes;
		send_streamed(r);
		return;
	}
	if (r->state == REQ_STREAMING && rc < 0 && r->windows) /* else another thread has seen that CTS already */
		send_await_cts(r);
	r->windows = false;
}

/* TAKEN has moved r on, CTS has taken its windows from it. */
static bool window_answered(const struct request *r)
{
	return !r->place->window_bytes || (r->state == REQ_STREAMING && !r->windows);
}

/* The answer comes as a packet: takes in what arrives until then, the lock released after each look. */
static void window_listen(struct ibvx *ep, const struct request *r)
{
	int64_t end_ns = clock_now_ns() + ep->window_claimed_ns;

	while (r->state == REQ_STREAMING && !window_answered(r) && !ep->aborted) {
		int events = wait_poll(ep, WINDOW_BUDGET);

		if (events > 0)
			wait_flush(ep); /* what another thread owes, perhaps the answer to a window of theirs */
		if (clock_now_ns() >= end_ns)
			return;
		core_unlock(ep);
		for (int i = 0; events == 0 && i < WINDOW_LOOKS && !wait_ready(ep); i++)
			cpu_relax();
		core_lock(ep);
	}
}

/* A window whose word this side alone sees.  Given up without an answer it is answered all the same, some time. */
static void window_push_told(struct ibvx *ep, struct request *r)
{
	struct peer *p = r->peer;
	bool taken;

	window_listen(ep, r);
	taken = !r->place->window_bytes;
	/* refused: its read may have been given up there and go on here */
	window_ops(p)->end(p->transport, p->rank, taken ? TRANSPORT_TAKEN : TRANSPORT_ABANDON);
	if (taken)
		return;
	p->windows_missed++;
	if (window_answered(r))
		r->place->window_bytes = 0;
	else if (r->state == REQ_STREAMING)
		send_await_cts(r);
	r->windows = false;
}

bool window_push(struct ibvx *ep, struct request *r, const char *at)
{
	struct peer *p = r->peer;
	size_t bytes = request_total(r) - r->at;

	if (r->state != REQ_STREAMING || !r->windows || p->state != PEER_OPEN || p->doomed || !window_pays(p, bytes))
		return false;
	if (bytes > WINDOW_BYTES)
		bytes = WINDOW_BYTES;
	if (window_offer(r, at, bytes) < 0)
		return false; /* as a stream it finds out why */
	if (window_ops(p)->seen) {
		window_push_seen(ep, r, bytes);
	} else {
		r->place->window_bytes = bytes;
		window_push_told(ep, r);
	}
	return true;
}

bool window_taken(struct request *r, uint64_t at)
{
	struct peer *p = r->peer;

	if (!r->place || r->place->window_bytes == 0 || at != r->at + r->place->window_bytes)
		return false;
	r->place->window_bytes = 0;
	r->at = at;
	p->windows++;
	p->windows_missed -= r->state == REQ_WAIT_CTS; /* it was given up, but not missed */
	if (r->state == REQ_STREAMING || at == request_total(r))
		send_streamed(r);
	else
		send_stream_start(r);
	return true;
}

void window_note(struct request *r, const void *desc, size_t bytes)
{
	if (!r->place) { /* its thread is away */
		window_decline(r);
		return;
	}
	memcpy(r->place->window, desc, WIRE_WINDOW_BYTES);
	r->place->window_bytes = bytes;
	heap_call_owner(r);
}

void window_forget(struct request *r)
{
	if (r->windows && r->place)
		r->place->window_bytes = 0;
}

void window_decline(struct request *r)
{
	if (window_ops(r->peer)->seen || r->state != REQ_FILLING)
		return;
	window_forget(r);
	r->windows = false;
	peer_owe(r, WIRE_CTS);
}

void window_prepare(struct ibvx *ep, const struct request *r)
{
	if (r->kind == REQ_RECV && r->place->window_bytes && !window_ops(r->peer)->seen)
		wait_progress(ep);
}

/* What was claimed has been copied, or has not (err). */
static void window_settle(struct ibvx *ep, struct request *r, struct peer *p, const void *desc, size_t bytes, int err)
{
	bool waits = r->state == REQ_FILLING; /* else its end has been told, and perhaps that of another peer */

	if (window_ops(p)->settle(p->transport, p->rank, desc, waits && err == 0)) {
		r->at += bytes;
		r->stage_at = r->at;
		r->stage_end = r->at;
		if (!window_ops(p)->seen)
			peer_owe(r, WIRE_TAKEN);
		if (r->at == request_total(r)) {
			p->bytes_in += r->at;
			complete_request(ep, r, 0);
		}
		return;
	}
	if (err) {
		log_info(&ep->log, "a window of rank %d could not be read (%s): the message goes another way", p->rank, error_text());
		p->no_get = p->no_get || err == -EPERM || err == -ENOSYS;
	}
	if (waits) { /* once more, as a stream */
		r->windows = false;
		peer_owe(r, WIRE_CTS);
	}
}

bool window_pull(struct ibvx *ep, struct request *r, char *at)
{
	struct ibvx_heap *place = r->place;
	size_t bytes = place->window_bytes;
	struct peer *p = r->peer;
	uint64_t desc[2];
	int rc;

	if (bytes == 0 || r->stage_at != r->stage_end)
		return false; /* what came before it goes first */
	place->window_bytes = 0;
	memcpy(desc, place->window, sizeof(desc));
	at += r->at;
	if (r->state != REQ_FILLING || p->state != PEER_OPEN)
		return false;
	if (window_ops(p)->claim(p->transport, p->rank, desc, at, bytes) < 0) {
		window_decline(r);
		return false;
	}
	core_unlock(ep);
	rc = window_ops(p)->copy(p->transport, p->rank, desc, at, bytes);
	core_lock(ep);
	place->wanted = false; /* nothing else comes for r before that is settled */
	window_settle(ep, r, p, desc, bytes, rc);
	return true;
}
