/* SPDX-License-Identifier: MIT */
#include "transport/verbs/gid.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Entries of a port's GID table that are looked at, and that an address handle can name: its index has 8 bits. */
#define GID_ENTRIES 256
#define PKEY_PARTITION 0x7fffu
#define PKEY_FULL 0x8000u

/* name or name:port */
bool gid_device_wanted(const struct verbs *v, const struct verbs_local *l)
{
	const char *want = settings_text(v->env.settings, SETTING_VERBS_DEVICE);
	size_t n = strcspn(want, ":");

	if (!*want)
		return true;
	if (strlen(l->device) != n || strncmp(want, l->device, n) != 0)
		return false;
	return !want[n] || strtol(want + n + 1, NULL, 10) == l->port;
}

static bool gid_is(const union ibv_gid *gid, const struct sockaddr *addr)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (addr->sa_family == AF_INET6)
		return memcmp(gid->raw, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, 16) == 0;
	return memcmp(gid->raw, mapped, 12) == 0 &&
	       memcmp(gid->raw + 12, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4) == 0;
}

/* The entry that holds the address, RoCE v2 before v1; -1: none. */
static int gid_find(const struct verbs *v, struct ibv_context *c, uint8_t port, int entries, const struct sockaddr *addr)
{
	int64_t wanted = settings_int(v->env.settings, SETTING_VERBS_GID_INDEX);
	int found = -1;

	for (int i = 0; i < entries && i < GID_ENTRIES; i++) {
		struct ibv_gid_entry e;

		if ((wanted >= 0 && i != wanted) || v->api->query_gid_ex(c, port, (uint32_t)i, &e) || !gid_is(&e.gid, addr))
			continue;
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2)
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

/* The P_Key of an entry, in host order; 0: none. */
static unsigned gid_pkey(const struct verbs *v, const struct verbs_local *l, int index)
{
	__be16 key;

	return v->api->query_pkey(l->context, l->port, index, &key) ? 0 : ntohs(key);
}

static void gid_warn_of_pkey(struct verbs *v, const struct verbs_local *l, int entries)
{
	char keys[128] = "";
	size_t at = 0;

	if (v->warned_pkey)
		return;
	v->warned_pkey = true;
	for (int i = 0; i < entries && at + 8 < sizeof(keys); i++) {
		unsigned key = gid_pkey(v, l, i);

		if (key & PKEY_PARTITION)
			at += (size_t)snprintf(keys + at, sizeof(keys) - at, " 0x%04x", key);
	}
	log_warn(v->env.log, "verbs: %s port %u is not used: verbs_pkey=0x%04x is not among its P_Keys:%s", l->device, l->port,
		 (unsigned)settings_int(v->env.settings, SETTING_VERBS_PKEY), at ? keys : " none");
}

/* 15 bits name the partition; a full member (bit 15) may talk to all others, a limited one to full ones. */
static bool gid_choose_pkey(struct verbs *v, struct verbs_local *l, int entries)
{
	int64_t wanted = settings_int(v->env.settings, SETTING_VERBS_PKEY);
	int found = -1;

	for (int i = 0; i < entries; i++) {
		unsigned key = gid_pkey(v, l, i);

		if (!(key & PKEY_PARTITION) || (wanted >= 0 && ((key ^ (unsigned)wanted) & PKEY_PARTITION)))
			continue;
		if (found < 0 || key & PKEY_FULL)
			found = i;
		if (key & PKEY_FULL)
			break;
	}
	l->pkey_index = (uint16_t)(found < 0 ? 0 : found);
	if (found >= 0 || wanted < 0)
		return true;
	gid_warn_of_pkey(v, l, entries);
	return false;
}

/* InfiniBand: any address will do for the wire-up, packets go by LID. The first one is taken. */
static bool gid_port_fits(struct verbs *v, struct verbs_local *l, const struct sockaddr *addr)
{
	int64_t wanted = settings_int(v->env.settings, SETTING_VERBS_GID_INDEX);
	struct ibv_port_attr port;
	int index;

	if (v->api->query_port(l->context, l->port, &port) || port.state != IBV_PORT_ACTIVE || !gid_device_wanted(v, l))
		return false;
	if (wanted >= GID_ENTRIES) {
		log_warn(v->env.log, "verbs: verbs_gid_index=%lld: without RDMA CM only the entries 0 to %d can be used", (long long)wanted,
			 GID_ENTRIES - 1);
		return false;
	}
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		index = gid_find(v, l->context, l->port, port.gid_tbl_len, addr);
		l->method = VERBS_TCP_ROCE;
		l->gid_index = (uint8_t)index;
		return index >= 0 && gid_choose_pkey(v, l, port.pkey_tbl_len);
	}
	l->method = VERBS_TCP_IB;
	l->gid_index = wanted > 0 ? (uint8_t)wanted : 0;
	for (int i = 0; i < v->local_count; i++) {
		if (v->locals[i].context == l->context && v->locals[i].port == l->port)
			return false;
	}
	return gid_choose_pkey(v, l, port.pkey_tbl_len);
}

int gid_open_devices(struct verbs *v)
{
	int count = 0;
	struct ibv_device **list = v->api->get_device_list(&count);

	for (int i = 0; list && i < count && v->context_count < VERBS_CONTEXTS_MAX; i++) {
		struct ibv_context *c;

		if (list[i]->transport_type == IBV_TRANSPORT_IWARP)
			continue; /* connects by RDMA CM alone */
		c = v->api->open_device(list[i]);
		if (c)
			v->contexts[v->context_count++] = c;
		else
			log_info(v->env.log, "verbs: %s cannot be opened: %s", list[i]->name, strerror(errno));
	}
	if (list)
		v->api->free_device_list(list);
	if (v->context_count == 0)
		return error_set(-ENODEV, "no RDMA device that can be connected by TCP wire-up (iWARP needs verbs_connect=cm)");
	return 0;
}

void gid_close_devices(struct verbs *v)
{
	while (v->context_count > 0)
		v->api->close_device(v->contexts[--v->context_count]);
}

bool gid_local(struct verbs *v, struct verbs_local *l, const struct sockaddr *addr)
{
	for (int i = 0; i < v->context_count; i++) {
		struct ibv_device_attr attr;

		if (v->api->query_device(v->contexts[i], &attr))
			continue;
		for (uint8_t port = 1; port <= attr.phys_port_cnt; port++) {
			*l = (struct verbs_local){.context = v->contexts[i], .port = port};
			snprintf(l->device, sizeof(l->device), "%s", v->contexts[i]->device->name);
			if (gid_port_fits(v, l, addr))
				return true;
		}
	}
	return false;
}
