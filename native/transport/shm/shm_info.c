/* SPDX-License-Identifier: MIT */
/* What the transport shows of itself: counters, and what is available here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/shm/cma.h"
#include "transport/shm/shm_state.h"

int shm_area(struct transport *t, int owner, unsigned index, size_t bytes, void **memory)
{
	const struct shm *s = (const struct shm *)t;

	if (!s->segment.head || s->local_of[owner] < 0)
		return error_set(-ENOTSUP, "rank %d shares no memory with this one", owner);
	return segment_map_area(&s->segment, (uint32_t)s->local_of[owner], index, bytes, owner == s->env.rank, memory);
}

void shm_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct shm *s = (const struct shm *)t;
	const struct shm_peer *p;

	if (peer < 0)
		add(arg, "shm_rings_polled", atomic_load_explicit(&s->rx_count, memory_order_relaxed));
	if (peer < 0 || s->local_of[peer] < 0)
		return;
	p = &s->peers[s->local_of[peer]];
	add(arg, "shm_packets_out", p->packets_out);
	add(arg, "shm_packets_in", p->packets_in);
	add(arg, "shm_ring_full", p->full_count);
	add(arg, "shm_streamed_packets", p->stores.streamed_count);
	add(arg, "shm_cma_bytes", p->cma_bytes + atomic_load_explicit(&p->lease_bytes, memory_order_relaxed));
}

int shm_describe(const struct settings *settings, char *out, size_t size)
{
	size_t at;
	int fd = memfd_create("ibvdev-probe", MFD_CLOEXEC);

	if (fd < 0)
		return error_sys(-errno, "no anonymous shared memory (memfd_create)");
	close(fd);
	at = (size_t)snprintf(out, size, "  segments: anonymous memory, shared through /proc/PID/fd; nothing in /dev/shm\n");
	if (at >= size)
		return 0;
	if (cma_available() < 0) {
		snprintf(out + at, size - at, "  cma (single copy): unavailable: %s\n", error_text());
		return 0;
	}
	snprintf(out + at, size - at, "  cma (single copy): available; cma=%s%s\n", settings_text(settings, SETTING_CMA),
		 strcmp(settings_text(settings, SETTING_CMA), "auto") == 0 ? ": each pair learns for which sizes it is faster" : "");
	return 0;
}
