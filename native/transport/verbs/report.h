/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_REPORT_H
#define IBVX_TRANSPORT_VERBS_REPORT_H
/* report: what can be seen of the transport: counters, and what this machine offers. */
#include "transport/transport.h"

/* The seam's functions (transport.h). */
void verbs_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg);
int verbs_describe(const struct settings *settings, char *out, size_t size);

#endif
