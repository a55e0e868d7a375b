/* SPDX-License-Identifier: MIT */
#include "bootstrap/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/descriptors.h"
#include "bootstrap/net_socket.h"

#define NET_BATCH 64
#define NET_ROUNDS 64
#define NET_FRAMES_A_TURN 256
#define NET_ACCEPTS_A_TURN 64
/* How long other threads of this process may keep the descriptors that the job needs. */
#define NET_BLOCKED_MS 1000

/* Markers for epoll; every other pointer is a socket. */
static char net_timer_mark, net_listener_marks[MESSAGE_PURPOSE_COUNT];

static bool net_receptive(const struct net *n)
{
	return tree_busy(n->tree) || tree_state(n->tree) == TREE_WATCHED;
}

static void net_mind_listeners(struct net *n, bool all)
{
	for (int p = 0; p < MESSAGE_PURPOSE_COUNT; p++) {
		struct address_listener *l = &n->listeners[p];
		bool wanted = all && l->count > 0 && net_receptive(n) && tree_accepts(n->tree, (enum message_purpose)p);
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &net_listener_marks[p]};

		for (int i = 0; wanted != n->listening[p] && i < l->count; i++)
			epoll_ctl(n->epoll_fd, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, l->fds[i], &event);
		n->listening[p] = wanted;
	}
}

/* Events */

static int64_t socket_limit(void *arg, enum message_kind kind)
{
	const struct net *n = ((void **)arg)[0];
	const struct net_socket *s = ((void **)arg)[1];

	return tree_expects(n->tree, s->link, kind);
}

static void socket_down(struct net *n, struct net_socket *s, int err)
{
	int link = s->link;
	char why[256];

	if (s->stuck)
		err = error_set(-ENOBUFS, "it did not read its control connection");
	snprintf(why, sizeof(why), "%s", error_text());
	net_socket_close(n, s);
	tree_on_down(n->tree, link, err, why, clock_now_ns());
}

static void socket_read(struct net *n, struct net_socket *s)
{
	void *arg[2] = {n, s};

	for (int i = 0; i < NET_FRAMES_A_TURN && s->link >= 0 && net_receptive(n); i++) {
		struct frame *frame;
		int got = conn_receive(&s->conn, socket_limit, arg, &frame);

		if (got == 0)
			return;
		if (got < 0) {
			socket_down(n, s, got);
			return;
		}
		tree_on_frame(n->tree, s->link, frame, clock_now_ns());
		frame_unref(frame);
	}
}

static void socket_connected(struct net *n, struct net_socket *s)
{
	struct message_address peer;
	struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);
	bool local = getsockname(s->conn.fd, (struct sockaddr *)&addr, &len) == 0 && addr.ss_family == AF_UNIX;
	int err = local ? 0 : address_connected(s->conn.fd);

	if (err) {
		socket_down(n, s, error_sys(err, "connecting"));
		return;
	}
	s->connecting = false;
	tree_on_connected(n->tree, s->link, net_socket_peer(s->conn.fd, &peer), &peer, clock_now_ns());
	if (s->link >= 0)
		net_socket_arm(n, s);
}

static void socket_event(struct net *n, struct net_socket *s, uint32_t events)
{
	if (s->conn.fd < 0)
		return;
	if (s->connecting) {
		socket_connected(n, s);
		return;
	}
	/* A write that fails shows in the reading. */
	if (events & EPOLLOUT && conn_flush(&s->conn) == 0 && !conn_pending(&s->conn) && s->finished)
		shutdown(s->conn.fd, SHUT_WR);
	if (s->link >= 0) {
		socket_read(n, s);
		if (s->conn.fd >= 0)
			net_socket_arm(n, s);
	} else if (!conn_pending(&s->conn) || events & (EPOLLERR | EPOLLHUP)) {
		net_socket_end(n, s);
	} else {
		conn_discard_input(&s->conn);
	}
}

/* No descriptor left: the limit may be raised, or a stranger has to go.  False: there is nothing to do. */
static bool net_make_room(struct net *n)
{
	static const struct timespec moment = {.tv_nsec = 10 * CLOCK_NS_PER_MS};

	int room = descriptors_raise() ? 1 : tree_make_room(n->tree, clock_now_ns());

	if (room > 0)
		return true;
	if (room < 0 && !n->blocked_since)
		n->blocked_since = clock_now_ns();
	if (tree_state(n->tree) == TREE_MEETING)
		nanosleep(&moment, NULL);
	return false;
}

static void net_admit(struct net *n, enum message_purpose purpose, int fd)
{
	char text[ADDRESS_TEXT_BYTES];
	struct message_address from;
	struct net_socket *s;
	bool loopback;
	int link, pid = 0;

	loopback = net_socket_peer(fd, &from);
	if (purpose == MESSAGE_LOCAL && local_check(fd, &pid) < 0) {
		log_warn(n->log, "bootstrap: refused process %d of another user", pid);
		close(fd);
		return;
	}
	if (purpose == MESSAGE_LOCAL) {
		snprintf(text, sizeof(text), "process %d of this node", pid);
	} else {
		address_tune(fd, n->node_timeout_ms);
		address_peer_text(fd, text);
	}
	s = net_socket_new(n, fd);
	link = s ? tree_on_accept(n->tree, purpose, &from, text, loopback, clock_now_ns()) : -1;
	if (link >= 0 && net_socket_bind(n, s, link))
		net_socket_arm(n, s);
	else if (s)
		net_socket_close(n, s);
	else
		close(fd);
}

