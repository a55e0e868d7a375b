/* SPDX-License-Identifier: MIT */
#include "core/waiter.h"

#include <stdatomic.h>

#include "base/futex.h"

bool core_ready(const struct ibvx *ep)
{
	for (int i = 0; i < ep->polled_count; i++) {
		if (ep->polled[i]->ops->ready(ep->polled[i]))
			return true;
	}
	return false;
}

_Atomic uint32_t *waiter_doorbell(struct ibvx *ep, enum transport_doorbell word)
{
	return (_Atomic uint32_t *)&ep->doorbell[word];
}

uint32_t waiter_arm(struct ibvx *ep, enum transport_doorbell word)
{
	uint32_t value = atomic_fetch_or(waiter_doorbell(ep, word), 1u) | 1u;

	for (int i = 0; i < ep->polled_count; i++)
		ep->polled[i]->ops->arm(ep->polled[i]);
	atomic_thread_fence(memory_order_seq_cst);
	return value;
}

void waiter_disarm(struct ibvx *ep, enum transport_doorbell word)
{
	atomic_fetch_and(waiter_doorbell(ep, word), ~1u);
	for (int i = 0; i < ep->polled_count; i++)
		ep->polled[i]->ops->disarm(ep->polled[i]);
}

void waiter_ring(struct ibvx *ep, enum transport_doorbell word)
{
	_Atomic uint32_t *doorbell = waiter_doorbell(ep, word);
	uint32_t v = atomic_load(doorbell);

	while (!atomic_compare_exchange_weak(doorbell, &v, (v & ~1u) + 2u))
		;
	futex_wake(doorbell, 1, ep->doorbell_owner != NULL);
}

void waiter_wake(struct ibvx *ep)
{
	if (!ep->asleep)
		return;
	ep->asleep = false; /* once is enough */
	waiter_ring(ep, TRANSPORT_DOORBELL_POLLER);
	ep->wakes++;
}

void waiter_signal(struct ibvx *ep, struct waiter *w)
{
	atomic_store_explicit(&w->signal, 1, memory_order_release);
	if (w->sleeping)
		futex_wake(&w->signal, 1, false);
	else if (w == ep->poller)
		waiter_wake(ep);
}

void waiter_call(struct ibvx *ep, struct waiter *w)
{
	/* it polls from now on, so that what comes next need not be bounced; unless that meant to wake the poller for it */
	if (ep->poller && ep->poller != w && !ep->poller->on_doorbell)
		ep->poller = w;
	waiter_signal(ep, w);
}

void waiter_call_any(struct ibvx *ep)
{
	struct waiter *w = ep->poller;

	if (!w && !list_empty(&ep->waiters))
		w = LIST_ITEM(ep->waiters.next, struct waiter, link);
	if (w)
		waiter_signal(ep, w);
}

void waiter_signal_any(struct ibvx *ep)
{
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *w = LIST_ITEM(l, struct waiter, link);

		if (w->wants_any)
			waiter_signal(ep, w);
	}
}

/* ibvx_watch.h: a message, or the end of a peer. */
static void waiter_call_watcher(struct ibvx *ep)
{
	if (ep->message_watches == 0 || ep->message_came)
		return;
	ep->message_came = true;
	waiter_signal(ep, &ep->watcher);
}

void waiter_on_message(struct ibvx *ep)
{
	waiter_call_watcher(ep);
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *w = LIST_ITEM(l, struct waiter, link);

		if (w->wants_message)
			waiter_signal(ep, w);
	}
}

void waiter_signal_all(struct ibvx *ep)
{
	waiter_call_watcher(ep);
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next)
		waiter_signal(ep, LIST_ITEM(l, struct waiter, link));
}

/* w, the progress owner, is another waiter from now on: it leaves the doorbell. */
static void waiter_leave_doorbell(struct ibvx *ep, struct waiter *w)
{
	if (!w->on_doorbell)
		return;
	w->on_doorbell = false;
	ep->asleep = false;
	waiter_disarm(ep, TRANSPORT_DOORBELL_POLLER);
	waiter_ring(ep, TRANSPORT_DOORBELL_POLLER);
}

void waiter_take_ownership(struct ibvx *ep, struct waiter *w)
{
	const enum transport_doorbell background = TRANSPORT_DOORBELL_BACKGROUND;

	if (!ep->poller) {
		ep->poller = w;
		if (atomic_load_explicit(waiter_doorbell(ep, background), memory_order_relaxed) & 1u)
			waiter_disarm(ep, background); /* no need for the progress thread now */
	} else if (ep->poller->away) {
		ep->poller = w;
	} else if (ep->poller->stands_back && ep->poller != w) {
		waiter_leave_doorbell(ep, ep->poller);
		ep->poller = w;
	}
}

struct waiter *waiter_other(struct ibvx *ep, const struct waiter *w)
{
	struct waiter *last = NULL;

	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *o = LIST_ITEM(l, struct waiter, link);

		if (o == w || o->away)
			continue;
		if (!o->stands_back)
			return o;
		last = o;
	}
	return last;
}

void waiter_away(struct ibvx *ep, struct waiter *w)
{
	struct waiter *next = ep->poller == w ? waiter_other(ep, w) : NULL;

	w->away = true;
	if (!next)
		return;
	ep->poller = next;
	waiter_signal(ep, next);
}

/* Several peers are to be woken. */
static __attribute__((noinline)) void core_unlock_wake_all(struct ibvx *ep)
{
	struct transport_wakeups w = ep->wakeups;

	ep->wakeups.count = 0;
	lock_release(&ep->lock);
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < w.count; i++)
		w.peer[i].owner->ops->wake(w.peer[i].owner, w.peer[i].doorbell, w.peer[i].flag, w.peer[i].urgent);
}

void core_unlock_wake(struct ibvx *ep)
{
	const struct transport_wakeup *w = &ep->wakeups.peer[0];
	struct transport *owner = w->owner;
	void *doorbell = w->doorbell, *flag = w->flag;
	bool urgent = w->urgent;
	int count = ep->wakeups.count;

	/* a thread that does not poll may leave work (a message to itself) to a poller asleep */
	if (ep->asleep && core_ready(ep))
		waiter_wake(ep);
	if (count > 1) {
		core_unlock_wake_all(ep);
		return;
	}
	ep->wakeups.count = 0;
	lock_release(&ep->lock);
	if (count == 0)
		return;
	/* what was committed or freed becomes visible before the look whether anybody sleeps for it */
	atomic_thread_fence(memory_order_seq_cst);
	owner->ops->wake(owner, doorbell, flag, urgent);
}
