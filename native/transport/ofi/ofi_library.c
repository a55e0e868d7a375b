/* SPDX-License-Identifier: MIT */
#include "transport/ofi/ofi_library.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/interfaces.h"

#define LIBRARY_NAME "libfabric.so.1"
/* Providers that were made for other uses, or that install signal handlers; the transport shm carries what stays on a node. */
#define LIBRARY_EXCLUDED "shm"
#define LIBRARY_UNIVERSE_LEAST 16

/* Best first, with their utility providers. */
static const char *const ofi_library_providers[] = {"efa", "cxi", "psm3", "tcp", "tcp;ofi_rxm", "verbs;ofi_rxm"};
#define LIBRARY_PROVIDERS (sizeof(ofi_library_providers) / sizeof(ofi_library_providers[0]))

void ofi_library_environment(struct ofi_library_environment *e, int size)
{
	/* no handlers of signals (infinipath, psm2), no changed code, nothing of shm */
	static const struct loader_variable fixed[] = {
		{"IPATH_NO_BACKTRACE", "1", false},
		{"HFI_NO_BACKTRACE", "1", false},
		{"FI_MR_CACHE_MONITOR", "disabled", false},
		{"FI_PROVIDER", "^" LIBRARY_EXCLUDED, false},
	};

	static_assert(sizeof(fixed) / sizeof(fixed[0]) + 1 <= OFI_LIBRARY_VARIABLES_MAX, "room");
	for (e->count = 0; e->count < sizeof(fixed) / sizeof(fixed[0]); e->count++)
		e->variable[e->count] = fixed[e->count];
	/* by default providers reserve memory for 256 ranks */
	snprintf(e->universe, sizeof(e->universe), "%d", size > LIBRARY_UNIVERSE_LEAST ? size : LIBRARY_UNIVERSE_LEAST);
	e->variable[e->count++] = (struct loader_variable){"FI_UNIVERSE_SIZE", e->universe, false};
}

int ofi_library_open(struct ofi_library *l)
{
	const struct loader_symbol symbols[] = {
		{"fi_version", &l->version}, {"fi_getinfo", &l->getinfo}, {"fi_freeinfo", &l->freeinfo},
		{"fi_dupinfo", &l->dupinfo}, {"fi_fabric", &l->fabric},   {"fi_strerror", &l->strerror},
	};
	int rc = loader_open(LIBRARY_NAME, symbols, sizeof(symbols) / sizeof(symbols[0]));
	uint32_t version;

	if (rc == -ENOENT)
		return error_prefix(rc, "libfabric is not installed (Debian, Ubuntu: libfabric1; Fedora, RHEL, SUSE: libfabric)");
	if (rc == -ENOEXEC)
		return error_prefix(rc, "libfabric cannot be loaded, install it again");
	if (rc < 0)
		return error_prefix(rc, "libfabric is too old or incomplete");
	version = l->version();
	if (version < OFI_API)
		return error_set(-EPROTO, LIBRARY_NAME " is libfabric %u.%u; %u.%u or a later one is needed", OFI_MAJOR(version),
				 OFI_MINOR(version), OFI_MAJOR(OFI_API), OFI_MINOR(OFI_API));
	return 0;
}

static void ofi_library_ask(struct ofi_info *hints, const char *provider)
{
	hints->caps = OFI_CAP_MSG;
	hints->mode = OFI_CONTEXT | OFI_CONTEXT2;
	hints->ep_attr->type = OFI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = OFI_ORDER_SAS;
	hints->domain_attr->threading = OFI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = OFI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = OFI_RM_ENABLED;
	hints->domain_attr->mr_mode = OFI_MR_LOCAL | OFI_MR_VIRT_ADDR | OFI_MR_ALLOCATED | OFI_MR_PROV_KEY | OFI_MR_ENDPOINT;
	if (provider[0])
		hints->fabric_attr->prov_name = strdup(provider);
}

/* The smaller, the better; negative: not to be used. */
static int ofi_library_rank(const struct ofi_info *i, bool any, const char *interfaces)
{
	const struct sockaddr_in6 *six = i->src_addr;
	int rank = 0;

	while (rank < (int)LIBRARY_PROVIDERS && strcmp(ofi_library_providers[rank], i->fabric_attr->prov_name) != 0)
		rank++;
	if ((rank == (int)LIBRARY_PROVIDERS && !any) || strstr(i->fabric_attr->prov_name, LIBRARY_EXCLUDED))
		return -1;
	rank = rank * 2 + !interfaces_listed(interfaces, i->domain_attr->name);
	if (!six || i->src_addrlen != sizeof(*six) || six->sin6_family != AF_INET6)
		return rank * 3;
	return rank * 3 + (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 2 : 1);
}

int ofi_library_choose(const struct ofi_library *library, const struct settings *settings, struct ofi_info **info)
{
	const char *provider = settings_text(settings, SETTING_OFI_PROVIDER);
	struct ofi_info *hints = library->dupinfo(NULL), *all = NULL, *best = NULL;
	int rc, rank, best_rank = -1;
	char interfaces[512];

	if (!hints)
		return error_set(-ENOMEM, "no memory for libfabric");
	ofi_library_ask(hints, provider);
	rc = library->getinfo(OFI_API, NULL, NULL, 0, hints, &all);
	library->freeinfo(hints);
	if (rc != 0 && rc != -OFI_ENODATA)
		return error_set(-ENODEV, "fi_getinfo: %s", library->strerror(-rc));
	interfaces_best(interfaces, sizeof(interfaces));
	for (struct ofi_info *i = rc == 0 ? all : NULL; i; i = i->next) {
		rank = ofi_library_rank(i, provider[0], interfaces);
		if (rank >= 0 && (!best || rank < best_rank)) {
			best = i;
			best_rank = rank;
		}
	}
	*info = best ? library->dupinfo(best) : NULL;
	if (rc == 0)
		library->freeinfo(all);
	if (best)
		return *info ? 0 : error_set(-ENOMEM, "no memory for libfabric");
	return error_set(-ENODEV,
			 "libfabric has no provider \"%s\" for reliable datagrams here: fi_info -t FI_EP_RDM lists those for ofi_provider",
			 provider[0] ? provider : "efa, cxi, psm3, tcp, tcp;ofi_rxm, verbs;ofi_rxm");
}

/* What was loaded and chosen. */
static int ofi_library_look(const struct settings *settings, char *out, size_t size)
{
	struct ofi_library l;
	struct ofi_info *info = NULL;
	int rc = ofi_library_open(&l);

	if (rc == 0)
		rc = ofi_library_choose(&l, settings, &info);
	if (rc < 0)
		return rc;
	rc = snprintf(out, size, "  library: libfabric %u.%u\n  provider: %s, domain %s (%s)\n", OFI_MAJOR(l.version()),
		      OFI_MINOR(l.version()), info->fabric_attr->prov_name, info->domain_attr->name,
		      settings_text(settings, SETTING_OFI_PROVIDER)[0]
			      ? "setting ofi_provider"
			      : "the first one here of efa, cxi, psm3, tcp, tcp;ofi_rxm, verbs;ofi_rxm");
	l.freeinfo(info);
	return rc;
}

int ofi_library_describe(const struct settings *settings, char *out, size_t size)
{
	struct ofi_library_environment e;
	struct loader loader;
	int rc;

	ofi_library_environment(&e, 0);
	rc = loader_begin(&loader, e.variable, e.count);
	if (rc < 0)
		return rc;
	rc = ofi_library_look(settings, out, size);
	loader_end(&loader);
	if (rc < 0)
		return rc;
	loader_describe(e.variable, e.count, out, size);
	return 0;
}
