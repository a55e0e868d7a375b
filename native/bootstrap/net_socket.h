/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_NET_SOCKET_H
#define IBVX_BOOTSTRAP_NET_SOCKET_H
/*
 * net_socket: the connections and listeners of a net: what the engine asks for (struct tree_net).  net.c brings their
 * events.
 */
#include "bootstrap/net.h"

/* How long what a closed connection still has to send may take. */
#define NET_CLOSE_MS 1000

/* Takes the descriptor over.  NULL without memory, the descriptor is the caller's then. */
struct net_socket *net_socket_new(struct net *n, int fd);
bool net_socket_bind(struct net *n, struct net_socket *s, int link);
/* epoll reports what this socket waits for. */
void net_socket_arm(struct net *n, struct net_socket *s);
/* Freed by net_socket_sweep(), since events of it may still be in the batch. */
void net_socket_close(struct net *n, struct net_socket *s);
/* The end of a connection that the engine has given up and whose output has gone. */
void net_socket_end(struct net *n, struct net_socket *s);
void net_socket_sweep(struct net *n);
/* The other end of a connection, and whether it is this machine. */
bool net_socket_peer(int fd, struct message_address *out);

#endif
