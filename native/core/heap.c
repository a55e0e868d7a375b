/* SPDX-License-Identifier: MIT */
#include "core/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/complete.h"
#include "core/peer.h"
#include "core/send.h"
#include "core/wait.h"
#include "core/window.h"

/* Regions that a call opens for lent memory which does not wait itself. */
#define HEAP_SERVE_MAX 4

void heap_reach(struct request *r, void *at)
{
	r->base[0] = at;
	if (r->kind == REQ_SEND)
		r->base[1] = at ? (char *)at + r->bytes[0] : NULL;
}

void heap_drop(struct ibvx *ep, struct request *r)
{
	if (!heap_lent(r))
		return;
	list_remove(&r->wanting);
	r->place->next = ep->dropped;
	ep->dropped = r->place;
	r->place = NULL;
}

static void heap_end(struct ibvx_heap *dropped)
{
	while (dropped) {
		struct ibvx_heap *heap = dropped;

		dropped = heap->next;
		heap->drop(heap);
	}
}

void heap_unlock(struct ibvx *ep)
{
	struct ibvx_heap *dropped = ep->dropped;

	ep->dropped = NULL;
	core_unlock(ep);
	heap_end(dropped);
}

void heap_close(struct ibvx *ep)
{
	heap_end(ep->dropped);
	ep->dropped = NULL;
}

/* Who is to serve r comes. */
static void heap_call(struct request *r)
{
	if (r->waiter)
		wait_call(r->peer->ep, r->waiter);
	else if (heap_lent(r))
		wait_call_any(r->peer->ep);
}

void heap_call_owner(struct request *r)
{
	if (!r->place || r->place->wanted)
		return;
	r->place->wanted = true;
	if (heap_lent(r))
		list_append(&r->peer->ep->wanting, &r->wanting);
	if (!r->served) /* else who serves it looks again */
		heap_call(r);
}

int heap_want(struct request *r)
{
	heap_call_owner(r);
	return HEAP_ABSENT;
}

char *heap_stage(struct request *r)
{
	if (!r->stage)
		r->stage = malloc(request_total(r));
	return r->stage;
}

void heap_write(struct request *r, uint64_t at, const void *from, size_t len)
{
	struct ibvx *ep = r->peer->ep;

	if (len == 0)
		return;
	if (r->base[0] && r->stage_at == r->stage_end) {
		memcpy(r->base[0] + at, from, len);
		r->stage_at = at + len;
		r->stage_end = at + len;
		return;
	}
	if (!heap_stage(r)) {
		r->lost = true;
		return;
	}
	memcpy(r->stage + at, from, len);
	r->stage_end = at + len;
	ep->staged_bytes += len;
	heap_call_owner(r);
}

/* Sends from r's memory, which is in reach, as much as one region may. */
static void heap_push(struct request *r)
{
	struct peer *p = r->peer;
	uint64_t end = r->at + HEAP_REGION_BYTES;
	int rc = 0;

	while (rc == 0 && r->at < end && p->state == PEER_OPEN && !p->doomed) {
		if (r->state == REQ_STREAMING)
			rc = send_stream(r);
		else if ((r->state == REQ_QUEUED || r->state == REQ_PUSHING) && p->sends.next == &r->link)
			rc = send_emit(r);
		else
			break;
	}
	if (rc < 0 && rc != -EAGAIN && rc != -ENOBUFS)
		peer_doom(p, rc);
}

/* What is staged goes to r's memory first; then what has arrived may go straight there. */
static void heap_pull(struct ibvx *ep, struct request *r)
{
	size_t left = (size_t)(r->stage_end - r->stage_at);

	if (left == 0) {
		uint64_t end = r->at + HEAP_REGION_BYTES;

		for (int n = 0; n < HEAP_REGION_PACKETS && r->at < end && r->state != REQ_DONE; n++) {
			if (wait_poll(ep, 1) == 0)
				break;
		}
		return;
	}
	if (left > HEAP_REGION_BYTES)
		left = HEAP_REGION_BYTES;
	memcpy(r->base[0] + r->stage_at, r->stage + r->stage_at, left);
	r->stage_at += left;
	r->place->wanted = r->stage_at < r->stage_end || r->place->window_bytes;
}

void heap_count_region(struct ibvx *ep, int64_t ns)
{
	ep->regions++;
	if ((uint64_t)ns > ep->region_longest_ns)
		ep->region_longest_ns = (uint64_t)ns;
}

bool heap_serve(struct ibvx *ep, struct request *r)
{
	struct ibvx_heap *place = r->place;
	bool window = false;
	int64_t begin_ns;
	void *at;

	window_prepare(ep, r);
	r->served = true;
	place->wanted = false;
	list_remove(&r->wanting);
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	at = place->enter(place);
	begin_ns = clock_now_ns();
	core_lock(ep);
	if (at) { /* else the turn is an ordinary one: what has come is staged, what is to go calls again if there is room */
		window = r->kind == REQ_SEND ? window_push(ep, r, at) : window_pull(ep, r, at);
		if (!window) {
			heap_reach(r, at);
			if (r->kind == REQ_SEND)
				heap_push(r);
			else
				heap_pull(ep, r);
			heap_reach(r, NULL);
		}
		heap_count_region(ep, clock_now_ns() - begin_ns);
		core_unlock(ep);
		place->leave(place, at);
		core_lock(ep);
		if (window) /* a message may be windows throughout: others are not forgotten over it */
			wait_progress(ep);
		else
			wait_flush(ep);
	} else if (r->kind == REQ_RECV && place->window_bytes) {
		window_decline(r);
	}
	ep->users--;
	r->served = false;
	if (r->state == REQ_DONE)
		complete_released(ep, r);
	else if (place->wanted) /* more to do: no sleep before that */
		heap_call(r);
	return at != NULL;
}

/* The first of those whose memory is lent that nobody is at. */
static struct request *heap_next_lent(struct ibvx *ep)
{
	for (struct list *l = ep->wanting.next; l != &ep->wanting; l = l->next) {
		struct request *r = LIST_ITEM(l, struct request, wanting);

		if (!r->served)
			return r;
	}
	return NULL;
}

void heap_serve_lent_now(struct ibvx *ep)
{
	for (int n = 0; n < HEAP_SERVE_MAX; n++) {
		struct request *r = heap_next_lent(ep);

		if (!r)
			return;
		heap_serve(ep, r);
	}
}

bool heap_turn(struct ibvx *ep, struct waiter *w)
{
	struct request *r = w->moving, *lent = NULL;

	if (r && (r->state == REQ_DONE || r->served || !(r->place->wanted || (r->kind == REQ_RECV && wait_ready(ep)))))
		r = NULL;
	if (!list_empty(&ep->wanting) && !w->background)
		lent = heap_next_lent(ep);
	if (r && lent) /* a receive into which much comes does not hold up what goes out */
		w->lent_next = !w->lent_next;
	if (lent && (!r || w->lent_next)) {
		if (r) /* its own turn is the next: no sleep before that */
			atomic_store_explicit(&w->signal, 1, memory_order_relaxed);
		r = lent;
	}
	return r && heap_serve(ep, r);
}
