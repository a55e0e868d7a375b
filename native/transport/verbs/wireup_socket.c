/* SPDX-License-Identifier: MIT */
#include "transport/verbs/wireup_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

#define WIREUP_MAGIC 0x33584249u
/* A peer whose host is silent: about how long the kernel tries, and how long data may wait unacknowledged. */
#define WIREUP_SYN_RETRIES 4
#define WIREUP_SILENT_MS 20000u

void wireup_tune(int fd)
{
	int one = 1, retries = WIREUP_SYN_RETRIES, idle_s = 10, interval_s = 3, count = 3;
	unsigned silent_ms = WIREUP_SILENT_MS;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
}

struct wireup *wireup_new(struct verbs *v, int fd)
{
	struct wireup *x = calloc(1, sizeof(*x));

	if (!x || proof_random(x->proof.listener_nonce, sizeof(x->proof.listener_nonce)) < 0 ||
	    proof_random(x->proof.rank_nonce, sizeof(x->proof.rank_nonce)) < 0) {
		free(x);
		close(fd);
		return NULL;
	}
	x->verbs = v;
	x->fd = fd;
	proof_set_key(&x->proof, settings_secret(v->env.settings));
	wireup_tune(fd);
	return x;
}

void wireup_unwatch(const struct wireup *x)
{
	x->verbs->env.watch.remove(x->verbs->env.watch.monitor, x->fd);
}

void wireup_name(struct wireup *x, int requester, int accepter)
{
	x->proof.rank = requester;
	x->proof.size = -1 - accepter;
}

int wireup_send(struct wireup *x, struct wireup_frame *f)
{
	ssize_t n;

	f->magic = WIREUP_MAGIC;
	n = send(x->fd, f, sizeof(*f), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(*f))
		return 0;
	return error_sys(n < 0 ? -errno : -EPIPE, "wire-up with a peer by TCP");
}

int wireup_receive(struct wireup *x)
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
	return x->in.magic == WIREUP_MAGIC ? 1 : -EPROTO;
}
