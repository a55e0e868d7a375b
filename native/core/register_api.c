/* SPDX-License-Identifier: MIT */
/* Buffers that the caller vouches for (ibvx.h): what a transport prepares for them may outlive the message. */
#include <errno.h>

#include "base/error.h"
#include "core/api.h"

int ibvx_buffer_register(struct ibvx *ep, void *base, size_t bytes)
{
	int rc;

	if (!base || !bytes || bytes > PTRDIFF_MAX)
		return error_set(-EINVAL, "a buffer of %zu bytes at %p cannot be registered", bytes, base);
	core_lock(ep);
	rc = api_check_open(ep);
	for (int i = 0; rc == 0 && i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		if (t->ops->buffer_register)
			rc = t->ops->buffer_register(t, base, bytes);
	}
	core_unlock(ep);
	return rc;
}

int ibvx_buffer_release(struct ibvx *ep, void *base, size_t bytes)
{
	int rc = error_set(-EINVAL, "no buffer of %zu bytes is registered at %p", bytes, base);

	core_lock(ep);
	for (int i = 0; rc < 0 && i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		if (t->ops->buffer_release)
			rc = t->ops->buffer_release(t, base, bytes);
	}
	core_unlock(ep);
	return rc;
}
