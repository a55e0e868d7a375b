/* SPDX-License-Identifier: MIT */
/* Scan and exscan: recursive doubling. */
#include "coll/build.h"

/* The members of a round's group lie next to each other.  `sum` is that of the own group; what comes from a lower group
 * belongs in front of the result, too.  Where the other group is incomplete no higher member needs its sum. */
void coll_build_scan(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	size_t bytes = a->count * s->op.bytes;
	char *sum = schedule_scratch(s, bytes), *spare = schedule_scratch(s, bytes);
	bool empty = a->kind == IBVX_EXSCAN; /* nothing is in the target yet */

	schedule_copy(s, a->source, sum, bytes);
	if (!empty)
		schedule_copy(s, a->source, a->target, bytes);
	for (int64_t mask = 1; mask < p; mask *= 2) {
		int other = r ^ (int)mask;
		char *old = sum;

		if (other >= p)
			continue;
		schedule_send(s, other, sum, bytes, NULL);
		schedule_recv(s, other, spare, bytes, NULL);
		schedule_await_all(s);
		if (other > r) {
			schedule_reduce(s, sum, spare, a->count);
			sum = spare;
			spare = old;
			continue;
		}
		if (empty)
			schedule_copy(s, spare, a->target, bytes);
		else
			schedule_reduce(s, spare, a->target, a->count);
		empty = false;
		schedule_reduce(s, spare, sum, a->count);
	}
}
