/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "transport/ofi/ofi.h"
#include "transport/self/self.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"
#include "transport/ucx/ucx.h"
#ifdef HAVE_VERBS
#include "transport/verbs/verbs.h"
#endif

const struct transport_ops *const transport_all[] = {
	&transport_self_ops,  &transport_shm_ops,
#ifdef HAVE_VERBS
	&transport_verbs_ops,
#endif
	&transport_ucx_ops,   &transport_ofi_ops, NULL,
};

const struct transport_absent transport_absent[] = {
#ifndef HAVE_VERBS
	{"verbs", "this build was made without libibverbs-dev and librdmacm-dev"},
#endif
	{NULL, NULL},
};

const struct transport_ops *transport_find(const char *name)
{
	for (int i = 0; transport_all[i]; i++) {
		if (strcmp(transport_all[i]->name, name) == 0)
			return transport_all[i];
	}
	return NULL;
}
