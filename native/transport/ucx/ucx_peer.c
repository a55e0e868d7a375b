/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx_peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ucx_peer_note(struct ucx_peer *p)
{
	struct ucx *u = p->ucx;

	if (p->noted)
		return;
	p->noted = true;
	p->next_note = u->notes;
	u->notes = p;
	work_signal(&u->work);
}

void ucx_peer_connect(struct ucx_peer *p)
{
	if (p->state != UCX_IDLE)
		return;
	p->state = UCX_CONNECTING;
	ucx_peer_note(p);
}

void ucx_peer_end(struct ucx_peer *p, unsigned grace, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (p->state == UCX_ENDING || p->state == UCX_DOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->end_code = code;
	p->end_text = strdup(text);
	p->state = UCX_ENDING;
	p->grace = grace;
	p->ucx->chores += grace == 0;
}

void ucx_peer_forget(struct ucx_peer *p)
{
	if (p->state == UCX_DOWN)
		return;
	if (p->state == UCX_ENDING && p->grace == 0)
		p->ucx->chores--;
	if (p->ack_wanted)
		p->ucx->chores--;
	p->ack_wanted = false;
	p->state = UCX_DOWN;
	if (p->ep)
		ucx_peer_note(p);
}

int ucx_peer_errno(ucx_status status)
{
	switch (status) {
	case UCX_ERR_UNREACHABLE:
	case UCX_ERR_INVALID_ADDR:
	case UCX_ERR_NO_DEVICE:
		return -EHOSTUNREACH;
	case UCX_ERR_NO_MEMORY:
		return -ENOMEM;
	default: /* reset, time limit, input or output error, not connected, rejected, cancelled: the other side is gone (ibvx.h) */
		return -ECONNRESET;
	}
}

/* Called by worker_progress(), which runs with the lock held. */
static void ucx_peer_on_error(void *arg, struct ucx_ep *ep, ucx_status status)
{
	struct ucx_peer *p = arg;

	(void)ep; /* ucx_peer_forget() has it ended */
	if (p->failed || p->state != UCX_UP)
		return;
	p->failed = status;
	p->ucx->chores++;
}

/* On the monitor thread: the state may be another one when the lock is back. */
static void ucx_peer_make(struct ucx_peer *p)
{
	struct ucx *u = p->ucx;
	const struct ucx_ep_params params = {
		.field_mask = UCX_EP_ADDRESS | UCX_EP_ERR_MODE | UCX_EP_ERR_HANDLER,
		.address = p->address,
		.err_mode = UCX_ERR_MODE_PEER,
		.err_handler = {ucx_peer_on_error, p},
	};
	struct ucx_ep *ep = NULL;
	ucx_status status;

	u->outside = true;
	work_unlock(&u->work);
	status = u->api->ep_create(u->worker, &params, &ep);
	work_lock(&u->work);
	u->outside = false;
	if (status != UCX_OK) {
		ucx_peer_end(p, 0, ucx_peer_errno(status), "rank %d cannot be connected to by UCX: %s", p->rank, u->api->status_string(status));
		return;
	}
	p->ep = ep;
	if (p->state == UCX_CONNECTING)
		p->state = UCX_UP;
	else
		ucx_peer_note(p);
}

static void ucx_peer_on_closed(void *request, ucx_status status, void *arg)
{
	struct ucx *u = arg;

	(void)status;
	u->closing_count--;
	u->api->request_free(request);
}

void ucx_peer_close_endpoint(struct ucx_peer *p, bool force)
{
	struct ucx *u = p->ucx;
	const struct ucx_request_param param = {
		.op_attr_mask = UCX_OP_CALLBACK | UCX_OP_USER_DATA | UCX_OP_FLAGS,
		.flags = force ? UCX_EP_CLOSE_FORCE : 0,
		.send = ucx_peer_on_closed,
		.user_data = u,
	};
	struct ucx_ep *ep = p->ep;

	p->ep = NULL;
	u->closing_count++;
	if (ucx_status_of(u->api->ep_close(ep, &param)) != UCX_INPROGRESS)
		u->closing_count--;
}

void ucx_peer_on_work(void *ucx)
{
	struct ucx *u = ucx;

	work_begin(&u->work);
	while (u->notes) {
		struct ucx_peer *p = u->notes;

		u->notes = p->next_note;
		p->noted = false;
		if (p->state == UCX_CONNECTING && !p->ep) {
			ucx_peer_make(p);
		} else if (p->state == UCX_DOWN && p->ep) {
			u->outside = true;
			work_unlock(&u->work);
			ucx_peer_close_endpoint(p, true);
			work_lock(&u->work);
			u->outside = false;
		}
	}
}
