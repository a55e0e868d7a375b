/* SPDX-License-Identifier: MIT */
#include "core/pin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/complete.h"
#include "core/peer.h"
#include "core/send.h"
#include "core/progress.h"
#include "core/lease.h"

/* Regions that a call opens for lent memory which does not wait itself. */
#define PIN_SERVE_MAX 4

void pin_set_address(struct request *r, void *at)
{
	r->base[0] = at;
	if (r->kind == REQ_SEND)
		r->base[1] = at ? (char *)at + r->bytes[0] : NULL;
}

void pin_drop(struct ibvx *ep, struct request *r)
{
	if (!pin_zero_copy(r))
		return;
	list_remove(&r->wanting);
	r->pin->next = ep->dropped;
	ep->dropped = r->pin;
	r->pin = NULL;
}

static void pin_end(struct ibvx_pin *dropped)
{
	while (dropped) {
		struct ibvx_pin *heap = dropped;

		dropped = heap->next;
		heap->drop(heap);
	}
}

void pin_unlock(struct ibvx *ep)
{
	struct ibvx_pin *dropped = ep->dropped;

	ep->dropped = NULL;
	core_unlock(ep);
	pin_end(dropped);
}

void pin_close(struct ibvx *ep)
{
	pin_end(ep->dropped);
	ep->dropped = NULL;
}

/* Who is to serve r comes. */
static void pin_call(struct request *r)
{
	if (r->waiter)
		progress_call(r->peer->ep, r->waiter);
	else if (pin_zero_copy(r))
		progress_call_any(r->peer->ep);
}

void pin_call_owner(struct request *r)
{
	if (!r->pin || r->pin->wanted)
		return;
	r->pin->wanted = true;
	if (pin_zero_copy(r))
		list_append(&r->peer->ep->wanting, &r->wanting);
	if (!r->served) /* else who serves it looks again */
		pin_call(r);
}

int pin_want(struct request *r)
{
	pin_call_owner(r);
	return PIN_ABSENT;
}

char *pin_bounce(struct request *r)
{
	if (!r->bounce)
		r->bounce = malloc(request_total(r));
	return r->bounce;
}

void pin_write(struct request *r, uint64_t at, const void *from, size_t len)
{
	struct ibvx *ep = r->peer->ep;

	if (len == 0)
		return;
	if (r->base[0] && r->bounce_at == r->bounce_end) {
		memcpy(r->base[0] + at, from, len);
		r->bounce_at = at + len;
		r->bounce_end = at + len;
		return;
	}
	if (!pin_bounce(r)) {
		r->lost = true;
		return;
	}
	memcpy(r->bounce + at, from, len);
	r->bounce_end = at + len;
	ep->bounced_bytes += len;
	pin_call_owner(r);
}

/* Sends from r's memory, which is in reach, as much as one region may. */
static void pin_push(struct request *r)
{
	struct peer *p = r->peer;
	uint64_t end = r->at + PIN_REGION_BYTES;
	int rc = 0;

	while (rc == 0 && r->at < end && p->state == PEER_OPEN && !p->error) {
		if (r->state == REQ_STREAMING)
			rc = send_stream(r);
		else if ((r->state == REQ_QUEUED || r->state == REQ_PUSHING) && p->sends.next == &r->link)
			rc = send_emit(r);
		else
			break;
	}
	if (rc < 0 && rc != -EAGAIN && rc != -ENOBUFS)
		peer_set_error(p, rc);
}

/* What is staged goes to r's memory first; then what has arrived may go straight there. */
static void pin_pull(struct ibvx *ep, struct request *r)
{
	size_t left = (size_t)(r->bounce_end - r->bounce_at);

	if (left == 0) {
		uint64_t end = r->at + PIN_REGION_BYTES;

		for (int n = 0; n < PIN_REGION_PACKETS && r->at < end && r->state != REQ_DONE; n++) {
			if (progress_poll(ep, 1) == 0)
				break;
		}
		return;
	}
	if (left > PIN_REGION_BYTES)
		left = PIN_REGION_BYTES;
	memcpy(r->base[0] + r->bounce_at, r->bounce + r->bounce_at, left);
	r->bounce_at += left;
	r->pin->wanted = r->bounce_at < r->bounce_end || r->pin->lease_bytes;
}

void pin_count_region(struct ibvx *ep, int64_t ns)
{
	ep->regions++;
	if ((uint64_t)ns > ep->region_longest_ns)
		ep->region_longest_ns = (uint64_t)ns;
}

bool pin_serve(struct ibvx *ep, struct request *r)
{
	struct ibvx_pin *place = r->pin;
	bool window = false;
	int64_t begin_ns;
	void *at;

	r->served = true;
	place->wanted = false;
	list_remove(&r->wanting);
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	at = place->enter(place);
	begin_ns = clock_now_ns();
	core_lock(ep);
	if (at) { /* else the turn is an ordinary one: what has come is staged, what is to go calls again if there is room */
		window = r->kind == REQ_SEND ? lease_push(ep, r, at) : lease_pull(ep, r, at);
		if (!window) {
			pin_set_address(r, at);
			if (r->kind == REQ_SEND)
				pin_push(r);
			else
				pin_pull(ep, r);
			pin_set_address(r, NULL);
		}
		pin_count_region(ep, clock_now_ns() - begin_ns);
		core_unlock(ep);
		place->leave(place, at);
		core_lock(ep);
		if (window) /* a message may be windows throughout: others are not forgotten over it */
			progress_run(ep);
		else
			progress_flush(ep);
	}
	ep->users--;
	r->served = false;
	if (r->state == REQ_DONE)
		complete_released(ep, r);
	else if (place->wanted) /* more to do: no sleep before that */
		pin_call(r);
	return at != NULL;
}

/* The first of those whose memory is lent that nobody is at. */
static struct request *pin_next_zero_copy(struct ibvx *ep)
{
	for (struct list *l = ep->wanting.next; l != &ep->wanting; l = l->next) {
		struct request *r = LIST_ITEM(l, struct request, wanting);

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
	struct request *r = w->moving, *lent = NULL;

	if (r && (r->state == REQ_DONE || r->served || !(r->pin->wanted || (r->kind == REQ_RECV && progress_ready(ep)))))
		r = NULL;
	if (!list_empty(&ep->wanting) && !w->background)
		lent = pin_next_zero_copy(ep);
	if (r && lent) /* a receive into which much comes does not hold up what goes out */
		w->zero_copy_next = !w->zero_copy_next;
	if (lent && (!r || w->zero_copy_next)) {
		if (r) /* its own turn is the next: no sleep before that */
			atomic_store_explicit(&w->signal, 1, memory_order_relaxed);
		r = lent;
	}
	return r && pin_serve(ep, r);
}
