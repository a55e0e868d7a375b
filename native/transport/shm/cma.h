/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_CMA_H
#define IBVX_TRANSPORT_SHM_CMA_H
/*
 * cma: cross-memory attach, one copy from another process's memory by process_vm_readv(2).
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Is the call there at all on this kernel (tried on ourselves)? 0 or -errno with a text that states why and what to do. */
int cma_available(void);

/* Can we read this process's memory: the 8 bytes at addr must be `expected`. 0 or -errno with such a text. */
int cma_probe(pid_t pid, uint64_t addr, uint64_t expected);

/* Reads len bytes at addr of pid. 0 or -errno. */
int cma_read(pid_t pid, uint64_t addr, void *to, size_t len);

#endif
