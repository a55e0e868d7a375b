/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/verbs/verbs_state.h"

#define CONNECT_RESOLVE_MS 5000
/* The first wait for an answer; each is twice as long as the one before it. */
#define CONNECT_GREET_MS 20

struct verbs_greeting connect_greeting(const struct verbs *v, const struct verbs_link *l, enum verbs_refusal why)
{
	struct verbs_greeting g = {.magic = VERBS_HELLO_MAGIC, .rank = (uint32_t)v->env.rank, .refusal = why};

	memcpy(g.job, v->job, sizeof(g.job));
	if (l) {
		g.receives = (uint16_t)l->rx_count;
		g.reads = l->device->reads_in;
	}
	return g;
}

static bool connect_read_greeting(const struct rdma_conn_param *c, struct verbs_greeting *g)
{
	if (!c->private_data || c->private_data_len < sizeof(*g))
		return false;
	memcpy(g, c->private_data, sizeof(*g));
	return g->magic == VERBS_HELLO_MAGIC;
}

static struct rdma_conn_param connect_param(const struct verbs_link *l, const struct verbs_greeting *g)
{
	return (struct rdma_conn_param){
		.private_data = g,
		.private_data_len = sizeof(*g),
		.responder_resources = (uint8_t)l->device->reads_in,
		.initiator_depth = (uint8_t)l->queue[VERBS_READ].max,
		.flow_control = 1,
		.retry_count = VERBS_RETRIES,
		.rnr_retry_count = VERBS_RNR_RETRIES,
	};
}

/* The id, on its way to the peer's address. 0 or -errno with text. */
static int connect_begin(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;
	struct sockaddr_storage src = v->locals[p->local].addr;
	struct rdma_cm_id *id;

	if (src.ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)&src)->sin6_port = 0;
	else
		((struct sockaddr_in *)(void *)&src)->sin_port = 0;
	if (v->api->create_id(v->events, &id, NULL, RDMA_PS_TCP))
		return error_sys(-errno, "rdma_create_id");
	if (!link_open(v, p, id, true)) {
		v->api->destroy_id(id);
		return -ENOMEM;
	}
	peer_set_state(p, VERBS_RESOLVING);
	if (v->api->resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&p->remote, CONNECT_RESOLVE_MS))
		return error_sys(-errno, "rdma_resolve_addr");
	return 0;
}

int connect_start(struct verbs_peer *p)
{
	char text[64];
	int rc = p->verbs->tcp ? exchange_start(p) : connect_begin(p);

	if (rc < 0) {
		error_prefix(rc, "connecting to rank %d at %s", p->rank, route_text(&p->remote, text, sizeof(text)));
		peer_end(p, rc, "%s", error_text());
	}
	return rc;
}

static void connect_failed(struct verbs_link *l, const char *step, int err)
{
	char text[64];

	if (!l->peer)
		return;
	peer_end(l->peer, err ? -err : -ECONNREFUSED, "connecting to rank %d at %s: %s: %s", l->peer->rank,
		 route_text(&l->peer->remote, text, sizeof(text)), step, err ? strerror(err) : "refused");
}

static void connect_on_addr(struct verbs_link *l)
{
	if (l->verbs->api->resolve_route(l->id, CONNECT_RESOLVE_MS))
		connect_failed(l, "rdma_resolve_route", errno);
}

static void connect_on_route(struct verbs_link *l)
{
	struct verbs_greeting g;
	struct rdma_conn_param param;
	int rc = link_build(l);

	if (rc < 0) {
		peer_end(l->peer, rc, "connecting to rank %d: %s", l->peer->rank, error_text());
		return;
	}
	g = connect_greeting(l->verbs, l, VERBS_WELCOME);
	param = connect_param(l, &g);
	peer_set_state(l->peer, VERBS_CALLING);
	if (l->verbs->api->connect(l->id, &param))
		connect_failed(l, "rdma_connect", errno);
}

static void connect_refuse(struct verbs *v, struct rdma_cm_id *id, enum verbs_refusal why)
{
	struct verbs_greeting g = connect_greeting(v, NULL, why);

	v->api->reject(id, &g, sizeof(g));
	v->api->destroy_id(id);
}

/* Who called us, if it may; else NULL and why not. */
struct verbs_peer *connect_caller(struct verbs *v, const struct verbs_greeting *g, bool readable, enum verbs_refusal *why)
{
	struct verbs_peer *p;

