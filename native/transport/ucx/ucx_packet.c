/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx_packet.h"

#include <errno.h>
#include <stdlib.h>

/* Slots of a kind that are kept for later. */
#define PACKET_KEPT 64u

static size_t ucx_packet_room(const struct ucx *u, bool large)
{
	return large ? u->payload_max : UCX_SMALL_BYTES;
}

int ucx_packet_reserve(struct ucx_peer *p, size_t bytes, struct ucx_slot **out)
{
	struct ucx *u = p->ucx;
	bool large = bytes > UCX_SMALL_BYTES;
	struct ucx_slot *s = u->free[large];

	if (p->in_flight[large] >= (large ? u->large_slots : UCX_SMALL_SLOTS)) {
		p->full_count++;
		return -EAGAIN;
	}
	if (s) {
		u->free[large] = s->next;
		u->free_count[large]--;
	} else {
		s = malloc(sizeof(*s) + ucx_packet_room(u, large));
		if (!s)
			return -EAGAIN;
		s->large = large;
		u->slot_count[large]++;
	}
	s->peer = p;
	*out = s;
	return 0;
}

void ucx_packet_discard(struct ucx *u, struct ucx_slot *s)
{
	if (u->free_count[s->large] >= PACKET_KEPT) {
		u->slot_count[s->large]--;
		free(s);
		return;
	}
	s->next = u->free[s->large];
	u->free[s->large] = s;
	u->free_count[s->large]++;
}

static void ucx_packet_failed(struct ucx_peer *p, ucx_status status)
{
	if (p->failed || p->state != UCX_UP)
		return;
	p->failed = status;
	p->ucx->chores++;
}

/* Also late: when the endpoint is being ended, or the worker. */
static void ucx_packet_on_sent(void *request, ucx_status status, void *arg)
{
	struct ucx_slot *s = arg;
	struct ucx_peer *p = s->peer;
	struct ucx *u = p->ucx;

	u->api->request_free(request);
	p->in_flight[s->large]--;
	u->events++;
	ucx_packet_discard(u, s);
	if (status != UCX_OK)
		ucx_packet_failed(p, status);
}

void ucx_packet_send(struct ucx_peer *p, struct ucx_slot *s, bool counts)
{
	struct ucx *u = p->ucx;
	const struct ucx_request_param param = {
		.op_attr_mask = UCX_OP_CALLBACK | UCX_OP_USER_DATA | UCX_OP_FLAGS | UCX_OP_MEMORY_TYPE,
		.flags = UCX_AM_SEND_EAGER,
		.send = ucx_packet_on_sent,
		.user_data = s,
		.memory_type = UCX_MEMORY_HOST,
	};
	void *request;
	ucx_status status;

	s->head.job = u->job;
	s->head.rank = (uint32_t)u->env.rank;
	s->head.number = ++p->number;
	s->head.ack = p->order.last;
	s->head.bytes = s->head.hdr.len;
	s->head.hdr.stamp = 0;
	if (counts)
		p->number_core = p->number;
	p->beat.sent = true;
	p->packets_out++;
	p->in_flight[s->large]++;
	request = u->api->am_send(p->ep, UCX_AM_ID, &s->head, sizeof(s->head), s->payload, s->head.bytes, &param);
	status = ucx_status_of(request);
	if (status == UCX_INPROGRESS)
		return;
	p->in_flight[s->large]--;
	ucx_packet_discard(u, s);
	if (status != UCX_OK)
		ucx_packet_failed(p, status);
}

bool ucx_packet_own(struct ucx_peer *p, enum ucx_own id)
{
	struct ucx_slot *s;

	if (ucx_packet_reserve(p, 0, &s) < 0)
		return false;
	s->head.hdr = (struct wire_hdr){.kind = WIRE_NONE, .ctl = {.id = id}};
	ucx_packet_send(p, s, false);
	return true;
}

void ucx_packet_free_all(struct ucx *u)
{
	for (int large = 0; large < 2; large++) {
		while (u->free[large]) {
			struct ucx_slot *s = u->free[large];

			u->free[large] = s->next;
			free(s);
		}
	}
}
