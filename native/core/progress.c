/* SPDX-License-Identifier: MIT */
#include "core/progress.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "core/pin.h"
#include "core/peer.h"

/* Turns of the spin loop between two looks at the clock. */
#define WAIT_SPINS 64
#define WAIT_IDLE_TESTS 32u

int progress_poll(struct ibvx *ep, int budget)
{
	int events = 0;

	ep->polls++;
	for (int i = 0; i < ep->transport_count; i++)
		events += ep->transports[i]->ops->poll(ep->transports[i], budget);
	return events;
}

int progress_flush(struct ibvx *ep)
{
	int events = 0;

	for (int n = atomic_load_explicit(&ep->busy_count, memory_order_relaxed); n > 0; n--) {
		struct peer *p;

		if (list_empty(&ep->busy))
			break;
		p = LIST_ITEM(ep->busy.next, struct peer, busy);
		list_remove(&p->busy);
		list_append(&ep->busy, &p->busy);
		if (p->error)
			peer_fail(p, p->error, p->why ? p->why : "the connection failed");
		else
			events += peer_flush(p);
	}
	return events;
}

int progress_run(struct ibvx *ep)
{
	int events;

	if (ep->aborted) /* callers may have taken their buffers away */
		return 0;
	events = progress_poll(ep, TRANSPORT_BUDGET);
	return events + progress_flush(ep);
}

bool progress_ready(const struct ibvx *ep)
{
	for (int i = 0; i < ep->transport_count; i++) {
		if (ep->transports[i]->ops->ready(ep->transports[i]))
			return true;
	}
	return false;
}

static _Atomic uint32_t *progress_doorbell(struct ibvx *ep)
{
	return (_Atomic uint32_t *)ep->doorbell;
}

/* The word on which the poller sleeps: bit 0 says that somebody does, the rest counts. */
void progress_wake(struct ibvx *ep)
{
	uint32_t v;

	if (!ep->asleep)
		return;
	v = atomic_load(progress_doorbell(ep));
	while (!atomic_compare_exchange_weak(progress_doorbell(ep), &v, (v & ~1u) + 2u))
		;
	ep->asleep = false; /* once is enough */
	/* all: the progress thread may still lie on the bell beside the poller */
	futex_wake(ep->doorbell, INT_MAX, ep->doorbell_owner != NULL);
	ep->wakes++;
}

void progress_signal(struct ibvx *ep, struct waiter *w)
{
	atomic_store_explicit(&w->signal, 1, memory_order_release);
	if (w->sleeping)
		futex_wake(&w->signal, 1, false);
	else if (w == ep->poller)
		progress_wake(ep);
}

void progress_call(struct ibvx *ep, struct waiter *w)
{
	/* it polls from now on, so that what comes next need not be staged; unless that meant to wake the poller for it */
	if (ep->poller && ep->poller != w && !ep->poller->on_doorbell)
		ep->poller = w;
	progress_signal(ep, w);
}

void progress_call_any(struct ibvx *ep)
{
	struct waiter *w = ep->poller;

	for (struct list *l = ep->waiters.next; (!w || w->background) && l != &ep->waiters; l = l->next)
		w = LIST_ITEM(l, struct waiter, link);
	if (w && !w->background)
		progress_signal(ep, w);
}

void progress_signal_any(struct ibvx *ep)
{
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *w = LIST_ITEM(l, struct waiter, link);

		if (w->wants_any)
			progress_signal(ep, w);
	}
}

void progress_on_message(struct ibvx *ep)
{
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next) {
		struct waiter *w = LIST_ITEM(l, struct waiter, link);

		if (w->wants_message)
			progress_signal(ep, w);
	}
}

void progress_signal_all(struct ibvx *ep)
{
	for (struct list *l = ep->waiters.next; l != &ep->waiters; l = l->next)
		progress_signal(ep, LIST_ITEM(l, struct waiter, link));
}

