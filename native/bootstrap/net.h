/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_NET_H
#define IBVX_BOOTSTRAP_NET_H
/*
 * net: the sockets under the protocol engine (tree.h).
 *
 * One epoll descriptor bundles connections, listeners and a timer.  During the start net_run() waits on it; after
 * bootstrap_watch the core's monitor does, and calls net_turn().  Not thread-safe.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "bootstrap/address.h"
#include "bootstrap/conn.h"
#include "bootstrap/local.h"
#include "bootstrap/tree.h"

/* A socket and what it stands for. */
struct net_socket {
	struct conn conn;
	int link; /* -1: the engine has closed it, what is queued still has to go */
	bool connecting;
	bool writes;      /* epoll reports room to write */
	bool finished;    /* nothing more will be sent */
	bool stuck;       /* dropped because it did not read */
	bool added;       /* to epoll */
	int64_t deadline; /* of a closed one */
};

struct net {
	struct tree *tree;
	const struct log *log;
	int rank, size;
	int node_timeout_ms;      /* a machine that answers nothing for so long is dead */
	int64_t deadline;         /* of the join, for connecting */
	struct address_list root; /* rank 0's addresses */
	uint32_t tried;
	struct local_name local_name;
	struct address_listener listeners[MESSAGE_PURPOSE_COUNT];
	bool listening[MESSAGE_PURPOSE_COUNT]; /* epoll reports arrivals */
	int epoll_fd, timer_fd;
	int64_t timer_at;
	bool bounded;                /* peers that do not read are dropped */
	int64_t blocked_since;       /* 0: there are descriptors */
	struct net_socket **sockets; /* of any order; never moved, since epoll points to them */
	int socket_count, socket_room;
	struct net_socket **of_link;
	int link_room;
	int closing; /* sockets without a link */
	void (*name)(void *arg, int rank, char *out, size_t size);
	void *name_arg;
};

extern const struct tree_net net_ops;

/* 0 or -errno with text. */
int net_open(struct net *n, int rank, int size, int node_timeout_ms, const struct log *log);
void net_close_all(struct net *n); /* zeroed ones with epoll_fd -1 too */

/* Opens the local listener early, so that ranks of this node may come before rank 0 is ready.  No error: the network
 * remains. */
void net_listen_local(struct net *n);

/* Until the engine's call is over.  0 or -errno with text: the sockets themselves failed. */
int net_run(struct net *n);
/* What is ready now, without waiting. */
void net_turn(struct net *n);
/* After a call of the engine outside net_turn: the descriptor wakes in time. */
void net_arm(struct net *n);
/* Until everything that is queued has gone, for at most `ms`. */
void net_drain(struct net *n, int ms);

#endif
