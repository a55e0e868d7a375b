/* SPDX-License-Identifier: MIT */
#include "transport/ucx/ucx_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/interfaces.h"

#define LIBRARY_NAME "libucp.so.0"
#define LIBRARY_TLS "UCX_TLS"
#define LIBRARY_DEVICES "UCX_NET_DEVICES"

/* No handlers of signals, no changed code, no threads for a debugger, nothing printed; connections are made without blocking, and
 * a packet is one fragment. */
static const struct loader_variable ucx_library_fixed[] = {
	{"UCX_HANDLE_ERRORS", "none", false},     {"UCX_ERROR_SIGNALS", "", false}, {"UCX_DEBUG_SIGNO", "0", false},
	{"UCX_MEM_EVENTS", "n", false},           {"UCX_VFS_ENABLE", "n", false},   {"UCX_LOG_LEVEL", "fatal", false},
	{"UCX_WARN_UNUSED_ENV_VARS", "n", false}, {"UCX_TCP_CONN_NB", "y", false},  {"UCX_TCP_TX_SEG_SIZE", "64k", false},
	{"UCX_TCP_RX_SEG_SIZE", "64k", false},
};

static void ucx_library_set(struct ucx_library_environment *e, const char *name, const char *value, bool overrides)
{
	e->variable[e->count++] = (struct loader_variable){name, value, overrides};
}

void ucx_library_environment(struct ucx_library_environment *e, const struct settings *settings)
{
	const char *tls = settings_text(settings, SETTING_UCX_TLS), *devices = settings_text(settings, SETTING_UCX_NET_DEVICES);
	bool ours = !getenv(LIBRARY_TLS) || strcmp(settings_origin(settings, SETTING_UCX_TLS), "default") != 0;

	static_assert(sizeof(ucx_library_fixed) / sizeof(ucx_library_fixed[0]) + 2 <= LIBRARY_VARIABLES_MAX, "room");
	e->count = 0;
	for (size_t i = 0; i < sizeof(ucx_library_fixed) / sizeof(ucx_library_fixed[0]); i++)
		e->variable[e->count++] = ucx_library_fixed[i];
	if (tls[0])
		ucx_library_set(e, LIBRARY_TLS, tls, ours);
	interfaces_best(e->interfaces, sizeof(e->interfaces));
	if (devices[0])
		ucx_library_set(e, LIBRARY_DEVICES, devices, true);
	else if (e->interfaces[0] && ours && strcmp(tls, "tcp") == 0) /* other transports have devices with other names */
		ucx_library_set(e, LIBRARY_DEVICES, e->interfaces, false);
}

static int ucx_library_check_version(const struct ucx_library *l)
{
	unsigned major, minor, release;

	l->get_version(&major, &minor, &release);
	if (major != UCX_API_MAJOR || minor < UCX_API_MINOR)
		return error_set(-EPROTO, LIBRARY_NAME " is UCX %u.%u.%u; a version 1 from %u.%u on is needed", major, minor, release,
				 UCX_API_MAJOR, UCX_API_MINOR);
	return 0;
}

int ucx_library_open(struct ucx_library *l)
{
	const struct loader_symbol symbols[] = {
		{"ucp_get_version", &l->get_version},
		{"ucp_get_version_string", &l->get_version_string},
		{"ucs_status_string", &l->status_string},
		{"ucp_config_read", &l->config_read},
		{"ucp_config_release", &l->config_release},
		{"ucp_init_version", &l->init},
		{"ucp_cleanup", &l->cleanup},
		{"ucp_worker_create", &l->worker_create},
		{"ucp_worker_destroy", &l->worker_destroy},
		{"ucp_worker_query", &l->worker_query},
		{"ucp_worker_release_address", &l->release_address},
		{"ucp_worker_set_am_recv_handler", &l->set_am_handler},
		{"ucp_worker_get_efd", &l->worker_get_efd},
		{"ucp_worker_arm", &l->worker_arm},
		{"ucp_worker_progress", &l->worker_progress},
		{"ucp_ep_create", &l->ep_create},
		{"ucp_ep_close_nbx", &l->ep_close},
		{"ucp_am_send_nbx", &l->am_send},
		{"ucp_request_free", &l->request_free},
	};
	int rc = loader_open(LIBRARY_NAME, symbols, sizeof(symbols) / sizeof(symbols[0]));

	if (rc == -ENOENT)
		return error_prefix(rc, "UCX is not installed (Debian, Ubuntu: libucx0; Fedora, RHEL, SUSE: ucx)");
	if (rc == -ENOEXEC)
		return error_prefix(rc, "UCX cannot be loaded, install it again");
	if (rc < 0)
		return error_prefix(rc, "UCX is too old or incomplete");
	return ucx_library_check_version(l);
}

int ucx_library_describe(const struct settings *settings, char *out, size_t size)
{
	struct ucx_library_environment e;
	struct ucx_library library;
	struct loader loader;
	int rc;

	ucx_library_environment(&e, settings);
	rc = loader_begin(&loader, e.variable, e.count);
	if (rc < 0)
		return rc;
	rc = ucx_library_open(&library);
	loader_end(&loader);
	if (rc < 0)
		return rc;
	snprintf(out, size, "  library: UCX %s\n", library.get_version_string());
	loader_describe(e.variable, e.count, out, size);
	return 0;
}
