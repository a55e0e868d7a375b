/* SPDX-License-Identifier: MIT */
#include "core/waiter.h"

#include <limits.h>
#include <stdatomic.h>

#include "base/futex.h"

bool core_ready(const struct ibvx *ep)
{
	for (int i = 0; i < ep->transport_count; i++) {
		if (ep->transports[i]->ops->ready(ep->transports[i]))
			return true;
	}
	return false;
}

_Atomic uint32_t *waiter_doorbell(struct ibvx *ep)
{
	return (_Atomic uint32_t *)ep->doorbell;
}

/* The word on which the poller sleeps: bit 0 says that somebody does, the rest counts. */
void waiter_wake(struct ibvx *ep)
{
	uint32_t v;

	if (!ep->asleep)
		return;
	v = atomic_load(waiter_doorbell(ep));
	while (!atomic_compare_exchange_weak(waiter_doorbell(ep), &v, (v & ~1u) + 2u))
		;
	ep->asleep = false; /* once is enough */
	/* all: the progress thread may still lie on the bell beside the poller */
	futex_wake(ep->doorbell, INT_MAX, ep->doorbell_owner != NULL);
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
	/* it polls from now on, so that what comes next need not be staged; unless that meant to wake the poller for it */
	if (ep->poller && ep->poller != w && !ep->poller->on_doorbell)
		ep->poller = w;
	waiter_signal(ep, w);
}

void waiter_call_any(struct ibvx *ep)
{
	struct waiter *w = ep->poller;

	for (struct list *l = ep->waiters.next; (!w || w->background) && l != &ep->waiters; l = l->next)
		w = LIST_ITEM(l, struct waiter, link);
	if (w && !w->background)
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

void waiter_on_message(struct ibvx *ep)
{
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *w = LIST_ITEM(l, struct waiter, link);

		if (w->wants_message)
			waiter_signal(ep, w);
	}
}

void waiter_signal_all(struct ibvx *ep)
{
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next)
		waiter_signal(ep, LIST_ITEM(l, struct waiter, link));
}

/* The token becomes w's, also when the progress thread holds it, or one that does not poll just now. */
void waiter_take_ownership(struct ibvx *ep, struct waiter *w)
{
	if (!ep->poller) {
		ep->poller = w;
	} else if ((ep->poller->background || ep->poller->away) && !w->background) {
		if (ep->poller->on_doorbell)
			waiter_disarm(ep); /* it sleeps on; nobody rings for it now */
		ep->asleep = false;
		ep->poller = w;
	}
}

/* Who may poll instead of w: the progress thread if nobody else is there, or NULL. */
struct waiter *waiter_other(struct ibvx *ep, const struct waiter *w)
{
	struct waiter *other = NULL;

	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *o = LIST_ITEM(l, struct waiter, link);

		if (o == w || o->away)
			continue;
		other = o;
		if (!o->background)
			break;
	}
	return other;
}

void waiter_away(struct ibvx *ep, struct waiter *w)
{
	struct waiter *next = ep->poller == w ? waiter_other(ep, w) : NULL;

	w->away = true;
	if (!next || next->background)
		return;
	ep->poller = next;
	waiter_signal(ep, next);
}

void core_unlock_wake(struct ibvx *ep)
{
	struct transport_wakeup first = ep->wakeups.peer[0], more[TRANSPORT_WAKEUPS_MAX - 1];
	int count = ep->wakeups.count;

	/* a thread that does not poll may leave work (a message to itself) to a poller asleep */
	if (ep->asleep && core_ready(ep))
		waiter_wake(ep);
	for (int i = 1; i < count; i++) /* seldom */
		more[i - 1] = ep->wakeups.peer[i];
	ep->wakeups.count = 0;
	lock_release(&ep->lock);
	if (count == 0)
		return;
	/* what was committed or freed becomes visible before the look whether anybody sleeps for it */
	atomic_thread_fence(memory_order_seq_cst);
	first.owner->ops->wake(first.owner, first.doorbell, first.flag);
	for (int i = 1; i < count; i++)
		more[i - 1].owner->ops->wake(more[i - 1].owner, more[i - 1].doorbell, more[i - 1].flag);
}

/* Returns the word to sleep on: whoever rings from now on changes it. */
uint32_t waiter_arm(struct ibvx *ep)
{
	uint32_t value = atomic_fetch_or(waiter_doorbell(ep), 1u) | 1u;

	for (int i = 0; i < ep->transport_count; i++)
		ep->transports[i]->ops->arm(ep->transports[i]);
	atomic_thread_fence(memory_order_seq_cst);
	return value;
}

void waiter_disarm(struct ibvx *ep)
{
	atomic_fetch_and(waiter_doorbell(ep), ~1u);
	for (int i = 0; i < ep->transport_count; i++)
		ep->transports[i]->ops->disarm(ep->transports[i]);
}
