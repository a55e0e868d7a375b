/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_PMIX_ABI_H
#define IBVX_BOOTSTRAP_PMIX_ABI_H
/*
 * pmix_abi: the little of libpmix.so.2 that is needed, declared here so that the library can be opened at run time and
 * is no dependency of the build.  The same in PMIx 3.x to 6.x (PMIx Standard 3.1 to 5.0); version 2 had a smaller value.
 * tests/bootstrap/pmix_abi.c compares it with pmix.h where that is installed.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMIX_ABI_RANK_WILDCARD (UINT32_MAX - 1)
#define PMIX_ABI_SCOPE_GLOBAL 3
#define PMIX_ABI_SUCCESS 0

enum pmix_abi_type {
	PMIX_ABI_BOOL = 1,
	PMIX_ABI_UINT16 = 13,
	PMIX_ABI_UINT32 = 14,
	PMIX_ABI_BYTE_OBJECT = 27,
};

#define PMIX_ABI_JOB_SIZE "pmix.job.size"     /* uint32 */
#define PMIX_ABI_LOCAL_SIZE "pmix.local.size" /* uint32 */
#define PMIX_ABI_COLLECT "pmix.collect"       /* bool, of a fence */

struct pmix_abi_proc {
	char nspace[256];
	uint32_t rank;
};
static_assert(sizeof(struct pmix_abi_proc) == 260, "pmix_proc_t");

struct pmix_abi_value {
	uint16_t type;
	union {
		bool flag;
		uint16_t uint16;
		uint32_t uint32;
		struct {
			char *bytes;
			size_t size;
		} bo;
		struct { /* pmix_envar_t, the largest member */
			char *envar, *value;
			char separator;
		} largest;
	} data;
};
static_assert(sizeof(void *) != 8 || sizeof(struct pmix_abi_value) == 32, "pmix_value_t");

struct pmix_abi_info {
	char key[512];
	uint32_t flags;
	struct pmix_abi_value value;
};
static_assert(sizeof(void *) != 8 || sizeof(struct pmix_abi_info) == 552, "pmix_info_t");

/* Each returns PMIX_ABI_SUCCESS or a negative status, which error_string explains. */
struct pmix_abi {
	const char *(*get_version)(void);
	const char *(*error_string)(int status);
	int (*init)(struct pmix_abi_proc *self, struct pmix_abi_info *info, size_t info_count);
	int (*finalize)(const struct pmix_abi_info *info, size_t info_count);
	int (*put)(uint8_t scope, const char *key, struct pmix_abi_value *value);
	int (*commit)(void);
	int (*fence)(const struct pmix_abi_proc *procs, size_t proc_count, const struct pmix_abi_info *info, size_t info_count);
	/* *value is the caller's: free(bytes), free(value). */
	int (*get)(const struct pmix_abi_proc *proc, const char *key, const struct pmix_abi_info *info, size_t info_count,
		   struct pmix_abi_value **value);
};

#endif
