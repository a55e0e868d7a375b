/* SPDX-License-Identifier: MIT */
#include "bootstrap/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/conf.h"

#define ADDRESS_LISTEN_TRIES 20

int address_split(const char *text, char **host, int *port)
{
	const char *colon = strrchr(text, ':');
	const char *begin = text, *end = colon;
	int64_t number;

	if (!colon || colon == text || conf_number(colon + 1, 1, 65535, &number) < 0)
		return error_set(-EINVAL, "address \"%.80s\" is not of the form host:port (port 1 to 65535)", text);
	if (*begin == '[' && end[-1] == ']') {
		begin++;
		end--;
	}
	if (begin == end)
		return error_set(-EINVAL, "address \"%.80s\" has no host", text);
	*host = strndup(begin, (size_t)(end - begin));
	if (!*host)
		return error_set(-ENOMEM, "no memory");
	*port = (int)number;
	return 0;
}

/* A hosts file may name one address twice. */
static bool address_known(const struct address_list *list, const struct addrinfo *info)
{
	for (int i = 0; i < list->count; i++)
		if (list->at[i].len == info->ai_addrlen && memcmp(&list->at[i].addr, info->ai_addr, info->ai_addrlen) == 0)
			return true;
	return false;
}

int address_resolve(struct address_list *list, const char *host, int port)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char service[8];
	int err;

	list->count = 0;
	snprintf(service, sizeof(service), "%d", port);
	err = getaddrinfo(host, service, &hints, &found);
	if (err == EAI_SYSTEM)
		return error_sys(-errno, "host \"%s\" cannot be resolved", host);
	if (err)
		return error_set(err == EAI_AGAIN ? -EAGAIN : -EHOSTUNREACH, "host \"%s\" cannot be resolved: %s", host, gai_strerror(err));
	for (struct addrinfo *i = found; i && list->count < ADDRESS_MAX; i = i->ai_next) {
		struct address *a = &list->at[list->count];

		if ((i->ai_family != AF_INET && i->ai_family != AF_INET6) || i->ai_addrlen > sizeof(a->addr) || address_known(list, i))
			continue;
		memcpy(&a->addr, i->ai_addr, i->ai_addrlen);
		a->len = i->ai_addrlen;
		list->count++;
	}
	freeaddrinfo(found);
	if (list->count == 0)
		return error_set(-EHOSTUNREACH, "host \"%s\" has no IPv4 or IPv6 address", host);
	return 0;
}

bool address_is_loopback(const struct address *a)
{
	if (a->addr.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;

		return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
	}
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&a->addr)->sin6_addr);
}

static void address_host_text(const struct address *a, char *out, size_t size)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;
	const char *text;

	if (a->addr.ss_family == AF_INET)
		text = inet_ntop(AF_INET, &in->sin_addr, out, (socklen_t)size);
	else if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		text = inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], out, (socklen_t)size);
	else
		text = inet_ntop(AF_INET6, &in6->sin6_addr, out, (socklen_t)size);
	if (!text)
		snprintf(out, size, "?");
}

void address_text(const struct address *a, char out[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN];

	address_host_text(a, host, sizeof(host));
	snprintf(out, ADDRESS_TEXT_BYTES, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, address_port(a));
}

void address_set_port(struct address *a, int port)
{
	/* sin_port and sin6_port lie at the same place */
	((struct sockaddr_in *)&a->addr)->sin_port = htons((uint16_t)port);
}

int address_port(const struct address *a)
{
	return ntohs(((const struct sockaddr_in *)&a->addr)->sin_port);
}

void address_numeric(const struct address *a, char out[ADDRESS_TEXT_BYTES])
{
	address_host_text(a, out, ADDRESS_TEXT_BYTES);
}

int address_from_numeric(struct address *a, const char *host, int port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		memcpy(&a->addr, &in, sizeof(in));
		a->len = sizeof(in);
	} else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
		memcpy(&a->addr, &in6, sizeof(in6));
		a->len = sizeof(in6);
	}
	return a->len ? 0 : -EINVAL;
}

void address_peer_text(int fd, char out[ADDRESS_TEXT_BYTES])
{
	struct address a = {.len = sizeof(a.addr)};

	if (getpeername(fd, (struct sockaddr *)&a.addr, &a.len) < 0)
		snprintf(out, ADDRESS_TEXT_BYTES, "?");
	else
		address_host_text(&a, out, ADDRESS_TEXT_BYTES);
}

