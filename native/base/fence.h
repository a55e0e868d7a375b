/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_FENCE_H
#define IBVX_BASE_FENCE_H
/*
 * fence: a full fence in every other thread of this process, by membarrier(2), so that what happens often needs none:
 *
 *   often:   store A; (compiler barrier); load B
 *   seldom:  store B; fence_others(); load A         one of the two sees the other's store
 */
#include <stdbool.h>

/* Can it be done here?  Asks the kernel once; the answer stays. Any thread. */
bool fence_possible(void);
/* After a fence_possible() that returned true. Some microseconds. */
void fence_others(void);

#endif
