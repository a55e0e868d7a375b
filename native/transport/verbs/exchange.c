/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/proof.h"
#include "transport/verbs/verbs_state.h"

#define EXCHANGE_MAGIC 0x32584249u
/* Seats for those who are no ranks, beside one for each rank. */
#define EXCHANGE_STRANGERS 64u
/* How often a caller that was put out before it was answered calls again. */
#define EXCHANGE_TRIES 8
/* A peer whose host is silent: about how long the kernel tries, and how long data may wait unacknowledged. */
#define EXCHANGE_SYN_RETRIES 4
#define EXCHANGE_SILENT_MS 20000u

/* The answering side speaks first, so that every step waits for something to read. */
enum exchange_kind { EXCHANGE_CHALLENGE, EXCHANGE_CALL, EXCHANGE_ACCEPT, EXCHANGE_REFUSE };

/* Each step is one of these, in host order: ranks of different order were refused at the start. */
struct exchange_frame {
	uint32_t magic;
	uint32_t kind;
	uint8_t nonce[PROOF_NONCE_BYTES];  /* CHALLENGE, CALL */
	uint8_t proof[PROOF_BYTES];        /* CALL, ACCEPT */
	struct verbs_greeting greeting;    /* CALL, ACCEPT, REFUSE */
	struct verbs_endpoint endpoint;    /* CALL, ACCEPT */
};
static_assert(sizeof(struct exchange_frame) == 8 + 32 + 32 + 28, "no padding on the wire");

/* One socket: a guest until its CALL is believed, then a link's. */
struct exchange {
	struct verbs *verbs;
	struct verbs_link *link; /* NULL: a guest */
	int fd, tries;
	struct proof proof;
	size_t got;
	struct exchange_frame in;
};

struct exchange_door {
	int fd, spare;           /* spare: given up to take a call when descriptors have run out */
	uint16_t port;
	struct exchange **guest;
	unsigned seats, next;
};

static void exchange_tune(int fd)
{
	int one = 1, retries = EXCHANGE_SYN_RETRIES, idle_s = 10, interval_s = 3, count = 3;
	unsigned silent_ms = EXCHANGE_SILENT_MS;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
}

static struct exchange *exchange_open(struct verbs *v, int fd)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x || proof_random(x->proof.listener_nonce, sizeof(x->proof.listener_nonce)) < 0 ||
	    proof_random(x->proof.rank_nonce, sizeof(x->proof.rank_nonce)) < 0) {
		free(x);
		close(fd);
		return NULL;
	}
	x->verbs = v;
	x->fd = fd;
	proof_set_key(&x->proof, settings_secret(v->env.settings));
	exchange_tune(fd);
	return x;
}

static void exchange_unseat(struct exchange_door *d, const struct exchange *x)
{
	for (unsigned i = 0; i < d->seats; i++) {
		if (d->guest[i] == x)
			d->guest[i] = NULL;
	}
}

void exchange_close(struct exchange *x)
{
	struct verbs *v;

	if (!x)
		return;
	v = x->verbs;
	if (v->door)
		exchange_unseat(v->door, x);
	v->env.watch.remove(v->env.watch.monitor, x->fd);
	close(x->fd);
	free(x);
}

void exchange_shut(struct exchange *x)
{
	shutdown(x->fd, SHUT_RDWR);
}

/* Whom the proofs are about; a number that no start of a job uses. */
static void exchange_name(struct exchange *x, int caller, int answerer)
{
	x->proof.rank = caller;
	x->proof.size = -1 - answerer;
}

/* A frame fits the buffer of a socket that has sent nothing yet. */
static int exchange_send(struct exchange *x, struct exchange_frame *f)
{
	ssize_t n;

	f->magic = EXCHANGE_MAGIC;
	n = send(x->fd, f, sizeof(*f), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(*f))
		return 0;
	return error_sys(n < 0 ? -errno : -EPIPE, "exchange with a peer by TCP");
}

