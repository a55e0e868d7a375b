/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_CM_H
#define IBVX_TRANSPORT_VERBS_CM_H
/*
 * cm: connections made by RDMA CM.
 *
 * Every call of librdmacm enters the kernel, and taking an event may change a queue pair: all are made on the monitor thread with the
 * lock released.
 */
#include "transport/verbs/handshake.h"

/* Opens the event channel. 0 or -errno with text; cm_close() in any case. */
int cm_open(struct verbs *v);
void cm_close(struct verbs *v);

#endif
