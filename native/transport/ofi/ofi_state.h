/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_OFI_STATE_H
#define IBVX_TRANSPORT_OFI_STATE_H
/*
 * ofi_state: what the transport adds to a struct netlib.  Statuses are libfabric's positive error numbers.
 */
#include "transport/netlib/netlib_state.h"
#include "transport/ofi/ofi_abi.h"

#define OFI_PAYLOAD_MAX 64000u
#define OFI_PAYLOAD_RXM 16000u /* with its headers one eager message of 16 KB: longer ones are a rendezvous of ofi_rxm's own */
#define OFI_RECEIVES 64u       /* posted buffers, for all peers */

/* A buffer that packets arrive in.  Its address is that of the operation, its first member the library's. */
struct ofi_receive {
	uint64_t library[8];
	struct netlib_head head;
	uint64_t payload[];
};

struct ofi {
	struct netlib netlib;
	const struct ofi_library *api;
	struct ofi_library library;
	struct ofi_info *info;
	struct ofi_fabric *fabric;
	struct ofi_domain *domain;
	struct ofi_cq *cq;
	struct ofi_av *av;
	struct ofi_ep *ep;
	struct ofi_mr *mr[2]; /* of packets that go out, that come in; where the provider needs it */
	char *receives;       /* receive_count times receive_bytes */
	size_t receive_bytes, receive_count;
	struct ofi_receive *unposted[OFI_RECEIVES];
	size_t unposted_count;
	int broken; /* the completion queue's status */
};

static inline struct ofi *ofi_of(struct netlib *f)
{
	return (struct ofi *)f;
}

#endif
