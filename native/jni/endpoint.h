/* SPDX-License-Identifier: MIT */
#ifndef IBVX_JNI_ENDPOINT_H
#define IBVX_JNI_ENDPOINT_H
/*
 * endpoint: the handles by which Java names a struct ibvx.
 *
 * A handle is a slot number and a generation, never a pointer.  Every native takes a reference
 * for as long as it uses the endpoint, so that an operation that races with the close
 * gets an error and the memory stays until the last one is out.
 *
 * Any thread; no locks and no atomic read-modify-writes on endpoint_get() and endpoint_put().  A thread holds one
 * reference at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "ibvx.h"

/* The library has been loaded.  Asks the kernel for base/fence.h on a thread of its own: in a process with threads the answer
 * takes 10 ms, during which Java opens an endpoint. */
void endpoint_load(void);

/* Takes the endpoint over.  The handle (positive), or -EMFILE with text: *ep stays the caller's. */
int64_t endpoint_add(struct ibvx *ep);

/* The endpoint with a reference, or NULL: the handle is stale, forged, or being closed
 * (text set; the error is -ESHUTDOWN); or there is no memory for a thread's first call. */
struct ibvx *endpoint_get(int64_t handle);
/* Gives the reference back. */
void endpoint_put(int64_t handle);

/* Closes in good order (ibvx_close).  -EBUSY: other threads are still inside operations after a second, and
 * nobody was refused; else what ibvx_close() reports, and while it runs endpoint_get() refuses.  After -EBUSY
 * and -ETIMEDOUT the handle is valid as before, otherwise it has ended: so a refusal means
 * nothing about the requests of the endpoint. */
int endpoint_close(int64_t handle);

/* ibvx_abort() and the end of the handle.  Threads inside are made to leave; an endpoint that they do not leave
 * within a second is given up, not freed: false. Stale handles are ignored. */
bool endpoint_abort(int64_t handle);
void endpoint_abort_all(void);
/* The library is about to be unloaded: ends what is open and forgets the threads. */
void endpoint_unload(void);

#endif
