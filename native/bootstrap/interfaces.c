/* SPDX-License-Identifier: MIT */
#include "bootstrap/interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/conf.h"

#define INTERFACES_SHOWN 400

/* How willingly an address is used; the order of the list. */
enum rank_of_address { ADDRESS_GOOD, ADDRESS_BRIDGE, ADDRESS_LOOPBACK, ADDRESS_KINDS };

struct subnet {
	int family;
	uint8_t bytes[16];
	int bits;
};

static const uint8_t *interfaces_bytes(const struct sockaddr *sa, int *bits)
{
	if (sa->sa_family == AF_INET) {
		*bits = 32;
		return (const uint8_t *)&((const struct sockaddr_in *)sa)->sin_addr;
	}
	*bits = 128;
	return (const uint8_t *)&((const struct sockaddr_in6 *)sa)->sin6_addr;
}

/* "10.1.0.0/16", "fd00::/8", or one address.  False: the word is none of these. */
static bool interfaces_subnet(const char *word, struct subnet *out)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash = strchr(word, '/');
	size_t len = slash ? (size_t)(slash - word) : strlen(word);
	int64_t bits;

	if (len >= sizeof(host))
		return false;
	memcpy(host, word, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, out->bytes) == 1)
		out->family = AF_INET;
	else if (inet_pton(AF_INET6, host, out->bytes) == 1)
		out->family = AF_INET6;
	else
		return false;
	bits = out->family == AF_INET ? 32 : 128;
	if (slash && conf_number(slash + 1, 0, bits, &bits) < 0)
		return false;
	out->bits = (int)bits;
	return true;
}

static bool interfaces_within(const struct subnet *net, const struct sockaddr *sa)
{
	int all, whole = net->bits / 8, rest = net->bits % 8;
	const uint8_t *bytes = interfaces_bytes(sa, &all);

	if (sa->sa_family != net->family || memcmp(bytes, net->bytes, (size_t)whole) != 0)
		return false;
	return rest == 0 || (bytes[whole] ^ net->bytes[whole]) >> (8 - rest) == 0;
}

static bool interfaces_usable(const struct ifaddrs *i)
{
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	if (i->ifa_addr->sa_family == AF_INET)
		return true;
	return i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
}

static enum rank_of_address interfaces_kind(const struct ifaddrs *i)
{
	static const char *const bridges[] = {"docker", "br-", "virbr", "veth", "cni", "lxc", "lxd", "podman", "flannel"};

	if (i->ifa_flags & IFF_LOOPBACK)
		return ADDRESS_LOOPBACK;
	for (size_t n = 0; n < sizeof(bridges) / sizeof(bridges[0]); n++)
		if (strncmp(i->ifa_name, bridges[n], strlen(bridges[n])) == 0)
			return ADDRESS_BRIDGE;
	return ADDRESS_GOOD;
}

static void interfaces_add(struct address_list *out, const struct sockaddr *sa)
{
	struct address *a = &out->at[out->count];
	char host[INET6_ADDRSTRLEN];
	int bits;

	if (out->count == ADDRESS_MAX || !inet_ntop(sa->sa_family, interfaces_bytes(sa, &bits), host, sizeof(host)) ||
	    address_from_numeric(a, host, 0) < 0)
		return;
	for (int i = 0; i < out->count; i++)
		if (out->at[i].len == a->len && memcmp(&out->at[i].addr, &a->addr, a->len) == 0)
			return;
	out->count++;
}

static void interfaces_match(struct address_list *out, const struct ifaddrs *all, const char *word)
{
	struct subnet net = {.bits = -1};
	bool is_subnet = interfaces_subnet(word, &net);

	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (interfaces_usable(i) && (is_subnet ? interfaces_within(&net, i->ifa_addr) : strcmp(i->ifa_name, word) == 0))
			interfaces_add(out, i->ifa_addr);
}

/* IPv4 first: where both work it makes no difference, and IPv6 is more often half set up. */
static void interfaces_by_kind(struct address_list *out, const struct ifaddrs *all, enum rank_of_address kind)
{
	static const int families[] = {AF_INET, AF_INET6};

	for (int f = 0; f < 2; f++)
		for (const struct ifaddrs *i = all; i; i = i->ifa_next)
			if (interfaces_usable(i) && i->ifa_addr->sa_family == families[f] && interfaces_kind(i) == kind)
				interfaces_add(out, i->ifa_addr);
}

static int interfaces_nothing(const struct ifaddrs *all, const struct settings *settings)
{
	char shown[INTERFACES_SHOWN] = "", host[INET6_ADDRSTRLEN];
	size_t used = 0;
	int bits;

	for (const struct ifaddrs *i = all; i && used < sizeof(shown); i = i->ifa_next)
		if (interfaces_usable(i) && inet_ntop(i->ifa_addr->sa_family, interfaces_bytes(i->ifa_addr, &bits), host, sizeof(host)))
			used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s%s %s", used ? ", " : "", i->ifa_name, host);
	return error_set(-EINVAL, "net=%.100s (%s): no interface or address of this host matches; there are: %s",
			 settings_text(settings, SETTING_NET), settings_origin(settings, SETTING_NET), shown);
}

int interfaces_find(struct address_list *out, const struct settings *settings)
{
	char words[256], *rest = words, *word;
	struct ifaddrs *all = NULL;
	int err = 0;

	out->count = 0;
	if (getifaddrs(&all) < 0)
		return error_sys(-errno, "this host's addresses cannot be read");
	snprintf(words, sizeof(words), "%s", settings_text(settings, SETTING_NET));
	if (*words) {
		while ((word = strsep(&rest, ", ")))
			if (*word)
				interfaces_match(out, all, word);
		if (out->count == 0)
			err = interfaces_nothing(all, settings);
	} else {
		interfaces_by_kind(out, all, ADDRESS_GOOD);
		interfaces_by_kind(out, all, ADDRESS_BRIDGE);
		if (out->count == 0)
			interfaces_by_kind(out, all, ADDRESS_LOOPBACK);
		if (out->count == 0)
			err = error_set(-EADDRNOTAVAIL, "no network interface of this host is up, not even lo");
	}
	freeifaddrs(all);
	return err;
}
