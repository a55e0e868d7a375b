/* SPDX-License-Identifier: MIT */
#include "transport/shm/cma.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define CMA_SAMPLE_BYTES (1u << 20)
#define CMA_ROUNDS 5

int cma_read(pid_t pid, uint64_t addr, void *to, size_t len)
{
	while (len > 0) {
		struct iovec local = {to, len};
		struct iovec remote = {(void *)(uintptr_t)addr, len};
		ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EFAULT;
		addr += (uint64_t)n;
		to = (char *)to + n;
		len -= (size_t)n;
	}
	return 0;
}

static int cma_refused(int rc)
{
	char scope[16] = "";
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	if (f) {
		if (!fgets(scope, sizeof(scope), f))
			scope[0] = '\0';
		fclose(f);
	}
	scope[strcspn(scope, "\n")] = '\0';
	if (rc == -ENOSYS)
		return error_set(rc, "the kernel has no process_vm_readv (CONFIG_CROSS_MEMORY_ATTACH), or a seccomp filter hides it");
	if (rc == -EPERM && scope[0] && scope[0] != '0')
		return error_set(rc, "kernel.yama.ptrace_scope is %s: set it to 0 to allow it", scope);
	if (rc == -EPERM)
		return error_set(rc, "refused: in a container allow the system call process_vm_readv or add CAP_SYS_PTRACE");
	return error_sys(rc, "process_vm_readv failed");
}

int cma_probe(pid_t pid, uint64_t addr, uint64_t expected)
{
	uint64_t seen = 0;
	int rc = cma_read(pid, addr, &seen, sizeof(seen));

	if (rc < 0)
		return cma_refused(rc);
	if (seen != expected)
		return error_set(-EPERM, "process %d here is another one there: separate pid namespaces", (int)pid);
	return 0;
}

int cma_available(void)
{
	uint64_t word = 0x1bdc0de, seen = 0;
	int rc = cma_read(getpid(), (uint64_t)(uintptr_t)&word, &seen, sizeof(seen));

	return rc < 0 ? cma_refused(rc) : 0;
}

struct cma_buffers {
	char *from, *to, *chunk;
	size_t chunk_bytes;
};

/* The slower half of the pipeline: copying one way through a cached chunk. The halves overlap on two cores, so a
 * message takes about as long as one of them, and a little for handing over each chunk. */
static int64_t cma_time_two(const struct cma_buffers *b)
{
	int64_t begin = clock_now_ns();
	int64_t hand_over_ns = 200;

	for (size_t at = 0; at < CMA_SAMPLE_BYTES; at += b->chunk_bytes) {
		size_t n = CMA_SAMPLE_BYTES - at < b->chunk_bytes ? CMA_SAMPLE_BYTES - at : b->chunk_bytes;

		memcpy(b->chunk, b->from + at, n);
		__asm__ volatile("" ::: "memory");
	}
	return clock_now_ns() - begin + (int64_t)(CMA_SAMPLE_BYTES / b->chunk_bytes) * hand_over_ns;
}

static int64_t cma_time_one(const struct cma_buffers *b, size_t len)
{
	int64_t begin = clock_now_ns();

	if (cma_read(getpid(), (uint64_t)(uintptr_t)b->from, b->to, len) < 0)
		return INT64_MAX;
	return clock_now_ns() - begin;
}

size_t cma_measure(size_t chunk_bytes, double *one_copy, double *two_copies)
{
	size_t map_bytes = 2 * (size_t)CMA_SAMPLE_BYTES + chunk_bytes;
	char *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct cma_buffers b = {map, map + CMA_SAMPLE_BYTES, map + 2 * (size_t)CMA_SAMPLE_BYTES, chunk_bytes};
	int64_t one = INT64_MAX, two = INT64_MAX, fixed = INT64_MAX;

	if (map == MAP_FAILED)
		return SIZE_MAX;
	/* ordinary pages: what a Java heap and malloc give unless told otherwise */
	madvise(map, map_bytes, MADV_NOHUGEPAGE);
	memset(map, 1, map_bytes);
	for (int i = 0; i < CMA_ROUNDS; i++) {
		int64_t t = cma_time_two(&b);

		two = t < two ? t : two;
		t = cma_time_one(&b, CMA_SAMPLE_BYTES);
		one = t < one ? t : one;
		t = cma_time_one(&b, 8);
		fixed = t < fixed ? t : fixed;
	}
	munmap(map, map_bytes);
	if (one_copy)
		*one_copy = one == INT64_MAX ? 0 : CMA_SAMPLE_BYTES * 1e3 / (double)one;
	if (two_copies)
		*two_copies = CMA_SAMPLE_BYTES * 1e3 / (double)two;
	if (one >= two)
		return SIZE_MAX;
	/* fixed + len / rate_one == len / rate_two, and an answer (FIN) of about a microsecond */
	return (size_t)((double)(fixed + 1000) * CMA_SAMPLE_BYTES / (double)(two - one));
}
