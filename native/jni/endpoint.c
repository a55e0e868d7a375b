/* SPDX-License-Identifier: MIT */
#include "jni/endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/fence.h"
#include "base/thread.h"
#include "ibvx_pin.h"
#include "jni/visit.h"

#define SLOT_BITS 8
#define SLOT_COUNT (1 << SLOT_BITS)

/* state: generation (32 bits) and these; changed by atomic arithmetic only. */
#define OPEN ((uint64_t)1 << 31)
#define CLOSING ((uint64_t)1 << 30)  /* no more visits */
#define DECIDING ((uint64_t)1 << 29) /* somebody counts the visits: wait for what follows */
#define GENERATION ((uint64_t)1 << 32)

struct slot {
	_Atomic uint64_t state;
	struct ibvx *ep;
} __attribute__((aligned(64)));

static struct slot slots[SLOT_COUNT];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
/* endpoint_close() fences the other threads, then reads all visits (base/fence.h); until the kernel has agreed, or if it
 * does not, each visitor fences too. */
static _Atomic bool fence_by_closer;
static pthread_t asking;
static bool asks;

static struct slot *slot_of(int64_t handle)
{
	return &slots[handle & (SLOT_COUNT - 1)];
}

/* The state of the open endpoint that the handle names. */
static uint64_t state_of(int64_t handle)
{
	return (uint64_t)(handle >> SLOT_BITS) << 32 | OPEN;
}

int64_t endpoint_add(struct ibvx *ep)
{
	int64_t handle = error_set(-EMFILE, "this process has %d devices open already: finish one of them first", SLOT_COUNT);

	pthread_mutex_lock(&adding);
	for (int i = 0; i < SLOT_COUNT; i++) {
		/* Handle 0 is "none": the first slot starts with generation 1. */
		uint64_t state = atomic_load(&slots[i].state);

		if (state & OPEN)
			continue;
		if (state >> 32 == 0)
			state = atomic_fetch_add(&slots[i].state, GENERATION) + GENERATION;
		slots[i].ep = ep;
		atomic_fetch_or(&slots[i].state, OPEN);
		handle = (int64_t)(state >> 32) << SLOT_BITS | i;
		break;
	}
	pthread_mutex_unlock(&adding);
	return handle;
}

struct ibvx *endpoint_get(int64_t handle)
{
	struct visit *v = visit_own();
	struct slot *slot = slot_of(handle);
	uint64_t state;

	if (!v) {
		error_set(-ENOMEM, "no memory for this thread's first call");
		return NULL;
	}
	for (;;) {
		atomic_store_explicit(&v->handle, handle, memory_order_relaxed);
		if (__builtin_expect(atomic_load_explicit(&fence_by_closer, memory_order_relaxed), 1))
			atomic_signal_fence(memory_order_seq_cst);
		else
			atomic_thread_fence(memory_order_seq_cst);
		state = atomic_load_explicit(&slot->state, memory_order_acquire);
		if (__builtin_expect(state == state_of(handle), 1))
			return slot->ep;
		atomic_store_explicit(&v->handle, 0, memory_order_release);
		if (state != (state_of(handle) | DECIDING))
			break;
		sched_yield();
	}
	error_set(-ESHUTDOWN, "the device has been finished, is being finished, or was never initialised: call init first");
	return NULL;
}

void endpoint_put(int64_t handle)
{
	(void)handle;
	atomic_store_explicit(&visit_own()->handle, 0, memory_order_release);
}

/* How many threads are inside, once nobody can come any more (CLOSING, DECIDING). */
static int count_visits(int64_t handle)
{
	int count = 0;

	atomic_thread_fence(memory_order_seq_cst);
	if (fence_possible())
		fence_others();
	for (struct visit *v = atomic_load(&visit_list); v; v = v->next)
		count += atomic_load_explicit(&v->handle, memory_order_acquire) == handle;
	return count;
}

static void pause_1ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Adds bits to the state of an open endpoint; false: stale, or somebody is closing it. */
static bool claim(int64_t handle, uint64_t bits)
{
	struct slot *slot = slot_of(handle);
	uint64_t state = state_of(handle);

	while (!atomic_compare_exchange_strong(&slot->state, &state, state_of(handle) | bits)) {
		if (state != (state_of(handle) | DECIDING))
			return false;
		state = state_of(handle);
		sched_yield();
	}
	return true;
}

/* How many threads are inside after waiting up to a second for them to leave. */
static int wait_for_users(int64_t handle)
{
	int users = count_visits(handle);

	for (int i = 0; i < 1000 && users; i++) {
		pause_1ms();
		users = count_visits(handle);
	}
	return users;
}

/* Claims the closing once nobody is inside, and refuses nobody before: a thread that is refused because the device is closing
 * may take it for gone. Waits up to a second. 0, how many threads are inside, or -ESHUTDOWN. */
static int begin_close_unused(int64_t handle)
{
	struct slot *slot = slot_of(handle);
	int users = 0;

	for (int i = 0; i < 1000; i++) {
		if (!claim(handle, DECIDING))
			return error_set(-ESHUTDOWN, "the device has been finished already, or was never initialised");
		users = count_visits(handle);
		if (users == 0) {
			atomic_fetch_add(&slot->state, CLOSING - DECIDING);
			return 0;
		}
		atomic_fetch_and(&slot->state, ~DECIDING);
		pause_1ms();
	}
	return users;
}

static void end_close(struct slot *slot)
{
	slot->ep = NULL;
	atomic_fetch_add(&slot->state, GENERATION - OPEN - CLOSING);
}

int endpoint_close(int64_t handle)
{
	struct slot *slot = slot_of(handle);
	int users = begin_close_unused(handle);

	if (users < 0)
		return users;
	if (users > 0)
		return error_set(-EBUSY,
				 "finish while %d thread%s inside an operation of this device: "
				 "let every send, receive, probe and wait return first, then finish again",
				 users, users == 1 ? " is" : "s are");
	int rc = ibvx_close(slot->ep);

	if (rc == -EBUSY || rc == -ETIMEDOUT) /* nothing was closed */
		atomic_fetch_and(&slot->state, ~CLOSING);
	else
		end_close(slot);
	return rc;
}

bool endpoint_abort(int64_t handle)
{
	struct slot *slot = slot_of(handle);
	bool unused;

	if (!claim(handle, CLOSING))
		return false;
	if (count_visits(handle) > 0)
		ibvx_cut_off(slot->ep);
	unused = wait_for_users(handle) == 0;
	if (unused)
		ibvx_abort(slot->ep);
	end_close(slot);
	return unused;
}

void endpoint_abort_all(void)
{
	for (int i = 0; i < SLOT_COUNT; i++) {
		uint64_t state = atomic_load(&slots[i].state);

		if (state & OPEN)
			endpoint_abort((int64_t)(state >> 32) << SLOT_BITS | i);
	}
}

static void *ask(void *arg)
{
	(void)arg;
	atomic_store(&fence_by_closer, fence_possible());
	return NULL;
}

void endpoint_load(void)
{
	asks = thread_start(&asking, ask, NULL) == 0;
	if (!asks)
		ask(NULL);
}

void endpoint_unload(void)
{
	if (asks)
		pthread_join(asking, NULL);
	endpoint_abort_all();
	visit_unload();
}
