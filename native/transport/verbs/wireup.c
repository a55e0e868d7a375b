/* SPDX-License-Identifier: MIT */
#include "transport/verbs/wireup.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/proof.h"
#include "transport/verbs/qp.h"
#include "transport/verbs/route.h"
#include "transport/verbs/wireup_socket.h"

/* Sockets without a request yet that are kept, beside one for each rank. */
#define WIREUP_PENDING 64u
/* How often a request that was dropped before it was answered is repeated. */
#define WIREUP_TRIES 8
struct wireup_listener {
	int fd, spare; /* spare: given up to accept a socket when descriptors have run out */
	uint16_t port;
	struct wireup **pending;
	unsigned room, next;
};

static void wireup_unlist(struct wireup_listener *l, const struct wireup *x)
{
	for (unsigned i = 0; i < l->room; i++) {
		if (l->pending[i] == x)
			l->pending[i] = NULL;
	}
}

static void wireup_free(struct wireup *x)
{
	if (!x)
		return;
	if (x->verbs->listener)
		wireup_unlist(x->verbs->listener, x);
	wireup_unwatch(x);
	close(x->fd);
	free(x);
}

static int wireup_describe(struct verbs_conn *c)
{
	int rc;

	work_unlock(&c->verbs->work);
	rc = qp_describe(c);
	work_lock(&c->verbs->work);
	return rc;
}

static int wireup_join(struct verbs_conn *c, const struct qp_address *there)
{
	int rc;

	work_unlock(&c->verbs->work);
	rc = qp_connect(c, there);
	work_lock(&c->verbs->work);
	return rc;
}

static int wireup_build(struct verbs_conn *c)
{
	return connection_build(c, c->verbs->locals[c->peer->local].context, qp_make);
}

/* --- the connecting side --- */

static void wireup_on_connection(void *arg);

