/* SPDX-License-Identifier: MIT */
#include "transport/verbs/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/error.h"
#include "transport/verbs/retry.h"
#include "transport/verbs/route.h"

#define CM_RESOLVE_MS 5000

/* Reasons of InfiniBand and RoCE to refuse without private data that may pass: the other side's kernel has no place for the request, or knows
 * nothing of it yet or any more (Linux, rdma/ib_cm.h).  The consumer, RDMA CM itself, refuses if the listener's backlog is full. */
enum cm_reason { CM_NO_RESOURCES = 3, CM_TIMEOUT = 4, CM_STALE = 10, CM_CONSUMER = 28 };

/* --- the connecting side --- */

static int cm_failed(struct verbs_conn *c, const char *step, int err)
{
	char text[64];

	peer_end(c->peer, err ? -err : -ECONNREFUSED, "connecting to rank %d at %s: %s: %s", c->peer->rank,
		 route_text(&c->peer->remote, text, sizeof(text)), step, err ? strerror(err) : "refused");
	return -EIO;
}

static void cm_set_class(const struct verbs_conn *c)
{
	int64_t wanted = settings_int(c->verbs->env.settings, SETTING_VERBS_TRAFFIC_CLASS);
	uint8_t class = (uint8_t)wanted;

	if (wanted >= 0 && c->verbs->api->set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &class, sizeof(class)))
		log_warn(c->verbs->env.log, "verbs: rank %d: RDMA CM does not take verbs_traffic_class=%d: %s", c->peer->rank, (int)class,
			 strerror(errno));
}

/* Makes an id that is resolved to the peer's address.  Lock released. */
static int cm_resolve(struct verbs_conn *c, const struct sockaddr_storage *from, const struct sockaddr_storage *to)
{
	struct verbs *v = c->verbs;
	uint8_t exponent = connection_timeout_exponent(v);

	if (v->api->create_id(v->events, &c->id, c, RDMA_PS_TCP)) {
		c->id = NULL;
		return error_sys(-errno, "rdma_create_id");
	}
	if (v->api->set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof(exponent)))
		log_debug(v->env.log, "verbs: the retry time cannot be set: %s", strerror(errno));
	cm_set_class(c);
	if (v->api->resolve_addr(c->id, (struct sockaddr *)(uintptr_t)from, (struct sockaddr *)(uintptr_t)to, CM_RESOLVE_MS))
		return error_sys(-errno, "rdma_resolve_addr");
	return 0;
}

static int cm_start(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;
	struct sockaddr_storage from = v->locals[p->local].addr, to = p->remote;
	struct verbs_conn *c = connection_open(p, true);
	int rc;

	if (!c)
		return -ENOMEM;
	route_set_port(&from, 0);
	work_unlock(&v->work);
	rc = cm_resolve(c, &from, &to);
	work_lock(&v->work);
	return rc;
}

static void cm_on_addr(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;
	int rc;

	work_unlock(&v->work);
	rc = v->api->resolve_route(c->id, CM_RESOLVE_MS) ? errno : 0;
	work_lock(&v->work);
	if (rc)
		cm_failed(c, "rdma_resolve_route", rc);
}

static struct ibv_qp *cm_make_qp(struct verbs_conn *c, struct ibv_qp_init_attr *attr)
{
	return c->verbs->api->create_qp(c->id, c->device->pd, attr) ? NULL : c->id->qp;
}

static struct rdma_conn_param cm_param(const struct verbs_conn *c, const struct private_data *d)
{
	return (struct rdma_conn_param){
		.private_data = d,
		.private_data_len = sizeof(*d),
		.responder_resources = (uint8_t)c->device->reads_in,
		.initiator_depth = (uint8_t)c->queue[RMA_READ].max,
		.flow_control = 1,
		.retry_count = CONNECTION_RETRIES,
		.rnr_retry_count = CONNECTION_RNR_RETRIES,
	};
}

