/* SPDX-License-Identifier: MIT */
/* What Rabenseifner's algorithms and reduce_scatter share. */
#include "coll/build.h"

struct build_fold build_fold(const struct ibvx_comm *comm)
{
	struct build_fold f = {.power = build_power(comm->size)};

	f.rest = comm->size - f.power;
	f.number = comm->rank - f.rest;
	if (comm->rank < 2 * f.rest)
		f.number = comm->rank % 2 ? comm->rank / 2 : -1;
	return f;
}

void build_halve(struct schedule *s, const struct build_fold *f, char *sum, char *spare, size_t count, const size_t *starts)
{
	for (int mask = f->power / 2; mask > 0; mask /= 2) {
		int other = f->number ^ mask, member = build_fold_member(f, other);
		int mine = f->number & ~(mask - 1), theirs = other & ~(mask - 1);
		size_t bytes = s->op.bytes;
		size_t keep = starts ? starts[mine] : build_block(f, count, mine);
		size_t keep_end = starts ? starts[mine + mask] : build_block(f, count, mine + mask);
		size_t leave = starts ? starts[theirs] : build_block(f, count, theirs);
		size_t leave_end = starts ? starts[theirs + mask] : build_block(f, count, theirs + mask);
		int step = schedule_recv(s, member, spare, (keep_end - keep) * bytes, NULL);

		schedule_send(s, member, sum + leave * bytes, (leave_end - leave) * bytes, NULL);
		schedule_await(s, step);
		schedule_reduce(s, spare, sum + keep * bytes, keep_end - keep);
	}
}
