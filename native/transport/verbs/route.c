/* SPDX-License-Identifier: MIT */
#include "transport/verbs/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/verbs/gid.h"

#define ROUTE_BACKLOG 1024
/* An iWARP port is a TCP port as well and may be taken: how often another is tried. */
#define ROUTE_PORT_TRIES 8

static socklen_t route_sockaddr_bytes(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void route_set_port(struct sockaddr_storage *a, uint16_t port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)a)->sin6_port = port;
	else
		((struct sockaddr_in *)(void *)a)->sin_port = port;
}

uint16_t route_port(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)(const void *)a)->sin6_port
					: ((const struct sockaddr_in *)(const void *)a)->sin_port;
}

static const void *route_ip(const struct sockaddr_storage *a, size_t *bytes)
{
	*bytes = a->ss_family == AF_INET6 ? 16 : 4;
	return a->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr
					: (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
}

const char *route_text(const struct sockaddr_storage *a, char *out, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";
	size_t bytes;

	inet_ntop(a->ss_family, route_ip(a, &bytes), ip, sizeof(ip));
	snprintf(out, size, a->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip, ntohs(route_port(a)));
	return out;
}

static bool route_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	size_t n, m;
	const void *x = route_ip(a, &n), *y = route_ip(b, &m);

	return n == m && memcmp(x, y, n) == 0;
}

/* Is it one that others can reach without knowing an interface of ours? */
static bool route_is_global(const struct ifaddrs *i)
{
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
		return false;
	if (i->ifa_addr->sa_family == AF_INET)
		return true;
	if (i->ifa_addr->sa_family != AF_INET6)
		return false;
	return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr);
}

/* The address is an entry of the port's GID table: with verbs_gid_index only that entry will do. */
static bool route_gid_wanted(const struct verbs *v, const struct verbs_local *l)
{
	int64_t index = settings_int(v->env.settings, SETTING_VERBS_GID_INDEX);
	unsigned char want[16] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid;
	size_t n;
	const void *ip = route_ip(&l->addr, &n);

	if (index < 0)
		return true;
	if (v->api->query_gid(l->context, l->port, (int)index, &gid))
		return false;
	memcpy(want + 16 - n, ip, n);
	return memcmp(gid.raw, want, 16) == 0;
}

/* 1: usable; 0: no device there, or not wanted; -errno */
static int route_try(struct verbs *v, struct verbs_local *l)
{
	struct ibv_port_attr port;

	if (v->api->create_id(v->events, &l->listener, v, RDMA_PS_TCP))
		return error_sys(-errno, "rdma_create_id");
	route_set_port(&l->addr, 0);
	if (v->api->bind_addr(l->listener, (struct sockaddr *)&l->addr) || !l->listener->verbs)
		return 0;
	snprintf(l->device, sizeof(l->device), "%s", l->listener->verbs->device->name);
	l->port = l->listener->port_num;
	l->context = l->listener->verbs;
	l->method = l->context->device->transport_type == IBV_TRANSPORT_IWARP ? VERBS_CM_IWARP : VERBS_CM;
	if (!gid_device_wanted(v, l) || !route_gid_wanted(v, l))
		return 0;
	if (v->api->query_port(l->context, l->port, &port) || port.state != IBV_PORT_ACTIVE) {
		log_info(v->env.log, "verbs: port %u of %s is not active", l->port, l->device);
		return 0;
	}
	if (v->api->listen(l->listener, ROUTE_BACKLOG))
		return errno == EADDRINUSE ? -EADDRINUSE : error_sys(-errno, "rdma_listen on %s", l->device);
	route_set_port(&l->addr, v->api->get_src_port(l->listener));
	return 1;
}

static void route_warn_of_path(const struct verbs *v)
{
	if (settings_int(v->env.settings, SETTING_VERBS_MTU) > 0 || settings_int(v->env.settings, SETTING_VERBS_SERVICE_LEVEL) >= 0 ||
	    settings_int(v->env.settings, SETTING_VERBS_PKEY) >= 0)
		log_warn(v->env.log,
			 "verbs: RDMA CM chooses MTU, service level and P_Key by itself, verbs_mtu, verbs_service_level and verbs_pkey are "
			 "ignored: verbs_connect=tcp uses them");
}

