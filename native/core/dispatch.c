/* SPDX-License-Identifier: MIT */
#include "core/dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cost.h"
#include "core/eager.h"
#include "core/failure.h"
#include "core/flow_control.h"
#include "core/peer.h"
#include "core/rendezvous.h"

void dispatch_down(void *core, int rank, int err, const char *why)
{
	struct ibvx *ep = core;
	char named[512];

	if (err == -EPIPE || ep->peers[rank].left) {
		peer_on_bye(&ep->peers[rank]); /* left in good order without a BYE for us */
		return;
	}
	snprintf(named, sizeof(named), "rank %d: %s", rank, why);
	peer_fail(&ep->peers[rank], err, strstr(why, "rank ") ? why : named);
}

void dispatch_packet(void *core, int rank, const struct wire_hdr *hdr, const void *payload)
{
	struct ibvx *ep = core;
	struct peer *p = &ep->peers[rank];

	if (p->state != PEER_OPEN || p->error)
		return;
	if (!payload)
		payload = ""; /* there is none, and memcpy wants an address all the same */
	p->talked = true;
	switch ((enum wire_kind)hdr->kind) {
	case WIRE_EAGER: eager_arrived(p, hdr, payload); return;
	case WIRE_EAGER_FIRST: eager_first_arrived(p, hdr, payload); return;
	case WIRE_EAGER_MORE: eager_more_arrived(p, hdr, payload); return;
	case WIRE_RTS: rendezvous_rts_arrived(p, hdr, payload); return;
	case WIRE_CTS: rendezvous_cts_arrived(p, hdr, payload); return;
	case WIRE_DATA:
	case WIRE_SEGMENT:
	case WIRE_DONE: rendezvous_piece_arrived(p, hdr, payload); return;
	case WIRE_FIN: rendezvous_fin_arrived(p, hdr); return;
	case WIRE_ACK: eager_on_ack(p, hdr); return;
	case WIRE_CREDIT:
		if (!flow_on_credit(p, hdr->ctl.value, hdr->ctl.offset))
			peer_broken(p, "a credit of %llu bytes", (unsigned long long)hdr->ctl.value);
		return;
	case WIRE_HINT:
		if (!cost_on_hint(p, hdr->ctl.id, hdr->ctl.from, hdr->ctl.value))
			peer_broken(p, "a hint of class %u, method %u, interval %llu", hdr->ctl.id, hdr->ctl.from,
				    (unsigned long long)hdr->ctl.value);
		return;
	case WIRE_STALLED: flow_on_stalled(p, hdr->ctl.value); return;
	case WIRE_BYE: peer_on_bye(p); return;
	case WIRE_NONE:
	case WIRE_KIND_COUNT: break;
	}
	peer_broken(p, "a packet of kind %u", hdr->kind);
}
