/* SPDX-License-Identifier: MIT */
/* Leases between ranks of a node (struct transport_lease): a word in the sender's ring holds the state. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "transport/shm/cma.h"
#include "transport/shm/shm_state.h"

/* The lowest bits of the word; above them the number of the lease.  CLOSED is left by the sender alone, OFFERED and CLAIMED by an exchange, so that
 * only one of the two gets it; COPIED and REFUSED are left by the sender, ABANDONED by the receiver. */
enum shm_lease_state { LEASE_CLOSED, LEASE_OFFERED, LEASE_CLAIMED, LEASE_COPIED, LEASE_REFUSED, LEASE_ABANDONED };
#define LEASE_STATE_BITS 3
#define LEASE_STATE_MASK ((1u << LEASE_STATE_BITS) - 1)

/* What open() writes. */
struct shm_lease_desc {
	uint64_t addr;
	uint32_t number;
	uint32_t zero;
};
_Static_assert(sizeof(struct shm_lease_desc) == WIRE_LEASE_BYTES, "as the wire has it");

static uint32_t lease_word(uint32_t number, enum shm_lease_state state)
{
	return number << LEASE_STATE_BITS | (uint32_t)state;
}

static struct shm_peer *lease_peer(struct transport *t, int peer)
{
	struct shm *s = (struct shm *)t;

	return &s->peers[s->local_of[peer]];
}

/* From one state to another, unless the other side was quicker. */
static bool lease_change(_Atomic uint32_t *word, uint32_t number, enum shm_lease_state from, enum shm_lease_state to)
{
	uint32_t seen = lease_word(number, from);

	return atomic_compare_exchange_strong(word, &seen, lease_word(number, to));
}

static int lease_open(struct transport *t, int peer, const void *base, void *desc)
{
	struct shm_peer *p = lease_peer(t, peer);
	_Atomic uint32_t *word = &p->tx.control->lease;
	uint32_t number = atomic_load_explicit(word, memory_order_acquire);
	struct shm_lease_desc d = {.addr = (uint64_t)(uintptr_t)base};

	if ((number & LEASE_STATE_MASK) != LEASE_CLOSED)
		return -EBUSY;
	d.number = ((number >> LEASE_STATE_BITS) + 1) & (UINT32_MAX >> LEASE_STATE_BITS);
	memcpy(desc, &d, sizeof(d));
	atomic_store_explicit(word, lease_word(d.number, LEASE_OFFERED), memory_order_release);
	return 0;
}

static int lease_end(struct transport *t, int peer, enum transport_lease_end how)
{
	_Atomic uint32_t *word = &lease_peer(t, peer)->tx.control->lease;
	uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
	uint32_t number = seen >> LEASE_STATE_BITS;

	switch ((enum shm_lease_state)(seen & LEASE_STATE_MASK)) {
	case LEASE_OFFERED: return how != TRANSPORT_LOOK && lease_change(word, number, LEASE_OFFERED, LEASE_CLOSED) ? 0 : -EAGAIN;
	case LEASE_CLAIMED: return how == TRANSPORT_ABANDON && lease_change(word, number, LEASE_CLAIMED, LEASE_ABANDONED) ? -EIO : -EAGAIN;
	case LEASE_COPIED: atomic_store_explicit(word, lease_word(number, LEASE_CLOSED), memory_order_relaxed); return 1;
	case LEASE_REFUSED: atomic_store_explicit(word, lease_word(number, LEASE_CLOSED), memory_order_relaxed); return -EIO;
	case LEASE_ABANDONED:
	case LEASE_CLOSED: break;
	}
	return -EIO;
}

static int lease_claim(struct transport *t, int peer, const void *desc)
{
	struct shm_peer *p = lease_peer(t, peer);
	struct shm_lease_desc d;

	memcpy(&d, desc, sizeof(d));
	return p->rx_mapping && lease_change(&p->rx.control->lease, d.number, LEASE_OFFERED, LEASE_CLAIMED) ? 0 : -ECANCELED;
}

static int lease_copy(struct transport *t, int peer, const void *desc, void *to, size_t bytes)
{
	struct shm_peer *p = lease_peer(t, peer);
	struct shm_lease_desc d;
	int rc;

	memcpy(&d, desc, sizeof(d));
	rc = cma_read(p->pid, d.addr, to, bytes);
	if (rc < 0)
		return error_sys(rc, "process_vm_readv from rank %d", p->rank);
	if (!shm_alive(p))
		return error_set(-ESRCH, "rank %d died while it was read from", p->rank);
	atomic_fetch_add_explicit(&p->lease_bytes, bytes, memory_order_relaxed);
	return 0;
}

static bool lease_settle(struct transport *t, int peer, const void *desc, bool copied)
{
	_Atomic uint32_t *word = &lease_peer(t, peer)->rx.control->lease;
	struct shm_lease_desc d;

	memcpy(&d, desc, sizeof(d));
	if (lease_change(word, d.number, LEASE_CLAIMED, copied ? LEASE_COPIED : LEASE_REFUSED))
		return copied;
	(void)lease_change(word, d.number, LEASE_ABANDONED, LEASE_CLOSED);
	return false;
}

const struct transport_lease shm_lease = {
	.open = lease_open,
	.end = lease_end,
	.claim = lease_claim,
	.copy = lease_copy,
	.settle = lease_settle,
};
