/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_INTERFACES_H
#define IBVX_TRANSPORT_INTERFACES_H
/*
 * interfaces: which of this machine's network interfaces lead to other machines.
 */
#include <stdbool.h>
#include <stddef.h>

/* The names of the interfaces of the best kind that there is and that are up, separated by commas: those of networks; else bridges for
 * containers and guests; else loopback. */
void interfaces_best(char *out, size_t size);
/* Is the name in such a list? */
bool interfaces_listed(const char *list, const char *name);

#endif