	*why = VERBS_STRANGER;
	if (!readable || !v->peers || memcmp(g->job, v->job, sizeof(g->job)) != 0 || g->rank >= (uint32_t)v->env.size ||
	    g->rank == (uint32_t)v->env.rank)
		return NULL;
	*why = VERBS_GONE;
	p = &v->peers[g->rank];
	switch (p->state) {
	case VERBS_IDLE:
	case VERBS_AWAITED:
		return v->leaving ? NULL : p;
	case VERBS_RESOLVING:
	case VERBS_CALLING:
		/* both called: the call of the higher rank stands */
		if (p->rank > v->env.rank)
			return p;
		*why = VERBS_CROSSED;
		return NULL;
	case VERBS_ANSWERING:
	case VERBS_UP:
		*why = VERBS_CROSSED;
		return NULL;
	case VERBS_ENDING:
	case VERBS_DOWN:
	case VERBS_STATE_COUNT:
		return NULL;
	}
	return NULL;
}

static void connect_on_request(struct verbs *v, struct rdma_cm_id *id, const struct verbs_greeting *g, bool readable)
{
	enum verbs_refusal why;
	struct verbs_peer *p = connect_caller(v, g, readable, &why);
	struct verbs_greeting mine;
	struct rdma_conn_param param;
	struct verbs_link *l;
	int rc;

	if (!p) {
		log_debug(v->env.log, "verbs: a call of rank %d is refused (%d)", readable ? (int)g->rank : -1, why);
		connect_refuse(v, id, why);
		return;
	}
	if (p->link)
		link_close(p->link);
	l = link_open(v, p, id, false);
	if (!l) {
		connect_refuse(v, id, VERBS_GONE);
		peer_end(p, -ENOMEM, "rank %d called: %s", p->rank, error_text());
		return;
	}
	peer_set_state(p, VERBS_ANSWERING);
	rc = link_build(l);
	if (rc == 0 && !link_take_grant(l, g))
		rc = error_set(-EPROTO, "it grants no receives");
	if (rc == 0) {
		mine = connect_greeting(v, l, VERBS_WELCOME);
		param = connect_param(l, &mine);
		if (v->api->accept(id, &param))
			rc = error_sys(-errno, "rdma_accept");
	}
	if (rc < 0) {
		mine = connect_greeting(v, NULL, VERBS_GONE);
		v->api->reject(id, &mine, sizeof(mine));
		link_close(l);
		peer_end(p, rc, "rank %d called: %s", p->rank, error_text());
	}
}

void connect_maybe_up(struct verbs_link *l)
{
	if (!l->peer || l->peer->state != VERBS_ANSWERING || !l->established || !l->greeted)
		return;
	peer_set_state(l->peer, VERBS_UP);
	post_own(l, &(struct wire_ctl){.id = VERBS_OWN_HELLO}, false); /* ends the caller's greetings */
}

static void connect_start_timer(struct verbs *v, uint32_t greetings)
{
	int64_t ns = CONNECT_GREET_MS * CLOCK_NS_PER_MS << greetings;
	struct itimerspec t = {.it_value = {.tv_sec = ns / CLOCK_NS_PER_S, .tv_nsec = ns % CLOCK_NS_PER_S}};

	if (timerfd_settime(v->timer_fd, 0, &t, NULL) < 0)
		log_warn(v->env.log, "verbs: timerfd_settime: %s", strerror(errno));
}

/* soft-iWARP (Linux 6.1, siw_cm.c: siw_accept) overlooks what arrives after the answering side has sent its MPA reply and
 * before the socket belongs to the queue pair: the data stays in the socket until more comes.  So callers greet until
 * they are answered, with credit that post.c keeps back for it. */
