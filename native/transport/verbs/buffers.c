/* SPDX-License-Identifier: MIT */
#include "transport/verbs/buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* Most pieces that are added at once: posting them as receives holds the lock for some microseconds. */
#define BUFFERS_STEP_MAX 256u

int slab_open(struct slab *s, const struct verbs_provider *api, struct ibv_pd *pd, uint32_t count, size_t piece_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = ((size_t)count * piece_bytes + page - 1) & ~(page - 1);
	/* pages of its own: what is registered must not share a page with what is not */
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*s = (struct slab){.bytes = bytes, .piece_bytes = piece_bytes, .count = count};
	if (mem == MAP_FAILED) {
		*s = (struct slab){0};
		return error_sys(-ENOMEM, "no memory for %zu bytes of buffers", bytes);
	}
	s->mr = api->reg_mr(pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!s->mr) {
		int err = errno;

		munmap(mem, bytes);
		*s = (struct slab){0};
		return error_sys(-err, "registering %zu bytes of buffers%s", bytes,
				 err == ENOMEM ? " (too little locked memory? see ulimit -l)" : "");
	}
	s->mem = mem;
	return 0;
}

void slab_close(struct slab *s, const struct verbs_provider *api)
{
	if (s->mr)
		api->dereg_mr(s->mr);
	if (s->mem)
		munmap(s->mem, s->bytes);
	*s = (struct slab){0};
}

int buffers_add(struct buffers *b, const struct slab *s)
{
	uint32_t *stack = realloc(b->free, (b->count + s->count) * sizeof(*stack));

	if (!stack)
		return error_set(-ENOMEM, "no memory for %u buffers", s->count);
	b->free = stack;
	if (b->slab_count == BUFFERS_SLABS_MAX)
		return error_set(-ENOSPC, "no room for more than %u buffers", b->count);
	for (uint32_t i = 0; i < s->count; i++)
		buffers_give(b, b->slab_count << 16 | i);
	b->slab[b->slab_count++] = *s;
	b->count += s->count;
	return 0;
}

uint32_t buffers_step(const struct buffers *b, uint32_t least)
{
	uint32_t step = b->count / 2 > least ? b->count / 2 : least;

	if (step > BUFFERS_STEP_MAX && step > least)
		step = BUFFERS_STEP_MAX > least ? BUFFERS_STEP_MAX : least;
	return step < b->max - b->count ? step : b->max - b->count;
}

void buffers_close(struct buffers *b, const struct verbs_provider *api)
{
	for (uint32_t i = 0; i < b->slab_count; i++)
		slab_close(&b->slab[i], api);
	free(b->free);
	*b = (struct buffers){0};
}
