/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_ADDRESS_H
#define IBVX_BOOTSTRAP_ADDRESS_H
/*
 * address: host names, and TCP sockets on them.  Every socket is non-blocking and close-on-exec.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_MAX 16
#define ADDRESS_TEXT_BYTES 64
#define ADDRESS_STAGGER_MS 50

struct address {
	struct sockaddr_storage addr;
	socklen_t len;
};

struct address_list {
	struct address at[ADDRESS_MAX];
	int count;
};

/* "host:port", "[v6]:port"; *host is allocated.  0, -EINVAL (text), -ENOMEM. */
int address_split(const char *text, char **host, int *port);

/* Asks the resolver (may block for as long as that does).  0; -EHOSTUNREACH: there is no such host;
 * -EAGAIN: the resolver has no answer now.  Texts name the host. */
int address_resolve(struct address_list *list, const char *host, int port);

bool address_is_loopback(const struct address *a);
/* Those of `in` that are loopback; the lists may be the same. */
void address_loopback(struct address_list *out, const struct address_list *in);
/* "127.0.0.1:20000", "[::1]:20000" */
void address_text(const struct address *a, char out[ADDRESS_TEXT_BYTES]);
/* "127.0.0.1", "::1"; its port */
void address_numeric(const struct address *a, char out[ADDRESS_TEXT_BYTES]);
int address_port(const struct address *a);
void address_set_port(struct address *a, int port);
/* The reverse, without the resolver.  0; -EINVAL (no text): not a numeric address. */
int address_from_numeric(struct address *a, const char *host, int port);
/* The other end of a connection, without its port; "?" if it is gone. */
void address_peer_text(int fd, char out[ADDRESS_TEXT_BYTES]);

/* Starts a connection: a descriptor, or -errno without a text. */
int address_connect(const struct address *a);
/* The result of a started connection once it is writable: 0 or -errno, without a text.  -ECONNREFUSED also
 * when the socket met itself, which TCP allows on an ephemeral port where nobody listens. */
int address_connected(int fd);

/* Connects to whichever address of the list answers first: they are tried in order, each ADDRESS_STAGGER_MS after the one
 * before or as soon as that has failed.  *tried has a bit for each address: set ones are passed over; those that failed
 * and the one that answered are set.  The descriptor with *which; or -errno without a text: -ETIMEDOUT (all are
 * marked as tried), the reason of the last that failed, or -EHOSTUNREACH if none is left. */
int address_connect_any(const struct address_list *list, uint32_t *tried, int64_t deadline, int *which);

/* No delay for small frames; a machine whose kernel acknowledges nothing for timeout_ms (2000 or more, rounded to seconds)
 * ends the connection. */
void address_tune(int fd, int timeout_ms);

struct address_listener {
	int fds[ADDRESS_MAX];
	int count;
	int port;
};
/* Listens on port (0: any, the same for all) of every interface, or only at these addresses, whose own port is not
 * looked at; those that this host does not have are skipped.  0, -EADDRINUSE, -EADDRNOTAVAIL (none is left) or another
 * -errno (text without the port). */
int address_listen(struct address_listener *l, const struct address_list *only, int port);
void address_unlisten(struct address_listener *l);

#endif
