/* SPDX-License-Identifier: MIT */
#include "transport/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum interfaces_kind { INTERFACE_GOOD, INTERFACE_BRIDGE, INTERFACE_LOOPBACK, INTERFACE_UNUSABLE };

/* Every host has the same bridges for containers and guests: a rank that connects to one of them meets itself. */
static enum interfaces_kind interfaces_kind(const struct ifaddrs *i)
{
	static const char *const bridges[] = {"docker", "br-", "virbr", "veth", "cni", "lxc", "lxd", "podman", "flannel"};

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
		return INTERFACE_UNUSABLE;
	if (i->ifa_flags & IFF_LOOPBACK)
		return INTERFACE_LOOPBACK;
	for (size_t n = 0; n < sizeof(bridges) / sizeof(bridges[0]); n++) {
		if (strncmp(i->ifa_name, bridges[n], strlen(bridges[n])) == 0)
			return INTERFACE_BRIDGE;
	}
	return INTERFACE_GOOD;
}

bool interfaces_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strstr(list, name); at; at = strstr(at + 1, name)) {
		if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

void interfaces_best(char *out, size_t size)
{
	struct ifaddrs *all = NULL;
	size_t used = 0;

	out[0] = '\0';
	if (getifaddrs(&all) < 0)
		return;
	for (enum interfaces_kind kind = INTERFACE_GOOD; kind < INTERFACE_UNUSABLE && !out[0]; kind++) {
		for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
			if (interfaces_kind(i) == kind && !interfaces_listed(out, i->ifa_name) && used + strlen(i->ifa_name) + 2 < size)
				used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", i->ifa_name);
		}
	}
	freeifaddrs(all);
}
