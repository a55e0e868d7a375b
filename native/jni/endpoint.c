/* SPDX-License-Identifier: MIT */
#include "jni/endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"

#define SLOT_BITS 8
#define SLOT_COUNT (1 << SLOT_BITS)

/* state: generation (32 bits), OPEN, CLOSING, references (30 bits).  A stale handle bumps
 * the references for a moment too, so the word is only ever changed by atomic
 * arithmetic, never stored. */
#define OPEN ((uint64_t)1 << 31)
#define CLOSING ((uint64_t)1 << 30)
#define REFERENCES (CLOSING - 1)
#define GENERATION ((uint64_t)1 << 32)

struct slot {
	_Atomic uint64_t state;
	struct ibvx *ep;
} __attribute__((aligned(64)));

static struct slot slots[SLOT_COUNT];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static struct slot *slot_of(int64_t handle)
{
	return &slots[handle & (SLOT_COUNT - 1)];
}

/* Is this the state of the open endpoint that the handle names? */
static bool names(uint64_t state, int64_t handle)
{
	return (state & ~REFERENCES) == ((uint64_t)(handle >> SLOT_BITS) << 32 | OPEN);
}

int64_t endpoint_add(struct ibvx *ep)
{
	int64_t handle = error_set(-EMFILE,
		"this process has %d devices open already: finish one of them first", SLOT_COUNT);

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
	struct slot *slot = slot_of(handle);
	uint64_t before = atomic_fetch_add_explicit(&slot->state, 1, memory_order_acquire);

	if (__builtin_expect(names(before, handle), 1))
		return slot->ep;
	atomic_fetch_sub(&slot->state, 1);
	error_set(-ESHUTDOWN, "the device has been finished, is being finished, or was never initialised: call init first");
	return NULL;
}

void endpoint_put(int64_t handle)
{
	atomic_fetch_sub_explicit(&slot_of(handle)->state, 1, memory_order_release);
}

/* Claims the closing of a handle at once; false: stale, or somebody else is closing it. */
static bool begin_close(int64_t handle)
{
	struct slot *slot = slot_of(handle);
	uint64_t state = atomic_load(&slot->state);

	do {
		if (!names(state, handle))
			return false;
	} while (!atomic_compare_exchange_weak(&slot->state, &state, state | CLOSING));
	return true;
}

/* How many threads are inside after waiting up to a second for them to leave. */
static int wait_for_users(struct slot *slot)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < 1000 && atomic_load(&slot->state) & REFERENCES; i++)
		nanosleep(&pause, NULL);
	return (int)(atomic_load_explicit(&slot->state, memory_order_acquire) & REFERENCES);
}

/* Claims the closing once nobody is inside, and refuses nobody before: who is told that the device is closing
 * may take it for gone. Waits up to a second. 0, how many threads are inside, or -ESHUTDOWN. */
static int begin_close_unused(int64_t handle)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct slot *slot = slot_of(handle);
	uint64_t state = 0;

	for (int i = 0; i < 1000; i++) {
		state = atomic_load(&slot->state);
		if (!names(state, handle))
			return error_set(-ESHUTDOWN, "the device has been finished already, or was never initialised");
		if (!(state & REFERENCES) &&
		    atomic_compare_exchange_strong(&slot->state, &state, state | CLOSING))
			return 0;
		nanosleep(&pause, NULL);
	}
	return state & REFERENCES ? (int)(state & REFERENCES) : 1;
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

	if (!begin_close(handle))
		return false;
	unused = wait_for_users(slot) == 0;
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
