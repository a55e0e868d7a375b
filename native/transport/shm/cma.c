/* SPDX-License-Identifier: MIT */
#include "transport/shm/cma.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"

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
