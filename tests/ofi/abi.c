/* SPDX-License-Identifier: MIT */
/* ofi_abi.h agrees with libfabric's headers. */
#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "transport/ofi/ofi_abi.h"

#define SAME(theirs, ours) static_assert((theirs) == (ours), #theirs)
#define MEMBER(theirs, ours, member) MEMBERS(theirs, member, ours, member)
#define MEMBERS(theirs, their_member, ours, our_member)                                                             \
	static_assert(offsetof(struct theirs, their_member) == offsetof(struct ours, our_member) &&                 \
			      sizeof(((struct theirs *)0)->their_member) == sizeof(((struct ours *)0)->our_member), \
		      #theirs " " #their_member)
/* A function in a table of an object. */
#define CALL(theirs, ours, member) MEMBER(theirs, ours, member)

SAME(FI_VERSION(1, 11), OFI_API);
SAME(FI_EAGAIN, OFI_EAGAIN);
SAME(FI_ENOMEM, OFI_ENOMEM);
SAME(FI_ECANCELED, OFI_ECANCELED);
SAME(FI_EAVAIL, OFI_EAVAIL);
SAME(FI_ENOSYS, OFI_ENOSYS);
SAME(FI_ENODATA, OFI_ENODATA);
SAME(FI_EHOSTUNREACH, OFI_EHOSTUNREACH);
SAME(FI_ECONNRESET, OFI_ECONNRESET);
SAME(FI_MSG, OFI_CAP_MSG);
SAME(FI_RECV, OFI_RECV);
SAME(FI_SEND, OFI_SEND);
SAME(FI_CONTEXT, OFI_CONTEXT);
SAME(FI_CONTEXT2, OFI_CONTEXT2);
SAME(FI_ORDER_SAS, OFI_ORDER_SAS);
SAME(FI_EP_RDM, OFI_EP_RDM);
SAME(FI_MR_LOCAL, OFI_MR_LOCAL);
SAME(FI_MR_VIRT_ADDR, OFI_MR_VIRT_ADDR);
SAME(FI_MR_ALLOCATED, OFI_MR_ALLOCATED);
SAME(FI_MR_PROV_KEY, OFI_MR_PROV_KEY);
SAME(FI_MR_ENDPOINT, OFI_MR_ENDPOINT);
SAME(FI_PROGRESS_MANUAL, OFI_PROGRESS_MANUAL);
SAME(FI_THREAD_DOMAIN, OFI_THREAD_DOMAIN);
SAME(FI_RM_ENABLED, OFI_RM_ENABLED);
SAME(FI_AV_TABLE, OFI_AV_TABLE);
SAME(FI_SOCKADDR_IN, OFI_FORMAT_SOCKADDR_IN);
SAME(FI_ADDR_UNSPEC, OFI_ADDR_UNSPEC);
SAME(FI_WAIT_NONE, OFI_WAIT_NONE);
SAME(FI_WAIT_FD, OFI_WAIT_FD);
SAME(FI_CQ_FORMAT_MSG, OFI_CQ_FORMAT_MSG);
SAME(FI_GETWAIT, OFI_GETWAIT);
SAME(FI_ENABLE, OFI_ENABLE);

MEMBER(fid, ofi_fid, ops);
CALL(fi_ops, ofi_ops, close);
CALL(fi_ops, ofi_ops, bind);
CALL(fi_ops, ofi_ops, control);

MEMBER(fi_tx_attr, ofi_tx_attr, msg_order);
MEMBER(fi_tx_attr, ofi_tx_attr, inject_size);
MEMBER(fi_tx_attr, ofi_tx_attr, size);
MEMBER(fi_rx_attr, ofi_rx_attr, msg_order);
MEMBER(fi_rx_attr, ofi_rx_attr, size);
MEMBER(fi_ep_attr, ofi_ep_attr, type);
MEMBER(fi_ep_attr, ofi_ep_attr, max_msg_size);
MEMBER(fi_domain_attr, ofi_domain_attr, name);
MEMBER(fi_domain_attr, ofi_domain_attr, threading);
MEMBER(fi_domain_attr, ofi_domain_attr, control_progress);
MEMBER(fi_domain_attr, ofi_domain_attr, data_progress);
MEMBER(fi_domain_attr, ofi_domain_attr, resource_mgmt);
MEMBER(fi_domain_attr, ofi_domain_attr, av_type);
MEMBER(fi_domain_attr, ofi_domain_attr, mr_mode);
MEMBER(fi_fabric_attr, ofi_fabric_attr, prov_name);
MEMBER(fi_info, ofi_info, next);
MEMBER(fi_info, ofi_info, caps);
MEMBER(fi_info, ofi_info, mode);
MEMBER(fi_info, ofi_info, addr_format);
MEMBER(fi_info, ofi_info, tx_attr);
MEMBER(fi_info, ofi_info, rx_attr);
MEMBER(fi_info, ofi_info, ep_attr);
MEMBER(fi_info, ofi_info, domain_attr);
MEMBER(fi_info, ofi_info, fabric_attr);

MEMBER(fi_cq_attr, ofi_cq_attr, size);
MEMBER(fi_cq_attr, ofi_cq_attr, format);
MEMBER(fi_cq_attr, ofi_cq_attr, wait_obj);
MEMBER(fi_cq_attr, ofi_cq_attr, wait_set);
SAME(sizeof(struct fi_cq_attr), sizeof(struct ofi_cq_attr));
MEMBER(fi_av_attr, ofi_av_attr, type);
MEMBER(fi_av_attr, ofi_av_attr, count);
MEMBER(fi_av_attr, ofi_av_attr, flags);
SAME(sizeof(struct fi_av_attr), sizeof(struct ofi_av_attr));
MEMBERS(fi_cq_msg_entry, op_context, ofi_cq_entry, context);
MEMBER(fi_cq_msg_entry, ofi_cq_entry, flags);
MEMBER(fi_cq_msg_entry, ofi_cq_entry, len);
SAME(sizeof(struct fi_cq_msg_entry), sizeof(struct ofi_cq_entry));
MEMBERS(fi_cq_err_entry, op_context, ofi_cq_error, context);
MEMBER(fi_cq_err_entry, ofi_cq_error, flags);
MEMBER(fi_cq_err_entry, ofi_cq_error, err);
MEMBER(fi_cq_err_entry, ofi_cq_error, prov_errno);
MEMBER(fi_cq_err_entry, ofi_cq_error, err_data_size);
static_assert(sizeof(struct fi_cq_err_entry) <= sizeof(struct ofi_cq_error), "room for what it will be");

MEMBER(fid_fabric, ofi_fabric, ops);
CALL(fi_ops_fabric, ofi_fabric_ops, domain);
CALL(fi_ops_fabric, ofi_fabric_ops, trywait);
MEMBER(fid_mr, ofi_mr, mem_desc);
MEMBER(fid_domain, ofi_domain, ops);
MEMBER(fid_domain, ofi_domain, mr);
CALL(fi_ops_domain, ofi_domain_ops, av_open);
CALL(fi_ops_domain, ofi_domain_ops, cq_open);
CALL(fi_ops_domain, ofi_domain_ops, endpoint);
CALL(fi_ops_mr, ofi_mr_ops, reg);
MEMBER(fid_av, ofi_av, ops);
CALL(fi_ops_av, ofi_av_ops, insert);
MEMBER(fid_cq, ofi_cq, ops);
CALL(fi_ops_cq, ofi_cq_ops, read);
CALL(fi_ops_cq, ofi_cq_ops, readerr);
MEMBER(fid_ep, ofi_ep, cm);
MEMBER(fid_ep, ofi_ep, msg);
CALL(fi_ops_cm, ofi_cm_ops, getname);
CALL(fi_ops_msg, ofi_msg_ops, recv);
CALL(fi_ops_msg, ofi_msg_ops, send);
CALL(fi_ops_msg, ofi_msg_ops, inject);

int main(void)
{
	return 0;
}
