/* SPDX-License-Identifier: MIT */
#include "transport/ofi/ofi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/netlib/netlib.h"
#include "transport/netlib/netlib_packet.h"
#include "transport/netlib/netlib_receive.h"
#include "transport/ofi/ofi_endpoint.h"
#include "transport/ofi/ofi_library.h"

/* Completions that are read at once. */
#define OFI_BATCH 16
/* Packets up to this size are copied by the library, if it can. */
#define OFI_INJECT_MAX 1024u
/* How soon a sleeping endpoint looks again by itself: while packets are queued, where the library has no descriptor. */
#define OFI_QUEUE_MS 1
#define OFI_BLIND_MS 2

static_assert(offsetof(struct netlib_slot, payload) == offsetof(struct netlib_slot, head) + sizeof(struct netlib_head), "one message");
static_assert(offsetof(struct ofi_receive, payload) == offsetof(struct ofi_receive, head) + sizeof(struct netlib_head), "one message");

/* --- packets --- */

static void ofi_break(struct ofi *o, int status)
{
	struct netlib *f = &o->netlib;

	if (o->broken)
		return;
	o->broken = status;
	for (int r = 0; f->peers && r < f->env.size; r++)
		netlib_packet_failed(&f->peers[r], status);
}

static void ofi_post(struct ofi *o)
{
	while (o->unposted_count > 0) {
		struct ofi_receive *r = o->unposted[o->unposted_count - 1];
		ssize_t rc = o->ep->msg->recv(o->ep, &r->head, o->receive_bytes - offsetof(struct ofi_receive, head),
					      o->mr[1] ? o->mr[1]->mem_desc : NULL, OFI_ADDR_UNSPEC, r);

		if (rc == -OFI_EAGAIN)
			return;
		if (rc != 0) {
			ofi_break(o, (int)-rc);
			return;
		}
		o->unposted_count--;
	}
}

static int ofi_send(struct netlib_peer *p, struct netlib_slot *s)
{
	struct ofi *o = ofi_of(p->netlib);
	uint64_t to = (uint64_t)(uintptr_t)p->endpoint;
	size_t bytes = sizeof(s->head) + s->head.bytes;
	bool inject = bytes <= OFI_INJECT_MAX && bytes <= o->info->tx_attr->inject_size;
	ssize_t rc;

	if (inject)
		rc = o->ep->msg->inject(o->ep, &s->head, bytes, to);
	else
		rc = o->ep->msg->send(o->ep, &s->head, bytes, o->mr[0] ? o->mr[0]->mem_desc : NULL, to, s->library);
	if (rc == -OFI_EAGAIN)
		return -EAGAIN;
	if (rc != 0 || inject)
		netlib_packet_sent(s, (int)-rc);
	return 0;
}

/* An operation has ended. */
static void ofi_complete(struct ofi *o, void *context, size_t bytes, int status)
{
	struct netlib *f = &o->netlib;
	char *at = context;

	if (at >= o->receives && at < o->receives + o->receive_count * o->receive_bytes) {
		struct ofi_receive *r = context;
		size_t head = bytes < sizeof(r->head) ? bytes : sizeof(r->head);

		if (status == 0)
			netlib_receive(f, &r->head, head, r->payload, bytes - head, true);
		else
			f->foreign_count++; /* of another size than any of ours */
		o->unposted[o->unposted_count++] = r;
	} else if (at) {
		netlib_packet_sent((struct netlib_slot *)(at - offsetof(struct netlib_slot, library)), status);
	}
}

static bool ofi_progress_error(struct ofi *o)
{
	struct ofi_cq_error error = {0};
	ssize_t n = o->cq->ops->readerr(o->cq, &error, 0);

	if (n == -OFI_EAGAIN)
		return false;
	if (n < 0)
		ofi_break(o, (int)-n);
	else
		ofi_complete(o, error.context, 0, error.err ? error.err : OFI_ECONNRESET);
	return true;
}