static void cm_on_route(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;
	struct private_data d;
	struct rdma_conn_param param;
	int rc = connection_build(c, c->id->verbs, cm_make_qp);

	if (rc < 0)
		peer_end(c->peer, rc, "connecting to rank %d: %s", c->peer->rank, error_text());
	if (!connection_in(c, PEER_RESOLVING))
		return;
	d = handshake_data(v, c, REFUSAL_NONE);
	param = cm_param(c, &d);
	peer_set_state(c->peer, PEER_CONNECTING);
	work_unlock(&v->work);
	rc = v->api->connect(c->id, &param) ? errno : 0;
	work_lock(&v->work);
	if (rc)
		cm_failed(c, "rdma_connect", rc);
}

/* --- the accepting side --- */

static void cm_refuse(struct verbs *v, struct rdma_cm_id *id, enum refusal why)
{
	struct private_data d = handshake_data(v, NULL, why);

	work_unlock(&v->work);
	v->api->reject(id, &d, sizeof(d));
	v->api->destroy_id(id);
	work_lock(&v->work);
}

static int cm_accept(struct verbs_conn *c, const struct private_data *theirs)
{
	struct verbs *v = c->verbs;
	struct private_data d;
	struct rdma_conn_param param;
	int rc = connection_build(c, c->id->verbs, cm_make_qp);

	if (rc == 0 && !connection_take_credit(c, theirs))
		rc = error_set(-EPROTO, "it gives no credit");
	if (rc == 0 && !connection_in(c, PEER_ACCEPTING))
		rc = error_set(-ECANCELED, "it was given up meanwhile");
	if (rc < 0)
		return rc;
	d = handshake_data(v, c, REFUSAL_NONE);
	param = cm_param(c, &d);
	work_unlock(&v->work);
	rc = v->api->accept(c->id, &param) ? error_sys(-errno, "rdma_accept") : 0;
	work_lock(&v->work);
	if ((rc == -ECONNRESET || rc == -EINVAL) && connection_in(c, PEER_ACCEPTING)) { /* iWARP; InfiniBand, RoCE */
		log_debug(v->env.log, "verbs: rank %d has given its request up", c->peer->rank);
		handshake_given_up(c);
		return 0;
	}
	return rc;
}

static void cm_on_request(struct verbs *v, struct rdma_cm_id *id, const struct private_data *d, bool readable)
{
	enum refusal why;
	struct verbs_peer *p = handshake_requester(v, d, readable, &why);
	struct private_data mine;
	struct verbs_conn *c;
	int rc;

	if (!p) {
		log_debug(v->env.log, "verbs: a request of rank %d is refused (%d)", readable ? (int)d->rank : -1, why);
		cm_refuse(v, id, why);
		return;
	}
	c = handshake_accept(p);
	if (!c) {
		cm_refuse(v, id, REFUSAL_GONE);
		return;
	}
	id->context = c;
	c->id = id;
	rc = cm_accept(c, d);
	if (rc == 0)
		return;
	peer_end(p, rc, "rank %d connected: %s", p->rank, error_text());
	mine = handshake_data(v, NULL, REFUSAL_GONE);
	work_unlock(&v->work);
	v->api->reject(id, &mine, sizeof(mine));
	work_lock(&v->work);
}

/* --- events --- */

static void cm_end_late(struct verbs_conn *c)
{
	work_unlock(&c->verbs->work);
	c->verbs->api->disconnect(c->id);
	work_lock(&c->verbs->work);
}

/* An end that need not be the peer's: true if it is dealt with. */
static bool cm_passes(struct verbs_conn *c, enum rdma_cm_event_type type, int status, bool readable)
{
	bool refused = type == RDMA_CM_EVENT_REJECTED, silent = status == -ETIMEDOUT;

	if (!refused && type != RDMA_CM_EVENT_UNREACHABLE && type != RDMA_CM_EVENT_CONNECT_ERROR && type != RDMA_CM_EVENT_ADDR_ERROR &&
	    type != RDMA_CM_EVENT_ROUTE_ERROR)
		return false;
	if (connection_in(c, PEER_ACCEPTING) && !c->established && !c->hello_received) {
		handshake_given_up(c);
		return true;
	}
	if (!connection_in(c, PEER_RESOLVING) && !connection_in(c, PEER_CONNECTING))
		return false;
	if (!refused)
		return silent && retry_later(c, RETRY_SILENT);
	return !readable &&
	       (status == CM_NO_RESOURCES || status == CM_TIMEOUT || status == CM_STALE || status == CM_CONSUMER ||
		status == -ECONNRESET) &&
	       retry_later(c, RETRY_BUSY);
}