static int wireup_socket(const struct verbs_peer *p)
{
	int fd = socket(p->remote.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? error_sys(-errno, "no socket") : fd;
}

static int wireup_reach(struct wireup *x)
{
	const struct verbs_peer *p = x->conn->peer;

	if (connect(x->fd, (const struct sockaddr *)&p->remote, sizeof(p->remote)) < 0 && errno != EINPROGRESS)
		return error_sys(-errno, "connect");
	return x->verbs->env.watch.add(x->verbs->env.watch.monitor, x->fd, wireup_on_connection, x);
}

static int wireup_start(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;
	int fd = wireup_socket(p), rc;
	struct verbs_conn *c;
	struct wireup *x;

	if (fd < 0)
		return fd;
	x = wireup_new(v, fd);
	c = x ? connection_open(p, true) : NULL;
	if (!c) {
		wireup_free(x);
		return -ENOMEM;
	}
	c->wireup = x;
	x->conn = c;
	wireup_name(x, v->env.rank, p->rank);
	rc = wireup_build(c); /* before the socket connects, which the other side keeps for a while only */
	if (rc == 0 && connection_in(c, PEER_RESOLVING))
		rc = wireup_reach(x);
	return rc;
}

/* Dropped before it was answered: other sockets took the place, or the other side had no descriptor left. */
static int wireup_retry(struct wireup *x)
{
	struct verbs_peer *p = x->conn->peer;
	int fd = wireup_socket(p);

	if (fd < 0)
		return fd;
	if (proof_random(x->proof.rank_nonce, sizeof(x->proof.rank_nonce)) < 0) {
		close(fd);
		return -EIO;
	}
	wireup_unwatch(x);
	close(x->fd);
	x->fd = fd;
	x->got = 0;
	x->tries++;
	wireup_tune(fd);
	if (p->state != PEER_RESOLVING)
		peer_set_state(p, PEER_RESOLVING);
	return wireup_reach(x);
}

/* CHALLENGE has come: the accepting side lives. */
static int wireup_request(struct wireup *x)
{
	struct verbs_conn *c = x->conn;
	struct wireup_frame f = {.kind = WIREUP_REQUEST};
	int rc = wireup_describe(c);

	if (rc < 0 || !connection_in(c, PEER_RESOLVING))
		return rc;
	memcpy(x->proof.listener_nonce, x->in.nonce, sizeof(x->in.nonce));
	memcpy(f.nonce, x->proof.rank_nonce, sizeof(f.nonce));
	proof_make(&x->proof, PROOF_RANK, f.proof);
	f.data = handshake_data(c->verbs, c, REFUSAL_NONE);
	f.qp = c->here;
	peer_set_state(c->peer, PEER_CONNECTING);
	return wireup_send(x, &f);
}

static int wireup_accepted(struct wireup *x)
{
	struct verbs_conn *c = x->conn;
	int rc;

	if (!proof_holds(&x->proof, PROOF_LISTENER, x->in.proof))
		return error_set(-EACCES, "it does not know the job secret");
	/* before the queue pair learns how many reads it may have under way */
	if (!connection_take_credit(c, &x->in.data))
		return error_set(-EPROTO, "it gives no credit");
	rc = wireup_join(c, &x->in.qp);
	if (rc == 0)
		handshake_established(c, &x->in.data, true);
	return rc;
}

/* A frame for the request of ours that is under way (rc > 0), or the end of its socket. */
static int wireup_step(struct wireup *x, int rc)
{
	enum peer_state state = x->conn->peer->state;

	if (rc > 0 && x->in.kind == WIREUP_CHALLENGE && state == PEER_RESOLVING)
		rc = wireup_request(x);
	else if (rc > 0 && x->in.kind == WIREUP_ACCEPT && state == PEER_CONNECTING)
		rc = wireup_accepted(x);
	else
		rc = error_sys(rc > 0 ? -EPROTO : rc, "no answer");
	if ((rc == -ECONNRESET || rc == -EPIPE) && x->tries < WIREUP_TRIES)
		rc = wireup_retry(x);
	return rc;
}

/* Something came for a connection, or its socket ended. */
static void wireup_on_connection(void *arg)
{
	struct wireup *x = arg;
	struct verbs_conn *c = x->conn;
	struct verbs_peer *p = c->peer;
	char text[64];
	int rc = wireup_receive(x);

	if (rc == 0)
		return;
	if (p->conn != c || p->state == PEER_ENDING || p->state == PEER_DOWN) {
		wireup_unwatch(x);
	} else if (p->state != PEER_RESOLVING && p->state != PEER_CONNECTING) {
		wireup_unwatch(x); /* nothing more is sent on it: it ends, and with it the peer */
		handshake_disconnected(c);
	} else if (rc > 0 && x->in.kind == WIREUP_REFUSE) {
		handshake_refused(c, 0, &x->in.data, true);
	} else {
		rc = wireup_step(x, rc);
		if (rc < 0)
			peer_end(p, rc, "connecting to rank %d at %s by TCP: %s", p->rank, route_text(&p->remote, text, sizeof(text)),
				 error_text());
	}
}

/* --- the accepting side --- */

static void wireup_refuse(struct wireup *x, enum refusal why)
{
	struct wireup_frame f = {.kind = WIREUP_REFUSE, .data = handshake_data(x->verbs, NULL, why)};

	wireup_send(x, &f);
	wireup_free(x);
}

static int wireup_answer(struct wireup *x)
{
	struct verbs_conn *c = x->conn;
	struct wireup_frame f = {.kind = WIREUP_ACCEPT};
	int rc = wireup_build(c);

	if (rc == 0)
		rc = wireup_describe(c);
	if (rc == 0 && !connection_take_credit(c, &x->in.data))
		rc = error_set(-EPROTO, "it gives no credit");
	if (rc == 0)
		rc = wireup_join(c, &x->in.qp);
	if (rc < 0 || !connection_in(c, PEER_ACCEPTING))
		return rc;
	proof_make(&x->proof, PROOF_LISTENER, f.proof);
	f.data = handshake_data(c->verbs, c, REFUSAL_NONE);
	f.qp = c->here;
	rc = wireup_send(x, &f);
	if (rc == 0)
		handshake_established(c, &x->in.data, true);
	return rc;
}

/* A pending socket has sent its request. */
static void wireup_on_request(struct wireup *x)
{
	struct verbs *v = x->verbs;
	enum refusal why;
	struct verbs_peer *p = handshake_requester(v, &x->in.data, true, &why);
	int rc, local = route_called(v, x->fd);
	struct verbs_conn *c;

	memcpy(x->proof.rank_nonce, x->in.nonce, sizeof(x->in.nonce));
	wireup_name(x, (int)x->in.data.rank, v->env.rank);
	if (!proof_holds(&x->proof, PROOF_RANK, x->in.proof)) {
		log_warn(v->env.log, "verbs: a request to rank %d without the job secret is refused", v->env.rank);
		wireup_refuse(x, REFUSAL_STRANGER);
		return;
	}
	if (!p || local < 0) {
		wireup_refuse(x, p ? REFUSAL_GONE : why);
		return;
	}
	p->local = local; /* the one that we would have connected from may be on another network */
	c = handshake_accept(p);
	if (!c) {
		wireup_refuse(x, REFUSAL_GONE);
		return;
	}
	wireup_unlist(v->listener, x);
	c->wireup = x;
	x->conn = c;
	rc = wireup_answer(x);
	if (rc < 0)
		peer_end(p, rc, "rank %d connected: %s", p->rank, error_text());
}

static void wireup_on_pending(void *arg)
{
	struct wireup *x = arg;
	int rc;

	if (x->conn) {
		wireup_on_connection(x);
		return;
	}
	rc = wireup_receive(x);
	if (rc > 0 && x->in.kind == WIREUP_REQUEST)
		wireup_on_request(x);
	else if (rc != 0)
		wireup_free(x); /* not of this job, or it has closed its request */
}

/* A place for a pending socket; the one that has been silent the longest is closed. */
static void wireup_list(struct wireup_listener *l, struct wireup *x)
{
	unsigned at = l->next;

	while (l->pending[at]) {
		at = at + 1 < l->room ? at + 1 : 0;
		if (at == l->next) {
			wireup_free(l->pending[at]);
			break;
		}
	}
	l->pending[at] = x;
	l->next = at + 1 < l->room ? at + 1 : 0;
}

static int wireup_accept(struct wireup_listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || l->spare < 0)
		return fd;
	/* the socket must leave the queue, or the listener would be readable for ever */
	close(l->spare);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return -1;
}

