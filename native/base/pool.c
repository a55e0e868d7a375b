/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/lock.h"

#define POOL_SHIFT_MIN 13u
#define POOL_SHIFT_MAX 22u
#define POOL_CLASSES (POOL_SHIFT_MAX - POOL_SHIFT_MIN + 1)
/* AddressSanitizer shall see every use of a block after its end. */
#ifdef __SANITIZE_ADDRESS__
#define POOL_KEPT_MAX ((size_t)0)
#else
#define POOL_KEPT_MAX ((size_t)16 << 20)
#endif

struct pool_block {
	struct pool_block *next;
};

static struct {
	struct lock lock;
	size_t kept;
	struct pool_block *first[POOL_CLASSES]; /* of 2^(POOL_SHIFT_MIN + index) bytes at least */
} pool;

static size_t pool_class_bytes(unsigned c)
{
	return (size_t)1 << (POOL_SHIFT_MIN + c);
}

/* log2 of bytes > 0, rounded down. */
static unsigned pool_log2(size_t bytes)
{
	return 63 - (unsigned)__builtin_clzl(bytes);
}

void *pool_get(size_t bytes)
{
	struct pool_block *b;
	unsigned c;

	if (bytes <= pool_class_bytes(0) / 2 || bytes > pool_class_bytes(POOL_CLASSES - 1))
		return malloc(bytes);
	c = bytes <= pool_class_bytes(0) ? 0 : pool_log2(bytes - 1) + 1 - POOL_SHIFT_MIN;
	lock_acquire(&pool.lock);
	b = pool.first[c];
	if (b) {
		pool.first[c] = b->next;
		pool.kept -= pool_class_bytes(c);
	}
	lock_release(&pool.lock);
	return b ? b : malloc(pool_class_bytes(c));
}

void pool_put(void *block)
{
	struct pool_block *b = block;
	size_t bytes = malloc_usable_size(block);
	unsigned c;

	if (bytes >= pool_class_bytes(0) && bytes < 2 * pool_class_bytes(POOL_CLASSES - 1)) {
		c = pool_log2(bytes) - POOL_SHIFT_MIN;
		lock_acquire(&pool.lock);
		if (pool.kept + pool_class_bytes(c) <= POOL_KEPT_MAX) {
			pool.kept += pool_class_bytes(c);
			b->next = pool.first[c];
			pool.first[c] = b;
			b = NULL;
		}
		lock_release(&pool.lock);
	}
	free(b);
}

/* Also when the library is unloaded. */
__attribute__((destructor)) void pool_drain(void)
{
	lock_acquire(&pool.lock);
	for (unsigned c = 0; c < POOL_CLASSES; c++) {
		while (pool.first[c]) {
			struct pool_block *b = pool.first[c];

			pool.first[c] = b->next;
			free(b);
		}
	}
	pool.kept = 0;
	lock_release(&pool.lock);
}
