/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_OFI_OFI_LIBRARY_H
#define IBVX_TRANSPORT_OFI_OFI_LIBRARY_H
/*
 * ofi_library: libfabric.so.1, opened with an environment under which it leaves the process alone, the choice of a provider, and what
 * ibvdev-info reports of both.
 */
#include "base/settings.h"
#include "transport/loader.h"
#include "transport/ofi/ofi_abi.h"

/* What the library is to read from the environment. */
#define OFI_LIBRARY_VARIABLES_MAX 8
struct ofi_library_environment {
	struct loader_variable variable[OFI_LIBRARY_VARIABLES_MAX];
	size_t count;
	char universe[16];
};
/* size: the job's ranks. */
void ofi_library_environment(struct ofi_library_environment *e, int size);

/* Between loader_begin() and loader_end().  0; -ENOENT: not installed, the text names the package; -ENOEXEC: it cannot be
 * loaded; -EPROTO: too old or incomplete. */
int ofi_library_open(struct ofi_library *library);

/* The best network for reliable datagrams: of the provider in the setting ofi_provider, or of the first one of our list that has any.
 * 0 (the caller frees *info by freeinfo) or -errno with text. */
int ofi_library_choose(const struct ofi_library *library, const struct settings *settings, struct ofi_info **info);

/* transport_ops.describe */
int ofi_library_describe(const struct settings *settings, char *out, size_t size);

#endif
