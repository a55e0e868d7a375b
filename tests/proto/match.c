/* SPDX-License-Identifier: MIT */
/* Which receive gets which message: every rule of MPI's matching, one at a time. */
#include "directed.h"

#include <errno.h>

static void by_source_tag_and_context(void **state)
{
	struct world w;
	char a[8], b[8], c[8];
	struct ibvx_status s;
	struct text t[4];
	ibvx_req ra, rb, rc, rq[4], other;
	struct ibvx_sbuf far;

	(void)state;
	begin(&w, calm(3, 0), NULL);
	ra = take(&w, 0, 2, 9, a, sizeof(a));
	rb = take(&w, 0, 1, 9, b, sizeof(b));
	rc = take(&w, 0, 1, 8, c, sizeof(c));
	for (unsigned i = 0; i < 4; i++)
		t[i] = text_of(i, 8);
	far = (struct ibvx_sbuf){NULL, 0, t[3].bytes, 8, 3};
	assert_int_equal(ibvx_isend(w.ep[1], &far, 0, 8, CTX + 1, &other), 0); /* another context */
	rq[0] = put(&w, 1, 0, 8, t[0], 0, false);
	rq[1] = put(&w, 1, 0, 9, t[1], 1, false);
	rq[2] = put(&w, 2, 0, 9, t[2], 2, false);
	assert_int_equal(finish(&w, 0, &ra, &s), 0);
	assert_int_equal(s.user, 2);
	assert_int_equal(s.source, 2);
	assert_int_equal(s.tag, 9);
	assert_int_equal(s.context, CTX);
	assert_int_equal(s.body_bytes, 8);
	assert_int_equal(s.head_bytes, 0);
	assert_text(a, 2, 8);
	assert_int_equal(finish(&w, 0, &rb, &s), 0);
	assert_int_equal(s.user, 1);
	assert_int_equal(finish(&w, 0, &rc, &s), 0);
	assert_int_equal(s.user, 0);
	assert_int_equal(ibvx_iprobe(w.ep[0], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CTX, &s), 0);
	assert_int_equal(finish(&w, 1, &other, &s), 0);
	settle(&w);
	assert_int_equal(ibvx_iprobe(w.ep[0], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CTX + 1, &s), 1);
	assert_int_equal(s.user, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(finish(&w, i < 2 ? 1 : 2, &rq[i], NULL), 0);
	end(&w);
	for (int i = 0; i < 4; i++)
		text_free(t[i]);
}

/* Four receives that all fit, of the four wildcard classes, in each of the 24 orders. */
static void posted_order_across_wildcards(void **state)
{
	struct world w;
	struct text t = text_of(1, 8);
	uint64_t user = 0;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int perm = 0; perm < 24; perm++) {
		int left[4] = {0, 1, 2, 3}, count = 4, code = perm;
		ibvx_req recv[4], send[4];
		struct ibvx_status s;
		char mem[4][8];

		for (int i = 0; i < 4; i++) {
			int pick = code % count, class = left[pick];

			code /= count;
			left[pick] = left[--count];
			recv[i] = take(&w, 0, class & 1 ? IBVX_ANY_SOURCE : 1, class & 2 ? IBVX_ANY_TAG : 5, mem[i], 8);
		}
		for (int i = 0; i < 4; i++)
			send[i] = put(&w, 1, 0, 5, t, user + (uint64_t)i, false);
		for (int i = 3; i >= 0; i--) {
			assert_int_equal(finish(&w, 0, &recv[i], &s), 0);
			assert_int_equal(s.user, user + (uint64_t)i);
			assert_int_equal(s.source, 1);
			assert_int_equal(s.tag, 5);
			assert_int_equal(finish(&w, 1, &send[i], NULL), 0);
		}
		user += 4;
	}
	end(&w);
	text_free(t);
}

static void unexpected_order(void **state)
{
	static const int tags[] = {1, 2, 1, 3, 2, 1};
	static const struct {
		int source, tag;
		uint64_t user;
	} wanted[] = {{1, 3, 3}, {IBVX_ANY_SOURCE, 2, 1},           {1, IBVX_ANY_TAG, 0}, {IBVX_ANY_SOURCE, IBVX_ANY_TAG, 2},
		      {1, 1, 5}, {IBVX_ANY_SOURCE, IBVX_ANY_TAG, 4}};
	struct world w;
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	char mem[8];

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int i = 0; i < 6; i++) {
		ibvx_req r = put(&w, 1, 0, tags[i], t, (uint64_t)i, false);

		assert_int_equal(finish(&w, 1, &r, NULL), 0);
	}
	settle(&w);
	for (int i = 0; i < 6; i++) {
		ibvx_req r;

		assert_int_equal(ibvx_iprobe(w.ep[0], wanted[i].source, wanted[i].tag, CTX, &s), 1);
		assert_int_equal(s.user, wanted[i].user);
		r = take(&w, 0, wanted[i].source, wanted[i].tag, mem, 8);
		assert_int_equal(finish(&w, 0, &r, &s), 0);
		assert_int_equal(s.user, wanted[i].user);
	}
	end(&w);
	text_free(t);
}

