/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_OFI_H
#define IBVX_TRANSPORT_OFI_H
/*
 * ofi: packets through libfabric's reliable datagrams (FI_EP_RDM), whatever provider there is; TCP as the last resort.
 *
 * PROTOCOL.md section 13 has what crosses between two ranks, ARCHITECTURE.md the modules.  transport_env.test, if it is
 * set, is a struct ofi_library that stands for the library.
 */
#include "transport/transport.h"

extern const struct transport_ops transport_ofi_ops;

#endif
