/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "transport/self/self.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"

const struct transport_ops *const transport_all[] = {&transport_self_ops, &transport_shm_ops, NULL};

const struct transport_ops *transport_find(const char *name)
{
	for (int i = 0; transport_all[i]; i++) {
		if (strcmp(transport_all[i]->name, name) == 0)
			return transport_all[i];
	}
	return NULL;
}
