/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_MONITOR_H
#define IBVX_CORE_MONITOR_H
/*
 * monitor: one thread per endpoint, asleep in epoll, that watches file descriptors (deaths of
 * processes, the control tree, later completion channels) and wakes the poller.
 */
#include "core/core.h"

/* Without a thread: watches can be added. */
int monitor_open(struct monitor **out, struct ibvx *ep);
/* Starts the thread. */
int monitor_start(struct monitor *m);
/* Ends the thread: no fn runs any more. Watches may still come and go, as they do while transports are closed. Must not be
 * called with the lock held. NULL allowed. */
void monitor_stop(struct monitor *m);
/* Stops and frees. Must not be called with the lock held. NULL allowed. */
void monitor_close(struct monitor *m);

/* fn(arg) runs on the monitor thread with the core's lock held whenever fd is readable. Lock held, or
 * before monitor_start. */
int monitor_add(void *monitor, int fd, void (*fn)(void *arg), void *arg);
/* No call of fn begins after this returns. Lock held. */
void monitor_remove(void *monitor, int fd);

/* struct transport_watch's: release and take the core's lock, on the monitor thread or in a call of the core that expects it. */
void monitor_unlock(void *monitor);
void monitor_lock(void *monitor);

#endif
