/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_COMPLETE_H
#define IBVX_TRANSPORT_VERBS_COMPLETE_H
/* complete: completions, and the ends of peers. */
#include "transport/verbs/state.h"

/* As the seam's poll() and ready() (transport.h). */
int complete_poll(struct verbs *v, int budget);
bool complete_ready(const struct verbs *v);

#endif
