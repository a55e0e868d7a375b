/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx_receive.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "transport/ucx/ucx_packet.h"
#include "transport/ucx/ucx_peer.h"

/* Calls of progress while nothing is delivered although there was something to do; while a peer ends. */
#define RECEIVE_TURNS 4
#define RECEIVE_LAST_TURNS 64
#define RECEIVE_TICK_TURNS 16

static void ucx_receive_own(struct ucx_peer *p, const struct wire_hdr *hdr)
{
	switch ((enum ucx_own)hdr->ctl.id) {
	case UCX_OWN_BEAT: /* the head was for everything */
	case UCX_OWN_ACK:
		return;
	case UCX_OWN_FLUSH:
		p->ucx->chores += !p->ack_wanted;
		p->ack_wanted = true;
		return;
	case UCX_OWN_LEAVE:
		p->left = true;
		return;
	}
	ucx_peer_end(p, 0, -EPROTO, "rank %d sent an unknown packet: do all ranks run the same ibvdev?", p->rank);
}

static void ucx_receive_deliver(void *peer, const struct wire_hdr *hdr, const void *payload)
{
	struct ucx_peer *p = peer;
	const struct transport_sink *sink = &p->ucx->env.sink;

	if (hdr->kind == WIRE_NONE)
		ucx_receive_own(p, hdr);
	else
		sink->on_packet(sink->core, p->rank, hdr, payload);
}

ucx_status ucx_receive_packet(void *ucx, const void *header, size_t header_bytes, void *data, size_t bytes,
			  const struct ucx_am_recv_param *param)
{
	struct ucx *u = ucx;
	struct ucx_head h;
	struct ucx_peer *p;

	if (header_bytes == sizeof(h))
		memcpy(&h, header, sizeof(h));
	if (header_bytes != sizeof(h) || h.job != u->job || h.rank >= (uint32_t)u->env.size || h.rank == (uint32_t)u->env.rank ||
	    !u->peers || !u->peers[h.rank].address) {
		u->foreign_count++;
		return UCX_OK;
	}
	p = &u->peers[h.rank];
	u->events++;
	if (p->state == UCX_DOWN)
		return UCX_OK;
	if (h.bytes != bytes || h.hdr.len != bytes || (param->recv_attr & UCX_AM_RECV_RNDV) ||
	    (int32_t)(h.ack - p->number) > 0) {
		ucx_peer_end(p, 0, -EPROTO, "rank %d sent a malformed packet of %zu bytes: do all ranks run the same ibvdev?", p->rank, bytes);
		return UCX_OK;
	}
	ucx_peer_connect(p); /* its end is only reported where there is an endpoint */
	if ((int32_t)(h.ack - p->acked) > 0)
		p->acked = h.ack;
	p->beat.heard = true;
	p->packets_in++;
	if (order_arrived(&p->order, h.number, &h.hdr, data, ucx_receive_deliver, p) < 0)
		ucx_peer_end(p, 0, -EPROTO, "rank %d: UCX lost or repeated a packet: %s", p->rank, error_text());
	return UCX_OK;
}

/* What a callback has reported about the peer. */
static void ucx_receive_failed(struct ucx_peer *p)
{
	ucx_status status = p->failed;

	p->failed = UCX_OK;
	p->ucx->chores--;
	if (p->left)
		ucx_peer_end(p, 0, -EPIPE, "left");
	else
		ucx_peer_end(p, UCX_GRACE, ucx_peer_errno(status), "rank %d cannot be reached by UCX any more: %s", p->rank,
			 p->ucx->api->status_string(status));
}

static void ucx_receive_chores(struct ucx *u)
{
	const struct transport_sink *sink = &u->env.sink;
	bool ends = false;

	for (int r = 0; r < u->env.size; r++) {
		struct ucx_peer *p = &u->peers[r];

		ends = ends || p->failed || (p->state == UCX_ENDING && p->grace == 0);
		if (p->ack_wanted && p->state == UCX_UP && !p->failed && ucx_packet_own(p, UCX_OWN_ACK)) {
			p->ack_wanted = false;
			u->chores--;
		}
	}
	/* what a lost peer had sent before comes first */
	for (int i = 0; ends && i < RECEIVE_LAST_TURNS && u->api->worker_progress(u->worker) > 0; i++)
		;
	for (int r = 0; ends && r < u->env.size; r++) {
		struct ucx_peer *p = &u->peers[r];

		if (p->failed)
			ucx_receive_failed(p);
		if (p->state != UCX_ENDING || p->grace > 0)
			continue;
		ucx_peer_forget(p);
		sink->on_down(sink->core, r, p->end_code, p->end_text ? p->end_text : "the connection ended");
		u->events++;
	}
}

int ucx_receive_poll(struct ucx *u, int budget)
{
	u->events = 0;
	for (int i = 0; i < RECEIVE_TURNS; i++) {
		if (u->api->worker_progress(u->worker) == 0 || u->events > 0)
			break;
	}
	(void)budget; /* the library delivers what one reading of its sockets brings */
	if (u->chores > 0)
		ucx_receive_chores(u);
	return u->events;
}

void ucx_receive_tick(void *ucx)
{
	struct ucx *u = ucx;

	heartbeat_begin(&u->heartbeat);
	if (u->used == 0)
		return;
	for (int i = 0; i < RECEIVE_TICK_TURNS && ucx_receive_poll(u, TRANSPORT_BUDGET) > 0; i++)
		;
	for (int r = 0; r < u->env.size; r++) {
		struct ucx_peer *p = &u->peers[r];

		if (p->state == UCX_ENDING && p->grace > 0)
			u->chores += --p->grace == 0; /* the next poll, which follows, notifies the core */
		if (p->state != UCX_UP || p->failed)
			continue;
		switch (heartbeat_look(&u->heartbeat, &p->beat)) {
		case HEARTBEAT_FINE:
			break;
		case HEARTBEAT_SEND:
			p->beats += ucx_packet_own(p, UCX_OWN_BEAT);
			break;
		case HEARTBEAT_LOST:
			ucx_peer_end(p, 0, p->left ? -EPIPE : -ECONNRESET,
				 "rank %d is silent for %lld ms (setting ucx_timeout_ms): its host or the network is down, or it was stopped",
				 p->rank, (long long)u->timeout_ms);
			break;
		}
	}
}