/* 1: a frame; 0: not yet; -errno: over. */
static int exchange_receive(struct exchange *x)
{
	ssize_t n = recv(x->fd, (char *)&x->in + x->got, sizeof(x->in) - x->got, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	x->got += (size_t)n;
	if (x->got < sizeof(x->in))
		return 0;
	x->got = 0;
	return x->in.magic == EXCHANGE_MAGIC ? 1 : -EPROTO;
}

/* --- calling --- */

static void exchange_on_link(void *arg);

static int exchange_reach(struct exchange *x)
{
	const struct verbs_peer *p = x->link->peer;

	if (connect(x->fd, (const struct sockaddr *)&p->remote, sizeof(p->remote)) < 0 && errno != EINPROGRESS)
		return error_sys(-errno, "connect");
	return x->verbs->env.watch.add(x->verbs->env.watch.monitor, x->fd, exchange_on_link, x);
}

int exchange_start(struct verbs_peer *p)
{
	struct verbs *v = p->verbs;
	int fd = socket(p->remote.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct verbs_link *l;
	struct exchange *x;
	int rc;

	if (fd < 0)
		return error_sys(-errno, "no socket");
	x = exchange_open(v, fd);
	l = x ? link_open(v, p, NULL, true) : NULL;
	if (!l) {
		exchange_close(x);
		return -ENOMEM;
	}
	l->exchange = x;
	x->link = l;
	exchange_name(x, v->env.rank, p->rank);
	peer_set_state(p, VERBS_RESOLVING);
	rc = link_build(l); /* takes its time: first, so that no seat is taken meanwhile */
	return rc ? rc : exchange_reach(x);
}

/* Put out before it was answered: others took the seat, or the other side had no descriptor left. */
static int exchange_again(struct exchange *x)
{
	struct verbs_peer *p = x->link->peer;
	int fd = socket(p->remote.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_sys(-errno, "no socket");
	if (proof_random(x->proof.rank_nonce, sizeof(x->proof.rank_nonce)) < 0) {
		close(fd);
		return -EIO;
	}
	x->verbs->env.watch.remove(x->verbs->env.watch.monitor, x->fd);
	close(x->fd);
	x->fd = fd;
	x->got = 0;
	x->tries++;
	exchange_tune(fd);
	if (p->state != VERBS_RESOLVING)
		peer_set_state(p, VERBS_RESOLVING);
	return exchange_reach(x);
}

/* CHALLENGE is here: the answering side lives. */
static int exchange_call(struct exchange *x)
{
	struct verbs_link *l = x->link;
	struct exchange_frame f = {.kind = EXCHANGE_CALL};
	int rc = endpoint_describe(l);

	if (rc < 0)
		return rc;
	memcpy(x->proof.listener_nonce, x->in.nonce, sizeof(x->in.nonce));
	memcpy(f.nonce, x->proof.rank_nonce, sizeof(f.nonce));
	proof_make(&x->proof, PROOF_RANK, f.proof);
	f.greeting = connect_greeting(l->verbs, l, VERBS_WELCOME);
	f.endpoint = l->here;
	peer_set_state(l->peer, VERBS_CALLING);
	return exchange_send(x, &f);
}

static int exchange_accepted(struct exchange *x)
{
	struct verbs_link *l = x->link;
	int rc;

	if (!proof_holds(&x->proof, PROOF_LISTENER, x->in.proof))
		return error_set(-EACCES, "it does not know the job secret");
	/* before the queue pair learns how many reads it may have under way */
	if (!link_take_grant(l, &x->in.greeting))
		return error_set(-EPROTO, "it grants no receives");
	rc = endpoint_connect(l, &x->in.endpoint);
	if (rc < 0)
		return rc;
	connect_on_established(l, &x->in.greeting, true);
	return 0;
}

/* Something came for a link, or its socket ended. */
static void exchange_on_link(void *arg)
{
	struct exchange *x = arg;
	struct verbs_link *l = x->link;
	struct verbs_peer *p = l->peer;
	bool called = p && (p->state == VERBS_RESOLVING || p->state == VERBS_CALLING);
	char text[64];
	int rc = exchange_receive(x);

	if (rc == 0)
		return;
	if (!p || p->link != l || p->state == VERBS_ENDING || p->state == VERBS_DOWN) {
		l->verbs->env.watch.remove(l->verbs->env.watch.monitor, x->fd);
		return;
	}
	if (!called) { /* nothing is said on it any more: it ends, and with it the peer */
		l->verbs->env.watch.remove(l->verbs->env.watch.monitor, x->fd);
		connect_on_disconnected(l);
		return;
	}
	if (rc > 0 && x->in.kind == EXCHANGE_REFUSE) {
		connect_on_rejected(l, 0, &x->in.greeting, true);
		return;
	}
	if (rc > 0 && x->in.kind == EXCHANGE_CHALLENGE && p->state == VERBS_RESOLVING)
		rc = exchange_call(x);
	else if (rc > 0 && x->in.kind == EXCHANGE_ACCEPT && p->state == VERBS_CALLING)
		rc = exchange_accepted(x);
	else
		rc = error_sys(rc > 0 ? -EPROTO : rc, "no answer");
	if ((rc == -ECONNRESET || rc == -EPIPE) && x->tries < EXCHANGE_TRIES)
		rc = exchange_again(x);
	if (rc < 0)
		peer_end(p, rc, "connecting to rank %d at %s by TCP: %s", p->rank, route_text(&p->remote, text, sizeof(text)),
			 error_text());
}

/* --- answering --- */

static void exchange_refuse(struct exchange *x, enum verbs_refusal why)
{
	struct exchange_frame f = {.kind = EXCHANGE_REFUSE, .greeting = connect_greeting(x->verbs, NULL, why)};

	exchange_send(x, &f);
	exchange_close(x);
}

static int exchange_answer(struct exchange *x, struct verbs_peer *p)
{
	struct verbs_link *l = x->link;
	struct exchange_frame f = {.kind = EXCHANGE_ACCEPT};
	int rc = link_build(l);

	if (rc == 0)
		rc = endpoint_describe(l);
	if (rc == 0 && !link_take_grant(l, &x->in.greeting))
		rc = error_set(-EPROTO, "it grants no receives");
	if (rc == 0)
		rc = endpoint_connect(l, &x->in.endpoint);
	if (rc == 0) {
		proof_make(&x->proof, PROOF_LISTENER, f.proof);
		f.greeting = connect_greeting(p->verbs, l, VERBS_WELCOME);
		f.endpoint = l->here;
		rc = exchange_send(x, &f);
	}
	return rc;
}

/* A guest has called. */
static void exchange_on_call(struct exchange *x)
{
	struct verbs *v = x->verbs;
	enum verbs_refusal why;
	struct verbs_peer *p = connect_caller(v, &x->in.greeting, true, &why);
	struct verbs_link *l;
	int rc, called = route_called(v, x->fd);

	memcpy(x->proof.rank_nonce, x->in.nonce, sizeof(x->in.nonce));
	exchange_name(x, (int)x->in.greeting.rank, v->env.rank);
	if (!proof_holds(&x->proof, PROOF_RANK, x->in.proof)) {
		log_warn(v->env.log, "verbs: a call for rank %d without the job secret is refused", v->env.rank);
		exchange_refuse(x, VERBS_STRANGER);
		return;
	}
	if (!p || called < 0) {
		exchange_refuse(x, p ? VERBS_GONE : why);
		return;
	}
	if (p->link)
		link_close(p->link);
	p->local = called; /* where we would have called from may be on another network */
	l = link_open(v, p, NULL, false);
	if (!l) {
		exchange_refuse(x, VERBS_GONE);
		peer_end(p, -ENOMEM, "rank %d called: %s", p->rank, error_text());
		return;
	}
	exchange_unseat(v->door, x);
	l->exchange = x;
	x->link = l;
	peer_set_state(p, VERBS_ANSWERING);
	rc = exchange_answer(x, p);
	if (rc == 0) {
		connect_on_established(l, &x->in.greeting, true);
		return;
	}
	peer_end(p, rc, "rank %d called: %s", p->rank, error_text());
	link_close(l);
}

static void exchange_on_guest(void *arg)
{
	struct exchange *x = arg;
	int rc;

	if (x->link) {
		exchange_on_link(x);
		return;
	}
	rc = exchange_receive(x);
	if (rc > 0 && x->in.kind == EXCHANGE_CALL)
		exchange_on_call(x);
	else if (rc != 0)
		exchange_close(x); /* a stranger, or one who has thought better of it */
}

/* A slot for a guest; who has been silent the longest leaves. */
static void exchange_seat(struct exchange_door *d, struct exchange *x)
{
	unsigned at = d->next;

	while (d->guest[at]) {
		at = at + 1 < d->seats ? at + 1 : 0;
		if (at == d->next) {
			exchange_close(d->guest[at]);
			break;
		}
	}
	d->guest[at] = x;
	d->next = at + 1 < d->seats ? at + 1 : 0;
}

static int exchange_accept(struct exchange_door *d)
{
	int fd = accept4(d->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || d->spare < 0)
		return fd;
	/* the call must leave the queue, or the door would be readable for ever */
	close(d->spare);
	fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	d->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return -1;
}

static void exchange_on_door(void *verbs)
{
	struct verbs *v = verbs;
	struct exchange_frame f = {.kind = EXCHANGE_CHALLENGE};
	struct exchange *x;
	int fd = exchange_accept(v->door);

	if (fd < 0)
		return;
	x = exchange_open(v, fd);
	if (!x)
		return;
	memcpy(f.nonce, x->proof.listener_nonce, sizeof(f.nonce));
	exchange_seat(v->door, x);
	if (exchange_send(x, &f) < 0 || v->env.watch.add(v->env.watch.monitor, fd, exchange_on_guest, x) < 0)
		exchange_close(x);
}

/* --- the door --- */

static int exchange_listen(uint16_t *port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	socklen_t len = sizeof(six);
	int zero = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) == 0 &&
	    bind(fd, (const struct sockaddr *)&six, sizeof(six)) == 0 && listen(fd, SOMAXCONN) == 0 &&
	    getsockname(fd, (struct sockaddr *)&six, &len) == 0) {
		*port = six.sin6_port;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	len = sizeof(four);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&four, sizeof(four)) == 0 && listen(fd, SOMAXCONN) == 0 &&
	    getsockname(fd, (struct sockaddr *)&four, &len) == 0) {
		*port = four.sin_port;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

int exchange_open_door(struct verbs *v)
{
	struct exchange_door *d = calloc(1, sizeof(*d));

	if (d) {
		d->seats = (unsigned)v->env.size + EXCHANGE_STRANGERS;
		d->guest = calloc(d->seats, sizeof(struct exchange *));
	}
	if (!d || !d->guest) {
		free(d);
		return error_set(-ENOMEM, "no memory");
	}
	d->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	d->fd = exchange_listen(&d->port);
	v->door = d;
	if (d->fd < 0)
		return error_sys(-errno, "no TCP port to listen on");
	return v->env.watch.add(v->env.watch.monitor, d->fd, exchange_on_door, v);
}

uint16_t exchange_port(const struct verbs *v)
{
	return v->door->port;
}

void exchange_close_door(struct verbs *v)
{
	struct exchange_door *d = v->door;

	if (!d)
		return;
	for (unsigned i = 0; i < d->seats; i++)
		exchange_close(d->guest[i]);
	v->door = NULL;
	if (d->fd >= 0) {
		v->env.watch.remove(v->env.watch.monitor, d->fd);
		close(d->fd);
	}
	if (d->spare >= 0)
		close(d->spare);
	free(d->guest);
	free(d);
}
