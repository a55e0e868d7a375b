/* SPDX-License-Identifier: MIT */
#include "core/wait.h"

#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "core/background.h"
#include "core/continuation.h"
#include "core/pin_serve.h"
#include "core/progress.h"
#include "core/waiter.h"

/* Sleeps on the doorbell unless something is there. Lock held on entry and exit. */
static void wait_sleep(struct ibvx *ep, struct waiter *w, int64_t deadline_ns)
{
	int64_t left = -1;
	uint32_t value = waiter_arm(ep, TRANSPORT_DOORBELL_POLLER);

	if ((w->pinned_request && core_ready(ep)) || progress_run(ep) > 0 || core_ready(ep) || atomic_load(&w->signal) ||
	    ep->poller != w) { /* what was sent just now may have called another waiter (waiter_call) */
		waiter_disarm(ep, TRANSPORT_DOORBELL_POLLER);
		return;
	}
	if (deadline_ns >= 0) {
		left = deadline_ns - clock_now_ns();
		left = left > 0 ? left : 1;
	}
	ep->asleep = true;
	ep->sleeps++;
	w->on_doorbell = true;
	core_unlock(ep);
	futex_wait(waiter_doorbell(ep, TRANSPORT_DOORBELL_POLLER), value, left, ep->doorbell_owner != NULL);
	core_lock(ep);
	if (!w->on_doorbell) /* another waiter owns progress now (waiter_take_ownership) */
		return;
	w->on_doorbell = false;
	ep->asleep = false;
	waiter_disarm(ep, TRANSPORT_DOORBELL_POLLER);
}

/* The turn of the progress owner: spins, yields or sleeps a little, by how long it has been idle. */
static void wait_as_poller(struct ibvx *ep, struct waiter *w, int64_t *idle_since, int64_t deadline_ns)
{
	int64_t idle_ns = 0;

	core_unlock(ep);
	if (*idle_since < 0) { /* most answers come at once: the first look is free of the clock */
		if (ep->spin_ns > 0)
			progress_spin(ep, w);
		*idle_since = 0;
		core_lock(ep);
		return;
	}
	if (*idle_since == 0)
		*idle_since = clock_now_ns();
	else
		idle_ns = clock_now_ns() - *idle_since;
	/* after a short while others (another job, a smaller share of a container) may need the processor more */
	if (idle_ns >= ep->spin_ns && idle_ns < ep->spin_ns + ep->yield_ns)
		sched_yield();
	if (ep->spin_ns > 0 && idle_ns < ep->spin_ns + ep->yield_ns)
		progress_spin(ep, w);
	core_lock(ep);
	if (idle_ns >= ep->spin_ns + ep->yield_ns && ep->poller == w)
		wait_sleep(ep, w, deadline_ns);
}

/* Without progress ownership: until signalled. */
static void wait_as_follower(struct ibvx *ep, struct waiter *w, int64_t deadline_ns)
{
	int64_t left = -1;

	w->sleeping = true;
	core_unlock(ep);
	if (deadline_ns >= 0) {
		left = deadline_ns - clock_now_ns();
		left = left > 0 ? left : 1;
	}
	futex_wait(&w->signal, 0, left, false);
	core_lock(ep);
	w->sleeping = false;
}

/* w leaves: somebody else has to poll. */
static void wait_pass_ownership(struct ibvx *ep, struct waiter *w)
{
	struct waiter *next;

	if (ep->poller != w)
		return;
	next = waiter_other(ep, w);
	ep->poller = next;
	if (next)
		waiter_signal(ep, next);
}

int wait_until(struct ibvx *ep, struct waiter *w, bool (*done)(struct ibvx *ep, void *arg), void *arg, int64_t timeout_ns)
{
	int64_t deadline_ns = timeout_ns < 0 ? -1 : clock_now_ns() + timeout_ns;
	int64_t idle_since = -1;
	int rc = 0;

	atomic_store_explicit(&w->signal, 0, memory_order_relaxed);
	w->sleeping = false;
	list_append(&ep->waiters, &w->link);
	ep->any_waiters += w->wants_any;
	ep->users++;
	for (;;) {
		if (!ep->aborted && (pin_turn(ep, w) || progress_run(ep) > 0))
			idle_since = -1;
		continuation_run_due(ep);
		if (done(ep, arg))
			break;
		if (ep->aborted) {
			rc = error_set(-ESHUTDOWN, "the endpoint was closed while this call waited");
			break;
		}
		if (deadline_ns >= 0 && clock_now_ns() >= deadline_ns) {
			rc = -ETIMEDOUT;
			break;
		}
		if (atomic_load_explicit(&w->signal, memory_order_relaxed)) { /* set under the lock */
			atomic_store_explicit(&w->signal, 0, memory_order_relaxed);
			continue;
		}
		waiter_take_ownership(ep, w);
		if (ep->poller == w)
			wait_as_poller(ep, w, &idle_since, deadline_ns);
		else
			wait_as_follower(ep, w, deadline_ns);
	}
	list_remove(&w->link);
	ep->any_waiters -= w->wants_any;
	ep->users--;
	wait_pass_ownership(ep, w);
	continuation_run_due(ep);
	if (!list_empty(&ep->wanting))
		waiter_call_any(ep);
	background_rest(ep);
	return rc;
}

/* Idle tests between two yields. */
#define WAIT_IDLE_TESTS 32u

void wait_idle_test(struct ibvx *ep)
{
	uint32_t count;

	if (!ep->oversubscribed)
		return;
	count = atomic_load_explicit(&ep->idle_tests, memory_order_relaxed) + 1;
	atomic_store_explicit(&ep->idle_tests, count, memory_order_relaxed);
	if (count % WAIT_IDLE_TESTS == 0)
		sched_yield();
}

void wait_open(struct ibvx *ep, int local_ranks)
{
	int64_t spin = settings_int(ep->settings, SETTING_SPIN_US);
	int64_t yield = settings_int(ep->settings, SETTING_YIELD_US);

	for (size_t i = 0; i < sizeof(ep->processors) / sizeof(ep->processors[0]); i++)
		ep->processor_count += __builtin_popcountll(ep->processors[i]);
	ep->oversubscribed = ep->processor_count > 0 && local_ranks > ep->processor_count;
	ep->spin_ns = (spin >= 0 ? spin : ep->oversubscribed ? 0 : 10) * CLOCK_NS_PER_US;
	ep->yield_ns = (yield >= 0 ? yield : ep->oversubscribed ? 100 : 190) * CLOCK_NS_PER_US;
}
