/* SPDX-License-Identifier: MIT */
/* Barrier: dissemination.  After round k a member has heard, directly or not, of 2^(k+1) members. */
#include "coll/build.h"

void coll_build_barrier(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;

	(void)a;
	for (int64_t d = 1; d < p; d *= 2) {
		int step;

		schedule_send(s, build_around(r, (int)d, p), NULL, 0, NULL);
		step = schedule_recv(s, build_around(r, -(int)d, p), NULL, 0, NULL);
		schedule_await(s, step);
	}
}