/* Returns the word to sleep on: whoever rings from now on changes it. */
static uint32_t progress_arm(struct ibvx *ep)
{
	uint32_t value = atomic_fetch_or(progress_doorbell(ep), 1u) | 1u;

	for (int i = 0; i < ep->transport_count; i++)
		ep->transports[i]->ops->arm(ep->transports[i]);
	atomic_thread_fence(memory_order_seq_cst);
	return value;
}

static void progress_disarm(struct ibvx *ep)
{
	atomic_fetch_and(progress_doorbell(ep), ~1u);
	for (int i = 0; i < ep->transport_count; i++)
		ep->transports[i]->ops->disarm(ep->transports[i]);
}

/* Sleeps on the bell unless something is there. Lock held on entry and exit. */
static void progress_sleep(struct ibvx *ep, struct waiter *w, int64_t deadline_ns)
{
	int64_t left = -1;
	uint32_t value = progress_arm(ep);

	if ((w->moving && progress_ready(ep)) || progress_run(ep) > 0 || progress_ready(ep) || atomic_load(&w->signal) ||
	    ep->poller != w) { /* what was sent just now may have called another waiter (progress_call) */
		progress_disarm(ep);
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
	futex_wait(ep->doorbell, value, left, ep->doorbell_owner != NULL);
	core_lock(ep);
	w->on_doorbell = false;
	/* while we slept a waiter may have taken the token and the bell from the progress thread */
	if (ep->poller == w) {
		ep->asleep = false;
		progress_disarm(ep);
	}
}

/* A short look without the lock. */
static void progress_spin(struct ibvx *ep, struct waiter *w)
{
	for (int i = 0; i < WAIT_SPINS; i++) {
		if (progress_ready(ep) || atomic_load_explicit(&w->signal, memory_order_relaxed))
			return;
		cpu_relax();
	}
}

bool progress_spin_once(struct ibvx *ep)
{
	struct waiter nobody = {0};

	if (ep->spin_ns <= 0)
		return false;
	ep->users++; /* an abort waits for us */
	core_unlock(ep);
	progress_spin(ep, &nobody);
	core_lock(ep);
	ep->users--;
	return true;
}

/* The token holder's turn: spins, yields or sleeps a little, by how long it has been idle. */
static void progress_as_poller(struct ibvx *ep, struct waiter *w, int64_t *idle_since, int64_t deadline_ns)
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
		progress_sleep(ep, w, deadline_ns);
}

/* Without the token: until signalled. */
static void progress_as_follower(struct ibvx *ep, struct waiter *w, int64_t deadline_ns)
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

/* The token becomes w's, also when the progress thread holds it, or one that does not poll just now. */
static void progress_take_ownership(struct ibvx *ep, struct waiter *w)
{
	if (!ep->poller) {
		ep->poller = w;
	} else if ((ep->poller->background || ep->poller->away) && !w->background) {
		if (ep->poller->on_doorbell)
			progress_disarm(ep); /* it sleeps on; nobody rings for it now */
		ep->asleep = false;
		ep->poller = w;
	}
}

/* Who may poll instead of w: the progress thread if nobody else is there, or NULL. */
static struct waiter *progress_other(struct ibvx *ep, const struct waiter *w)
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

void progress_away(struct ibvx *ep, struct waiter *w)
{
	struct waiter *next = ep->poller == w ? progress_other(ep, w) : NULL;

	w->away = true;
	if (!next || next->background)
		return;
	ep->poller = next;
	progress_signal(ep, next);
}

/* w leaves: somebody else has to poll. */
static void progress_pass_ownership(struct ibvx *ep, struct waiter *w)
{
	struct waiter *next;

	if (ep->poller != w)
		return;
	next = progress_other(ep, w);
	ep->poller = NULL;
	if (!next)
		return;
	ep->poller = next;
	if (!next->on_doorbell) {
		progress_signal(ep, next);
		return;
	}
	/* the progress thread never left the bell: it need not even wake for this */
	ep->asleep = true;
	progress_arm(ep);
	if (progress_run(ep) > 0 || progress_ready(ep))
		progress_wake(ep);
}

