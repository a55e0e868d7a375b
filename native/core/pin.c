/* SPDX-License-Identifier: MIT */
#include "core/pin.h"

#include <errno.h>
#include <stddef.h>

#include "core/waiter.h"

void pin_drop(struct ibvx *ep, struct request *r)
{
	if (!pin_is_zero_copy(r))
		return;
	list_remove(&r->buffer.wanting);
	r->buffer.pin->next = ep->dropped;
	ep->dropped = r->buffer.pin;
	r->buffer.pin = NULL;
}

static void pin_end(struct ibvx_pin *dropped)
{
	while (dropped) {
		struct ibvx_pin *pin = dropped;

		dropped = pin->next;
		pin->drop(pin);
	}
}

void pin_unlock_drop(struct ibvx *ep)
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

void pin_call(struct request *r)
{
	if (r->waiter)
		waiter_call(r->peer->ep, r->waiter);
	else if (pin_is_zero_copy(r))
		waiter_call_any(r->peer->ep);
}

void pin_call_owner(struct request *r)
{
	struct ibvx_pin *pin = buffer_is_pinnable(&r->buffer) ? r->buffer.pin : NULL;

	if (!pin || pin->wanted)
		return;
	pin->wanted = true;
	if (pin_is_zero_copy(r))
		list_append(&r->peer->ep->wanting, &r->buffer.wanting);
	if (!r->served) /* else the thread that serves it looks again */
		pin_call(r);
}

int pin_want(struct request *r)
{
	pin_call_owner(r);
	return PIN_ABSENT;
}

void pin_attend(struct request *r, struct ibvx_pin *pin)
{
	if (buffer_is_pinnable(&r->buffer) && !pin_is_zero_copy(r))
		r->buffer.pin = pin;
}

void *pin_take_rest(struct request *r, struct ibvx_pin *pin)
{
	size_t at, bytes;
	char *bounce;

	bounce = buffer_take_bounce(&r->buffer, &at, &bytes);
	if (!pin)
		return bounce;
	pin->bounce = bounce;
	pin->rest_at = at;
	pin->rest_bytes = bytes;
	return NULL;
}
