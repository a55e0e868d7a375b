/* SPDX-License-Identifier: MIT */
#include "core/background.h"

#include "base/futex.h"
#include "base/thread.h"
#include "core/continuation.h"
#include "core/progress.h"
#include "core/waiter.h"

/* Polls by a call that is about to return and finds packets while it arms the doorbell; then the progress thread goes on. */
#define BACKGROUND_POLLS 4

static _Atomic uint32_t *background_doorbell(struct ibvx *ep)
{
	return waiter_doorbell(ep, TRANSPORT_DOORBELL_BACKGROUND);
}

static bool background_needed(const struct ibvx *ep)
{
	return ep->background_running && !ep->poller && !ep->aborted &&
	       (ep->background_count > 0 || atomic_load_explicit(&ep->busy_count, memory_order_relaxed) > 0);
}

static bool background_armed(struct ibvx *ep)
{
	return atomic_load_explicit(background_doorbell(ep), memory_order_relaxed) & 1u;
}

void background_rest(struct ibvx *ep)
{
	for (int polls = 0; background_needed(ep); polls++) {
		waiter_arm(ep, TRANSPORT_DOORBELL_BACKGROUND);
		if (!core_ready(ep))
			return;
		if (polls == BACKGROUND_POLLS) {
			waiter_ring(ep, TRANSPORT_DOORBELL_BACKGROUND);
			return;
		}
		if (progress_run(ep) == 0)
			return;
	}
}

void background_adopt(struct ibvx *ep, struct request *r)
{
	if (!ep->background_running || r->background)
		return;
	r->background = true;
	ep->background_count++;
	if (!background_armed(ep))
		background_rest(ep);
}

/* Runs what is due, polls until nothing more arrives, with the lock released in between, and arms the doorbell. Returns its
 * value then. */
static uint32_t background_turn(struct ibvx *ep)
{
	uint32_t value;

	do {
		continuation_run_background(ep);
		while (background_needed(ep)) {
			if (progress_run(ep) == 0) {
				waiter_arm(ep, TRANSPORT_DOORBELL_BACKGROUND);
				if (progress_run(ep) == 0 && !core_ready(ep))
					break;
			}
			continuation_run_background(ep);
			core_unlock(ep);
			core_lock(ep);
		}
		value = atomic_load(background_doorbell(ep));
	} while (ep->due.first && !ep->aborted); /* due since the lock was released: its ring is in the value already */
	return value;
}

static void *background_main(void *arg)
{
	struct ibvx *ep = arg;

	core_lock(ep);
	for (;;) {
		uint32_t value = background_turn(ep);

		if (!ep->background_running) /* changes while a turn releases the lock, too */
			break;
		core_unlock(ep);
		futex_wait(background_doorbell(ep), value, -1, ep->doorbell_owner != NULL);
		core_lock(ep);
	}
	core_unlock(ep);
	return NULL;
}

int background_open(struct ibvx *ep)
{
	int rc;

	if (!settings_int(ep->settings, SETTING_PROGRESS_THREAD))
		return 0;
	core_lock(ep); /* the monitor runs already and looks at it */
	ep->background_running = true;
	rc = thread_start(&ep->background_thread, background_main, ep);
	if (rc)
		ep->background_running = false;
	core_unlock(ep);
	return rc;
}

void background_close(struct ibvx *ep)
{
	if (!ep->background_running)
		return;
	core_lock(ep);
	ep->background_running = false;
	waiter_ring(ep, TRANSPORT_DOORBELL_BACKGROUND);
	core_unlock(ep);
	pthread_join(ep->background_thread, NULL);
}
