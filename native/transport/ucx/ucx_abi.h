/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_ABI_H
#define IBVX_TRANSPORT_UCX_ABI_H
/*
 * ucx_abi: the little of libucp.so.0 that is needed, declared here so that the library can be opened at run time and is no
 * dependency of the build.  UCX only appends to these structures and has a mask in each for the members that count; the library's
 * version 0 has kept them from 1.12 on.  tests/ucx/abi.c compares them with ucp.h where that is installed.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* ucs_status_t, a packed enum: one byte. */
typedef int8_t ucx_status;
#define UCX_OK 0
#define UCX_INPROGRESS 1
#define UCX_ERR_NO_MEMORY (-4)
#define UCX_ERR_UNREACHABLE (-6)
#define UCX_ERR_INVALID_ADDR (-7)
#define UCX_ERR_NO_DEVICE (-14)
#define UCX_ERR_BUSY (-15)
#define UCX_ERR_CANCELED (-16)
#define UCX_ERR_TIMED_OUT (-20)
#define UCX_ERR_CONNECTION_RESET (-25)
#define UCX_ERR_ENDPOINT_TIMEOUT (-80)
#define UCX_ERR_LAST (-100)

#define UCX_API_MAJOR 1u
#define UCX_API_MINOR 12u

struct ucx_config;  /* ucp_config_t */
struct ucx_context; /* *ucp_context_h */
struct ucx_worker;  /* *ucp_worker_h */
struct ucx_ep;      /* *ucp_ep_h */

/* ucp_params_t as far as it is used; the rest is not looked at. */
#define UCX_PARAM_FEATURES (1u << 0)
#define UCX_PARAM_NUM_EPS (1u << 6)
#define UCX_FEATURE_WAKEUP (1u << 4)
#define UCX_FEATURE_AM (1u << 6)
struct ucx_params {
	uint64_t field_mask, features;
	size_t request_size;
	void *request_init, *request_cleanup;
	uint64_t tag_sender_mask;
	int mt_workers_shared;
	size_t estimated_num_eps, estimated_num_ppn;
	const char *name;
	uint64_t later[16];
};

#define UCX_WORKER_PARAM_THREAD_MODE (1u << 0)
#define UCX_THREAD_MODE_SERIALIZED 1
struct ucx_worker_params {
	uint64_t field_mask;
	int thread_mode;
	uint64_t later[64];
};

#define UCX_WORKER_ATTR_ADDRESS (1u << 1)
#define UCX_WORKER_ATTR_ADDRESS_FLAGS (1u << 2)
#define UCX_WORKER_ADDRESS_NET_ONLY (1u << 0)
struct ucx_worker_attr {
	uint64_t field_mask;
	int thread_mode;
	uint32_t address_flags;
	void *address;
	size_t address_length;
	uint64_t later[64];
};

#define UCX_AM_HANDLER_ID (1u << 0)
#define UCX_AM_HANDLER_CB (1u << 2)
#define UCX_AM_HANDLER_ARG (1u << 3)
#define UCX_AM_RECV_RNDV (1u << 17) /* recv_attr: the data is still at the sender */
struct ucx_am_recv_param {
	uint64_t recv_attr;
	struct ucx_ep *reply_ep;
};
struct ucx_am_handler {
	uint64_t field_mask;
	unsigned id;
	uint32_t flags;
	ucx_status (*cb)(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
			 const struct ucx_am_recv_param *param);
	void *arg;
	uint64_t later[4];
};

#define UCX_EP_ADDRESS (1u << 0)
#define UCX_EP_ERR_MODE (1u << 1)
#define UCX_EP_ERR_HANDLER (1u << 2)
#define UCX_ERR_MODE_PEER 1
struct ucx_ep_params {
	uint64_t field_mask;
	const void *address;
	int err_mode;
	struct {
		void (*cb)(void *arg, struct ucx_ep *ep, ucx_status status);
		void *arg;
	} err_handler;
	uint64_t later[24];
};

#define UCX_OP_CALLBACK (1u << 1)
#define UCX_OP_USER_DATA (1u << 2)
#define UCX_OP_FLAGS (1u << 4)
#define UCX_OP_MEMORY_TYPE (1u << 6)
#define UCX_MEMORY_HOST 0
#define UCX_AM_SEND_EAGER (1u << 1)
#define UCX_EP_CLOSE_FORCE (1u << 0)
struct ucx_request_param {
	uint32_t op_attr_mask, flags;
	void *request;
	void (*send)(void *request, ucx_status status, void *user_data);
	uint64_t datatype;
	void *user_data, *reply_buffer;
	int memory_type;
	void *recv_info, *memh;
	uint64_t later[8];
};

/* Calls that return a request: NULL: done; a status; or a pointer, which the callback gets, too. */
static inline ucx_status ucx_status_of(const void *request)
{
	intptr_t value = (intptr_t)request;

	if (value == 0)
		return UCX_OK;
	return value < 0 && value >= UCX_ERR_LAST ? (ucx_status)value : UCX_INPROGRESS;
}

/* The library, or a test's double of it. */
struct ucx_library {
	void (*get_version)(unsigned *major, unsigned *minor, unsigned *release);
	const char *(*get_version_string)(void);
	const char *(*status_string)(ucx_status status);
	ucx_status (*config_read)(const char *prefix, const char *file, struct ucx_config **config);
	void (*config_release)(struct ucx_config *config);
	ucx_status (*init)(unsigned major, unsigned minor, const struct ucx_params *params, const struct ucx_config *config,
			   struct ucx_context **context);
	void (*cleanup)(struct ucx_context *context);
	ucx_status (*worker_create)(struct ucx_context *context, const struct ucx_worker_params *params, struct ucx_worker **worker);
	void (*worker_destroy)(struct ucx_worker *worker);
	ucx_status (*worker_query)(struct ucx_worker *worker, struct ucx_worker_attr *attr);
	void (*release_address)(struct ucx_worker *worker, void *address);
	ucx_status (*set_am_handler)(struct ucx_worker *worker, const struct ucx_am_handler *handler);
	ucx_status (*worker_get_efd)(struct ucx_worker *worker, int *fd);
	ucx_status (*worker_arm)(struct ucx_worker *worker);
	unsigned (*worker_progress)(struct ucx_worker *worker);
	ucx_status (*ep_create)(struct ucx_worker *worker, const struct ucx_ep_params *params, struct ucx_ep **ep);
	void *(*ep_close)(struct ucx_ep *ep, const struct ucx_request_param *param);
	void *(*am_send)(struct ucx_ep *ep, unsigned id, const void *header, size_t header_bytes, const void *buffer, size_t count,
			 const struct ucx_request_param *param);
	void (*request_free)(void *request);
};

#endif
