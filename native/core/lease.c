/* SPDX-License-Identifier: MIT */
#include "core/lease.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/pin.h"
#include "core/waiter.h"

/* Looks at the lease word between two looks at the clock. */
#define LEASE_LOOKS 32

static_assert(sizeof(((struct ibvx_pin *)0)->lease) == WIRE_LEASE_BYTES, "a description fits");

static const struct transport_lease *lease_ops(const struct peer *p)
{
	return p->transport->ops->lease;
}

bool lease_is_worthwhile(const struct peer *p, size_t bytes)
{
	return p->transport->ops->prefers_get(p->transport, p->rank, bytes);
}

bool lease_possible(const struct request *r)
{
	const struct peer *p = r->peer;

	return pin_is_attended(r) && lease_ops(p) && !p->no_get && !p->ep->oversubscribed && lease_is_worthwhile(p, request_total(r));
}

/* Waits without the lock until the lease is closed.  What end() returned last. */
static int lease_watch(const struct ibvx *ep, const struct peer *p)
{
	const struct transport_lease *ops = lease_ops(p);
	int64_t begin_ns = clock_now_ns(), open_ns = 0;
	enum transport_lease_end how = TRANSPORT_LOOK;
	int rc;

	for (unsigned n = 1; (rc = ops->end(p->transport, p->rank, how)) == -EAGAIN; n++) {
		cpu_relax();
		if (n % LEASE_LOOKS && open_ns < ep->lease_offer_ns)
			continue;
		open_ns = clock_now_ns() - begin_ns;
		how = open_ns < ep->lease_offer_ns ? TRANSPORT_LOOK : open_ns < ep->lease_claim_ns ? TRANSPORT_REVOKE : TRANSPORT_ABANDON;
		if (how != TRANSPORT_LOOK)
			sched_yield();
	}
	return rc;
}

/* Leases the next `bytes` bytes of r. 0, or the error of reserve() or open(). */
static int lease_offer(struct request *r, const char *at, size_t bytes)
{
	struct peer *p = r->peer;
	const struct transport_ops *ops = p->transport->ops;
	struct transport_slot slot;
	int rc = ops->reserve(p->transport, p->rank, WIRE_LEASE_BYTES, &slot);

	if (rc < 0)
		return rc;
	rc = ops->lease->open(p->transport, p->rank, at + r->at, slot.payload);
	if (rc < 0) {
		ops->discard(p->transport, p->rank, &slot);
		return rc;
	}
	slot.hdr->kind = WIRE_SEGMENT;
	slot.hdr->flags = 0;
	slot.hdr->len = WIRE_LEASE_BYTES;
	slot.hdr->ctl = (struct wire_ctl){.id = r->remote, .from = request_wire_id(r), .offset = r->at, .value = bytes};
	ops->commit(p->transport, p->rank, &slot);
	return 0;
}

int64_t lease_push(struct ibvx *ep, struct request *r, const char *at)
{
	struct peer *p = r->peer;
	size_t bytes = request_total(r) - r->at;
	struct waiter *w = r->waiter;
	int rc;

	if (bytes > LEASE_BYTES)
		bytes = LEASE_BYTES;
	if (lease_offer(r, at, bytes) < 0)
		return 0; /* the pipeline reports why */
	waiter_away(ep, w);
	core_unlock(ep);
	rc = lease_watch(ep, p);
	core_lock(ep);
	w->away = false;
	p->leased += rc == 1;
	p->leases_revoked += rc != 1;
	return rc == 1 ? (int64_t)bytes : rc == 0 ? -ECANCELED : rc;
}

void lease_note(struct request *r, const void *desc, size_t bytes)
{
	if (!r->buffer.pin) /* its thread is gone: the lease is revoked in time */
		return;
	memcpy(r->buffer.pin->lease, desc, WIRE_LEASE_BYTES);
	r->buffer.pin->lease_bytes = bytes;
	pin_call_owner(r);
}

void lease_forget(struct request *r)
{
	if (r->buffer.pin)
		r->buffer.pin->lease_bytes = 0;
}

int64_t lease_pull(struct ibvx *ep, struct request *r, char *at)
{
	struct ibvx_pin *pin = r->buffer.pin;
	size_t bytes = pin->lease_bytes;
	struct peer *p = r->peer;
	uint64_t desc[2];
	int rc;

	if (bytes == 0 || buffer_has_bounced(&r->buffer))
		return 0; /* earlier bytes first */
	pin->lease_bytes = 0;
	memcpy(desc, pin->lease, sizeof(desc));
	at += r->at;
	if (r->state != REQ_FILLING || p->state != PEER_OPEN || lease_ops(p)->claim(p->transport, p->rank, desc) < 0)
		return 0;
	core_unlock(ep);
	rc = lease_ops(p)->copy(p->transport, p->rank, desc, at, bytes);
	core_lock(ep);
	pin->wanted = false; /* nothing else comes for r before this is settled */
	/* r may have ended meanwhile, perhaps with another peer as its cause */
	if (lease_ops(p)->settle(p->transport, p->rank, desc, rc == 0 && r->state == REQ_FILLING)) {
		p->leased++;
		return (int64_t)bytes;
	}
	if (rc < 0) {
		log_info(&ep->log, "a leased segment of rank %d could not be read (%s): the message uses another scheme", p->rank,
			 error_text());
		p->no_get = p->no_get || rc == -EPERM || rc == -ENOSYS;
		return rc;
	}
	return -ECANCELED;
}