static bool ofi_progress(struct netlib *f, int budget)
{
	struct ofi *o = ofi_of(f);
	struct ofi_cq_entry entry[OFI_BATCH];
	ssize_t n;

	if (o->broken)
		return false;
	if (o->unposted_count > 0)
		ofi_post(o);
	n = o->cq->ops->read(o->cq, entry, (size_t)(budget < OFI_BATCH ? budget : OFI_BATCH));
	if (n == -OFI_EAVAIL)
		return ofi_progress_error(o);
	if (n < 0 && n != -OFI_EAGAIN)
		ofi_break(o, (int)-n);
	for (ssize_t i = 0; i < n; i++)
		ofi_complete(o, entry[i].context, entry[i].len, 0);
	return n > 0;
}

/* --- sleeping --- */

/* A peer's room, which a queued packet waits for, is not always an event. */
static bool ofi_arm(struct netlib *f, int64_t *timer_ns)
{
	struct ofi *o = ofi_of(f);
	struct ofi_fid *fid = &o->cq->fid;

	if (o->unposted_count > 0)
		ofi_post(o);
	if (f->fd >= 0 && !o->broken && o->fabric->ops->trywait(o->fabric, &fid, 1) != 0)
		return false;
	*timer_ns = (f->queued || o->unposted_count > 0 ? OFI_QUEUE_MS : f->fd < 0 ? OFI_BLIND_MS : 0) * CLOCK_NS_PER_MS;
	return true;
}

/* --- peers --- */

static int ofi_errno(int status)
{
	switch (status) {
	case OFI_ENOMEM: return -ENOMEM;
	case OFI_EHOSTUNREACH:
	case OFI_ENODATA:
	case EINVAL:
	case ENETUNREACH: return -EHOSTUNREACH;
	default: /* reset, refused, cancelled, not connected: the other side is gone (ibvx.h) */ return -ECONNRESET;
	}
}

static const char *ofi_text(const struct netlib *f, int status)
{
	return ((const struct ofi *)f)->api->strerror(status);
}

static int ofi_connect(struct netlib_peer *p, const void *address, void **endpoint)
{
	struct ofi *o = ofi_of(p->netlib);
	uint64_t to = OFI_ADDR_UNSPEC;
	int n = o->av->ops->insert(o->av, ofi_endpoint_name(address), 1, &to, 0, NULL);

	*endpoint = (void *)(uintptr_t)to;
	return n == 1 ? 0 : n < 0 ? -n : OFI_EHOSTUNREACH;
}

/* Names stay until the endpoint is closed: libraries differ in what becomes of operations whose name is removed. */
static void ofi_disconnect(struct netlib_peer *p, void *endpoint, bool force)
{
	(void)p;
	(void)endpoint;
	(void)force;
}

static bool ofi_closing(const struct netlib *f)
{
	for (int r = 0; f->peers && r < f->env.size; r++) {
		if (f->peers[r].lingers && f->peers[r].in_flight[0] + f->peers[r].in_flight[1] > 0)
			return true;
	}
	return false;
}

/* --- life --- */

static const struct netlib_ops ofi_netlib_ops = {
	.product = "libfabric",
	.magic = "ofi1",
	.timeout_name = "ofi_timeout_ms",
	.open = ofi_endpoint_open,
	.close = ofi_endpoint_close,
	.matches = ofi_endpoint_matches,
	.connect = ofi_connect,
	.disconnect = ofi_disconnect,
	.closing = ofi_closing,
	.progress = ofi_progress,
	.send = ofi_send,
	.arm = ofi_arm,
	.errno_of = ofi_errno,
	.text_of = ofi_text,
	NETLIB_COUNTERS("ofi"),
};

static int ofi_open(struct transport **out, const struct transport_env *env)
{
	struct ofi *o = calloc(1, sizeof(*o));

	if (!o)
		return error_set(-ENOMEM, "no memory for the transport ofi");
	o->netlib.base.ops = &transport_ofi_ops;
	o->netlib.ops = &ofi_netlib_ops;
	o->api = env->test ? env->test : &o->library;
	return netlib_open(&o->netlib, env, settings_int(env->settings, SETTING_OFI_TIMEOUT_MS), out);
}

const struct transport_ops transport_ofi_ops = {
	NETLIB_TRANSPORT_OPS,
	.name = "ofi",
	.last_resort = true,          /* Debian's library takes 0.35 s to load and to look for its providers, whatever it is asked for */
	.piece_min = OFI_PAYLOAD_RXM, /* a packet is two system calls or more */
	.describe = ofi_library_describe,
	.open = ofi_open,
};
