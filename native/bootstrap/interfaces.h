/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_INTERFACES_H
#define IBVX_BOOTSTRAP_INTERFACES_H
/*
 * interfaces: under which addresses this host can be reached.
 */
#include "base/settings.h"
#include "bootstrap/address.h"

/* The addresses of the interfaces that are up, of both families, best first: no loopback ones unless there is nothing
 * else, no link-local ones of IPv6 (they mean nothing without the other side's interface), those of bridges for
 * containers and guests last, as every host has the same there.  The setting `net` narrows it down: names of
 * interfaces, addresses or subnets (10.1.0.0/16, fd00::/8), separated by commas, best first.  The ports are 0.
 * 0; -EINVAL: nothing matches `net`, the text lists what there is; another -errno with text. */
int interfaces_find(struct address_list *out, const struct settings *settings);

#endif
