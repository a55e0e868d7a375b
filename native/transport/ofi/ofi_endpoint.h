/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_OFI_OFI_ENDPOINT_H
#define IBVX_TRANSPORT_OFI_OFI_ENDPOINT_H
/*
 * ofi_endpoint: the library's objects of this endpoint, from the fabric to the buffers for packets.  No other thread is inside.
 */
#include "transport/ofi/ofi_state.h"

/* netlib_ops.open: no buffer is posted yet, all are in `unposted`. */
int ofi_endpoint_open(struct netlib *f);
/* netlib_ops.close */
void ofi_endpoint_close(struct netlib *f);
/* netlib_ops.matches: the same provider with the same kind of names. */
bool ofi_endpoint_matches(const struct netlib *f, const void *address, size_t bytes);
/* Where the name is in an address that matches. */
const void *ofi_endpoint_name(const void *address);

#endif
