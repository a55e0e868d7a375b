/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_DISPATCH_H
#define IBVX_CORE_DISPATCH_H
/*
 * dispatch: upcalls of the transports (struct transport_sink) to the module that handles them.
 * The caller holds the core's lock.
 */
#include "core/core.h"

void dispatch_packet(void *core, int rank, const struct wire_hdr *hdr, const void *payload);
void dispatch_down(void *core, int rank, int err, const char *why);

#endif
