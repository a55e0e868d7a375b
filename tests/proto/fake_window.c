/* SPDX-License-Identifier: MIT */
/* The windows of the fake transport.  What is called without the core's lock touches the word of the link alone, or takes the fabric's. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fake.h"

struct fake_window_desc {
	uint64_t base;
	uint32_t number, magic; /* the lower half of FAKE_MAGIC */
};
_Static_assert(sizeof(struct fake_window_desc) == WIRE_WINDOW_BYTES, "as the wire has it");

static unsigned window_word(unsigned number, enum fake_window_state state)
{
	return number << 3 | (unsigned)state;
}

/* From one state to another, unless the other side was quicker. */
static bool window_move(struct link *l, unsigned number, enum fake_window_state from, enum fake_window_state to)
{
	unsigned seen = window_word(number, from);

	return atomic_compare_exchange_strong(&l->window, &seen, window_word(number, to));
}

static int window_open(struct transport *base, int peer, const void *memory, size_t bytes, void *desc)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, t->rank, peer);
	struct fake_window_desc d = { .base = (uint64_t)(uintptr_t)memory, .magic = (uint32_t)FAKE_MAGIC };
	unsigned word;

	(void)bytes;
	fake_enter(t, "window open");
	word = atomic_load(&l->window);
	d.number = (word >> 3) + 1;
	if ((word & 7) == FAKE_CLOSED) {
		memcpy(desc, &d, sizeof(d));
		atomic_store(&l->window, window_word(d.number, FAKE_OFFERED));
	}
	fake_leave(t);
	return (word & 7) == FAKE_CLOSED ? 0 : -EBUSY;
}

static int window_end(struct transport *base, int peer, enum transport_window_end how)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, t->rank, peer);
	unsigned seen = atomic_load(&l->window), number = seen >> 3;

	switch ((enum fake_window_state)(seen & 7)) {
	case FAKE_OFFERED:
		return how != TRANSPORT_LOOK && window_move(l, number, FAKE_OFFERED, FAKE_CLOSED) ? 0 : -EAGAIN;
	case FAKE_CLAIMED:
		if (how != TRANSPORT_ABANDON && !atomic_load(&t->f->window_expired))
			return -EAGAIN;
		pthread_mutex_lock(&t->f->lock); /* not during a copy: the memory is gone then */
		seen = window_move(l, number, FAKE_CLAIMED, FAKE_ABANDONED);
		pthread_mutex_unlock(&t->f->lock);
		return seen ? -EIO : -EAGAIN;
	case FAKE_TAKEN:
	case FAKE_REFUSED:
		atomic_store(&l->window, window_word(number, FAKE_CLOSED));
		return (seen & 7) == FAKE_TAKEN ? 1 : -EIO;
	case FAKE_ABANDONED:
	case FAKE_CLOSED:
		break;
	}
	pthread_mutex_lock(&t->f->lock);
	fabric_violate(t->f, "rank %d: the end of a window that is closed", t->rank);
	pthread_mutex_unlock(&t->f->lock);
	return -EIO;
}

static int window_claim(struct transport *base, int peer, const void *desc, void *to, size_t bytes)
{
	struct fake *t = fake_of(base);
	struct fabric *f = t->f;
	struct link *l = fabric_link(f, peer, t->rank);
	struct fake_window_desc d;
	int rc = -ECANCELED;

	(void)to;
	(void)bytes;
	fake_enter(t, "window claim");
	memcpy(&d, desc, sizeof(d));
	if (d.magic == (uint32_t)FAKE_MAGIC && window_move(l, d.number, FAKE_OFFERED, FAKE_CLAIMED)) {
		l->window_err = 0;
		if (rng_percent(&f->rng, f->cfg.window_fail_percent))
			l->window_err = f->cfg.get_errno ? f->cfg.get_errno : rng_percent(&f->rng, 50) ? -EPERM : -EFAULT;
		rc = 0;
	}
	fake_leave(t);
	return rc;
}

static int window_copy(struct transport *base, int peer, const void *desc, void *to, size_t bytes)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, peer, t->rank);
	struct fake_window_desc d;

	memcpy(&d, desc, sizeof(d));
	atomic_fetch_add(&t->f->windows_held, 1);
	while (atomic_load(&t->f->window_hold))
		usleep(100);
	atomic_fetch_sub(&t->f->windows_held, 1);
	if (l->window_err)
		return error_set(l->window_err, "a window that cannot be read");
	pthread_mutex_lock(&t->f->lock);
	if (atomic_load(&l->window) == window_word(d.number, FAKE_CLAIMED))
		memcpy(to, (const void *)(uintptr_t)d.base, bytes);
	pthread_mutex_unlock(&t->f->lock);
	return 0;
}