/* Tag -2 may be sent; only a receive of any tag gets it. */
static void tag_of_any(void **state)
{
	struct world w;
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	char mem[2][8];
	ibvx_req seven, any, send;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	seven = take(&w, 0, 1, 7, mem[0], 8);
	any = take(&w, 0, 1, IBVX_ANY_TAG, mem[1], 8);
	send = put(&w, 1, 0, IBVX_ANY_TAG, t, 4, false);
	assert_int_equal(finish(&w, 0, &any, &s), 0);
	assert_int_equal(s.tag, IBVX_ANY_TAG);
	assert_int_equal(s.user, 4);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	assert_true(stays_open(&w, 0, &seven));
	send = put(&w, 1, 0, 7, t, 5, false);
	assert_int_equal(finish(&w, 0, &seven, &s), 0);
	assert_int_equal(s.user, 5);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	end(&w);
	text_free(t);
}

/* Every protocol in one stream: whatever the network does, they arrive in order. */
static void no_overtaking(void **state)
{
	static const struct {
		size_t len;
		bool sync;
	} kinds[] = {{8, false},   {100000, false}, {0, true},  {3000, false},  {70000, true},
		     {3000, true}, {0, false},      {1, false}, {20000, false}, {16, true}};
	enum { KINDS = 10, MESSAGES = 30 };
	static char mem[MESSAGES][100000];

	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct world w;
		struct text t[MESSAGES];
		ibvx_req send[MESSAGES], recv[MESSAGES];

		begin(&w, ugly(2, seed), "psl=4000", NULL);
		for (unsigned i = 0; i < MESSAGES; i++)
			t[i] = text_of(i, kinds[(i * 7 + seed) % KINDS].len);
		for (unsigned i = 0; i < (seed % 3 ? MESSAGES / 2 : 0); i++)
			recv[i] = take(&w, 1, i % 2 ? 0 : IBVX_ANY_SOURCE, i % 3 ? IBVX_ANY_TAG : 3, mem[i], sizeof(mem[i]));
		for (unsigned i = 0; i < MESSAGES; i++)
			send[i] = put(&w, 0, 1, 3, t[i], i, kinds[(i * 7 + seed) % KINDS].sync);
		if (seed % 2)
			settle(&w);
		for (unsigned i = seed % 3 ? MESSAGES / 2 : 0; i < MESSAGES; i++)
			recv[i] = take(&w, 1, i % 2 ? 0 : IBVX_ANY_SOURCE, i % 3 ? IBVX_ANY_TAG : 3, mem[i], sizeof(mem[i]));
		for (unsigned i = MESSAGES; i-- > 0;) {
			struct ibvx_status s;

			assert_int_equal(finish(&w, 1, &recv[i], &s), 0);
			assert_int_equal(s.user, i);
			assert_int_equal(s.body_bytes, t[i].len);
			assert_text(mem[i], i, t[i].len);
			assert_int_equal(finish(&w, 0, &send[i], NULL), 0);
		}
		end(&w);
		for (unsigned i = 0; i < MESSAGES; i++)
			text_free(t[i]);
	}
}

static void probe_and_matched_probe(void **state)
{
	struct world w;
	struct text t[3];
	struct ibvx_status s;
	ibvx_req message = IBVX_REQ_NULL, send[3], r;
	struct ibvx_rbuf buf;
	char mem[3000];

	(void)state;
	begin(&w, calm(2, 512), "psl=1000", NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct ibvx_sbuf two;

		t[i] = text_of(i, 600 * (i + 1)); /* one fragmented, two announced */
		two = (struct ibvx_sbuf){t[i].bytes, 100, t[i].bytes + 100, t[i].len - 100, i};
		assert_int_equal(ibvx_isend(w.ep[1], &two, 0, 2, CTX, &send[i]), 0);
	}
	settle(&w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibvx_iprobe(w.ep[0], 1, 2, CTX, &s), 1);
		assert_int_equal(s.user, 0);
		assert_int_equal(s.head_bytes, 100);
		assert_int_equal(s.body_bytes, 500);
		assert_int_equal(s.source, 1);
		assert_int_equal(s.tag, 2);
	}
	assert_int_equal(ibvx_improbe(w.ep[0], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CTX, &message, &s), 1);
	assert_int_equal(s.user, 0);
	assert_int_equal(ibvx_iprobe(w.ep[0], 1, 2, CTX, &s), 1);
	assert_int_equal(s.user, 1);
	r = take(&w, 0, 1, 2, mem, sizeof(mem));
	assert_int_equal(finish(&w, 0, &r, &s), 0);
	assert_int_equal(s.user, 1);
	assert_text(mem, 1, 1200);
	buf = (struct ibvx_rbuf){mem, sizeof(mem), 0};
	assert_int_equal(ibvx_imrecv(w.ep[0], &message, &buf, &r), 0);
	assert_true(message == IBVX_REQ_NULL);
	assert_int_equal(finish(&w, 0, &r, &s), 0);
	assert_int_equal(s.user, 0);
	assert_text(mem, 0, 600);
	assert_int_equal(ibvx_improbe(w.ep[0], 1, 2, CTX, &message, &s), 1);
	assert_int_equal(s.user, 2);
	assert_int_equal(ibvx_iprobe(w.ep[0], 1, IBVX_ANY_TAG, CTX, &s), 0);
	assert_int_equal(ibvx_imrecv(w.ep[0], &message, &buf, &r), 0);
	assert_int_equal(finish(&w, 0, &r, &s), 0);
	assert_text(mem, 2, 1800);
	for (int i = 0; i < 3; i++)
		assert_int_equal(finish(&w, 1, &send[i], NULL), 0);
	end(&w);
	for (int i = 0; i < 3; i++)
		text_free(t[i]);
}

