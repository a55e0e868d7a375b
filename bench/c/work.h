/* SPDX-License-Identifier: MIT */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H
/*
 * work: what a benchmark does beside messages: compute for a while, run threads, look at what it has used.
 */
#include <stdint.h>

/* Computes, without a system call, as long as ns nanoseconds of an undisturbed processor; the first call calibrates. */
void work_compute(int64_t ns);

/* Processor time of the process in ns. */
int64_t work_processor_ns(void);
/* Its proportional set size in KB; -1 if the kernel does not report it. */
int64_t work_memory_kb(void);

/* Runs body(0, arg) ... body(count - 1, arg) in threads of their own; 0 if all returned 0. */
int work_threads(int count, int (*body)(int thread, void *arg), void *arg);

#endif
