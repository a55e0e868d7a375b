/* SPDX-License-Identifier: MIT */
#include "transport/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct order_held {
	struct order_held *next;
	uint32_t number;
	struct wire_hdr hdr;
	uint64_t payload[];
};

static int order_hold(struct order *o, uint32_t number, const struct wire_hdr *hdr, const void *payload)
{
	struct order_held **at = &o->held, *h;

	while (*at && (int32_t)((*at)->number - number) < 0)
		at = &(*at)->next;
	if (*at && (*at)->number == number)
		return error_set(-EPROTO, "packet %u came twice", number);
	if (o->held_bytes + hdr->len > ORDER_HELD_MAX)
		return error_set(-ENOBUFS, "packet %u is missing, %zu bytes of later ones are here", o->last + 1, o->held_bytes);
	h = malloc(sizeof(*h) + hdr->len);
	if (!h)
		return error_set(-ENOMEM, "no memory for a packet of %u bytes", hdr->len);
	h->next = *at;
	h->number = number;
	h->hdr = *hdr;
	if (hdr->len)
		memcpy(h->payload, payload, hdr->len);
	*at = h;
	o->held_bytes += hdr->len;
	o->early_count++;
	return 0;
}

int order_arrived(struct order *o, uint32_t number, const struct wire_hdr *hdr, const void *payload,
		  void (*deliver)(void *arg, const struct wire_hdr *hdr, const void *payload), void *arg)
{
	if ((int32_t)(number - o->last) <= 0)
		return error_set(-EPROTO, "packet %u came after packet %u", number, o->last);
	if (number != o->last + 1)
		return order_hold(o, number, hdr, payload);
	o->last = number;
	deliver(arg, hdr, payload);
	while (o->held && o->held->number == o->last + 1) {
		struct order_held *h = o->held;

		o->held = h->next;
		o->held_bytes -= h->hdr.len;
		o->last = h->number;
		deliver(arg, &h->hdr, h->payload);
		free(h);
	}
	return 0;
}

void order_free(struct order *o)
{
	while (o->held) {
		struct order_held *h = o->held;

		o->held = h->next;
		free(h);
	}
	o->held_bytes = 0;
}
