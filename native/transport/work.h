/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_WORK_H
#define IBVX_TRANSPORT_WORK_H
/*
 * work: slow calls, outside the core's lock.
 *
 * Registering memory, making and ending queue pairs and everything of RDMA CM enter the kernel and may take milliseconds.
 * A thread inside a JVM critical region may wait for the core's lock, so no such call is made with the lock held.
 * A thread that needs one leaves a note under the lock and calls work_signal().  The core's monitor thread then runs the
 * handler: it finds the notes under the lock, calls work_unlock(), makes the call, calls work_lock() and stores the result.
 *
 * What may change while the lock is released: everything but the objects that only the handler frees (connections, devices).
 * After work_lock() the handler therefore looks again at the state that it acts on.
 */
#include <stdbool.h>

#include "transport/transport.h"

struct work {
	const struct transport_watch *watch;
	int fd;      /* eventfd, readable while there are notes; -1: none */
	bool single; /* no other thread can be inside, no lock is held: while the transport opens or closes */
};

/* Has the handler called on the monitor thread.  0 or -errno with text; work_close() in any case. */
int work_open(struct work *w, const struct transport_watch *watch, void (*handler)(void *arg), void *arg);
void work_close(struct work *w);
/* There are notes.  Lock held, any thread. */
void work_signal(struct work *w);
/* The notes are about to be looked at. */
void work_begin(struct work *w);
/* Around slow calls, on the monitor thread.  work_lock() keeps errno. */
void work_unlock(struct work *w);
void work_lock(struct work *w);

#endif
