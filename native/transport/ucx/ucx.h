/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_H
#define IBVX_TRANSPORT_UCX_UCX_H
/*
 * ucx: packets through UCX, whatever network it finds; TCP by default.
 *
 * PROTOCOL.md section 13 has what crosses between two ranks, ARCHITECTURE.md the modules.  transport_env.test, if it is
 * set, is a struct ucx_library that stands for the library.
 */
#include "transport/transport.h"

extern const struct transport_ops transport_ucx_ops;

#endif
