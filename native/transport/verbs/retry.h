/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_RETRY_H
#define IBVX_TRANSPORT_VERBS_RETRY_H
/*
 * retry: connecting by RDMA CM that came to nothing and is repeated after a while.
 *
 * Many ranks that connect at once overload what they share: the backlog of a listener, ARP, an InfiniBand subnet manager.  A request
 * that finds it so is refused without private data, or is not answered.  The waits double, and are of random length, so that those that failed
 * together do not come back together.
 */
#include "transport/verbs/connection.h"

/* Why an attempt is repeated, and what bounds the repetitions: an attempt that is not answered takes seconds by itself. */
enum retry_reason { RETRY_BUSY, RETRY_SILENT, RETRY_REASONS };

/* 0 or -errno with text; retry_close() in any case. */
int retry_open(struct verbs *v);
void retry_close(struct verbs *v);

/* Monitor thread.  Closes c, an attempt of ours that was not accepted, and connects to its peer again later.  Releases the lock.  False: it
 * was repeated often enough, and nothing has changed. */
bool retry_later(struct verbs_conn *c, enum retry_reason why);

#endif