void connect_on_timer(void *verbs)
{
	struct verbs *v = verbs;
	uint32_t next = VERBS_GREETINGS;
	uint64_t n;

	if (read(v->timer_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_warn(v->env.log, "verbs: timerfd: %s", strerror(errno));
	for (uint32_t i = 0; i < v->link_count; i++) {
		struct verbs_link *l = v->links[i];

		if (!l || !l->peer || !l->caller || l->greeted || l->peer->link != l || l->peer->state != VERBS_UP)
			continue;
		if (l->greetings >= VERBS_GREETINGS)
			continue;
		/* where credit is short the late ones count most */
		if (l->credits > VERBS_GREETINGS - l->greetings)
			post_own(l, &(struct wire_ctl){.id = VERBS_OWN_HELLO}, false);
		l->greetings++;
		if (l->greetings < next)
			next = l->greetings;
	}
	if (next < VERBS_GREETINGS)
		connect_start_timer(v, next);
}

void connect_on_established(struct verbs_link *l, const struct verbs_greeting *g, bool readable)
{
	l->established = true;
	if (!l->caller) {
		connect_maybe_up(l);
		return;
	}
	if (l->peer->state != VERBS_CALLING)
		return;
	if (!readable || memcmp(g->job, l->verbs->job, sizeof(g->job)) != 0 || g->rank != (uint32_t)l->peer->rank ||
	    !link_take_grant(l, g)) {
		peer_end(l->peer, -EPROTO, "what answers at the address of rank %d is not of this job", l->peer->rank);
		return;
	}
	peer_set_state(l->peer, VERBS_UP);
	/* the caller speaks first: iWARP wants it so, and the other side waits for it */
	post_own(l, &(struct wire_ctl){.id = VERBS_OWN_HELLO}, false);
	if (l->device->iwarp)
		connect_start_timer(l->verbs, 0);
}

void connect_on_rejected(struct verbs_link *l, int status, const struct verbs_greeting *g, bool readable)
{
	struct verbs_peer *p = l->peer;

	if (!p)
		return;
	if (readable && g->refusal == VERBS_CROSSED && p->state == VERBS_CALLING && p->rank > l->verbs->env.rank) {
		link_close(l);
		peer_set_state(p, VERBS_AWAITED);
		return;
	}
	peer_end(p, -ECONNREFUSED, "rank %d refused the connection (%s, status %d)", p->rank,
		 !readable		     ? "nobody listens there any more: it may have ended"
		 : g->refusal == VERBS_GONE  ? "it has given this rank up, or is finishing"
		 : g->refusal == VERBS_STRANGER ? "it belongs to another job"
						: "it says that a connection exists",
		 status);
}

void connect_on_disconnected(struct verbs_link *l)
{
	struct verbs_peer *p = l->peer;

	if (!p)
		return;
	if (l->left)
		peer_end(p, -EPIPE, "left");
	else
		peer_end(p, -ECONNRESET, "rank %d closed its connection without finish: its process has died or was ended",
			 p->rank);
}

/* An event of a link; what it points to was copied and acknowledged. */
static void connect_dispatch(struct verbs_link *l, enum rdma_cm_event_type type, int status,
			     const struct verbs_greeting *g, bool readable)
{
	int err = status < 0 ? -status : 0;

	if (!l->peer || l->peer->link != l)
		return;
	if (l->peer->state == VERBS_ENDING || l->peer->state == VERBS_DOWN) {
		/* given up while the call was under way: the other side must not believe in it */
		if (type == RDMA_CM_EVENT_ESTABLISHED)
			l->verbs->api->disconnect(l->id);
		return;
	}
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		connect_on_addr(l);
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_on_route(l);
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		connect_on_established(l, g, readable);
		return;
	case RDMA_CM_EVENT_REJECTED:
		connect_on_rejected(l, status, g, readable);
		return;
	case RDMA_CM_EVENT_ADDR_ERROR:
		connect_failed(l, "no route to this address through an RDMA device", err);
		return;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		connect_failed(l, "no path (InfiniBand: is a subnet manager running?)", err);
		return;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		connect_failed(l, "no answer", err);
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
		connect_on_disconnected(l);
		return;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		peer_end(l->peer, -EIO, "rank %d: the RDMA device was removed", l->peer->rank);
		return;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return;
	}
}

void connect_on_events(void *verbs)
{
	struct verbs *v = verbs;
	struct rdma_cm_event *e;

	while (v->api->get_cm_event(v->events, &e) == 0) {
		struct verbs_greeting g = {0};
		struct rdma_cm_id *id = e->id;
		enum rdma_cm_event_type type = e->event;
		int status = e->status;
		bool readable = connect_read_greeting(&e->param.conn, &g);

		/* acknowledged first: destroying an id waits for that */
		v->api->ack_cm_event(e);
		log_trace(v->env.log, "verbs: connection event %d, status %d", type, status);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			connect_on_request(v, id, &g, readable);
		else if (id->context != v)
			connect_dispatch(id->context, type, status, &g, readable);
	}
}
