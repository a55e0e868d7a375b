/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_STATUS_H
#define IBVX_TRANSPORT_VERBS_STATUS_H
/* status: what libibverbs reports, in words. */
#include "transport/verbs/provider.h"

/* What a completion status means and what to check. */
const char *status_text(enum ibv_wc_status status);
/* What an asynchronous event of a device means: "the port went down: ..." */
const char *event_text(enum ibv_event_type type);

/* The kind of network behind a port. */
const char *status_link_layer(const struct ibv_context *c, const struct ibv_port_attr *p);

#endif
