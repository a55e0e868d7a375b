/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx_worker.h"

#include <errno.h>

#include "base/error.h"
#include "transport/ucx/ucx_library.h"

static int ucx_worker_error(const struct ucx *u, ucx_status status, const char *what)
{
	return error_set(status == UCX_ERR_NO_MEMORY ? -ENOMEM : -ENODEV, "%s: %s", what, u->api->status_string(status));
}

static int ucx_worker_make(struct ucx *u, ucx_worker_receive_fn *receive)
{
	const struct ucx_worker_params params = {.field_mask = UCX_WORKER_PARAM_THREAD_MODE, .thread_mode = UCX_THREAD_MODE_SERIALIZED};
	const struct ucx_am_handler handler = {
		.field_mask = UCX_AM_HANDLER_ID | UCX_AM_HANDLER_CB | UCX_AM_HANDLER_ARG, .id = UCX_AM_ID, .cb = receive, .arg = u};
	struct ucx_worker_attr attr = {.field_mask = UCX_WORKER_ATTR_ADDRESS | UCX_WORKER_ATTR_ADDRESS_FLAGS,
				       .address_flags = UCX_WORKER_ADDRESS_NET_ONLY};
	ucx_status status = u->api->worker_create(u->context, &params, &u->worker);

	if (status != UCX_OK) {
		u->worker = NULL;
		return ucx_worker_error(u, status, "ucp_worker_create");
	}
	status = u->api->set_am_handler(u->worker, &handler);
	if (status != UCX_OK)
		return ucx_worker_error(u, status, "ucp_worker_set_am_recv_handler");
	status = u->api->worker_get_efd(u->worker, &u->netlib.fd);
	if (status != UCX_OK)
		return ucx_worker_error(u, status, "ucp_worker_get_efd");
	status = u->api->worker_query(u->worker, &attr);
	if (status != UCX_OK)
		return ucx_worker_error(u, status, "ucp_worker_query");
	u->netlib.address = attr.address;
	u->netlib.address_bytes = attr.address_length;
	return 0;
}

/* With the environment and the signals as the loader has set them. */
static int ucx_worker_make_context(struct ucx *u, ucx_worker_receive_fn *receive)
{
	const struct ucx_params params = {.field_mask = UCX_PARAM_FEATURES | UCX_PARAM_NUM_EPS,
					  .features = UCX_FEATURE_AM | UCX_FEATURE_WAKEUP,
					  .estimated_num_eps = (size_t)u->netlib.env.size};
	struct ucx_config *config = NULL;
	ucx_status status;

	if (!u->netlib.env.test) {
		int rc = ucx_library_open(&u->library);

		if (rc < 0)
			return rc;
	}
	status = u->api->config_read(NULL, NULL, &config);
	if (status != UCX_OK)
		return ucx_worker_error(u, status, "ucp_config_read (a variable UCX_...?)");
	status = u->api->init(UCX_API_MAJOR, UCX_API_MINOR, &params, config, &u->context);
	u->api->config_release(config);
	if (status != UCX_OK) {
		u->context = NULL;
		return ucx_worker_error(u, status, "ucp_init (ucx_tls and ucx_net_devices name what this machine has?)");
	}
	return ucx_worker_make(u, receive);
}

int ucx_worker_open(struct ucx *u, ucx_worker_receive_fn *receive)
{
	struct ucx_library_environment e;
	struct loader loader;
	int rc, changed;

	ucx_library_environment(&e, u->netlib.env.settings);
	rc = loader_begin(&loader, e.variable, e.count);
	if (rc < 0)
		return rc;
	rc = ucx_worker_make_context(u, receive);
	changed = loader_end(&loader);
	if (changed)
		log_warn(u->netlib.env.log, "ucx: the library had changed %d signal actions, which are restored", changed);
	return rc;
}

void ucx_worker_close(struct ucx *u)
{
	if (u->netlib.address)
		u->api->release_address(u->worker, u->netlib.address);
	if (u->worker)
		u->api->worker_destroy(u->worker);
	if (u->context)
		u->api->cleanup(u->context);
	u->netlib.address = NULL;
	u->worker = NULL;
	u->context = NULL;
}
