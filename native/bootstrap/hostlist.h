/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_HOSTLIST_H
#define IBVX_BOOTSTRAP_HOSTLIST_H
/*
 * hostlist: Slurm's short form of many numbered names: "n[01-16,20],login", "rack[0-1]n[0-3]".
 */
#include <stddef.h>

/* The first host of a list.  0; -EINVAL: malformed, empty, or longer than size (no text). */
int hostlist_first(const char *list, char *out, size_t size);

/* Up to max numbers of a list of ports, "31000-31003,31007".  How many; -EINVAL: malformed (no text). */
int hostlist_ports(const char *list, int *out, int max);

#endif
