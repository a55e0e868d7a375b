/* SPDX-License-Identifier: MIT */
#include "coll/build.h"

enum { ALLGATHER_AUTO, ALLGATHER_RING, ALLGATHER_DOUBLING, ALLGATHER_BRUCK };

/* Up to this result fewer rounds are worth more than fewer copies. */
#define ALLGATHER_SHORT_BYTES (64u << 10)

/* p - 1 rounds: each member passes on to its right neighbour what it received last from its left one. */
static void allgather_ring(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	int left = build_around(r, -1, p), right = build_around(r, 1, p);

	build_copy_part(s, build_one(&a->in, 0), build_one(&a->out, r));
	schedule_await_all(s); /* a copy between layouts is a message */
	for (int k = 0; k < p - 1; k++) {
		int step = build_recv_part(s, left, &a->out, build_around(r, -k - 1, p));

		build_send_part(s, right, &a->out, build_around(r, -k, p));
		schedule_await(s, step);
	}
}

/* Groups of 1, 2, 4 ... members, which exchange all they have.  p is a power of two. */
static void allgather_doubling(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	size_t each = a->out.bytes;
	bool direct = !a->out.layout && a->out.stride_bytes == (ptrdiff_t)each;
	char *all = direct ? a->out.base : schedule_scratch(s, each * (size_t)p);

	build_copy_part(s, a->in, build_flat(all + (size_t)r * each, each));
	schedule_await_all(s);
	for (int mask = 1; mask < p; mask *= 2) {
		int other = r ^ mask, mine = r & ~(mask - 1), theirs = other & ~(mask - 1), step;

		step = schedule_recv(s, other, all + (size_t)theirs * each, (size_t)mask * each, NULL);
		schedule_send(s, other, all + (size_t)mine * each, (size_t)mask * each, NULL);
		schedule_await(s, step);
	}
	for (int i = 0; !direct && i < p; i++)
		build_copy_part(s, build_flat(all + (size_t)i * each, each), build_one(&a->out, i));
}

/* The same for any number of members (Bruck): part i of the scratch memory belongs to member r + i. */
static void allgather_bruck(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, r = s->comm->rank;
	size_t each = a->out.bytes;
	char *all = schedule_scratch(s, each * (size_t)p);

	build_copy_part(s, a->in, build_flat(all, each));
	schedule_await_all(s);
	for (int64_t k = 1; k < p; k *= 2) {
		size_t bytes = (size_t)(k < p - k ? k : p - k) * each;
		int step = schedule_recv(s, build_around(r, (int)k, p), all + (size_t)k * each, bytes, NULL);

		schedule_send(s, build_around(r, -(int)k, p), all, bytes, NULL);
		schedule_await(s, step);
	}
	for (int i = 0; i < p; i++)
		build_copy_part(s, build_flat(all + (size_t)i * each, each), build_one(&a->out, build_around(r, i, p)));
}

void coll_build_allgather(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, choice = build_choice(s, SETTING_COLL_ALLGATHER);

	if (choice == ALLGATHER_AUTO)
		choice = a->out.bytes <= ALLGATHER_SHORT_BYTES / (size_t)p ? ALLGATHER_DOUBLING : ALLGATHER_RING;
	if (choice == ALLGATHER_DOUBLING && build_power(p) != p)
		choice = ALLGATHER_BRUCK;
	if (choice == ALLGATHER_RING || a->out.sizes || p == 1)
		allgather_ring(s, a);
	else if (choice == ALLGATHER_DOUBLING)
		allgather_doubling(s, a);
	else
		allgather_bruck(s, a);
}
