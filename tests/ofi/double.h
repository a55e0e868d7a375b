/* SPDX-License-Identifier: MIT */
#ifndef TESTS_OFI_DOUBLE_H
#define TESTS_OFI_DOUBLE_H
/*
 * double: netlib/double.h for libfabric, and what only this library does.
 */
#include "netlib/double.h"

/* Networks that fi_getinfo lists: what the transport chooses among. */
struct ofi_double_network {
	const char *provider, *domain;
	int family; /* AF_INET, AF_INET6; 0: none */
};

struct ofi_double {
	const struct ofi_double_network *networks; /* ends with a provider of NULL; NULL: one network, "tcp" */
	int mr_mode;
	bool no_fd;     /* FI_WAIT_FD is refused */
	bool again;     /* sends find no room */
	int broken;     /* the completion queue fails with it */
	int posted;     /* receives that are posted now */
	int registered; /* calls of fi_mr_reg, so far */
	char asked[64]; /* the provider that was asked for */
};
extern struct ofi_double ofi_double;

#endif
