/* SPDX-License-Identifier: MIT */
/* Our declarations of libpmix against the installed pmix.h: a difference does not compile. */
#include <pmix.h>

#include "bootstrap/pmix_abi.h"

#define SAME(a, b) static_assert((a) == (b), #a " is not " #b)

SAME(sizeof(pmix_proc_t), sizeof(struct pmix_abi_proc));
SAME(offsetof(pmix_proc_t, rank), offsetof(struct pmix_abi_proc, rank));
SAME(sizeof(pmix_value_t), sizeof(struct pmix_abi_value));
SAME(offsetof(pmix_value_t, data), offsetof(struct pmix_abi_value, data));
SAME(offsetof(pmix_value_t, data.bo.size), offsetof(struct pmix_abi_value, data.bo.size));
SAME(sizeof(pmix_info_t), sizeof(struct pmix_abi_info));
SAME(offsetof(pmix_info_t, flags), offsetof(struct pmix_abi_info, flags));
SAME(offsetof(pmix_info_t, value), offsetof(struct pmix_abi_info, value));
SAME(PMIX_BOOL, PMIX_ABI_BOOL);
SAME(PMIX_UINT16, PMIX_ABI_UINT16);
SAME(PMIX_UINT32, PMIX_ABI_UINT32);
SAME(PMIX_BYTE_OBJECT, PMIX_ABI_BYTE_OBJECT);
SAME(PMIX_GLOBAL, PMIX_ABI_SCOPE_GLOBAL);
SAME(sizeof(pmix_scope_t), sizeof(uint8_t));
SAME(PMIX_SUCCESS, PMIX_ABI_SUCCESS);
SAME(PMIX_RANK_WILDCARD, PMIX_ABI_RANK_WILDCARD);
SAME(sizeof(PMIX_JOB_SIZE), sizeof(PMIX_ABI_JOB_SIZE));
SAME(sizeof(PMIX_LOCAL_SIZE), sizeof(PMIX_ABI_LOCAL_SIZE));

int main(void)
{
	return strcmp(PMIX_JOB_SIZE, PMIX_ABI_JOB_SIZE) || strcmp(PMIX_LOCAL_SIZE, PMIX_ABI_LOCAL_SIZE) ||
	       strcmp(PMIX_COLLECT_DATA, PMIX_ABI_COLLECT);
}
