/* SPDX-License-Identifier: MIT */
#include "core/pin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/waiter.h"

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
void pin_call(struct request *r)
{
	if (r->waiter)
		waiter_call(r->peer->ep, r->waiter);
	else if (pin_zero_copy(r))
		waiter_call_any(r->peer->ep);
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
