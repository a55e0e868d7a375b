/* SPDX-License-Identifier: MIT */
#include "transport/netlib/netlib_receive.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "transport/netlib/netlib_packet.h"
#include "transport/netlib/netlib_peer.h"

/* Calls of progress while nothing is delivered although there was something to do; while a peer ends. */
#define RECEIVE_TURNS 4
#define RECEIVE_LAST_TURNS 64
#define RECEIVE_TICK_TURNS 16

static void netlib_receive_own(struct netlib_peer *p, const struct wire_hdr *hdr)
{
	switch ((enum netlib_own)hdr->ctl.id) {
	case NETLIB_OWN_BEAT: /* the head was for everything */
	case NETLIB_OWN_ACK: return;
	case NETLIB_OWN_FLUSH:
		p->netlib->chores += !p->ack_wanted;
		p->ack_wanted = true;
		return;
	case NETLIB_OWN_LEAVE: p->left = true; return;
	}
	netlib_peer_end(p, 0, -EPROTO, "rank %d sent an unknown packet: do all ranks run the same ibvdev?", p->rank);
}

static void netlib_receive_deliver(void *peer, const struct wire_hdr *hdr, const void *payload)
{
	struct netlib_peer *p = peer;
	const struct transport_sink *sink = &p->netlib->env.sink;

	if (hdr->kind == WIRE_NONE) {
		netlib_receive_own(p, hdr);
		return;
	}
	p->unacked_count++;
	sink->on_packet(sink->core, p->rank, hdr, payload);
}

/* A sender that waits for credit hears of it before it has used up all of it. */
static void netlib_receive_acknowledge(struct netlib_peer *p)
{
	struct netlib *f = p->netlib;

	if (f->credit == 0 || p->unacked_count < f->credit / NETLIB_ACKS || p->state != NETLIB_UP || p->failed)
		return;
	if (!netlib_packet_own(p, NETLIB_OWN_ACK) && !p->ack_wanted) {
		p->ack_wanted = true;
		f->chores++;
	}
}

void netlib_receive(struct netlib *f, const void *header, size_t header_bytes, const void *payload, size_t bytes, bool whole)
{
	struct netlib_head h;
	struct netlib_peer *p;

	if (header_bytes == sizeof(h))
		memcpy(&h, header, sizeof(h));
	if (header_bytes != sizeof(h) || h.job != f->job || h.rank >= (uint32_t)f->env.size || h.rank == (uint32_t)f->env.rank ||
	    !f->peers || !f->peers[h.rank].address) {
		f->foreign_count++;
		return;
	}
	p = &f->peers[h.rank];
	f->events++;
	if (p->state == NETLIB_DOWN)
		return;
	if (h.bytes != bytes || h.hdr.len != bytes || !whole || (int32_t)(h.ack - p->number) > 0) {
		netlib_peer_end(p, 0, -EPROTO, "rank %d sent a malformed packet of %zu bytes: do all ranks run the same ibvdev?", p->rank,
				bytes);
		return;
	}
	netlib_peer_connect(p); /* its end is only reported where there is a connection */
	if ((int32_t)(h.ack - p->acked) > 0)
		p->acked = h.ack;
	p->beat.heard = true;
	p->packets_in++;
	if (order_arrived(&p->order, h.number, &h.hdr, payload, netlib_receive_deliver, p) < 0)
		netlib_peer_end(p, 0, -EPROTO, "rank %d: %s lost or repeated a packet: %s", p->rank, f->ops->product, error_text());
	netlib_receive_acknowledge(p);
}

/* What a completion or a callback has reported about the peer. */
static void netlib_receive_failed(struct netlib_peer *p)
{
	const struct netlib_ops *ops = p->netlib->ops;
	int status = p->failed;

	p->failed = 0;
	p->netlib->chores--;
	if (p->left)
		netlib_peer_end(p, 0, -EPIPE, "left");
	else
		netlib_peer_end(p, NETLIB_GRACE, ops->errno_of(status), "rank %d cannot be reached by %s any more: %s", p->rank,
				ops->product, ops->text_of(p->netlib, status));
}

static bool netlib_receive_progress(struct netlib *f, int budget)
{
	if (f->queued)
		netlib_packet_push(f);
	return f->ops->progress(f, budget);
}

static void netlib_receive_chores(struct netlib *f)
{
	const struct transport_sink *sink = &f->env.sink;
	bool ends = false;

	for (int r = 0; r < f->env.size; r++) {
		struct netlib_peer *p = &f->peers[r];

		ends = ends || p->failed || (p->state == NETLIB_ENDING && p->grace == 0);
		if (p->ack_wanted && p->state == NETLIB_UP && !p->failed && netlib_packet_own(p, NETLIB_OWN_ACK)) {
			p->ack_wanted = false;
			f->chores--;
		}
	}
	/* what a lost peer had sent before comes first */
	for (int i = 0; ends && i < RECEIVE_LAST_TURNS && netlib_receive_progress(f, TRANSPORT_BUDGET); i++)
		;
	for (int r = 0; ends && r < f->env.size; r++) {
		struct netlib_peer *p = &f->peers[r];

		if (p->failed)
			netlib_receive_failed(p);
		if (p->state != NETLIB_ENDING || p->grace > 0)
			continue;
		netlib_peer_forget(p);
		sink->on_down(sink->core, r, p->end_code, p->end_text ? p->end_text : "the connection ended");
		f->events++;
	}
}

int netlib_receive_poll(struct netlib *f, int budget)
{
	f->events = 0;
	for (int i = 0; i < RECEIVE_TURNS; i++) {
		if (!netlib_receive_progress(f, budget) || f->events > 0)
			break;
	}
	if (f->chores > 0)
		netlib_receive_chores(f);
	if (f->events > 0)
		f->vain = 0;
	return f->events;
}

void netlib_receive_tick(void *netlib)
{
	struct netlib *f = netlib;

	heartbeat_begin(&f->heartbeat);
	if (f->used == 0)
		return;
	for (int i = 0; i < RECEIVE_TICK_TURNS && netlib_receive_poll(f, TRANSPORT_BUDGET) > 0; i++)
		;
	for (int r = 0; r < f->env.size; r++) {
		struct netlib_peer *p = &f->peers[r];

		if (p->state == NETLIB_ENDING && p->grace > 0)
			f->chores += --p->grace == 0; /* the next poll, which follows, notifies the core */
		if (p->state != NETLIB_UP || p->failed)
			continue;
		switch (heartbeat_look(&f->heartbeat, &p->beat)) {
		case HEARTBEAT_FINE: break;
		case HEARTBEAT_SEND: p->beats += netlib_packet_own(p, NETLIB_OWN_BEAT); break;
		case HEARTBEAT_LOST:
			netlib_peer_end(p, 0, p->left ? -EPIPE : -ECONNRESET,
					"rank %d is silent for %lld ms (setting %s): its host or the network is down, or it was stopped",
					p->rank, (long long)f->timeout_ms, f->ops->timeout_name);
			break;
		}
	}
}
