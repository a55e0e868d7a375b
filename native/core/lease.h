/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_LEASE_H
#define IBVX_CORE_LEASE_H
/*
 * lease: the rendezvous scheme "leased get" (PROTOCOL.md section 10): a get whose source is pinned
 * memory.  The sender pins its memory, leases one segment of it to the receiver and waits; the
 * receiver pins its own memory, claims the lease, copies and settles.  The owner of the memory can
 * revoke the lease at any time, so a pin lasts for a bounded time whatever the peer does.
 *
 * One word in shared memory per ordered pair holds the state of the lease (transport_lease).  The
 * sender waits 50 us for the claim and lease_us for a claimed copy.  The receiver never waits.
 *
 * The caller holds the lock.
 */
#include "core/core.h"

/* Largest segment: bounds the duration of one copy to some tens of microseconds. */
#define LEASE_BYTES (512u << 10)
/* How long a segment is offered before it is revoked.  A receiver that waits claims within one or
 * two microseconds, unless its collector keeps it from pinning. */
#define LEASE_OFFER_NS 50000

/* Is a leased get possible for r, a rendezvous?  The thread that owns r's pinnable memory waits in
 * the library for r. */
bool lease_possible(const struct request *r);
/* Is a lease worth while for a message, or the rest of one, of this size? */
bool lease_is_worthwhile(const struct peer *p, size_t bytes);

/* Sender; r, in state STREAMING, is pinned at `at`: leases the next segment and waits, with the lock
 * released, until it is settled or revoked.  The bytes that the receiver has copied; 0: nothing was
 * leased; -ECANCELED: revoked before it was claimed; -EIO: refused or abandoned, the receiver sends
 * another CTS. */
int64_t lease_push(struct ibvx *ep, struct request *r, const char *at);

/* Receiver: the sender leases the next `bytes` bytes of r. */
void lease_note(struct request *r, const void *desc, size_t bytes);
/* Receiver: the bytes of the noted segment have arrived by another scheme. */
void lease_forget(struct request *r);
/* Receiver; r is pinned at `at`: claims and copies the noted segment, with the lock released.  The
 * bytes copied; 0: there was none; a negative errno: they do not count. */
int64_t lease_pull(struct ibvx *ep, struct request *r, char *at);

#endif
