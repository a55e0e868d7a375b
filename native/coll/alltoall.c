/* SPDX-License-Identifier: MIT */
#include "coll/build.h"

enum { ALLTOALL_AUTO, ALLTOALL_LINEAR, ALLTOALL_PAIRWISE, ALLTOALL_BRUCK };

/* Bruck up to this size of a part, with at least so many members. */
#define ALLTOALL_BRUCK_BYTES 128
#define ALLTOALL_BRUCK_MEMBERS 8
/* Pairs one after the other from this size on: everything at once would only compete for the caches. */
#define ALLTOALL_PAIR_BYTES (256u << 10)

/* Everything at once. */
static void alltoall_linear(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;

	for (int k = 1; k < p; k++)
		build_recv_part(s, build_around(r, -k, p), &a->out, build_around(r, -k, p));
	for (int k = 1; k < p; k++)
		build_send_part(s, build_around(r, k, p), &a->in, build_around(r, k, p));
	build_copy_part(s, build_one(&a->in, r), build_one(&a->out, r));
}

/* One partner to send to and one to receive from at a time. */
static void alltoall_pairwise(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;

	for (int k = 1; k < p; k++) {
		build_recv_part(s, build_around(r, -k, p), &a->out, build_around(r, -k, p));
		build_send_part(s, build_around(r, k, p), &a->in, build_around(r, k, p));
		schedule_await_all(s);
	}
	build_copy_part(s, build_one(&a->in, r), build_one(&a->out, r));
}

/* log p rounds.  Part i is on its way to member r + i; in the round of bit k those with this bit travel k members further. */
static void alltoall_bruck(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	size_t each = a->out.bytes, half = each * (size_t)(p / 2 + 1);
	char *all = schedule_scratch(s, each * (size_t)p), *out = schedule_scratch(s, half), *in = schedule_scratch(s, half);

	for (int i = 0; i < p; i++)
		build_copy_part(s, build_one(&a->in, build_around(r, i, p)), build_flat(all + (size_t)i * each, each));
	schedule_await_all(s);
	for (int64_t k = 1; k < p; k *= 2) {
		size_t bytes = 0;

		for (int i = 0; i < p; i++) {
			if (!(i & k))
				continue;
			schedule_copy(s, all + (size_t)i * each, out + bytes, each);
			bytes += each;
		}
		schedule_recv(s, build_around(r, -(int)k, p), in, bytes, NULL);
		schedule_send(s, build_around(r, (int)k, p), out, bytes, NULL);
		schedule_await_all(s);
		bytes = 0;
		for (int i = 0; i < p; i++) {
			if (!(i & k))
				continue;
			schedule_copy(s, in + bytes, all + (size_t)i * each, each);
			bytes += each;
		}
	}
	for (int i = 0; i < p; i++)
		build_copy_part(s, build_flat(all + (size_t)i * each, each), build_one(&a->out, build_around(r, -i, p)));
}

void coll_build_alltoall(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, choice = build_choice(s, SETTING_COLL_ALLTOALL);
	bool regular = !a->out.sizes && !a->in.sizes;

	if (choice == ALLTOALL_AUTO && regular && p >= ALLTOALL_BRUCK_MEMBERS && a->out.bytes <= ALLTOALL_BRUCK_BYTES)
		choice = ALLTOALL_BRUCK;
	if (choice == ALLTOALL_AUTO && regular && a->out.bytes >= ALLTOALL_PAIR_BYTES)
		choice = ALLTOALL_PAIRWISE;
	if (choice == ALLTOALL_BRUCK && regular && p > 1)
		alltoall_bruck(s, a);
	else if (choice == ALLTOALL_PAIRWISE)
		alltoall_pairwise(s, a);
	else
		alltoall_linear(s, a);
}
