/* SPDX-License-Identifier: MIT */
/*
 * Bcast.  v is the number of a member counted from the root.
 */
#include "coll/build.h"

enum { BCAST_AUTO, BCAST_BINOMIAL, BCAST_SCATTER_ALLGATHER, BCAST_CHAIN, BCAST_LINEAR };

/* Pieces of the chain. */
#define BCAST_PIECE_BYTES (64u << 10)
/* From here on the chain or linear, if there are more than two members. */
#define BCAST_LONG_BYTES (256u << 10)

/* The lowest set bit of v; of 0 the first power of two that is not below p. */
static int64_t bcast_low(int v, int p)
{
	int64_t low = 1;

	while (low < p && !(v & low))
		low *= 2;
	return low;
}

/* Member v receives from v without its lowest set bit. */
static void bcast_binomial(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, v = build_around(s->comm->rank, -a->root, p);
	int64_t low = bcast_low(v, p);

	if (v) {
		int parent = build_around((int)(v - low), a->root, p);

		schedule_await(s, schedule_recv(s, parent, a->in.base, a->in.bytes, a->in.layout));
	}
	for (int64_t mask = low / 2; mask > 0; mask /= 2) {
		if (v + mask < p)
			schedule_send(s, build_around((int)(v + mask), a->root, p), a->in.base, a->in.bytes, a->in.layout);
	}
}

static void bcast_linear(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size;

	if (s->comm->rank != a->root)
		schedule_recv(s, a->root, a->in.base, a->in.bytes, a->in.layout);
	for (int v = 1; v < p && s->comm->rank == a->root; v++)
		schedule_send(s, build_around(v, a->root, p), a->in.base, a->in.bytes, a->in.layout);
}

/* The message in contiguous memory, cut into p blocks. */
struct bcast_blocks {
	char *base;
	size_t bytes, each;
	int root;
};

static size_t bcast_start(const struct bcast_blocks *b, int64_t block)
{
	size_t at = (size_t)block * b->each;

	return at < b->bytes ? at : b->bytes;
}

static void bcast_send_blocks(struct schedule *s, const struct bcast_blocks *b, int to, int64_t first, int64_t end)
{
	size_t at = bcast_start(b, first);

	schedule_send(s, build_around(to, b->root, s->comm->size), b->base + at, bcast_start(b, end) - at, NULL);
}

static int bcast_recv_blocks(struct schedule *s, const struct bcast_blocks *b, int from, int64_t first, int64_t end)
{
	size_t at = bcast_start(b, first);

	return schedule_recv(s, build_around(from, b->root, s->comm->size), b->base + at, bcast_start(b, end) - at, NULL);
}

/* The blocks of its sub-tree for each member, by a binomial tree. */
static void bcast_scatter(struct schedule *s, const struct bcast_blocks *b, int v)
{
	int p = s->comm->size;
	int64_t low = bcast_low(v, p);

	if (v)
		schedule_await(s, bcast_recv_blocks(s, b, (int)(v - low), v, v + low));
	for (int64_t mask = low / 2; mask > 0; mask /= 2) {
		if (v + mask < p)
			bcast_send_blocks(s, b, (int)(v + mask), v + mask, v + 2 * mask);
	}
}

/* Has v got the block by the scatter? */
static bool bcast_scattered(int v, int block, int p)
{
	return block >= v && block < v + bcast_low(v, p);
}

/* Then a ring, in which nobody gets what it has already. */
static void bcast_scatter_allgather(struct schedule *s, const struct bcast_blocks *b)
{
	int p = s->comm->size, v = build_around(s->comm->rank, -b->root, p);
	int left = build_around(v, -1, p), right = build_around(v, 1, p);

	bcast_scatter(s, b, v);
	for (int k = 0; k < p - 1; k++) {
		int out = build_around(v, -k, p), in = build_around(v, -k - 1, p), step = -1;

		if (!bcast_scattered(v, in, p))
			step = bcast_recv_blocks(s, b, left, in, in + 1);
		if (!bcast_scattered(right, out, p))
			bcast_send_blocks(s, b, right, out, out + 1);
		if (step >= 0)
			schedule_await(s, step);
	}
}

/* Each member passes pieces on to the next one while it receives the one after. */
static void bcast_chain(struct schedule *s, const struct bcast_blocks *b, int pieces)
{
	int p = s->comm->size, v = build_around(s->comm->rank, -b->root, p);
	int next = v ? bcast_recv_blocks(s, b, v - 1, 0, 1) : -1;

	for (int k = 0; k < pieces; k++) {
		int step = next;

		if (v && k + 1 < pieces)
			next = bcast_recv_blocks(s, b, v - 1, k + 1, k + 2);
		if (v)
			schedule_await(s, step);
		if (v + 1 < p)
			bcast_send_blocks(s, b, v + 1, k, k + 1);
	}
}

/* Algorithms that cut the message: where memory has a layout, by way of contiguous scratch memory. */
static void bcast_cut(struct schedule *s, const struct ibvx_coll *a, bool chain)
{
	int p = s->comm->size;
	struct ibvx_parts flat = {.base = a->in.base, .bytes = a->in.bytes};
	struct bcast_blocks b = {.bytes = a->in.bytes, .root = a->root};
	size_t pieces = chain ? (a->in.bytes + BCAST_PIECE_BYTES - 1) / BCAST_PIECE_BYTES : (size_t)p;

	pieces = pieces ? pieces : 1;
	if (a->in.layout)
		flat.base = schedule_scratch(s, a->in.bytes);
	b.base = flat.base;
	b.each = chain ? BCAST_PIECE_BYTES : (a->in.bytes + pieces - 1) / pieces;
	if (a->in.layout && s->comm->rank == a->root)
		build_copy_part(s, a->in, flat);
	schedule_await_all(s);
	if (chain)
		bcast_chain(s, &b, (int)pieces);
	else
		bcast_scatter_allgather(s, &b);
	schedule_await_all(s);
	if (a->in.layout && s->comm->rank != a->root)
		build_copy_part(s, flat, a->in);
}

void coll_build_bcast(struct schedule *s, const struct ibvx_coll *a)
{
	int p = s->comm->size, choice = build_choice(s, SETTING_COLL_BCAST);

	if (choice == BCAST_AUTO && (p == 2 || a->in.bytes < BCAST_LONG_BYTES))
		choice = BCAST_BINOMIAL;
	if (choice == BCAST_AUTO)
		choice = build_prefers_linear(s, false) ? BCAST_LINEAR : BCAST_CHAIN;
	if (choice == BCAST_BINOMIAL || p == 1 || a->in.bytes / BCAST_PIECE_BYTES >= BUILD_ROUNDS_MAX)
		bcast_binomial(s, a);
	else if (choice == BCAST_LINEAR)
		bcast_linear(s, a);
	else
		bcast_cut(s, a, choice == BCAST_CHAIN);
}
