/* SPDX-License-Identifier: MIT */
/* Messages from and to memory that a layout describes: every protocol, posted and unexpected, matched, to itself, refused. */
#include "directed.h"

#include <errno.h>
#include <stdlib.h>

#define PSL "psl=4000"
#define CELL 8   /* bytes of a block */
#define PITCH 20 /* from block to block */

static const size_t sizes[] = {0, 8, 3000, 60000}; /* empty, eager, fragmented (packets of 512), rendezvous */

/* Blocks of CELL bytes, PITCH apart, as often as the message is long. */
static struct ibvx_layout *cells(void)
{
	struct ibvx_layout *block, *cell;

	assert_int_equal(ibvx_layout_contiguous(&block, CELL), 0);
	assert_int_equal(ibvx_layout_nested(&cell, 1, PITCH, block), 0);
	ibvx_layout_free(block);
	return cell;
}

static char *memory_new(size_t bytes)
{
	char *p = malloc(bytes / CELL * PITCH + PITCH);

	assert_non_null(p);
	return memset(p, '.', bytes / CELL * PITCH + PITCH);
}

static void cells_put(char *memory, struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		memory[i / CELL * PITCH + i % CELL] = t.bytes[i];
}

/* memory holds the message in its cells, and dots between them and behind it. */
static void cells_hold(const char *memory, struct text t, size_t capacity)
{
	for (size_t i = 0; i < capacity / CELL * PITCH + PITCH; i++) {
		size_t at = i / PITCH * CELL + i % PITCH;

		assert_int_equal(memory[i], i % PITCH < CELL && at < t.len ? t.bytes[at] : '.');
	}
}

static void send_cells(struct world *w, int to, const char *memory, size_t bytes, ibvx_req *req)
{
	struct ibvx_layout *l = cells();
	const struct ibvx_sbuf buf = {.head = "hea", .head_bytes = 3, .body = memory, .body_bytes = bytes, .user = 9, .layout = l};

	assert_int_equal(ibvx_isend(w->ep[0], &buf, to, 4, CTX, req), 0);
	ibvx_layout_free(l); /* the request keeps it */
}

/* A head and a body from cells to plain memory, then all of it from plain memory to cells. */
static void both_ways(void **state)
{
	(void)state;
	for (size_t kind = 0; kind < 4; kind++)
		for (int how = 0; how < 8; how++) {
			int to = how & 1, matched = how & 2, posted = how & 4;
			size_t bytes = sizes[kind];
			struct text t = text_of(6, bytes), flat = text_of(0, bytes + 3);
			char *from = memory_new(bytes), *in = memory_new(bytes);
			struct ibvx_layout *l = cells();
			const struct ibvx_rbuf buf = {.base = in, .capacity_bytes = bytes, .layout = l};
			ibvx_req send, recv, message;
			struct ibvx_status s;
			struct world w;

			cells_put(from, t);
			begin(&w, calm(2, 512), PSL, NULL);
			if (posted)
				recv = take(&w, to, 0, 4, flat.bytes, flat.len);
			send_cells(&w, to, from, bytes, &send);
			settle(&w);
			if (!posted)
				recv = take(&w, to, 0, 4, flat.bytes, flat.len);
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
			assert_int_equal(finish(&w, to, &recv, &s), 0);
			assert_int_equal(s.head_bytes, 3);
			assert_int_equal(s.body_bytes, bytes);
			assert_memory_equal(flat.bytes, "hea", 3);
			assert_text(flat.bytes + 3, 6, bytes);

			if (posted)
				assert_int_equal(ibvx_irecv(w.ep[to], &buf, 0, 5, CTX, &recv), 0);
			send = put(&w, 0, to, 5, t, 6, false);
			settle(&w);
			if (!posted && matched) {
				assert_int_equal(ibvx_improbe(w.ep[to], 0, 5, CTX, &message, NULL), 1);
				assert_int_equal(ibvx_imrecv(w.ep[to], &message, &buf, &recv), 0);
			} else if (!posted) {
				assert_int_equal(ibvx_irecv(w.ep[to], &buf, 0, 5, CTX, &recv), 0);
			}
			ibvx_layout_free(l);
			assert_int_equal(finish(&w, 0, &send, NULL), 0);
			assert_int_equal(finish(&w, to, &recv, &s), 0);
			cells_hold(in, t, bytes);
			end(&w);
			text_free(t);
			text_free(flat);
			free(from);
			free(in);
		}
}