static int route_add(struct verbs *v, const struct sockaddr *addr)
{
	struct verbs_local *l = &v->locals[v->local_count];
	char text[64];
	int rc = 0;

	for (int i = 0; i < ROUTE_PORT_TRIES; i++) {
		*l = (struct verbs_local){.listener = NULL};
		memcpy(&l->addr, addr, addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		rc = route_try(v, l);
		if (rc > 0) {
			if (v->local_count++ == 0)
				route_warn_of_path(v);
			log_debug(v->env.log, "verbs: %s port %u (%s) listens on %s", l->device, l->port,
				  l->method == VERBS_CM_IWARP ? "iWARP" : "InfiniBand or RoCE", route_text(&l->addr, text, sizeof(text)));
			return 0;
		}
		if (l->listener)
			v->api->destroy_id(l->listener);
		l->listener = NULL;
		if (rc != -EADDRINUSE)
			return rc;
	}
	return error_set(rc, "no free port to listen on");
}

/* All addresses share one listener. */
static int route_add_tcp(struct verbs *v, const struct sockaddr *addr, uint16_t port)
{
	struct verbs_local *l = &v->locals[v->local_count];
	char text[64];

	if (!gid_local(v, l, addr))
		return 0;
	memcpy(&l->addr, addr, addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	route_set_port(&l->addr, port);
	v->local_count++;
	log_debug(v->env.log, "verbs: %s port %u, GID %u, is connected to by TCP at %s", l->device, l->port, l->gid_index,
		  route_text(&l->addr, text, sizeof(text)));
	return 0;
}

int route_scan(struct verbs *v, uint16_t tcp_port)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct ifaddrs *all, *i;
	int rc = 0;

	if (v->api->getifaddrs(&all) < 0)
		return error_sys(-errno, "getifaddrs");
	for (int f = 0; f < 2; f++) {
		for (i = all; i && rc == 0; i = i->ifa_next) {
			if (route_is_global(i) && i->ifa_addr->sa_family == families[f] && v->local_count < (int)VERBS_ADDRESSES_MAX)
				rc = tcp_port ? route_add_tcp(v, i->ifa_addr, tcp_port) : route_add(v, i->ifa_addr);
		}
	}
	v->api->freeifaddrs(all);
	if (rc == 0 && v->local_count == 0) {
		const char *want = settings_text(v->env.settings, SETTING_VERBS_DEVICE);

		rc = error_set(-ENODEV, "no address of this machine belongs to an active port of %s%s%s%s",
			       *want ? "the RDMA device " : "an RDMA device", want,
			       settings_int(v->env.settings, SETTING_VERBS_GID_INDEX) >= 0 ? " with this verbs_gid_index" : "",
			       v->warned_pkey ? " with this verbs_pkey" : "");
	}
	return rc;
}

void route_close(struct verbs *v)
{
	for (int i = 0; i < v->local_count; i++) {
		if (v->locals[i].listener)
			v->api->destroy_id(v->locals[i].listener);
	}
	v->local_count = 0;
}

int route_write(const struct verbs *v, void *out, size_t size)
{
	struct route_blob b = {.slot_bytes = v->slot_bytes, .count = (uint32_t)v->local_count};
	size_t used = offsetof(struct route_blob, entry) + (size_t)v->local_count * sizeof(b.entry[0]);

	if (size < used)
		return error_set(-ENOBUFS, "no room for %d addresses", v->local_count);
	for (int i = 0; i < v->local_count; i++) {
		const struct sockaddr_storage *a = &v->locals[i].addr;
		size_t n;
		const void *ip = route_ip(a, &n);

		memcpy(b.entry[i].ip, ip, n);
		b.entry[i].family = a->ss_family == AF_INET6 ? 6 : 4;
		b.entry[i].method = (uint8_t)v->locals[i].method;
		b.entry[i].port = route_port(a);
	}
	memcpy(out, &b, used);
	return (int)used;
}

static void route_of_entry(struct sockaddr_storage *a, const struct route_entry *e)
{
	memset(a, 0, sizeof(*a));
	if (e->family == 6) {
		a->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)(void *)a)->sin6_addr, e->ip, 16);
	} else {
		a->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)(void *)a)->sin_addr, e->ip, 4);
	}
	route_set_port(a, e->port);
}

/* Which of our addresses the kernel would send from; no packet is sent. -1: none, or one without a device. */
static int route_from(const struct verbs *v, const struct sockaddr_storage *to, enum verbs_method method)
{
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(from);
	int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), found = -1;

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)to, route_sockaddr_bytes(to)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&from, &len) == 0) {
		for (int i = 0; i < v->local_count && found < 0; i++) {
			if (v->locals[i].method == method && (method == VERBS_TCP_IB || route_same_ip(&v->locals[i].addr, &from)))
				found = i;
		}
	}
	close(fd);
	return found;
}

/* An IPv4 peer at the shared listener. */
static void route_unmap(struct sockaddr_storage *a)
{
	struct sockaddr_in6 six;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)a;

	memcpy(&six, a, sizeof(six));
	if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	*four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = six.sin6_port};
	memcpy(&four->sin_addr, six.sin6_addr.s6_addr + 12, 4);
}

int route_called(const struct verbs *v, int fd)
{
	struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return -1;
	route_unmap(&at);
	for (int i = 0; i < v->local_count; i++) {
		if (v->locals[i].method >= VERBS_TCP_ROCE && route_same_ip(&v->locals[i].addr, &at))
			return i;
	}
	return -1;
}

bool route_choose(const struct verbs *v, struct verbs_peer *p, const void *blob, size_t bytes)
{
	struct route_blob b = {0};
	size_t head = offsetof(struct route_blob, entry);

	p->local = -1;
	if (bytes < head || bytes > sizeof(b))
		return false;
	memcpy(&b, blob, bytes);
	if (b.count > VERBS_ADDRESSES_MAX || bytes != head + b.count * sizeof(b.entry[0]) || b.slot_bytes < 512 || b.slot_bytes % 64)
		return false;
	p->slot_bytes = b.slot_bytes < v->slot_bytes ? b.slot_bytes : v->slot_bytes;
	for (uint32_t i = 0; i < b.count && p->local < 0; i++) {
		route_of_entry(&p->remote, &b.entry[i]);
		p->local = route_from(v, &p->remote, (enum verbs_method)b.entry[i].method);
	}
	return p->local >= 0;
}
