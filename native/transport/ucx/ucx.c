/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "transport/netlib/netlib.h"
#include "transport/netlib/netlib_packet.h"
#include "transport/netlib/netlib_receive.h"
#include "transport/ucx/ucx_library.h"
#include "transport/ucx/ucx_worker.h"

/* --- packets --- */

/* The library's callback. */
static ucx_status ucx_on_packet(void *ucx, const void *header, size_t header_bytes, void *data, size_t bytes,
				const struct ucx_am_recv_param *param)
{
	struct ucx *u = ucx;

	netlib_receive(&u->netlib, header, header_bytes, data, bytes, !(param->recv_attr & UCX_AM_RECV_RNDV));
	return UCX_OK;
}

/* Also late: when the endpoint is being ended, or the worker. */
static void ucx_on_sent(void *request, ucx_status status, void *arg)
{
	struct netlib_slot *s = arg;

	ucx_of(s->peer->netlib)->api->request_free(request);
	netlib_packet_sent(s, status);
}

static int ucx_send(struct netlib_peer *p, struct netlib_slot *s)
{
	const struct ucx_request_param param = {
		.op_attr_mask = UCX_OP_CALLBACK | UCX_OP_USER_DATA | UCX_OP_FLAGS | UCX_OP_MEMORY_TYPE,
		.flags = UCX_AM_SEND_EAGER,
		.send = ucx_on_sent,
		.user_data = s,
		.memory_type = UCX_MEMORY_HOST,
	};
	ucx_status status = ucx_status_of(
		ucx_of(p->netlib)->api->am_send(p->endpoint, UCX_AM_ID, &s->head, sizeof(s->head), s->payload, s->head.bytes, &param));

	if (status != UCX_INPROGRESS)
		netlib_packet_sent(s, status);
	return 0;
}

static bool ucx_progress(struct netlib *f, int budget)
{
	struct ucx *u = ucx_of(f);

	(void)budget; /* the library delivers what one reading of its sockets brings */
	return u->api->worker_progress(u->worker) > 0;
}

static bool ucx_arm(struct netlib *f, int64_t *timer_ns)
{
	struct ucx *u = ucx_of(f);

	(void)timer_ns;
	return u->api->worker_arm(u->worker) == UCX_OK;
}

/* --- endpoints --- */

static int ucx_errno(int status)
{
	switch (status) {
	case UCX_ERR_UNREACHABLE:
	case UCX_ERR_INVALID_ADDR:
	case UCX_ERR_NO_DEVICE: return -EHOSTUNREACH;
	case UCX_ERR_NO_MEMORY: return -ENOMEM;
	default: /* reset, time limit, input or output error, not connected, rejected, cancelled: the other side is gone (ibvx.h) */
		return -ECONNRESET;
	}
}

static const char *ucx_text(const struct netlib *f, int status)
{
	return ((const struct ucx *)f)->api->status_string((ucx_status)status);
}

/* Called by worker_progress(), which runs with the lock held. */
static void ucx_on_error(void *arg, struct ucx_ep *ep, ucx_status status)
{
	(void)ep; /* netlib_peer_forget() has it ended */
	netlib_packet_failed(arg, status);
}

static int ucx_connect(struct netlib_peer *p, const void *address, void **endpoint)
{
	struct ucx *u = ucx_of(p->netlib);
	const struct ucx_ep_params params = {
		.field_mask = UCX_EP_ADDRESS | UCX_EP_ERR_MODE | UCX_EP_ERR_HANDLER,
		.address = address,
		.err_mode = UCX_ERR_MODE_PEER,
		.err_handler = {ucx_on_error, p},
	};
	struct ucx_ep *ep = NULL;
	ucx_status status = u->api->ep_create(u->worker, &params, &ep);

	*endpoint = ep;
	return status;
}

static void ucx_on_closed(void *request, ucx_status status, void *arg)
{
	struct ucx *u = arg;

	(void)status;
	u->closing_count--;
	u->api->request_free(request);
}

static void ucx_disconnect(struct netlib_peer *p, void *endpoint, bool force)
{
	struct ucx *u = ucx_of(p->netlib);
	const struct ucx_request_param param = {
		.op_attr_mask = UCX_OP_CALLBACK | UCX_OP_USER_DATA | UCX_OP_FLAGS,
		.flags = force ? UCX_EP_CLOSE_FORCE : 0,
		.send = ucx_on_closed,
		.user_data = u,
	};

	u->closing_count++;
	if (ucx_status_of(u->api->ep_close(endpoint, &param)) != UCX_INPROGRESS)
		u->closing_count--;
}

static bool ucx_closing(const struct netlib *f)
{
	return ((const struct ucx *)f)->closing_count > 0;
}

/* --- life --- */

static int ucx_open_worker(struct netlib *f)
{
	netlib_fit_packets(f, UCX_PAYLOAD_MAX);
	return ucx_worker_open(ucx_of(f), ucx_on_packet);
}

static void ucx_close_worker(struct netlib *f)
{
	ucx_worker_close(ucx_of(f));
}

static const struct netlib_ops ucx_netlib_ops = {
	.product = "UCX",
	.magic = "ucx1",
	.timeout_name = "ucx_timeout_ms",
	.open = ucx_open_worker,
	.close = ucx_close_worker,
	.connect = ucx_connect,
	.disconnect = ucx_disconnect,
	.closing = ucx_closing,
	.progress = ucx_progress,
	.send = ucx_send,
	.arm = ucx_arm,
	.errno_of = ucx_errno,
	.text_of = ucx_text,
	NETLIB_COUNTERS("ucx"),
};

static int ucx_open(struct transport **out, const struct transport_env *env)
{
	struct ucx *u = calloc(1, sizeof(*u));

	if (!u)
		return error_set(-ENOMEM, "no memory for the transport ucx");
	u->netlib.base.ops = &transport_ucx_ops;
	u->netlib.ops = &ucx_netlib_ops;
	u->api = env->test ? env->test : &u->library;
	return netlib_open(&u->netlib, env, settings_int(env->settings, SETTING_UCX_TIMEOUT_MS), out);
}

const struct transport_ops transport_ucx_ops = {
	NETLIB_TRANSPORT_OPS,
	.name = "ucx",
	.universal = true,
	.piece_min = UCX_PAYLOAD_MAX, /* a packet is two system calls */
	.describe = ucx_library_describe,
	.open = ucx_open,
};