int progress_wait(struct ibvx *ep, struct waiter *w, bool (*done)(struct ibvx *ep, void *arg), void *arg,
	       int64_t timeout_ns)
{
	int64_t deadline_ns = timeout_ns < 0 ? -1 : clock_now_ns() + timeout_ns;
	int64_t idle_since = -1;
	int rc = 0;

	atomic_store_explicit(&w->signal, 0, memory_order_relaxed);
	w->sleeping = false;
	list_append(&ep->waiters, &w->link);
	ep->any_waiters += w->wants_any;
	if (!w->background)
		ep->users++;
	for (;;) {
		if (!ep->aborted && (pin_turn(ep, w) || progress_run(ep) > 0))
			idle_since = -1;
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
		progress_take_ownership(ep, w);
		if (ep->poller == w)
			progress_as_poller(ep, w, &idle_since, deadline_ns);
		else
			progress_as_follower(ep, w, deadline_ns);
	}
	list_remove(&w->link);
	ep->any_waiters -= w->wants_any;
	if (!w->background)
		ep->users--;
	progress_pass_ownership(ep, w);
	if (!list_empty(&ep->wanting))
		progress_call_any(ep);
	return rc;
}

void core_unlock_wake(struct ibvx *ep)
{
	struct transport_wakeup first = ep->wakeups.peer[0], more[TRANSPORT_WAKEUPS_MAX - 1];
	int count = ep->wakeups.count;

	/* a thread that does not poll may leave work (a message to itself) to a poller asleep */
	if (ep->asleep && progress_ready(ep))
		progress_wake(ep);
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

void progress_idle_test(struct ibvx *ep)
{
	uint32_t count;

	if (!ep->oversubscribed)
		return;
	count = atomic_load_explicit(&ep->idle_tests, memory_order_relaxed) + 1;
	atomic_store_explicit(&ep->idle_tests, count, memory_order_relaxed);
	if (count % WAIT_IDLE_TESTS == 0)
		sched_yield();
}

static bool progress_never(struct ibvx *ep, void *arg)
{
	(void)arg;
	return !ep->progress_running;
}

static void *progress_thread_main(void *arg)
{
	struct ibvx *ep = arg;

	core_lock(ep);
	progress_wait(ep, &ep->progress_waiter, progress_never, NULL, -1);
	core_unlock(ep);
	return NULL;
}

/* As many signals as possible go to the embedding program's own threads. */
int progress_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? error_sys(-rc, "cannot start a thread (limits: ulimit -u, ulimit -v)") : 0;
}

int progress_open(struct ibvx *ep, int local_ranks)
{
	int cpus = 0;
	int64_t spin = settings_int(ep->settings, SETTING_SPIN_US);
	int64_t yield = settings_int(ep->settings, SETTING_YIELD_US);
	int rc;

	for (size_t i = 0; i < sizeof(ep->processors) / sizeof(ep->processors[0]); i++)
		cpus += __builtin_popcountll(ep->processors[i]);
	ep->oversubscribed = cpus > 0 && local_ranks > cpus;
	ep->spin_ns = (spin >= 0 ? spin : ep->oversubscribed ? 0 : 10) * CLOCK_NS_PER_US;
	ep->yield_ns = (yield >= 0 ? yield : ep->oversubscribed ? 20 : 190) * CLOCK_NS_PER_US;
	if (!settings_int(ep->settings, SETTING_PROGRESS_THREAD))
		return 0;
	ep->progress_waiter.background = true;
	ep->progress_running = true;
	rc = progress_thread(&ep->progress_thread, progress_thread_main, ep);
	if (rc)
		ep->progress_running = false;
	return rc;
}

void progress_close(struct ibvx *ep)
{
	if (!ep->progress_running)
		return;
	core_lock(ep);
	ep->progress_running = false;
	progress_signal(ep, &ep->progress_waiter);
	if (ep->progress_waiter.on_doorbell)
		futex_wake(ep->doorbell, INT_MAX, ep->doorbell_owner != NULL);
	core_unlock(ep);
	pthread_join(ep->progress_thread, NULL);
}
