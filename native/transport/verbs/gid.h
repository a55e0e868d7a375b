/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_GID_H
#define IBVX_TRANSPORT_VERBS_GID_H
/* gid: which device stands behind an address, without RDMA CM: the GID tables hold it for RoCE. */
#include "transport/verbs/state.h"

/* Opens the devices that a TCP wire-up can connect. 0 or -errno with text. */
int gid_open_devices(struct verbs *v);
void gid_close_devices(struct verbs *v);
/* Fills in device, port, method and GID entry behind an address of ours; false: none. */
bool gid_local(struct verbs *v, struct verbs_local *l, const struct sockaddr *addr);
/* Does the setting verbs_device name it, or nothing? */
bool gid_device_wanted(const struct verbs *v, const struct verbs_local *l);

#endif
