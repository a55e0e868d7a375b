/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_FLOW_CONTROL_H
#define IBVX_CORE_FLOW_CONTROL_H
/*
 * flow_control: the credit window, which bounds what a peer can make this rank store
 * (PROTOCOL.md section 4).  The caller holds the core's lock.
 */
#include "core/core.h"

/* What a stored envelope is charged, payload aside: about what a struct umsg takes. */
#define FLOW_ENVELOPE 512u
/* The first emergency credit; it doubles while the state lasts. */
#define FLOW_EMERGENCY (64u * FLOW_ENVELOPE)

static inline size_t flow_cost(size_t payload)
{
	return FLOW_ENVELOPE + payload;
}

/* May an eager message / an envelope go out now? */
static inline bool flow_allows_eager(const struct peer *p, size_t payload)
{
	return p->credit - p->envelope_credit >= (int64_t)flow_cost(payload) + p->credit_window / 4;
}

static inline bool flow_allows_envelope(const struct peer *p)
{
	return p->credit >= (int64_t)FLOW_ENVELOPE;
}

/* Largest eager message that a credit window of this size can carry. */
static inline size_t flow_eager_max(size_t credit_window)
{
	return credit_window / 2 - FLOW_ENVELOPE;
}

/* What was freed goes back to the peer. */
void flow_return(struct peer *p);

/* A message of this cost has left our memory (or never entered it). */
static inline void flow_release(struct peer *p, size_t cost)
{
	size_t repaid = cost < p->emergency ? cost : (size_t)p->emergency;

	p->emergency -= repaid;
	p->emergency_repaid += repaid;
	p->freed += cost - repaid;
	/* a stalled peer waits for any little, the others for a worthwhile sum; what repays emergency credit gives no
	 * credit, but lets the peer use for payload what it kept for envelopes */
	if (p->freed + p->emergency_repaid >= p->ep->credit_window / 4 || (p->stalled && p->freed >= FLOW_ENVELOPE))
		flow_return(p);
}

/* The one place where p->stalled changes. */
void flow_stalled(struct peer *p, bool stalled);
/* The peer reports that it holds sends back, having seen so much credit in all. */
void flow_on_stalled(struct peer *p, uint64_t credit_seen);
/* The peer gave credit; `emergency` of all that we have is for envelopes alone. false: nonsense. */
bool flow_on_credit(struct peer *p, uint64_t bytes, uint64_t emergency);
/* A receive or probe that may be meant for the peer found nothing: if the peer is
 * stalled, let more of its envelopes come. */
void flow_emergency(struct peer *p);
/* The same for a source that may be a wildcard. */
void flow_emergency_stalled(struct ibvx *ep, int source);

static inline void flow_emergency_source(struct ibvx *ep, int source)
{
	if (ep->stalled_peers > 0)
		flow_emergency_stalled(ep, source);
}

#endif
