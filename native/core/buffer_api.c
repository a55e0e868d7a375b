/* SPDX-License-Identifier: MIT */
/* Buffers that the caller vouches for (ibvx.h): what a transport prepares for them may outlive the message. */
#include <errno.h>

#include "base/error.h"
#include "core/api.h"
#include "ibvx_heap.h"

static int buffer_keep(struct ibvx *ep, void *base, size_t bytes, bool whole)
{
	int rc;

	if (!base || !bytes || bytes > PTRDIFF_MAX)
		return error_set(-EINVAL, "a buffer of %zu bytes at %p cannot be registered", bytes, base);
	core_lock(ep);
	rc = api_check_open(ep);
	for (int i = 0; rc == 0 && i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		if (t->ops->keep)
			rc = t->ops->keep(t, base, bytes, whole);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_buffer_register(struct ibvx *ep, void *base, size_t bytes)
{
	return buffer_keep(ep, base, bytes, false);
}

bool ibvx_heap_registers(struct ibvx *ep)
{
	return settings_int(ep->settings, SETTING_REGISTER_HEAP);
}

int ibvx_heap_register(struct ibvx *ep, void *base, size_t bytes)
{
	return buffer_keep(ep, base, bytes, true);
}

int ibvx_buffer_release(struct ibvx *ep, void *base, size_t bytes)
{
	int rc = error_set(-EINVAL, "no buffer of %zu bytes is registered at %p", bytes, base);

	core_lock(ep);
	for (int i = 0; rc < 0 && i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		if (t->ops->unkeep)
			rc = t->ops->unkeep(t, base, bytes);
	}
	core_unlock(ep);
	return rc;
}