int address_connect(const struct address *a)
{
	int one = 1;
	int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* Should this socket meet itself, its port must not stay blocked for rank 0. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&a->addr, a->len) < 0 && errno != EINPROGRESS && errno != EINTR) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int address_connected(int fd)
{
	struct address here = {.len = sizeof(here.addr)}, there = {.len = sizeof(there.addr)};
	struct linger reset = {.l_onoff = 1, .l_linger = 0};
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	if (err)
		return -err;
	if (getsockname(fd, (struct sockaddr *)&here.addr, &here.len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&there.addr, &there.len) < 0)
		return -errno;
	if (here.len == there.len && memcmp(&here.addr, &there.addr, here.len) == 0) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		return -ECONNREFUSED;
	}
	return 0;
}

void address_tune(int fd, int timeout_ms)
{
	/* With TCP_USER_TIMEOUT a keepalive probe at or after it ends the connection, so it depends on the interval only. */
	int one = 1, idle_s = timeout_ms / 2000, interval_s = 1 + timeout_ms / 20000, count = 10;
	unsigned int unacknowledged_ms = (unsigned int)timeout_ms;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof(unacknowledged_ms));
}

static int address_listen_one(const struct address *a, bool dual)
{
	int one = 1, zero = 0, err;
	int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->addr.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, dual ? &zero : &one, sizeof(int));
	if (bind(fd, (const struct sockaddr *)&a->addr, a->len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int address_listen_everywhere(struct address_listener *l, int port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct address a = {.len = sizeof(in6)};
	int fd;

	memcpy(&a.addr, &in6, sizeof(in6));
	fd = address_listen_one(&a, true);
	if (fd < 0 && fd != -EADDRINUSE) { /* a kernel without IPv6 */
		memset(&a, 0, sizeof(a));
		memcpy(&a.addr, &in, sizeof(in));
		a.len = sizeof(in);
		fd = address_listen_one(&a, false);
	}
	if (fd < 0)
		return fd;
	l->fds[l->count++] = fd;
	return 0;
}

static int address_bound_port(int fd)
{
	struct address bound = {.len = sizeof(bound.addr)};

	return getsockname(fd, (struct sockaddr *)&bound.addr, &bound.len) < 0 ? -errno : address_port(&bound);
}

/* With port 0 the kernel chooses one for the first address, and the others must have the same. */
static int address_listen_at(struct address_listener *l, const struct address_list *list, int port)
{
	int err = -EADDRNOTAVAIL;

	for (int i = 0; i < list->count; i++) {
		struct address a = list->at[i];
		int fd;

		address_set_port(&a, port);
		fd = address_listen_one(&a, false);
		if (fd == -EADDRINUSE)
			return fd;
		if (fd < 0) {
			err = fd; /* "localhost" may name ::1 on a kernel without IPv6 */
			continue;
		}
		l->fds[l->count++] = fd;
		if (port == 0)
			port = address_bound_port(fd);
		if (port < 0)
			return port;
	}
	return l->count > 0 ? 0 : err;
}

static int address_listen_try(struct address_listener *l, const struct address_list *only, int port)
{
	int err;

	l->count = 0;
	err = only ? address_listen_at(l, only, port) : address_listen_everywhere(l, port);
	l->port = err ? err : address_bound_port(l->fds[0]);
	if (l->port < 0)
		address_unlisten(l);
	return l->port < 0 ? l->port : 0;
}

int address_listen(struct address_listener *l, const struct address_list *only, int port)
{
	int err = address_listen_try(l, only, port);

	/* A port that is free at one address may be taken at another. */
	for (int i = 0; port == 0 && err == -EADDRINUSE && i < ADDRESS_LISTEN_TRIES; i++)
		err = address_listen_try(l, only, port);
	return err ? error_sys(err, "listening") : 0;
}

void address_loopback(struct address_list *out, const struct address_list *in)
{
	int count = 0;

	for (int i = 0; i < in->count; i++)
		if (address_is_loopback(&in->at[i]))
			out->at[count++] = in->at[i];
	out->count = count;
}

void address_unlisten(struct address_listener *l)
{
	for (int i = 0; i < l->count; i++)
		close(l->fds[i]);
	l->count = 0;
}