static void net_accept(struct net *n, enum message_purpose purpose)
{
	struct address_listener *l = &n->listeners[purpose];

	for (int i = 0; i < l->count; i++)
		for (int k = 0; k < NET_ACCEPTS_A_TURN && i < l->count; k++) {
			int fd = accept4(l->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (fd >= 0) {
				n->blocked_since = 0;
				net_admit(n, purpose, fd);
				continue;
			}
			if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && net_make_room(n))
				continue;
			if (errno != ECONNABORTED && errno != EINTR)
				break;
		}
}

static void net_dispatch(struct net *n, const struct epoll_event *event)
{
	char *mark = event->data.ptr;
	uint64_t ticks;

	if (mark == &net_timer_mark) {
		if (read(n->timer_fd, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
			log_debug(n->log, "bootstrap: timer: %s", strerror(errno));
		n->timer_at = 0;
	} else if (mark >= net_listener_marks && mark < net_listener_marks + MESSAGE_PURPOSE_COUNT) {
		net_accept(n, (enum message_purpose)(mark - net_listener_marks));
	} else {
		socket_event(n, event->data.ptr, event->events);
	}
}

/* The number of events, or -errno with text. */
static int net_poll(struct net *n, int timeout_ms)
{
	struct epoll_event events[NET_BATCH];
	int count;

	net_mind_listeners(n, true);
	count = epoll_wait(n->epoll_fd, events, NET_BATCH, timeout_ms);
	if (count < 0)
		return errno == EINTR ? 0 : error_sys(-errno, "waiting for the other ranks");
	for (int i = 0; i < count; i++)
		net_dispatch(n, &events[i]);
	for (int i = 0; n->closing > 0 && i < n->socket_count; i++)
		if (n->sockets[i]->deadline && n->sockets[i]->conn.fd >= 0 && deadline_left_ms(n->sockets[i]->deadline) == 0)
			net_socket_end(n, n->sockets[i]);
	net_socket_sweep(n);
	return count;
}

static int net_timeout_ms(const struct net *n)
{
	int64_t next = tree_next(n->tree);

	if (next == INT64_MAX)
		return n->closing ? NET_CLOSE_MS : -1;
	return deadline_left_ms(next);
}

int net_run(struct net *n)
{
	while (tree_busy(n->tree)) {
		int err = net_poll(n, net_timeout_ms(n));

		if (err < 0)
			return err;
		if (n->blocked_since && clock_now_ns() - n->blocked_since > NET_BLOCKED_MS * CLOCK_NS_PER_MS) {
			n->blocked_since = 0;
			tree_give_up(n->tree, descriptors_none("rank 0 cannot let the other ranks in", tree_missing(n->tree) + 1));
		}
		if (tree_busy(n->tree) && clock_now_ns() >= tree_next(n->tree))
			tree_on_time(n->tree, clock_now_ns());
	}
	return 0;
}

/* The descriptor becomes readable when the engine wants to be called. */
void net_arm(struct net *n)
{
	int64_t next = tree_next(n->tree);
	struct itimerspec when = {0};

	net_mind_listeners(n, true);
	if (n->closing && deadline_after_ms(NET_CLOSE_MS) < next)
		next = deadline_after_ms(NET_CLOSE_MS);
	if (next == n->timer_at || (next == INT64_MAX && !n->timer_at))
		return;
	n->timer_at = next == INT64_MAX ? 0 : next;
	if (next != INT64_MAX) {
		next = next > 0 ? next : 1;
		when.it_value = (struct timespec){.tv_sec = next / CLOCK_NS_PER_S, .tv_nsec = next % CLOCK_NS_PER_S};
	}
	timerfd_settime(n->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void net_turn(struct net *n)
{
	for (int i = 0; i < NET_ROUNDS && net_poll(n, 0) == NET_BATCH; i++)
		;
	if (clock_now_ns() >= tree_next(n->tree))
		tree_on_time(n->tree, clock_now_ns());
	net_arm(n);
}

void net_drain(struct net *n, int ms)
{
	int64_t deadline = deadline_after_ms(ms);

	net_mind_listeners(n, false);
	while (n->closing > 0 && deadline_left_ms(deadline) > 0) {
		struct epoll_event events[NET_BATCH];
		int count = epoll_wait(n->epoll_fd, events, NET_BATCH, deadline_left_ms(deadline));

		if (count < 0 && errno != EINTR)
			break;
		for (int i = 0; i < count; i++)
			net_dispatch(n, &events[i]);
		net_socket_sweep(n);
	}
}

int net_open(struct net *n, int rank, int size, int node_timeout_ms, const struct log *log)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &net_timer_mark};

	n->rank = rank;
	n->size = size;
	n->node_timeout_ms = node_timeout_ms;
	n->log = log;
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	n->timer_fd = n->epoll_fd < 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (n->timer_fd < 0 && errno == EMFILE)
		return descriptors_none("watching the other ranks", 2);
	if (n->timer_fd < 0 || epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, n->timer_fd, &event) < 0)
		return error_sys(-errno, "epoll");
	return 0;
}

void net_close_all(struct net *n)
{
	for (int p = 0; p < MESSAGE_PURPOSE_COUNT; p++)
		address_unlisten(&n->listeners[p]);
	for (int i = 0; i < n->socket_count; i++)
		conn_close(&n->sockets[i]->conn);
	net_socket_sweep(n);
	free(n->sockets);
	free(n->of_link);
	if (n->epoll_fd >= 0) {
		close(n->epoll_fd);
		if (n->timer_fd >= 0)
			close(n->timer_fd);
	}
	memset(n, 0, sizeof(*n));
	n->epoll_fd = n->timer_fd = -1;
}
