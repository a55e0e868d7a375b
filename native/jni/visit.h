/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_VISIT_H
#define IBVX_JNI_VISIT_H
/*
 * visit: which endpoint each thread is inside of.
 *
 * Every thread writes to a cache line of its own, so a native call costs no atomic read-modify-write.  A thread finds its
 * line by its thread pointer, through a table of hints, and not by a thread-local variable: those of a library that is
 * loaded at run time are slow, or come out of the C library's small static surplus, which the copies of a few
 * class loaders would use up.
 *
 * Any thread; no locks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct visit {
	_Atomic int64_t handle;   /* of the endpoint; 0: none.  Written by the owner */
	_Atomic uintptr_t thread; /* visit_thread() of the owner, which lives; 0: free */
	struct visit *next;
} __attribute__((aligned(64)));

#define VISIT_HINT_BITS 8

extern _Atomic(struct visit *) visit_hints[1 << VISIT_HINT_BITS];
/* All visits; the list only grows. */
extern _Atomic(struct visit *) visit_list;

/* A number that no other living thread has. */
static inline uintptr_t visit_thread(void)
{
#if defined(__GNUC__) && !defined(__clang__)
	return (uintptr_t)__builtin_thread_pointer();
#else
	return (uintptr_t)pthread_self();
#endif
}

static inline unsigned visit_hash(uintptr_t thread)
{
	return (unsigned)((uint64_t)thread * 0x9e3779b97f4a7c15u >> (64 - VISIT_HINT_BITS));
}

/* visit_own() where the hint does not help: also the thread's first. */
struct visit *visit_find(uintptr_t thread);

/* The calling thread's visit; NULL: no memory for its first one. */
static inline struct visit *visit_own(void)
{
	uintptr_t self = visit_thread();
	struct visit *v = atomic_load_explicit(&visit_hints[visit_hash(self)], memory_order_acquire);

	if (__builtin_expect(v && atomic_load_explicit(&v->thread, memory_order_relaxed) == self, 1))
		return v;
	return visit_find(self);
}

/* The library is about to be unmapped and no thread is inside: frees all visits. */
void visit_unload(void);

#endif
