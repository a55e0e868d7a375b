/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_WIREUP_H
#define IBVX_TRANSPORT_VERBS_WIREUP_H
/*
 * wireup: connections made by a wire-up over TCP, where RDMA CM cannot be used.  The socket stays open as long as the connection:
 * its end is the connection's end.  PROTOCOL.md section 9 draws the frames.
 */
#include "transport/verbs/handshake.h"

/* Listens on one TCP port for all addresses. 0 or -errno with text; wireup_close() in any case. */
int wireup_open(struct verbs *v);
void wireup_close(struct verbs *v);
/* The port, in network byte order. */
uint16_t wireup_port(const struct verbs *v);

#endif
