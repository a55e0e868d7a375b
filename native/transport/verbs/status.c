/* SPDX-License-Identifier: MIT */
#include "transport/verbs/status.h"

const char *status_text(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS: return "success";
	case IBV_WC_LOC_LEN_ERR:
		return "a packet was longer than its receive buffer: do all ranks run the same ibvdev with the same verbs_chunk?";
	case IBV_WC_LOC_QP_OP_ERR:
		return "the adapter could not carry an operation out: is its port up (ibv_devinfo, ip link)? If so please report it, with "
		       "the adapter's type";
	case IBV_WC_LOC_EEC_OP_ERR:
	case IBV_WC_INV_EECN_ERR:
	case IBV_WC_INV_EEC_STATE_ERR:
	case IBV_WC_LOC_RDD_VIOL_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR: return "an error of a service that is not used here: look at the adapter's firmware and driver";
	case IBV_WC_LOC_PROT_ERR:
		return "memory of this rank was not registered, or no longer: was a buffer freed while its message was under way?";
	case IBV_WC_WR_FLUSH_ERR: return "the connection was closed by the other side or given up: its process may have ended";
	case IBV_WC_MW_BIND_ERR: return "a memory window could not be bound";
	case IBV_WC_BAD_RESP_ERR: return "the other adapter answered nonsense: look at cables, firmware and MTU";
	case IBV_WC_LOC_ACCESS_ERR:
		return "this rank's memory may not be written by the adapter: was a buffer freed or made read-only while its message was "
		       "under way?";
	case IBV_WC_REM_INV_REQ_ERR:
		return "the other adapter does not know this operation or found it too long: do all ranks run the same ibvdev?";
	case IBV_WC_REM_ACCESS_ERR:
		return "the other rank's memory may not be read (any more): was a buffer freed there while its message was under way?";
	case IBV_WC_REM_OP_ERR: return "the other adapter could not complete an operation: look at that host's kernel log";
	case IBV_WC_RETRY_EXC_ERR:
		return "the other adapter does not answer: is its host up, its link up (ibv_devinfo), the fabric lossless?";
	case IBV_WC_RNR_RETRY_EXC_ERR: return "the other rank has no receive posted: please report it, credit should prevent that";
	case IBV_WC_REM_ABORT_ERR: return "the other side aborted the operation";
	case IBV_WC_FATAL_ERR: return "the adapter failed: look at the kernel log";
	case IBV_WC_RESP_TIMEOUT_ERR: return "the other adapter did not answer in time: is its host up and its link too?";
	case IBV_WC_GENERAL_ERR:
	case IBV_WC_TM_ERR:
	case IBV_WC_TM_RNDV_INCOMPLETE: break;
	}
	return "the adapter reports an error without a name: look at the kernel log";
}

const char *event_text(enum ibv_event_type type)
{
	switch ((int)type) {
	case IBV_EVENT_PORT_ERR: return "the port went down: is the link up (ibv_devinfo, ip link)?";
	case IBV_EVENT_PORT_ACTIVE: return "the port came up";
	case IBV_EVENT_DEVICE_FATAL: return "the adapter failed or was removed: look at the kernel log";
	case IBV_EVENT_CQ_ERR: return "a completion queue overran or failed";
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR: return "the adapter ended a queue pair: look at the kernel log";
	case IBV_EVENT_SRQ_ERR: return "the shared receive queue failed";
	case IBV_EVENT_LID_CHANGE:
		return "the port has another LID now, connections that use the old one end: start the job again if ranks are lost";
	case IBV_EVENT_PKEY_CHANGE: return "the port's P_Keys have changed, connections may end: start the job again if ranks are lost";
	case IBV_EVENT_GID_CHANGE: return "the port's GIDs have changed (an address of its interface): what used an address that went ends";
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_SM_CHANGE: return "the subnet manager has started again or changed: connections stay";
	default: /* the list grows with the library */ return "an event that needs no action";
	}
}

const char *status_link_layer(const struct ibv_context *c, const struct ibv_port_attr *p)
{
	if (c->device->transport_type == IBV_TRANSPORT_IWARP)
		return "iWARP";
	return p->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}
