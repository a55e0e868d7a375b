/* SPDX-License-Identifier: MIT */
/* ibvx_area.h. */
#include "ibvx_area.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/api.h"
#include "core/continuation.h"
#include "core/layout.h"
#include "core/pin_serve.h"
#include "core/progress.h"
#include "core/waiter.h"

/* Looks between two looks at the clock. */
#define AREA_LOOKS 64

bool ibvx_same_node(const struct ibvx *ep, int rank)
{
	return ep->peers[rank].same_node;
}

int ibvx_area_reserve(struct ibvx *ep)
{
	unsigned index = atomic_fetch_add_explicit(&ep->areas_reserved, 1, memory_order_relaxed);

	if (index < TRANSPORT_AREAS)
		return (int)index;
	atomic_fetch_sub_explicit(&ep->areas_reserved, 1, memory_order_relaxed);
	return -1;
}

int ibvx_area_map(struct ibvx *ep, int owner, unsigned index, size_t bytes, void **memory)
{
	if (index >= TRANSPORT_AREAS || bytes > TRANSPORT_AREA_BYTES)
		return error_set(-EINVAL, "area %u of %zu bytes: there are %u of %zu", index, bytes, TRANSPORT_AREAS, TRANSPORT_AREA_BYTES);
	for (int i = 0; i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		if (t->ops->area)
			return t->ops->area(t, owner, index, bytes, memory);
	}
	return error_set(-ENOTSUP, "no transport of this endpoint shares memory with rank %d", owner);
}

void ibvx_area_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

int ibvx_area_pack(const struct ibvx_layout *layout, const void *base, void *to, size_t bytes)
{
	int rc = layout ? layout_check(layout, bytes) : 0;

	if (rc)
		return rc;
	if (layout)
		layout_pack(layout, base, 0, to, bytes);
	else if (bytes)
		memcpy(to, base, bytes);
	return 0;
}

int ibvx_area_unpack(const struct ibvx_layout *layout, void *base, const void *from, size_t bytes)
{
	int rc = layout ? layout_check(layout, bytes) : 0;

	if (rc)
		return rc;
	if (layout)
		layout_unpack(layout, base, 0, from, bytes);
	else if (bytes)
		memcpy(base, from, bytes);
	return 0;
}

int ibvx_area_enter(struct ibvx *ep)
{
	atomic_fetch_add(&ep->area_users, 1); /* before the look: a close or an abort sees it, or we see that */
	if (!ep->closing && !ep->aborted)
		return 0;
	ibvx_area_exit(ep);
	return api_not_open(ep);
}

void ibvx_area_exit(struct ibvx *ep)
{
	atomic_fetch_sub(&ep->area_users, 1);
}

bool ibvx_any_died(const struct ibvx *ep)
{
	return atomic_load_explicit(&ep->failed_rank, memory_order_relaxed) >= 0;
}

/* Without the lock.  True: look() has succeeded; false also when messages have come. */
static bool area_look(struct ibvx *ep, bool yield, bool (*look)(const void *arg), const void *arg)
{
	if (yield)
		sched_yield();
	for (int i = 0; i < (yield ? 1 : AREA_LOOKS); i++) {
		if (look(arg))
			return true;
		if (core_ready(ep))
			return false;
		cpu_relax();
	}
	return false;
}

/* Lock held. */
static void area_poll(struct ibvx *ep)
{
	pin_serve_zero_copy(ep);
	ep->runners++;
	progress_run(ep);
	ep->runners--;
	continuation_run_due(ep);
}

void ibvx_area_poll(struct ibvx *ep)
{
	core_lock(ep);
	area_poll(ep);
	core_unlock(ep);
}

bool ibvx_area_spin(struct ibvx *ep, bool (*look)(const void *arg), const void *arg)
{
	int64_t begin = clock_now_ns(), idle = 0;
	bool found;

	core_lock(ep);
	do {
		core_unlock(ep);
		found = area_look(ep, idle >= ep->spin_ns, look, arg);
		idle = clock_now_ns() - begin;
		core_lock(ep);
		if (!found && (core_ready(ep) || !list_empty(&ep->wanting) || ep->due.first || ep->due_callers.first))
			area_poll(ep);
	} while (!found && !ep->aborted && idle < ep->spin_ns + ep->yield_ns);
	core_unlock(ep);
	return found;
}
