/* SPDX-License-Identifier: MIT */
/*
 * A library that stands where libucp.so.0 or libfabric.so.1 is looked for. As it is it lacks most functions; with FAKE_OLD it has those
 * of both and an old version, with FAKE_UNRESOLVED it cannot be loaded.
 */
#include <stdint.h>

#define FAKE(name)       \
	void name(void); \
	void name(void)  \
	{                \
	}

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release);
uint32_t fi_version(void);

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
	*major = 1;
	*minor = 2;
	*release = 3;
}

uint32_t fi_version(void)
{
	return 1u << 16 | 2;
}

#ifdef FAKE_OLD
FAKE(ucp_get_version_string)
FAKE(ucs_status_string)
FAKE(ucp_config_read)
FAKE(ucp_config_release)
FAKE(ucp_init_version)
FAKE(ucp_cleanup)
FAKE(ucp_worker_create)
FAKE(ucp_worker_destroy)
FAKE(ucp_worker_query)
FAKE(ucp_worker_release_address)
FAKE(ucp_worker_set_am_recv_handler)
FAKE(ucp_worker_get_efd)
FAKE(ucp_worker_arm)
FAKE(ucp_worker_progress)
FAKE(ucp_ep_create)
FAKE(ucp_ep_close_nbx)
FAKE(ucp_am_send_nbx)
FAKE(ucp_request_free)
FAKE(fi_getinfo)
FAKE(fi_freeinfo)
FAKE(fi_dupinfo)
FAKE(fi_fabric)
FAKE(fi_strerror)
#endif

#ifdef FAKE_UNRESOLVED
void fake_defined_nowhere(void);
void *fake_needs(void);
void *fake_needs(void)
{
	return (void *)(uintptr_t)fake_defined_nowhere;
}
#endif
