/* SPDX-License-Identifier: MIT */
#include "transport/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/futex.h"
#include "base/proof.h"

static size_t segment_whole_pages(const struct segment *s, size_t bytes)
{
	return (bytes + s->page_bytes - 1) & ~(s->page_bytes - 1);
}

static size_t segment_ring_bytes(const struct segment *s)
{
	return segment_whole_pages(s, ring_mapping_bytes(&s->shape));
}

static off_t segment_mapping_offset(const struct segment *s, uint32_t from, uint32_t to)
{
	return (off_t)s->head_bytes + ((off_t)from * s->ranks + to) * (off_t)segment_ring_bytes(s);
}

static_assert(TRANSPORT_AREA_BYTES % (64u << 10) == 0, "an area begins with a page");

/* Areas stand behind the rings; the file reaches there once one is allocated. */
static off_t segment_area_offset(const struct segment *s, uint32_t owner, unsigned index)
{
	return segment_mapping_offset(s, s->ranks, 0) + ((off_t)owner * TRANSPORT_AREAS + index) * (off_t)TRANSPORT_AREA_BYTES;
}

int segment_create(struct segment *s, const char *job_id)
{
	char name[64];

	s->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	snprintf(name, sizeof(name), "ibvdev-%s", job_id);
	s->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0)
		return error_sys(-errno, "cannot make shared memory (memfd_create)");
	if (fchmod(s->fd, 0600) < 0)
		return error_sys(-errno, "cannot make shared memory private");
	if (proof_random(&s->nonce, sizeof(s->nonce)) < 0)
		return error_prefix(-EIO, "no number to mark shared memory with");
	if (pwrite(s->fd, &s->nonce, sizeof(s->nonce), offsetof(struct segment_head, nonce)) != sizeof(s->nonce))
		return error_sys(-errno, "cannot write to shared memory");
	/* a mapped page beyond the end of the file would be a SIGBUS */
	if (fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return error_sys(-errno, "cannot seal shared memory");
	return 0;
}

/* Is this the memory that segment_create() made elsewhere? The process may have ended, and another one may have its number. */
static int segment_check(int fd, uint64_t nonce, const char *path)
{
	uint64_t found = 0;
	struct statx st;
	int seals;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return error_sys(-errno, "cannot look at %s", path);
	if (st.stx_uid != geteuid() || !S_ISREG(st.stx_mode) || (st.stx_mode & 0777) != 0600)
		return error_set(-EACCES, "%s is not this job's shared memory (user %u, mode %o)", path, (unsigned)st.stx_uid,
				 (unsigned)st.stx_mode);
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return error_set(
			-EACCES,
			"%s is not this job's shared memory: it has no seals (has the process ended, and has another one its number?)",
			path);
	if (pread(fd, &found, sizeof(found), offsetof(struct segment_head, nonce)) != sizeof(found) || found != nonce)
		return error_set(-EACCES, "%s is the shared memory of another job (has the process ended, and has another one its number?)",
				 path);
	return 0;
}

int segment_adopt(struct segment *s, pid_t pid, int fd, uint64_t nonce)
{
	char path[64];
	int theirs, rc;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	theirs = open(path, O_RDWR | O_CLOEXEC);
	if (theirs < 0)
		return error_sys(-errno, "cannot open the job's shared memory at %s (do all ranks run as the same user?)", path);
	rc = segment_check(theirs, nonce, path);
	if (rc < 0) {
		close(theirs);
		return rc;
	}
	close(s->fd);
	s->fd = theirs;
	s->nonce = nonce;
	return 0;
}

/* Kernels before 6.6 let any signal interrupt this. */
static int segment_fallocate(int fd, off_t offset, off_t bytes)
{
	int rc;

	do {
		rc = posix_fallocate(fd, offset, bytes);
	} while (rc == EINTR);
	return rc;
}

int segment_map_head(struct segment *s, uint32_t ranks, const struct ring_shape *shape)
{
	off_t size;
	void *map;
	int rc;

	s->ranks = ranks;
	s->shape = *shape;
	s->head_bytes = sizeof(struct segment_head) + ranks * sizeof(struct segment_doorbell);
	s->head_bytes = segment_whole_pages(s, s->head_bytes);
	size = segment_mapping_offset(s, ranks, 0);
	if (ftruncate(s->fd, size) < 0)
		return error_sys(-errno, "cannot set the size of shared memory to %lld bytes", (long long)size);
	rc = segment_fallocate(s->fd, 0, (off_t)s->head_bytes);
	if (rc)
		return error_sys(-rc, "no room for %zu bytes of shared memory", s->head_bytes);
	map = mmap(NULL, s->head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (map == MAP_FAILED)
		return error_sys(-errno, "cannot map %zu bytes of shared memory (ulimit -v?)", s->head_bytes);
	s->head = map;
	return 0;
}

void segment_close(struct segment *s)
{
	if (s->head)
		munmap(s->head, s->head_bytes);
	if (s->fd >= 0)
		close(s->fd);
	s->head = NULL;
	s->fd = -1;
}

int segment_map(const struct segment *s, uint32_t from, uint32_t to, void **mapping)
{
	size_t bytes = segment_ring_bytes(s);
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, segment_mapping_offset(s, from, to));

	if (map == MAP_FAILED)
		return error_sys(-errno, "cannot map a ring of %zu bytes", bytes);
	*mapping = map;
	return 0;
}

void segment_unmap(const struct segment *s, void *mapping)
{
	if (mapping)
		munmap(mapping, segment_ring_bytes(s));
}

int segment_allocate(const struct segment *s, uint32_t from, uint32_t to, size_t offset, size_t bytes)
{
	int rc = segment_fallocate(s->fd, segment_mapping_offset(s, from, to) + (off_t)offset, (off_t)bytes);

	if (rc)
		return error_sys(-rc, "no room for %zu more bytes of shared memory: give the job more memory, or lower shm_ring", bytes);
	return 0;
}

int segment_map_area(const struct segment *s, uint32_t owner, unsigned index, size_t bytes, bool allocate, void **mapping)
{
	off_t offset = segment_area_offset(s, owner, index);
	struct rlimit largest = {RLIM_INFINITY, RLIM_INFINITY};
	int rc = 0;
	void *map;

	getrlimit(RLIMIT_FSIZE, &largest);
	if (allocate) /* beyond the limit there would be a signal */
		rc = (rlim_t)offset + bytes > largest.rlim_cur ? EFBIG : segment_fallocate(s->fd, offset, (off_t)bytes);
	if (rc)
		return error_sys(-rc, "no room for %zu more bytes of shared memory", bytes);
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, offset);
	if (map == MAP_FAILED)
		return error_sys(-errno, "cannot map %zu bytes of shared memory", bytes);
	*mapping = map;
	return 0;
}

void segment_wake_sleeper(_Atomic uint32_t *word)
{
	uint32_t v = atomic_load_explicit(word, memory_order_relaxed);

	/* one of several threads at the same time wakes; the others see the bit gone */
	while (v & 1u) {
		if (atomic_compare_exchange_weak(word, &v, (v & ~1u) + 2u)) {
			futex_wake(word, 1, true);
			return;
		}
	}
}