static void cancelled(void **state)
{
	struct world w;
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	char mem[2][8];
	ibvx_req first, second, send;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	first = take(&w, 0, IBVX_ANY_SOURCE, 1, mem[0], 8);
	second = take(&w, 0, 1, 1, mem[1], 8);
	assert_int_equal(ibvx_cancel(w.ep[0], first), 0);
	send = put(&w, 1, 0, 1, t, 6, false);
	assert_int_equal(ibvx_cancel(w.ep[1], send), -EOPNOTSUPP);
	assert_int_equal(finish(&w, 0, &first, &s), -ECANCELED);
	assert_int_equal(s.error, -ECANCELED);
	settle(&w);
	assert_int_equal(ibvx_cancel(w.ep[0], second), -EBUSY);
	assert_int_equal(finish(&w, 0, &second, &s), 0);
	assert_int_equal(s.user, 6);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	assert_int_equal(ibvx_cancel(w.ep[0], second), -EINVAL);
	end(&w);
	text_free(t);
}

enum { ALIKE_MOST = 300, ALIKE_AFTER = 3 };

/* `alike` receives with one envelope, one more with another (any: it fits all the same), some like the first;
 * one of the first is cancelled.  Messages meet them in the order of posting. */
static void alike_then_another(unsigned alike, bool any)
{
	static char mem[ALIKE_MOST + 1 + ALIKE_AFTER][8];
	unsigned count = alike + 1 + ALIKE_AFTER, gone = alike / 2;
	struct text t = text_of(1, 8);
	ibvx_req recv[ALIKE_MOST + 1 + ALIKE_AFTER], send;
	struct ibvx_status s;
	struct world w;

	begin(&w, calm(2, 0), NULL);
	for (unsigned i = 0; i < count; i++) {
		bool other = i == alike;

		recv[i] = take(&w, 0, other && any ? IBVX_ANY_SOURCE : 1, !other ? 5 : any ? IBVX_ANY_TAG : 6, mem[i], 8);
		if (i == gone)
			assert_int_equal(ibvx_cancel(w.ep[0], recv[i]), 0);
	}
	assert_int_equal(finish(&w, 0, &recv[gone], NULL), -ECANCELED);
	for (unsigned i = 0; i < count; i++) {
		if (i == gone)
			continue;
		send = put(&w, 1, 0, i == alike && !any ? 6 : 5, t, i, false);
		assert_int_equal(finish(&w, 1, &send, NULL), 0);
		assert_int_equal(finish(&w, 0, &recv[i], &s), 0);
		assert_int_equal(s.user, i);
	}
	send = put(&w, 1, 0, 5, t, count, false); /* nobody is left for it */
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	settle(&w);
	assert_int_equal(ibvx_iprobe(w.ep[0], 1, 5, CTX, &s), 1);
	recv[0] = take(&w, 0, 1, 5, mem[0], 8);
	assert_int_equal(finish(&w, 0, &recv[0], &s), 0);
	assert_int_equal(s.user, count);
	end(&w);
	text_free(t);
}

static void receives_alike(void **state)
{
	static const unsigned alike[] = {1, 2, 64, 127, 128, 129, ALIKE_MOST};

	(void)state;
	for (unsigned i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
		alike_then_another(alike[i], false);
		alike_then_another(alike[i], true);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(by_source_tag_and_context),
	cmocka_unit_test(posted_order_across_wildcards),
	cmocka_unit_test(unexpected_order),
	cmocka_unit_test(tag_of_any),
	cmocka_unit_test(no_overtaking),
	cmocka_unit_test(probe_and_matched_probe),
	cmocka_unit_test(cancelled),
	cmocka_unit_test(receives_alike),
};

int main(void)
{
	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