static void wireup_on_listener(void *verbs)
{
	struct verbs *v = verbs;
	struct wireup_frame f = {.kind = WIREUP_CHALLENGE};
	struct wireup *x;
	int fd = wireup_accept(v->listener);

	if (fd < 0)
		return;
	x = wireup_new(v, fd);
	if (!x)
		return;
	memcpy(f.nonce, x->proof.listener_nonce, sizeof(f.nonce));
	wireup_list(v->listener, x);
	if (wireup_send(x, &f) < 0 || v->env.watch.add(v->env.watch.monitor, fd, wireup_on_pending, x) < 0)
		wireup_free(x);
}

/* --- ending --- */

static void wireup_disconnect(struct verbs_conn *c)
{
	if (c->wireup)
		shutdown(c->wireup->fd, SHUT_RDWR);
}

static void wireup_close_connection(struct verbs_conn *c)
{
	struct verbs *v = c->verbs;

	if (c->qp)
		v->api->unmake_qp(c->qp);
	work_lock(&v->work);
	wireup_free(c->wireup);
	work_unlock(&v->work);
}

static const struct verbs_connector wireup_connector = {
	.start = wireup_start, .disconnect = wireup_disconnect, .close = wireup_close_connection};

/* --- the listener --- */

static int wireup_bind(int family, const struct sockaddr *addr, socklen_t len)
{
	int zero = 0, fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) == 0) &&
	    bind(fd, addr, len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int wireup_listen(uint16_t *port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	int fd = wireup_bind(AF_INET6, (const struct sockaddr *)&six, sizeof(six));

	if (fd < 0)
		fd = wireup_bind(AF_INET, (const struct sockaddr *)&four, sizeof(four));
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return fd;
	*port = route_port(&at);
	return fd;
}

int wireup_open(struct verbs *v)
{
	struct wireup_listener *l = calloc(1, sizeof(*l));

	v->connector = &wireup_connector;
	if (l) {
		l->room = (unsigned)v->env.size + WIREUP_PENDING;
		l->pending = calloc(l->room, sizeof(struct wireup *));
	}
	if (!l || !l->pending) {
		free(l);
		return error_set(-ENOMEM, "no memory");
	}
	l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	l->fd = wireup_listen(&l->port);
	v->listener = l;
	if (l->fd < 0)
		return error_sys(-errno, "no TCP port to listen on");
	return v->env.watch.add(v->env.watch.monitor, l->fd, wireup_on_listener, v);
}

uint16_t wireup_port(const struct verbs *v)
{
	return v->listener->port;
}

void wireup_close(struct verbs *v)
{
	struct wireup_listener *l = v->listener;

	if (!l)
		return;
	for (unsigned i = 0; i < l->room; i++)
		wireup_free(l->pending[i]);
	v->listener = NULL;
	if (l->fd >= 0) {
		v->env.watch.remove(v->env.watch.monitor, l->fd);
		close(l->fd);
	}
	if (l->spare >= 0)
		close(l->spare);
	free(l->pending);
	free(l);
}
