/* SPDX-License-Identifier: MIT */
/* ucx_abi.h agrees with ucp.h. */
#include <stddef.h>
#include <ucp/api/ucp.h>

#include "transport/ucx/ucx_abi.h"

#define SAME(theirs, ours) static_assert((theirs) == (ours), #theirs)
#define MEMBER(theirs, ours, member)                                                               \
	static_assert(offsetof(theirs, member) == offsetof(struct ours, member) &&                 \
			      sizeof(((theirs *)0)->member) == sizeof(((struct ours *)0)->member), \
		      #theirs " " #member)
#define ROOM(theirs, ours) static_assert(sizeof(theirs) <= sizeof(struct ours), #theirs)

SAME(sizeof(ucs_status_t), sizeof(ucx_status));
SAME(UCS_OK, UCX_OK);
SAME(UCS_INPROGRESS, UCX_INPROGRESS);
SAME(UCS_ERR_NO_MEMORY, UCX_ERR_NO_MEMORY);
SAME(UCS_ERR_BUSY, UCX_ERR_BUSY);
SAME(UCS_ERR_CANCELED, UCX_ERR_CANCELED);
SAME(UCS_ERR_TIMED_OUT, UCX_ERR_TIMED_OUT);
SAME(UCS_ERR_ENDPOINT_TIMEOUT, UCX_ERR_ENDPOINT_TIMEOUT);
SAME(UCS_ERR_UNREACHABLE, UCX_ERR_UNREACHABLE);
SAME(UCS_ERR_INVALID_ADDR, UCX_ERR_INVALID_ADDR);
SAME(UCS_ERR_NO_DEVICE, UCX_ERR_NO_DEVICE);
SAME(UCS_ERR_CONNECTION_RESET, UCX_ERR_CONNECTION_RESET);
SAME(UCS_ERR_LAST, UCX_ERR_LAST);

SAME(UCP_PARAM_FIELD_FEATURES, UCX_PARAM_FEATURES);
SAME(UCP_PARAM_FIELD_ESTIMATED_NUM_EPS, UCX_PARAM_NUM_EPS);
SAME(UCP_FEATURE_WAKEUP, UCX_FEATURE_WAKEUP);
SAME(UCP_FEATURE_AM, UCX_FEATURE_AM);
MEMBER(ucp_params_t, ucx_params, field_mask);
MEMBER(ucp_params_t, ucx_params, features);
MEMBER(ucp_params_t, ucx_params, estimated_num_eps);
ROOM(ucp_params_t, ucx_params);

SAME(UCP_WORKER_PARAM_FIELD_THREAD_MODE, UCX_WORKER_PARAM_THREAD_MODE);
SAME(UCS_THREAD_MODE_SERIALIZED, UCX_THREAD_MODE_SERIALIZED);
MEMBER(ucp_worker_params_t, ucx_worker_params, field_mask);
MEMBER(ucp_worker_params_t, ucx_worker_params, thread_mode);
ROOM(ucp_worker_params_t, ucx_worker_params);

SAME(UCP_WORKER_ATTR_FIELD_ADDRESS, UCX_WORKER_ATTR_ADDRESS);
SAME(UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS, UCX_WORKER_ATTR_ADDRESS_FLAGS);
SAME(UCP_WORKER_ADDRESS_FLAG_NET_ONLY, UCX_WORKER_ADDRESS_NET_ONLY);
MEMBER(ucp_worker_attr_t, ucx_worker_attr, field_mask);
MEMBER(ucp_worker_attr_t, ucx_worker_attr, address_flags);
MEMBER(ucp_worker_attr_t, ucx_worker_attr, address);
MEMBER(ucp_worker_attr_t, ucx_worker_attr, address_length);
ROOM(ucp_worker_attr_t, ucx_worker_attr);

SAME(UCP_AM_HANDLER_PARAM_FIELD_ID, UCX_AM_HANDLER_ID);
SAME(UCP_AM_HANDLER_PARAM_FIELD_CB, UCX_AM_HANDLER_CB);
SAME(UCP_AM_HANDLER_PARAM_FIELD_ARG, UCX_AM_HANDLER_ARG);
SAME(UCP_AM_RECV_ATTR_FLAG_RNDV, UCX_AM_RECV_RNDV);
MEMBER(ucp_am_handler_param_t, ucx_am_handler, field_mask);
MEMBER(ucp_am_handler_param_t, ucx_am_handler, id);
MEMBER(ucp_am_handler_param_t, ucx_am_handler, cb);
MEMBER(ucp_am_handler_param_t, ucx_am_handler, arg);
ROOM(ucp_am_handler_param_t, ucx_am_handler);
MEMBER(ucp_am_recv_param_t, ucx_am_recv_param, recv_attr);

SAME(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, UCX_EP_ADDRESS);
SAME(UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE, UCX_EP_ERR_MODE);
SAME(UCP_EP_PARAM_FIELD_ERR_HANDLER, UCX_EP_ERR_HANDLER);
SAME(UCP_ERR_HANDLING_MODE_PEER, UCX_ERR_MODE_PEER);
MEMBER(ucp_ep_params_t, ucx_ep_params, field_mask);
MEMBER(ucp_ep_params_t, ucx_ep_params, address);
MEMBER(ucp_ep_params_t, ucx_ep_params, err_mode);
MEMBER(ucp_ep_params_t, ucx_ep_params, err_handler.cb);
MEMBER(ucp_ep_params_t, ucx_ep_params, err_handler.arg);
ROOM(ucp_ep_params_t, ucx_ep_params);

SAME(UCP_OP_ATTR_FIELD_CALLBACK, UCX_OP_CALLBACK);
SAME(UCP_OP_ATTR_FIELD_USER_DATA, UCX_OP_USER_DATA);
SAME(UCP_OP_ATTR_FIELD_FLAGS, UCX_OP_FLAGS);
SAME(UCP_OP_ATTR_FIELD_MEMORY_TYPE, UCX_OP_MEMORY_TYPE);
SAME(UCS_MEMORY_TYPE_HOST, UCX_MEMORY_HOST);
SAME(UCP_AM_SEND_FLAG_EAGER, UCX_AM_SEND_EAGER);
SAME(UCP_EP_CLOSE_FLAG_FORCE, UCX_EP_CLOSE_FORCE);
MEMBER(ucp_request_param_t, ucx_request_param, op_attr_mask);
MEMBER(ucp_request_param_t, ucx_request_param, flags);
static_assert(offsetof(ucp_request_param_t, cb.send) == offsetof(struct ucx_request_param, send), "cb.send");
MEMBER(ucp_request_param_t, ucx_request_param, user_data);
MEMBER(ucp_request_param_t, ucx_request_param, memory_type);
ROOM(ucp_request_param_t, ucx_request_param);

int main(void)
{
	return 0;
}
