/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_ROUTE_H
#define IBVX_TRANSPORT_VERBS_ROUTE_H
/* route: our addresses behind which an RDMA device stands, and which of a peer's we can reach. */
#include "transport/verbs/connection.h"

/* What a rank publishes at the start. */
struct route_entry {
	uint8_t ip[16]; /* IPv4: the first four bytes */
	uint16_t port;  /* network byte order; RDMA CM's port space, or TCP's */
	uint8_t family; /* 4 or 6 */
	uint8_t method; /* enum verbs_method */
};
struct route_blob {
	uint32_t slot_bytes; /* of a receive buffer */
	uint32_t count;
	struct route_entry entry[VERBS_ADDRESSES_MAX];
};
static_assert(sizeof(struct route_entry) == 20, "no padding");
static_assert(sizeof(struct route_blob) == 8 + 20 * VERBS_ADDRESSES_MAX, "no padding");

/* Finds this node's addresses with RDMA devices, as the settings restrict them.  tcp_port (network byte order) is the one at which TCP wire-up
 * listens; 0: RDMA CM listens on each address. 0 or -errno with text. */
int route_scan(struct verbs *v, uint16_t tcp_port);
void route_close(struct verbs *v);
/* Writes the blob of the seam's address(). */
int route_write(const struct verbs *v, void *out, size_t size);
/* Chooses local and remote for p from what the peer wrote; false: none fits. */
bool route_choose(const struct verbs *v, struct verbs_peer *p, const void *blob, size_t bytes);
/* TCP wire-up: the index of the local that this socket was connected to; -1: none of them. */
int route_called(const struct verbs *v, int fd);
/* "10.77.0.1:4711" */
const char *route_text(const struct sockaddr_storage *a, char *out, size_t size);
/* Network byte order. */
uint16_t route_port(const struct sockaddr_storage *a);
void route_set_port(struct sockaddr_storage *a, uint16_t port);

#endif
