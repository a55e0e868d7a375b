/* SPDX-License-Identifier: MIT */
#include "jni/visit.h"

#include <stdbool.h>
#include <stdlib.h>

_Atomic(struct visit *) visit_hints[1 << VISIT_HINT_BITS];
_Atomic(struct visit *) visit_list;

static pthread_key_t visit_key;
static pthread_once_t visit_once = PTHREAD_ONCE_INIT;
static bool visit_key_made;

/* Its thread ends: another one may take the visit. */
static void visit_end(void *arg)
{
	struct visit *v = arg;

	atomic_store_explicit(&v->thread, 0, memory_order_release);
}

static void visit_init(void)
{
	visit_key_made = pthread_key_create(&visit_key, visit_end) == 0;
}

/* A visit that a dead thread has left, or a new one. NULL: no memory. */
static struct visit *visit_take(uintptr_t thread)
{
	struct visit *v;

	for (v = atomic_load(&visit_list); v; v = v->next) {
		uintptr_t none = 0;

		if (atomic_compare_exchange_strong(&v->thread, &none, thread))
			return v;
	}
	v = aligned_alloc(_Alignof(struct visit), sizeof(*v));
	if (!v)
		return NULL;
	*v = (struct visit){.thread = thread, .next = atomic_load(&visit_list)};
	while (!atomic_compare_exchange_weak(&visit_list, &v->next, v))
		;
	return v;
}

struct visit *visit_find(uintptr_t thread)
{
	struct visit *v = atomic_load(&visit_list);

	pthread_once(&visit_once, visit_init);
	if (!visit_key_made)
		return NULL;
	while (v && atomic_load_explicit(&v->thread, memory_order_relaxed) != thread)
		v = v->next;
	if (!v) {
		v = visit_take(thread);
		if (!v)
			return NULL;
		if (pthread_setspecific(visit_key, v) != 0) {
			visit_end(v);
			return NULL;
		}
	}
	atomic_store_explicit(&visit_hints[visit_hash(thread)], v, memory_order_release);
	return v;
}

void visit_unload(void)
{
	struct visit *v = atomic_exchange(&visit_list, NULL);

	if (visit_key_made)
		pthread_key_delete(visit_key); /* visit_end() must not run in memory that is gone */
	while (v) {
		struct visit *next = v->next;

		free(v);
		v = next;
	}
}
