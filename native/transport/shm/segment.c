/* SPDX-License-Identifier: MIT */
#include "transport/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/futex.h"

static off_t segment_window_offset(const struct segment *s, uint32_t from, uint32_t to)
{
	return (off_t)s->head_bytes +
	       ((off_t)from * s->ranks + to) * (off_t)ring_window_bytes(&s->shape);
}

/* Nobody else's file may stand where ours should. */
static int segment_check(const struct segment *s)
{
	struct stat st;

	if (fstat(s->fd, &st) < 0)
		return error_sys(-errno, "cannot look at /dev/shm%s", s->name);
	if (st.st_uid != geteuid() || (st.st_mode & 0777) != 0600)
		return error_set(-EACCES, "/dev/shm%s belongs to user %u with mode %o: remove it, or draw another job id",
				 s->name, (unsigned)st.st_uid, (unsigned)st.st_mode & 0777);
	return 0;
}

int segment_open(struct segment *s, const char *job_id, const char *node_id, uint32_t ranks,
		 const struct ring_shape *shape)
{
	off_t size;
	void *map;
	int rc;

	*s = (struct segment){.fd = -1, .ranks = ranks, .shape = *shape};
	s->head_bytes = sizeof(struct segment_head) + ranks * sizeof(struct segment_door);
	s->head_bytes = (s->head_bytes + RING_PAGE - 1) & ~(size_t)(RING_PAGE - 1);
	snprintf(s->name, sizeof(s->name), "/ibvdev-%s-%s", job_id, node_id);
	s->fd = shm_open(s->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return error_sys(-errno, "cannot create /dev/shm%s (is /dev/shm mounted and writable?)", s->name);
	s->named = true;
	rc = segment_check(s);
	if (rc < 0) {
		s->named = false; /* not ours to unlink */
		return rc;
	}
	size = segment_window_offset(s, ranks, 0);
	if (ftruncate(s->fd, size) < 0)
		return error_sys(-errno, "cannot set the size of /dev/shm%s to %lld bytes", s->name, (long long)size);
	rc = posix_fallocate(s->fd, 0, (off_t)s->head_bytes);
	if (rc)
		return error_sys(-rc, "no room for %zu bytes in /dev/shm", s->head_bytes);
	map = mmap(NULL, s->head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (map == MAP_FAILED)
		return error_sys(-errno, "cannot map /dev/shm%s", s->name);
	s->head = map;
	return 0;
}

void segment_unlink(struct segment *s)
{
	if (s->named)
		shm_unlink(s->name);
	s->named = false;
}

void segment_close(struct segment *s)
{
	segment_unlink(s);
	if (s->head)
		munmap(s->head, s->head_bytes);
	if (s->fd >= 0)
		close(s->fd);
	s->head = NULL;
	s->fd = -1;
}

int segment_map(const struct segment *s, uint32_t from, uint32_t to, void **window)
{
	size_t bytes = ring_window_bytes(&s->shape);
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd,
			 segment_window_offset(s, from, to));

	if (map == MAP_FAILED)
		return error_sys(-errno, "cannot map a ring of %zu bytes", bytes);
	*window = map;
	return 0;
}

void segment_unmap(const struct segment *s, void *window)
{
	if (window)
		munmap(window, ring_window_bytes(&s->shape));
}

int segment_allocate(const struct segment *s, uint32_t from, uint32_t to, size_t offset, size_t bytes)
{
	int rc = posix_fallocate(s->fd, segment_window_offset(s, from, to) + (off_t)offset, (off_t)bytes);

	if (rc)
		return error_sys(-rc,
				 "no room for %zu more bytes in /dev/shm: enlarge it (docker: --shm-size), or lower shm_ring",
				 bytes);
	return 0;
}

void segment_ring(struct segment_door *door)
{
	_Atomic uint32_t *bell = (_Atomic uint32_t *)(void *)&door->bell;
	uint32_t v = atomic_load_explicit(bell, memory_order_relaxed);

	/* one of those who come at the same time wakes; the others see the bit gone */
	while (v & 1u) {
		if (atomic_compare_exchange_weak(bell, &v, (v & ~1u) + 2u)) {
			/* all: a progress thread may lie there beside the poller */
			futex_wake(&door->bell, INT_MAX, true);
			return;
		}
	}
}
