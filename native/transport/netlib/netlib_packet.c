/* SPDX-License-Identifier: MIT */
#include "transport/netlib/netlib_packet.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

/* Slots of a kind that are kept for later. */
#define PACKET_KEPT 64u
/* Fixed slots are those of so many peers. */
#define PACKET_FIXED_PEERS 16u
#define PACKET_ALIGNMENT 4096u

static size_t netlib_packet_slot_bytes(const struct netlib *f, bool large)
{
	return sizeof(struct netlib_slot) + (large ? f->payload_max : NETLIB_SMALL_BYTES);
}

int netlib_packet_fix(struct netlib *f)
{
	size_t peers = f->env.size > (int)PACKET_FIXED_PEERS ? PACKET_FIXED_PEERS : (size_t)f->env.size;
	const size_t count[2] = {peers * NETLIB_SMALL_SLOTS, peers * f->large_slots};
	char *at;

	f->fixed_bytes = count[0] * netlib_packet_slot_bytes(f, 0) + count[1] * netlib_packet_slot_bytes(f, 1);
	f->fixed_slots = at =
		aligned_alloc(PACKET_ALIGNMENT, (f->fixed_bytes + PACKET_ALIGNMENT - 1) / PACKET_ALIGNMENT * PACKET_ALIGNMENT);
	if (!at)
		return error_set(-ENOMEM, "no memory for packets, %zu bytes", f->fixed_bytes);
	for (int large = 0; large < 2; large++) {
		for (size_t i = 0; i < count[large]; i++, at += netlib_packet_slot_bytes(f, large)) {
			struct netlib_slot *s = (struct netlib_slot *)at;

			s->large = (uint64_t)large;
			f->slot_count[large]++;
			netlib_packet_discard(f, s);
		}
	}
	return 0;
}

/* Without credit only packets of the transport's own are sent, which are few. */
static bool netlib_packet_has_credit(const struct netlib_peer *p)
{
	return p->netlib->credit == 0 || p->number - p->acked < p->netlib->credit;
}

static int netlib_packet_take(struct netlib_peer *p, size_t bytes, struct netlib_slot **out)
{
	struct netlib *f = p->netlib;
	bool large = bytes > NETLIB_SMALL_BYTES;
	struct netlib_slot *s = f->free[large];

	if (p->in_flight[large] >= (large ? f->large_slots : NETLIB_SMALL_SLOTS))
		return -EAGAIN;
	if (s) {
		f->free[large] = s->next;
		f->free_count[large]--;
	} else {
		s = f->fixed_slots ? NULL : malloc(netlib_packet_slot_bytes(f, large));
		if (!s)
			return -EAGAIN;
		s->large = large;
		f->slot_count[large]++;
	}
	s->peer = p;
	*out = s;
	return 0;
}

int netlib_packet_reserve(struct netlib_peer *p, size_t bytes, struct netlib_slot **out)
{
	int rc = netlib_packet_has_credit(p) ? netlib_packet_take(p, bytes, out) : -EAGAIN;

	p->full_count += rc < 0;
	return rc;
}

void netlib_packet_discard(struct netlib *f, struct netlib_slot *s)
{
	if (f->free_count[s->large] >= PACKET_KEPT && !f->fixed_slots) {
		f->slot_count[s->large]--;
		free(s);
		return;
	}
	s->next = f->free[s->large];
	f->free[s->large] = s;
	f->free_count[s->large]++;
}

void netlib_packet_failed(struct netlib_peer *p, int status)
{
	if (p->failed || p->state != NETLIB_UP)
		return;
	p->failed = status;
	p->netlib->chores++;
}

void netlib_packet_sent(struct netlib_slot *s, int status)
{
	struct netlib_peer *p = s->peer;
	struct netlib *f = p->netlib;

	if (s->prev)
		s->prev->next = s->next;
	else
		f->with_library = s->next;
	if (s->next)
		s->next->prev = s->prev;
	p->in_flight[s->large]--;
	f->events++;
	netlib_packet_discard(f, s);
	if (status)
		netlib_packet_failed(p, status);
}

/* -EAGAIN: the slot is still the caller's. */
static int netlib_packet_hand_over(struct netlib_peer *p, struct netlib_slot *s)
{
	struct netlib *f = p->netlib;
	int rc;

	s->prev = NULL;
	s->next = f->with_library;
	if (s->next)
		s->next->prev = s;
	f->with_library = s;
	rc = f->ops->send(p, s);
	if (rc == -EAGAIN) {
		f->with_library = s->next;
		if (s->next)
			s->next->prev = NULL;
	}
	return rc;
}

static void netlib_packet_queue(struct netlib_peer *p, struct netlib_slot *s)
{
	struct netlib *f = p->netlib;

	s->next = NULL;
	if (!p->queue)
		p->queue_end = &p->queue;
	*p->queue_end = s;
	p->queue_end = &s->next;
	p->queued_count++;
	if (p->in_queued)
		return;
	p->in_queued = true;
	p->next_queued = f->queued;
	f->queued = p;
}

void netlib_packet_push(struct netlib *f)
{
	struct netlib_peer **at = &f->queued;

	while (*at) {
		struct netlib_peer *p = *at;

		while (p->queue) {
			struct netlib_slot *s = p->queue, *next = s->next;

			if (netlib_packet_hand_over(p, s) == -EAGAIN) {
				s->next = next;
				break;
			}
			p->queue = next;
		}
		if (p->queue) {
			at = &p->next_queued;
			continue;
		}
		p->in_queued = false;
		*at = p->next_queued;
	}
}

void netlib_packet_drop(struct netlib_peer *p)
{
	while (p->queue) {
		struct netlib_slot *s = p->queue;

		p->queue = s->next;
		p->in_flight[s->large]--;
		netlib_packet_discard(p->netlib, s);
	}
}

void netlib_packet_send(struct netlib_peer *p, struct netlib_slot *s, bool counts)
{
	struct netlib *f = p->netlib;

	s->head.job = f->job;
	s->head.rank = (uint32_t)f->env.rank;
	s->head.number = ++p->number;
	s->head.ack = p->order.last;
	s->head.bytes = s->head.hdr.len;
	s->head.hdr.stamp = 0;
	if (counts)
		p->number_core = p->number;
	p->unacked_count = 0;
	p->beat.sent = true;
	p->packets_out++;
	p->in_flight[s->large]++;
	if (p->queue || netlib_packet_hand_over(p, s) == -EAGAIN)
		netlib_packet_queue(p, s);
}

bool netlib_packet_own(struct netlib_peer *p, enum netlib_own id)
{
	struct netlib_slot *s;

	if (netlib_packet_take(p, 0, &s) < 0)
		return false;
	s->head.hdr = (struct wire_hdr){.kind = WIRE_NONE, .ctl = {.id = id}};
	netlib_packet_send(p, s, false);
	return true;
}

void netlib_packet_free_all(struct netlib *f)
{
	while (f->with_library)
		netlib_packet_sent(f->with_library, 0);
	for (int large = 0; large < 2; large++) {
		while (f->free[large]) {
			struct netlib_slot *s = f->free[large];

			f->free[large] = s->next;
			if (!f->fixed_slots)
				free(s);
		}
	}
	free(f->fixed_slots);
	f->fixed_slots = NULL;
}
