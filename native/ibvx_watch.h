/* SPDX-License-Identifier: MIT */
#ifndef IBVX_WATCH_H
#define IBVX_WATCH_H
/*
 * ibvx_watch: one thread waits for the requests of many, for embedding layers whose threads must not block in the library,
 * such as virtual threads of a JVM.  Not exported.
 *
 * A thread watches its request, or for messages, and parks in its own layer.  Another one, the watcher, is inside
 * ibvx_watched() as long as anything is watched, and unparks it.  Other threads that wait inside the library come before
 * the watcher in owning progress.
 *
 * Codes and texts as in ibvx.h.
 */
#include "ibvx.h"

/* 1: the request is complete, and is not watched; 0: ibvx_watched() will return it, once.  Until then no other thread may wait
 * for it. -EINVAL: no such request. -ESHUTDOWN: the endpoint was aborted. */
int ibvx_watch(struct ibvx *ep, ibvx_req req);
/* Ends that; nothing if ibvx_watched() has returned the request already. */
void ibvx_unwatch(struct ibvx *ep, ibvx_req req);

/* A thread wants to know of messages that no receive has matched (by == 1), until it is satisfied (by == -1). */
void ibvx_watch_messages(struct ibvx *ep, int by);
/* As ibvx_iprobe() or (message != NULL) ibvx_improbe(), by a thread that watches for messages: an error, too, if none can come any
 * more. */
int ibvx_look(struct ibvx *ep, int source, int tag, int context, ibvx_req *message, struct ibvx_status *status);

/* Blocks until something that is watched has happened: requests that are complete, IBVX_REQ_NULL for an unexpected message or
 * the end of a peer.  count: at least 2.  How many were returned; 0: nothing is watched; or -ESHUTDOWN.  One thread at a time. */
int ibvx_watched(struct ibvx *ep, int count, ibvx_req reqs[]);

#endif
