/* SPDX-License-Identifier: MIT */
#ifndef BENCH_COUPLE_H
#define BENCH_COUPLE_H
/*
 * couple: two ranks by fork, for benchmarks that need no launcher.
 */
#define COUPLE_ADDRESS_BYTES 32

/* Addresses for ibvx_config.peers: loopback ports that were free a moment ago. */
void couple_addresses(const char *peers[2], char addresses[2][COUPLE_ADDRESS_BYTES]);

/* Runs rank(0, arg) and rank(1, arg) in two processes; 0 if both returned 0. When one fails, the other is killed. */
int couple_run(int (*rank)(int rank, void *arg), void *arg);

#endif
