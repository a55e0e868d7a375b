/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_UCX_UCX_LIBRARY_H
#define IBVX_TRANSPORT_UCX_UCX_LIBRARY_H
/*
 * ucx_library: libucp.so.0, opened with an environment under which it leaves the process alone, and what ibvdev-info reports of it.
 */
#include "base/settings.h"
#include "transport/loader.h"
#include "transport/ucx/ucx_abi.h"

/* What the library is to read from the environment, out of our settings and this machine's interfaces. */
#define LIBRARY_VARIABLES_MAX 16
struct ucx_library_environment {
	struct loader_variable variable[LIBRARY_VARIABLES_MAX];
	size_t count;
	char interfaces[512];
};
void ucx_library_environment(struct ucx_library_environment *e, const struct settings *settings);

/* Between loader_begin() and loader_end().  0; -ENOENT: not installed, the text names the package; -ENOEXEC: it cannot be
 * loaded; -EPROTO: too old or incomplete. */
int ucx_library_open(struct ucx_library *library);

/* transport_ops.describe */
int ucx_library_describe(const struct settings *settings, char *out, size_t size);

#endif
