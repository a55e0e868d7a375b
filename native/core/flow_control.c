/* SPDX-License-Identifier: MIT */
#include "core/flow_control.h"

#include "core/peer.h"

void flow_stalled(struct peer *p, bool stalled)
{
	p->ep->stalled_peers += (int)stalled - (int)p->stalled;
	p->stalled = stalled;
}

void flow_return(struct peer *p)
{
	p->pending_credit += p->freed;
	p->pending_emergency = p->pending_emergency || p->emergency_repaid > 0;
	p->freed = 0;
	p->emergency_repaid = 0;
	flow_stalled(p, false);
	peer_flush(p);
}

void flow_emergency(struct peer *p)
{
	uint64_t more;

	if (!p->stalled || p->state != PEER_OPEN)
		return;
	more = FLOW_EMERGENCY + p->emergency;
	p->emergency += more;
	p->freed += more;
	p->emergencies++;
	flow_return(p);
}

void flow_emergency_stalled(struct ibvx *ep, int source)
{
	if (source != IBVX_ANY_SOURCE) {
		flow_emergency(&ep->peers[source]);
		return;
	}
	for (int r = 0; r < ep->size && ep->stalled_peers > 0; r++)
		flow_emergency(&ep->peers[r]);
}

void flow_on_stalled(struct peer *p, uint64_t credit_seen)
{
	if (credit_seen != p->credit_out + p->pending_credit)
		return; /* crossed our credit: the peer will speak up again if that does not suffice */
	flow_stalled(p, true);
	p->stalls++;
	if (p->freed >= FLOW_ENVELOPE)
		flow_return(p);
	else if (p->interest > 0 || p->ep->interest_any > 0)
		flow_emergency(p);
}

bool flow_on_credit(struct peer *p, uint64_t bytes, uint64_t emergency)
{
	if (bytes > INT64_MAX / 2 || emergency > INT64_MAX / 2 || p->credit > INT64_MAX / 2)
		return false;
	p->envelope_credit = (int64_t)emergency;
	p->credit += (int64_t)bytes;
	p->credit_in += bytes;
	p->stalled_sent = false;
	p->pending_stalled = false;
	peer_flush(p);
	return true;
}
