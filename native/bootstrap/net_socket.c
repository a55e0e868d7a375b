/* SPDX-License-Identifier: MIT */
#include "bootstrap/net_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/descriptors.h"

#define NET_CONNECT_MS 3000

/* Sockets */

void net_socket_arm(struct net *n, struct net_socket *s)
{
	bool writes = s->connecting || conn_pending(&s->conn);
	struct epoll_event event = {.events = writes ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = s};

	if (s->added && writes == s->writes)
		return;
	if (epoll_ctl(n->epoll_fd, s->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->conn.fd, &event) < 0)
		log_warn(n->log, "bootstrap: epoll_ctl: %s", strerror(errno));
	s->added = true;
	s->writes = writes;
}

struct net_socket *net_socket_new(struct net *n, int fd)
{
	struct net_socket *s = calloc(1, sizeof(*s)), **sockets;

	if (s && n->socket_count == n->socket_room) {
		n->socket_room = n->socket_room ? 2 * n->socket_room : 8;
		sockets = realloc(n->sockets, (size_t)n->socket_room * sizeof(struct net_socket *));
		if (!sockets) {
			n->socket_room = n->socket_count;
			free(s);
			return NULL;
		}
		n->sockets = sockets;
	}
	if (!s)
		return NULL;
	conn_open(&s->conn, fd);
	s->link = -1;
	n->sockets[n->socket_count++] = s;
	return s;
}

bool net_socket_bind(struct net *n, struct net_socket *s, int link)
{
	if (link >= n->link_room) {
		int room = 2 * link + 8;
		struct net_socket **of_link = realloc(n->of_link, (size_t)room * sizeof(struct net_socket *));

		if (!of_link)
			return false;
		memset(of_link + n->link_room, 0, (size_t)(room - n->link_room) * sizeof(struct net_socket *));
		n->of_link = of_link;
		n->link_room = room;
	}
	n->of_link[link] = s;
	s->link = link;
	return true;
}

/*
 * Freed at the end of the turn, since events of it may still be in the batch.  Closing alone does not remove it from
 * epoll while a process that this one has forked holds a copy of the descriptor.
 */
void net_socket_close(struct net *n, struct net_socket *s)
{
	if (s->added)
		epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, s->conn.fd, NULL);
	s->added = false;
	if (s->link >= 0)
		n->of_link[s->link] = NULL;
	else if (s->conn.fd >= 0 && s->deadline)
		n->closing--;
	s->link = -1;
	conn_close(&s->conn);
}

void net_socket_sweep(struct net *n)
{
	int kept = 0;

	for (int i = 0; i < n->socket_count; i++) {
		if (n->sockets[i]->conn.fd >= 0)
			n->sockets[kept++] = n->sockets[i];
		else
			free(n->sockets[i]);
	}
	n->socket_count = kept;
}

/* The end of a connection that the engine has given up and whose output has gone. */
void net_socket_end(struct net *n, struct net_socket *s)
{
	shutdown(s->conn.fd, SHUT_WR);
	conn_discard_input(&s->conn);
	net_socket_close(n, s);
}

/* struct tree_net */

static void net_to_sockaddr(const struct message_address *a, struct address *out)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)a->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)a->port)};

	memset(out, 0, sizeof(*out));
	if (a->family == 4) {
		memcpy(&in.sin_addr, a->bytes, 4);
		memcpy(&out->addr, &in, out->len = sizeof(in));
	} else {
		memcpy(&in6.sin6_addr, a->bytes, 16);
		memcpy(&out->addr, &in6, out->len = sizeof(in6));
	}
}

/* The other end of a connection, and whether it is this machine. */
bool net_socket_peer(int fd, struct message_address *out)
{
	struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
	const struct sockaddr_in *in = (const struct sockaddr_in *)&addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr;
	socklen_t len = sizeof(addr);

	memset(out, 0, sizeof(*out));
	if (getpeername(fd, (struct sockaddr *)&addr, &len) < 0)
		return false;
	if (addr.ss_family == AF_INET) {
		out->family = 4;
		memcpy(out->bytes, &in->sin_addr, 4);
	} else if (addr.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		out->family = 4;
		memcpy(out->bytes, &in6->sin6_addr.s6_addr[12], 4);
	} else if (addr.ss_family == AF_INET6) {
		out->family = 6;
		memcpy(out->bytes, &in6->sin6_addr, 16);
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	}
	return addr.ss_family == AF_UNIX || (out->family == 4 && out->bytes[0] == 127);
}

