/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SELF_H
#define IBVX_TRANSPORT_SELF_H
/*
 * self: a rank's messages to itself.  Packets wait in a list until poll() delivers them, so
 * that a send never calls back into the matching it came from.  A get is a memcpy.
 */
#include "transport/transport.h"

extern const struct transport_ops transport_self_ops;

#endif