/* One byte too long: consumed, nothing is written, the next message is not affected. */
static void truncated(void **state)
{
	(void)state;
	for (size_t kind = 1; kind < 4; kind++)
		for (int posted = 0; posted < 2; posted++) {
			size_t bytes = sizes[kind];
			struct text t = text_of(6, bytes), next = text_of(7, 20), got = text_of(0, 20), nothing = {NULL, 0};
			char *in = memory_new(bytes);
			struct ibvx_layout *l = cells();
			const struct ibvx_rbuf buf = {.base = in, .capacity_bytes = bytes - 1, .layout = l};
			ibvx_req send[2], recv[2];
			struct ibvx_status s;
			struct world w;

			begin(&w, calm(2, 512), PSL, NULL);
			if (posted)
				assert_int_equal(ibvx_irecv(w.ep[1], &buf, 0, 1, CTX, &recv[0]), 0);
			send[0] = put(&w, 0, 1, 1, t, 6, false);
			send[1] = put(&w, 0, 1, 1, next, 7, false);
			settle(&w);
			if (!posted)
				assert_int_equal(ibvx_irecv(w.ep[1], &buf, 0, 1, CTX, &recv[0]), 0);
			recv[1] = take(&w, 1, 0, 1, got.bytes, 20);
			assert_int_equal(finish(&w, 1, &recv[0], &s), -EMSGSIZE);
			assert_int_equal(s.body_bytes, bytes);
			cells_hold(in, nothing, bytes);
			assert_int_equal(finish(&w, 1, &recv[1], NULL), 0);
			assert_text(got.bytes, 7, 20);
			assert_int_equal(finish(&w, 0, &send[0], NULL), 0);
			assert_int_equal(finish(&w, 0, &send[1], NULL), 0);
			ibvx_layout_free(l);
			end(&w);
			text_free(t);
			text_free(next);
			text_free(got);
			free(in);
		}
}

static void ignore_pack(void *arg, const void *base, size_t offset, void *to, size_t bytes)
{
	(void)arg, (void)base, (void)offset;
	memset(to, 0, bytes);
}

static void ignore_unpack(void *arg, void *base, size_t offset, const void *from, size_t bytes)
{
	(void)arg, (void)base, (void)offset, (void)from, (void)bytes;
}

/* Arguments that cannot be: -EINVAL with a text, nothing has happened. */
static void refused(void **state)
{
	struct ibvx_layout *none, *far, *calls;
	char byte = 0;
	struct ibvx_status s;
	struct ibvx_rbuf to = {.base = &byte, .capacity_bytes = 1};
	struct ibvx_sbuf from = {.body = &byte, .body_bytes = 1};
	ibvx_req req;
	struct world w;

	(void)state;
	begin(&w, calm(2, 512), PSL, NULL);
	assert_int_equal(ibvx_layout_contiguous(&none, 0), 0);
	assert_int_equal(ibvx_layout_callbacks(&calls, 1, PTRDIFF_MAX / 8, ignore_pack, ignore_unpack, NULL), 0);
	assert_int_equal(ibvx_layout_nested(&far, 1, PTRDIFF_MAX / 8, calls), 0);
	from.layout = none;
	assert_int_equal(ibvx_send(w.ep[0], &from, 1, 1, CTX), -EINVAL);
	assert_non_null(strstr(ibvx_error(), "layout of no bytes"));
	from.layout = far;
	from.body_bytes = 3;
	assert_int_equal(ibvx_isend(w.ep[0], &from, 1, 1, CTX, &req), -EINVAL);
	assert_non_null(strstr(ibvx_error(), "exceeds memory"));
	from.body_bytes = PTRDIFF_MAX;
	assert_int_equal(ibvx_issend(w.ep[0], &from, 1, 1, CTX, &req), -EINVAL);
	to.layout = none;
	assert_int_equal(ibvx_recv(w.ep[0], &to, 1, 1, CTX, NULL), -EINVAL);
	assert_non_null(strstr(ibvx_error(), "layout of no bytes"));
	to.layout = far;
	to.capacity_bytes = SIZE_MAX;
	assert_int_equal(ibvx_irecv(w.ep[0], &to, 1, 1, CTX, &req), -EINVAL);
	to.capacity_bytes = 1;
	to.split = 1;
	assert_int_equal(ibvx_recv(w.ep[0], &to, 1, 1, CTX, &s), -EINVAL);
	assert_non_null(strstr(ibvx_error(), "split"));
	settle(&w);
	assert_int_equal(ibvx_iprobe(w.ep[1], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CTX, NULL), 0);
	ibvx_layout_free(none);
	ibvx_layout_free(far);
	ibvx_layout_free(calls);
	end(&w);
}

/* The peer dies while a long message is under way in either direction: the request ends, and gives its layout back (ASan). */
static void peer_dies(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world_config cfg = ugly(2, seed);
		size_t bytes = sizes[3];
		struct text t = text_of(6, bytes);
		char *from = memory_new(bytes), *in = memory_new(bytes);
		struct ibvx_layout *l = cells();
		const struct ibvx_rbuf buf = {.base = in, .capacity_bytes = bytes, .layout = l};
		ibvx_req send, recv;
		struct world w;

		cfg.monitor = false;
		begin(&w, cfg, PSL, NULL);
		cells_put(from, t);
		assert_int_equal(ibvx_irecv(w.ep[0], &buf, 1, 5, CTX, &recv), 0);
		ibvx_layout_free(l);
		send_cells(&w, 1, from, bytes, &send);
		put(&w, 1, 0, 5, t, 6, false);
		for (uint64_t i = 0; i < seed * 3; i++)
			world_turn(&w, 1);
		world_kill(&w, 1, seed % 2);
		(void)finish(&w, 0, &send, NULL);
		if (finish(&w, 0, &recv, NULL) == 0)
			cells_hold(in, t, bytes);
		end(&w);
		text_free(t);
		free(from);
		free(in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),
		cmocka_unit_test(truncated),
		cmocka_unit_test(refused),
		cmocka_unit_test(peer_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