static int net_connect_root(struct net *n, int index)
{
	const uint32_t all = (UINT32_C(1) << n->root.count) - 1;
	int which, fd;

	if (index == 0)
		n->tried = 0;
	if (n->tried == all)
		return -EALREADY;
	fd = address_connect_any(&n->root, &n->tried, deadline_earlier(n->deadline, deadline_after_ms(NET_CONNECT_MS)), &which);
	if (fd == -EMFILE)
		return descriptors_none("connecting to rank 0", 1);
	return fd < 0 ? error_sys(fd, "connecting to rank 0") : fd;
}

static int net_connect(void *net, int link, enum message_purpose purpose, int index, const struct message_address *address)
{
	struct net *n = net;
	struct net_socket *s;
	struct address a;
	int fd;

	if (purpose == MESSAGE_LOCAL) {
		fd = local_connect(&n->local_name);
	} else if (purpose == MESSAGE_JOIN) {
		fd = net_connect_root(n, index);
	} else {
		net_to_sockaddr(address, &a);
		fd = address_connect(&a);
		if (fd < 0)
			error_sys(fd, "connecting to another rank");
	}
	if (fd < 0)
		return fd;
	s = net_socket_new(n, fd);
	if (!s || !net_socket_bind(n, s, link)) {
		close(fd);
		if (s)
			s->conn.fd = -1;
		return error_set(-ENOMEM, "no memory for a connection");
	}
	s->connecting = true; /* also where it stands already: the engine hears of it in the next turn */
	if (purpose != MESSAGE_LOCAL)
		address_tune(fd, n->node_timeout_ms);
	net_socket_arm(n, s);
	return 0;
}

static void net_send(void *net, int link, struct frame *frame)
{
	struct net *n = net;
	struct net_socket *s = n->of_link[link];
	int err;

	if (s->finished)
		return;
	s->conn.queue_max = n->bounded ? CONN_QUEUE_BYTES + (size_t)n->size * 32 : 0;
	err = conn_send(&s->conn, frame);
	if (err == -ENOBUFS || err == -ENOMEM) {
		s->stuck = s->finished = true;
		shutdown(s->conn.fd, SHUT_RDWR); /* reading reports the end */
	}
	if (!err)
		net_socket_arm(n, s);
}

static void net_finish(void *net, int link)
{
	struct net *n = net;
	struct net_socket *s = n->of_link[link];

	if (!s->finished && !conn_pending(&s->conn))
		shutdown(s->conn.fd, SHUT_WR);
	s->finished = true;
}

static void net_close(void *net, int link)
{
	struct net *n = net;
	struct net_socket *s = n->of_link[link];

	n->of_link[link] = NULL;
	s->link = -1;
	if (s->connecting) {
		net_socket_close(n, s);
	} else if (conn_flush(&s->conn) < 0 || !conn_pending(&s->conn)) {
		net_socket_end(n, s);
	} else {
		s->deadline = deadline_after_ms(NET_CLOSE_MS);
		n->closing++;
		net_socket_arm(n, s);
	}
}

void net_listen_local(struct net *n)
{
	struct address_listener *l = &n->listeners[MESSAGE_LOCAL];
	int fd = l->count ? 0 : local_listen(&n->local_name);

	if (fd > 0) {
		l->fds[0] = fd;
		l->count = 1;
	} else if (fd < 0 && fd != -EADDRINUSE) {
		log_info(n->log, "bootstrap: no local listener: %s", strerror(-fd));
	}
}

static int net_listen(void *net, enum message_purpose purpose, bool loopback)
{
	struct net *n = net;
	struct address_listener *l = &n->listeners[purpose];
	struct address_list only = {.count = 2};
	int fd, err;

	if (l->count > 0)
		return purpose == MESSAGE_LOCAL ? 0 : l->port;
	if (purpose == MESSAGE_LOCAL) {
		fd = local_listen(&n->local_name);
		if (fd < 0)
			return fd;
		l->fds[0] = fd;
		l->count = 1;
		return 0;
	}
	address_from_numeric(&only.at[0], "127.0.0.1", 0);
	address_from_numeric(&only.at[1], "::1", 0);
	err = address_listen(l, loopback ? &only : NULL, 0);
	if (err)
		log_info(n->log, "bootstrap: no listener for other ranks: %s", error_text());
	return err ? err : l->port;
}

static void net_unlisten(void *net, enum message_purpose purpose)
{
	struct net *n = net;

	n->listening[purpose] = false;
	address_unlisten(&n->listeners[purpose]);
}

static int net_random(void *net, void *out, size_t len)
{
	(void)net;
	return proof_random(out, len);
}

const struct tree_net net_ops = {
	.connect = net_connect,
	.send = net_send,
	.close = net_close,
	.finish = net_finish,
	.listen = net_listen,
	.unlisten = net_unlisten,
	.random = net_random,
};
