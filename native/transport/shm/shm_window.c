/* SPDX-License-Identifier: MIT */
/*
 * Windows between neighbours (struct transport_window): a word in the sender's ring says what has become of the one that is open.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "transport/shm/cma.h"
#include "transport/shm/shm_state.h"

/* The lowest bits of the word; above them the window's number.  CLOSED is left by the sender alone, OFFERED and CLAIMED by an exchange, so that
 * only one of the two gets it; TAKEN and REFUSED are left by the sender, ABANDONED by the receiver. */
enum shm_window_state { WINDOW_CLOSED, WINDOW_OFFERED, WINDOW_CLAIMED, WINDOW_TAKEN, WINDOW_REFUSED, WINDOW_ABANDONED };
#define WINDOW_STATE_BITS 3
#define WINDOW_STATE_MASK ((1u << WINDOW_STATE_BITS) - 1)

/* What open() writes. */
struct shm_window_desc {
	uint64_t addr;
	uint32_t number;
	uint32_t zero;
};
_Static_assert(sizeof(struct shm_window_desc) == WIRE_WINDOW_BYTES, "as the wire has it");

static uint32_t window_word(uint32_t number, enum shm_window_state state)
{
	return number << WINDOW_STATE_BITS | (uint32_t)state;
}

static struct shm_peer *window_peer(struct transport *t, int peer)
{
	struct shm *s = (struct shm *)t;

	return &s->peers[s->local_of[peer]];
}

/* From one state to another, unless the other side was quicker. */
static bool window_move(_Atomic uint32_t *word, uint32_t number, enum shm_window_state from, enum shm_window_state to)
{
	uint32_t seen = window_word(number, from);

	return atomic_compare_exchange_strong(word, &seen, window_word(number, to));
}

static int window_open(struct transport *t, int peer, const void *base, size_t bytes, void *desc)
{
	struct shm_peer *p = window_peer(t, peer);
	_Atomic uint32_t *word = &p->tx.control->window;
	uint32_t number = atomic_load_explicit(word, memory_order_acquire);
	struct shm_window_desc d = {.addr = (uint64_t)(uintptr_t)base};

	(void)bytes; /* the receiver knows them */
	if ((number & WINDOW_STATE_MASK) != WINDOW_CLOSED)
		return -EBUSY;
	d.number = ((number >> WINDOW_STATE_BITS) + 1) & (UINT32_MAX >> WINDOW_STATE_BITS);
	memcpy(desc, &d, sizeof(d));
	atomic_store_explicit(word, window_word(d.number, WINDOW_OFFERED), memory_order_release);
	return 0;
}

static int window_end(struct transport *t, int peer, enum transport_window_end how)
{
	_Atomic uint32_t *word = &window_peer(t, peer)->tx.control->window;
	uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
	uint32_t number = seen >> WINDOW_STATE_BITS;

	switch ((enum shm_window_state)(seen & WINDOW_STATE_MASK)) {
	case WINDOW_OFFERED:
		return how != TRANSPORT_LOOK && window_move(word, number, WINDOW_OFFERED, WINDOW_CLOSED) ? 0 : -EAGAIN;
	case WINDOW_CLAIMED:
		return how == TRANSPORT_ABANDON && window_move(word, number, WINDOW_CLAIMED, WINDOW_ABANDONED) ? -EIO : -EAGAIN;
	case WINDOW_TAKEN:
		atomic_store_explicit(word, window_word(number, WINDOW_CLOSED), memory_order_relaxed);
		return 1;
	case WINDOW_REFUSED:
		atomic_store_explicit(word, window_word(number, WINDOW_CLOSED), memory_order_relaxed);
		return -EIO;
	case WINDOW_ABANDONED:
	case WINDOW_CLOSED:
		break;
	}
	return -EIO;
}

static int window_claim(struct transport *t, int peer, const void *desc, void *to, size_t bytes)
{
	struct shm_peer *p = window_peer(t, peer);
	struct shm_window_desc d;

	(void)to;
	(void)bytes;
	memcpy(&d, desc, sizeof(d));
	return p->rx_window && window_move(&p->rx.control->window, d.number, WINDOW_OFFERED, WINDOW_CLAIMED) ? 0 : -ECANCELED;
}

static int window_copy(struct transport *t, int peer, const void *desc, void *to, size_t bytes)
{
	struct shm_peer *p = window_peer(t, peer);
	struct shm_window_desc d;
	int rc;

	memcpy(&d, desc, sizeof(d));
	rc = cma_read(p->pid, d.addr, to, bytes);
	if (rc < 0)
		return error_sys(rc, "process_vm_readv from rank %d", p->rank);
	if (!shm_alive(p))
		return error_set(-ESRCH, "rank %d died while it was read from", p->rank);
	atomic_fetch_add_explicit(&p->window_bytes, bytes, memory_order_relaxed);
	return 0;
}

static bool window_settle(struct transport *t, int peer, const void *desc, bool taken)
{
	_Atomic uint32_t *word = &window_peer(t, peer)->rx.control->window;
	struct shm_window_desc d;

	memcpy(&d, desc, sizeof(d));
	if (window_move(word, d.number, WINDOW_CLAIMED, taken ? WINDOW_TAKEN : WINDOW_REFUSED))
		return taken;
	(void)window_move(word, d.number, WINDOW_ABANDONED, WINDOW_CLOSED);
	return false;
}

const struct transport_window shm_window = {
	.seen = true,
	.pays = shm_get_pays,
	.open = window_open,
	.end = window_end,
	.claim = window_claim,
	.copy = window_copy,
	.settle = window_settle,
};
