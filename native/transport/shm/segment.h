/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_SEGMENT_H
#define IBVX_TRANSPORT_SHM_SEGMENT_H
/*
 * segment: the shared memory of one job on one node (layout: shm.h).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/shm/ring.h"
#include "transport/transport.h"

#define SEGMENT_RANKS_MAX 1024u

/* What one rank shows the others. */
struct segment_doorbell {
	_Alignas(RING_LINE) uint32_t word[TRANSPORT_DOORBELL_WORDS]; /* futexes, accessed atomically */
	_Alignas(RING_LINE) _Atomic uint32_t connect_count;
	_Atomic uint64_t connects[SEGMENT_RANKS_MAX / 64]; /* bit i: local rank i has opened a ring to me */
	_Alignas(RING_LINE) _Atomic uint32_t left;         /* left in good order */
	_Atomic uint32_t cause;                            /* 1 + the local rank whose death this one is ending of; 0: none */
};

struct segment_head {
	uint64_t nonce; /* which segment this is: also in the address of the rank that made it */
	_Alignas(RING_PAGE) struct segment_doorbell doorbells[];
};

struct segment {
	int fd;
	uint64_t nonce;
	uint32_t ranks;
	struct ring_shape shape;
	struct segment_head *head;
	size_t head_bytes;
	size_t page_bytes; /* of the machine, which maps multiples of it: aarch64 kernels have pages of 4, 16 or 64 KB */
};

/* Makes anonymous memory named after the job, which holds only a random nonce so far and can grow, but not shrink.
 * 0 or -errno with text. */
int segment_create(struct segment *s, const char *job_id);
/* Takes descriptor fd of process pid, which has made the segment, in place of our own. 0; -EACCES with text: that is
 * another file, whose contents are as before; or another -errno with text.  After an error s is as before. */
int segment_adopt(struct segment *s, pid_t pid, int fd, uint64_t nonce);
/* Sizes it (each rank does so, to the same size) and maps the head. 0 or -errno with text. */
int segment_map_head(struct segment *s, uint32_t ranks, const struct ring_shape *shape);
void segment_close(struct segment *s);

/* Maps the ring mapping from local rank `from` to `to`. 0 or -errno with text. */
int segment_map(const struct segment *s, uint32_t from, uint32_t to, void **mapping);
void segment_unmap(const struct segment *s, void *mapping);
/* Allocates the pages of a part of a ring mapping, so that a lack of memory is an error here and not a
 * SIGBUS later. 0 or -errno with text. */
int segment_allocate(const struct segment *s, uint32_t from, uint32_t to, size_t offset, size_t bytes);

/* Maps the first `bytes` bytes of area `index` of a local rank (struct transport_ops); allocate: also takes the pages.
 * 0 or -errno with text. */
int segment_map_area(const struct segment *s, uint32_t owner, unsigned index, size_t bytes, bool allocate, void **mapping);

void segment_wake_sleeper(_Atomic uint32_t *word);

/* Wakes the thread that sleeps on this word of the doorbell, if there is one. */
static inline void segment_wake(struct segment_doorbell *doorbell, enum transport_doorbell word)
{
	_Atomic uint32_t *at = (_Atomic uint32_t *)(void *)&doorbell->word[word];

	if (atomic_load_explicit(at, memory_order_relaxed) & 1u)
		segment_wake_sleeper(at);
}

#endif
