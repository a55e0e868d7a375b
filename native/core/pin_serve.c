/* SPDX-License-Identifier: MIT */
#include "core/pin_serve.h"

#include <errno.h>

#include "base/clock.h"
#include "core/complete.h"
#include "core/lease.h"
#include "core/peer.h"
#include "core/pin.h"
#include "core/progress.h"
#include "core/rendezvous.h"
#include "core/send.h"
#include "core/waiter.h"

/* Most bytes that one pin transfers through a ring: what a ring holds by default, a copy of some ten
 * microseconds. */
#define PIN_BYTES (256u << 10)
/* Packets that one pin takes in of each peer, at most. */
#define PIN_PACKETS 4
/* Pins that a call which does not wait makes for zero-copy sends. */
#define PIN_SERVE_MAX 4

/* Sends from r's memory, which is pinned, as much as one pin may. */
static void pin_push(struct request *r)
{
	struct peer *p = r->peer;
	uint64_t end = r->at + PIN_BYTES;
	int rc = 0;

	while (rc == 0 && r->at < end && p->state == PEER_OPEN && !p->error) {
		bool first = (r->state == REQ_QUEUED || r->state == REQ_PUSHING) && p->sends.next == &r->link;

		if (r->state != REQ_STREAMING && !first)
			break;
		rc = r->emit(r);
	}
	if (rc < 0 && rc != -EAGAIN && rc != -ENOBUFS)
		peer_set_error(p, rc);
}

/* What has bounced goes to r's memory first; then what arrives may go straight there. */
static void pin_pull(struct ibvx *ep, struct request *r)
{
	uint64_t end = r->at + PIN_BYTES;

	if (buffer_settle(&r->buffer, PIN_BYTES)) {
		r->buffer.pin->wanted = buffer_has_bounced(&r->buffer) || r->buffer.pin->lease_bytes;
		return;
	}
	for (int n = 0; n < PIN_PACKETS && r->at < end && r->state != REQ_DONE; n++) {
		if (progress_poll(ep, 1) == 0)
			break;
	}
}

void pin_count(struct ibvx *ep, int64_t ns)
{
	ep->pins++;
	if ((uint64_t)ns > ep->pin_longest_ns)
		ep->pin_longest_ns = (uint64_t)ns;
}

bool pin_serve(struct ibvx *ep, struct request *r)
{
	struct ibvx_pin *pin = r->buffer.pin;
	bool leased = false;
	int64_t begin_ns;
	void *at;

	r->served = true;
	pin->wanted = false;
	list_remove(&r->buffer.wanting);
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	at = pin->enter(pin);
	begin_ns = clock_now_ns();
	core_lock(ep);
	if (at) { /* else the turn is an ordinary one: what has come is bounced, what is to go calls again if there is room */
		leased = r->kind == REQ_SEND ? rendezvous_push(ep, r, at) : rendezvous_pull(ep, r, at);
		if (!leased) {
			buffer_set_address(&r->buffer, at);
			if (r->kind == REQ_SEND)
				pin_push(r);
			else
				pin_pull(ep, r);
			buffer_set_address(&r->buffer, NULL);
		}
		pin_count(ep, clock_now_ns() - begin_ns);
		core_unlock(ep);
		pin->leave(pin, at);
		core_lock(ep);
		if (leased) /* a message may be leased throughout: others must not wait for its end */
			progress_run(ep);
		else
			progress_flush(ep);
	}
	ep->users--;
	r->served = false;
	if (r->state == REQ_DONE)
		complete_released(ep, r);
	else if (pin->wanted) /* more to do: no sleep before that */
		pin_call(r);
	return at != NULL;
}

/* The first zero-copy send that no thread serves. */
static struct request *pin_next_zero_copy(struct ibvx *ep)
{
	for (struct list *l = ep->wanting.next; l != &ep->wanting; l = l->next) {
		struct request *r = LIST_ITEM(l, struct request, buffer.wanting);

		if (!r->served)
			return r;
	}
	return NULL;
}

void pin_serve_zero_copy_now(struct ibvx *ep)
{
	for (int n = 0; n < PIN_SERVE_MAX; n++) {
		struct request *r = pin_next_zero_copy(ep);

		if (!r)
			return;
		pin_serve(ep, r);
	}
}

bool pin_turn(struct ibvx *ep, struct waiter *w)
{
	struct request *r = w->pinned_request, *zero_copy = NULL;

	if (r && (r->state == REQ_DONE || r->served || !(r->buffer.pin->wanted || (r->kind == REQ_RECV && core_ready(ep)))))
		r = NULL;
	if (!list_empty(&ep->wanting))
		zero_copy = pin_next_zero_copy(ep);
	if (r && zero_copy) /* a receive into which much comes does not hold up what goes out */
		w->zero_copy_next = !w->zero_copy_next;
	if (zero_copy && (!r || w->zero_copy_next)) {
		if (r) /* its own turn is the next: no sleep before that */
			atomic_store_explicit(&w->signal, 1, memory_order_relaxed);
		r = zero_copy;
	}
	return r && pin_serve(ep, r);
}