static bool window_settle(struct transport *base, int peer, const void *desc, bool taken)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, peer, t->rank);
	struct fake_window_desc d;
	bool settled;

	fake_enter(t, "window settle");
	memcpy(&d, desc, sizeof(d));
	settled = window_move(l, d.number, FAKE_CLAIMED, taken ? FAKE_TAKEN : FAKE_REFUSED);
	if (!settled && !window_move(l, d.number, FAKE_ABANDONED, FAKE_CLOSED))
		fabric_violate(t->f, "rank %d: a window of rank %d is settled that was not claimed", t->rank, peer);
	fake_leave(t);
	return settled && taken;
}

const struct transport_window fake_window = {
	.seen = true,
	.pays = fake_get_pays,
	.open = window_open,
	.end = window_end,
	.claim = window_claim,
	.copy = window_copy,
	.settle = window_settle,
};

/* Where the core tells: the word is this double's alone, and says which order of calls is a fault. */
static int told_end(struct transport *base, int peer, enum transport_window_end how)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, t->rank, peer);
	unsigned seen, number;

	fake_enter(t, "window end");
	seen = atomic_load(&l->window);
	number = seen >> 3;
	if (how != TRANSPORT_ABANDON && (how != TRANSPORT_TAKEN || (seen & 7) != FAKE_TAKEN))
		fabric_violate(t->f, "rank %d: a window in state %u is closed as taken", t->rank, seen & 7);
	switch ((enum fake_window_state)(seen & 7)) {
	case FAKE_CLAIMED:
		atomic_store(&l->window, window_word(number, FAKE_ABANDONED));
		break;
	case FAKE_OFFERED:
	case FAKE_TAKEN:
	case FAKE_REFUSED:
		atomic_store(&l->window, window_word(number, FAKE_CLOSED));
		break;
	case FAKE_ABANDONED:
	case FAKE_CLOSED:
		fabric_violate(t->f, "rank %d: the end of a window that is closed", t->rank);
		break;
	}
	fake_leave(t);
	return how == TRANSPORT_ABANDON ? -EIO : 0;
}

static int told_copy(struct transport *base, int peer, const void *desc, void *to, size_t bytes)
{
	struct fake *t = fake_of(base);
	struct link *l = fabric_link(t->f, peer, t->rank);
	struct fake_window_desc d;
	int rc = window_copy(base, peer, desc, to, bytes);

	memcpy(&d, desc, sizeof(d));
	if (rc == 0 && atomic_load(&l->window) != window_word(d.number, FAKE_CLAIMED))
		rc = error_set(-ECANCELED, "a window that was given up");
	atomic_fetch_add(&t->f->windows_copied, 1);
	while (atomic_load(&t->f->window_linger))
		usleep(100);
	atomic_fetch_sub(&t->f->windows_copied, 1);
	return rc;
}

/* What was copied counts, given up meanwhile or not: the sender waits to be told. */
static bool told_settle(struct transport *base, int peer, const void *desc, bool taken)
{
	window_settle(base, peer, desc, taken);
	return taken;
}

const struct transport_window fake_window_told = {
	.pays = fake_get_pays,
	.open = window_open,
	.end = told_end,
	.claim = window_claim,
	.copy = told_copy,
	.settle = told_settle,
};

void fabric_hold_windows(struct fabric *f, bool hold)
{
	atomic_store(&f->window_hold, hold);
}

void fabric_linger_windows(struct fabric *f, bool linger)
{
	atomic_store(&f->window_linger, linger);
}

bool fabric_window_lingers(struct fabric *f)
{
	return atomic_load(&f->window_linger) && atomic_load(&f->windows_copied) > 0;
}

bool fabric_window_open(struct fabric *f, int from, int to)
{
	unsigned state = atomic_load(&fabric_link(f, from, to)->window) & 7;

	return state != FAKE_CLOSED && state != FAKE_ABANDONED;
}

void fabric_expire_windows(struct fabric *f)
{
	atomic_store(&f->window_expired, true);
}

bool fabric_window_held(struct fabric *f)
{
	return atomic_load(&f->window_hold) && atomic_load(&f->windows_held) > 0;
}