static void cm_dispatch(struct verbs_conn *c, enum rdma_cm_event_type type, int status, const struct private_data *d, bool readable)
{
	int err = status < 0 ? -status : 0;

	if (c->peer->conn != c)
		return;
	if (c->peer->state == PEER_ENDING || c->peer->state == PEER_DOWN) {
		if (type == RDMA_CM_EVENT_ESTABLISHED) /* ended while the request was under way: notify the other side */
			cm_end_late(c);
		return;
	}
	if (cm_passes(c, type, status, readable))
		return;
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: cm_on_addr(c); return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: cm_on_route(c); return;
	case RDMA_CM_EVENT_ESTABLISHED: handshake_established(c, d, readable); return;
	case RDMA_CM_EVENT_REJECTED: handshake_refused(c, status, d, readable); return;
	case RDMA_CM_EVENT_ADDR_ERROR: cm_failed(c, "no route to this address through an RDMA device", err); return;
	case RDMA_CM_EVENT_ROUTE_ERROR: cm_failed(c, "no path (InfiniBand: is a subnet manager running?)", err); return;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE: cm_failed(c, "no answer", err); return;
	case RDMA_CM_EVENT_DISCONNECTED: handshake_disconnected(c); return;
	case RDMA_CM_EVENT_DEVICE_REMOVAL: peer_end(c->peer, -EIO, "rank %d: the RDMA device was removed", c->peer->rank); return;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: return;
	}
}

struct cm_event {
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;
	int status;
	bool readable;
	struct private_data data;
};

/* False: there is none. */
static bool cm_next_event(struct verbs *v, struct cm_event *out)
{
	struct rdma_cm_event *e;
	int rc;

	work_unlock(&v->work);
	rc = v->api->get_cm_event(v->events, &e);
	if (rc == 0) {
		const struct rdma_conn_param *p = &e->param.conn;

		*out = (struct cm_event){.id = e->id, .type = e->event, .status = e->status};
		if (p->private_data && p->private_data_len >= sizeof(out->data)) {
			memcpy(&out->data, p->private_data, sizeof(out->data));
			out->readable = out->data.magic == PRIVATE_DATA_MAGIC;
		}
		v->api->ack_cm_event(e); /* before anything else: destroying an id waits for it */
	}
	work_lock(&v->work);
	return rc == 0;
}

static void cm_on_events(void *verbs)
{
	struct verbs *v = verbs;
	struct cm_event e;

	while (cm_next_event(v, &e)) {
		log_trace(v->env.log, "verbs: connection event %d, status %d", e.type, e.status);
		if (e.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			cm_on_request(v, e.id, &e.data, e.readable);
		else if (e.id->context != v) /* a listener's context is the transport */
			cm_dispatch(e.id->context, e.type, e.status, &e.data, e.readable);
	}
}

/* --- ending --- */

static void cm_disconnect(struct verbs_conn *c)
{
	/* iWARP has no error state that can be asked for while connected: this brings it about there */
	if (c->id && c->qp && (c->established || c->active))
		c->verbs->api->disconnect(c->id);
}

static void cm_close_connection(struct verbs_conn *c)
{
	if (c->id && c->established && !c->dead)
		c->verbs->api->disconnect(c->id);
	if (c->qp)
		c->verbs->api->destroy_qp(c->id);
	if (c->id)
		c->verbs->api->destroy_id(c->id);
}

static const struct verbs_connector cm_connector = {.start = cm_start, .disconnect = cm_disconnect, .close = cm_close_connection};

int cm_open(struct verbs *v)
{
	int flags;

	v->connector = &cm_connector;
	v->events = v->api->create_event_channel();
	if (!v->events)
		return error_sys(-errno, "rdma_create_event_channel");
	flags = fcntl(v->events->fd, F_GETFL);
	if (flags < 0 || fcntl(v->events->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_sys(-errno, "cannot make the event channel non-blocking");
	return v->env.watch.add(v->env.watch.monitor, v->events->fd, cm_on_events, v);
}

void cm_close(struct verbs *v)
{
	if (!v->events)
		return;
	v->env.watch.remove(v->env.watch.monitor, v->events->fd);
	v->api->destroy_event_channel(v->events);
	v->events = NULL;
}
