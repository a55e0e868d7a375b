/* SPDX-License-Identifier: MIT */
/* The leases of the fake transport.  What is called without the core's lock touches the word of the link alone, or takes the fabric's. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fake.h"

struct fake_lease_desc {
	uint64_t base;
	uint32_t number, magic; /* the lower half of FAKE_MAGIC */
};
_Static_assert(sizeof(struct fake_lease_desc) == WIRE_LEASE_BYTES, "as the wire has it");

static unsigned lease_word(unsigned number, enum fake_lease_state state)
{
	return number << 3 | (unsigned)state;
}

/* From one state to another, unless the other side was quicker. */
static bool lease_change(struct link *l, unsigned number, enum fake_lease_state from, enum fake_lease_state to)
{
	unsigned seen = lease_word(number, from);

	return atomic_compare_exchange_strong(&l->lease, &seen, lease_word(number, to));
}

static int lease_open(struct transport *base, int peer, const void *memory, void *desc)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, t->rank, peer);
	struct fake_lease_desc d = {.base = (uint64_t)(uintptr_t)memory, .magic = (uint32_t)FAKE_MAGIC};
	unsigned word;

	fake_enter(t, "lease open");
	word = atomic_load(&l->lease);
	d.number = (word >> 3) + 1;
	if ((word & 7) == FAKE_CLOSED) {
		memcpy(desc, &d, sizeof(d));
		atomic_store(&l->lease, lease_word(d.number, FAKE_OFFERED));
	}
	fake_leave(t);
	return (word & 7) == FAKE_CLOSED ? 0 : -EBUSY;
}

static int lease_end(struct transport *base, int peer, enum transport_lease_end how)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, t->rank, peer);
	unsigned seen = atomic_load(&l->lease), number = seen >> 3;

	switch ((enum fake_lease_state)(seen & 7)) {
	case FAKE_OFFERED: return how != TRANSPORT_LOOK && lease_change(l, number, FAKE_OFFERED, FAKE_CLOSED) ? 0 : -EAGAIN;
	case FAKE_CLAIMED:
		if (how != TRANSPORT_ABANDON && !atomic_load(&t->f->lease_expired))
			return -EAGAIN;
		pthread_mutex_lock(&t->f->lock); /* not during a copy: the memory is gone then */
		seen = lease_change(l, number, FAKE_CLAIMED, FAKE_ABANDONED);
		pthread_mutex_unlock(&t->f->lock);
		return seen ? -EIO : -EAGAIN;
	case FAKE_COPIED:
	case FAKE_REFUSED: atomic_store(&l->lease, lease_word(number, FAKE_CLOSED)); return (seen & 7) == FAKE_COPIED ? 1 : -EIO;
	case FAKE_ABANDONED:
	case FAKE_CLOSED: break;
	}
	pthread_mutex_lock(&t->f->lock);
	fabric_violate(t->f, "rank %d: the end of a lease that is closed", t->rank);
	pthread_mutex_unlock(&t->f->lock);
	return -EIO;
}

static int lease_claim(struct transport *base, int peer, const void *desc)
{
	struct fake *t = fake_of(base);
	struct fabric *f = t->f;
	struct link *l = fabric_link(f, peer, t->rank);
	struct fake_lease_desc d;
	int rc = -ECANCELED;

	fake_enter(t, "lease claim");
	memcpy(&d, desc, sizeof(d));
	if (d.magic == (uint32_t)FAKE_MAGIC && lease_change(l, d.number, FAKE_OFFERED, FAKE_CLAIMED)) {
		l->lease_err = 0;
		if (rng_percent(&f->rng, f->cfg.lease_fail_percent))
			l->lease_err = f->cfg.get_errno ? f->cfg.get_errno : rng_percent(&f->rng, 50) ? -EPERM : -EFAULT;
		rc = 0;
	}
	fake_leave(t);
	return rc;
}

static int lease_copy(struct transport *base, int peer, const void *desc, void *to, size_t bytes)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, peer, t->rank);
	struct fake_lease_desc d;

	memcpy(&d, desc, sizeof(d));
	atomic_fetch_add(&t->f->leases_held, 1);
	while (atomic_load(&t->f->lease_hold))
		usleep(100);
	atomic_fetch_sub(&t->f->leases_held, 1);
	if (l->lease_err)
		return error_set(l->lease_err, "a lease that cannot be read");
	pthread_mutex_lock(&t->f->lock);
	if (atomic_load(&l->lease) == lease_word(d.number, FAKE_CLAIMED))
		memcpy(to, (const void *)(uintptr_t)d.base, bytes);
	pthread_mutex_unlock(&t->f->lock);
	return 0;
}

static bool lease_settle(struct transport *base, int peer, const void *desc, bool copied)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, peer, t->rank);
	struct fake_lease_desc d;
	bool settled;

	fake_enter(t, "lease settle");
	memcpy(&d, desc, sizeof(d));
	settled = lease_change(l, d.number, FAKE_CLAIMED, copied ? FAKE_COPIED : FAKE_REFUSED);
	if (!settled && !lease_change(l, d.number, FAKE_ABANDONED, FAKE_CLOSED))
		fabric_violate(t->f, "rank %d: a lease of rank %d is settled that was not claimed", t->rank, peer);
	fake_leave(t);
	return settled && copied;
}

const struct transport_lease fake_lease = {
	.open = lease_open,
	.end = lease_end,
	.claim = lease_claim,
	.copy = lease_copy,
	.settle = lease_settle,
};

void fabric_hold_leases(struct fabric *f, bool hold)
{
	atomic_store(&f->lease_hold, hold);
}

bool fabric_lease_open(struct fabric *f, int from, int to)
{
	unsigned state = atomic_load(&fabric_link(f, from, to)->lease) & 7;

	return state != FAKE_CLOSED && state != FAKE_ABANDONED;
}

void fabric_expire_leases(struct fabric *f)
{
	atomic_store(&f->lease_expired, true);
}

bool fabric_lease_held(struct fabric *f)
{
	return atomic_load(&f->lease_hold) && atomic_load(&f->leases_held) > 0;
}
