/* SPDX-License-Identifier: MIT */
/* Windows over a queue pair of their own: taken, given up at every step by either side, and the pair made again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "transport/verbs/verbs_state.h"

#define OPS transport_verbs_ops
#define BYTES 5000u

/* A window from one side to the other, and what is in it. */
struct shot {
	struct pair *p;
	int from;
	unsigned char out[BYTES], in[BYTES];
	uint64_t desc[2];
	bool open, offered, claimed;
};

static const char *const always[] = {"verbs_windows=always", "window_us=1000", "verbs_get_min=1k", NULL};

static int setup(void **state)
{
	(void)state;
	adapter_reset();
	return 0;
}

static unsigned seed;

static int teardown(void **state)
{
	(void)state;
	if (adapter_live())
		fprintf(stderr, "seed %u\n", seed);
	return adapter_live() ? -1 : 0;
}

/* Where shots lie: kept as a whole, nothing but the pair's reset cuts an adapter off; else they are registered each time. */
static struct shot shots[2];
static bool whole;

static void connected(struct pair *p, const char *const *settings)
{
	pair_open(p, settings);
	for (int r = 0; r < 2 && whole; r++)
		assert_int_equal(OPS.keep(p->side[r].t, shots, sizeof(shots), true), 1);
	assert_true(pair_send_until(p, 0, 1, 100));
	pair_run(p);
}

static struct shot shot_of(struct pair *p, int from, unsigned char fill)
{
	struct shot s = {.p = p, .from = from};

	memset(s.out, fill, sizeof(s.out));
	return s;
}

static int shot_open(struct shot *s)
{
	int rc = OPS.window->open(s->p->side[s->from].t, 1 - s->from, s->out, BYTES, s->desc);

	s->open = rc == 0;
	s->offered = s->offered || rc == 0;
	return rc;
}

static int shot_end(struct shot *s, enum transport_window_end how)
{
	s->open = false;
	return OPS.window->end(s->p->side[s->from].t, 1 - s->from, how);
}

static int shot_claim(struct shot *s)
{
	int rc = OPS.window->claim(s->p->side[1 - s->from].t, s->from, s->desc, s->in, BYTES);

	s->claimed = rc == 0;
	return rc;
}

static int shot_copy(struct shot *s)
{
	return OPS.window->copy(s->p->side[1 - s->from].t, s->from, s->desc, s->in, BYTES);
}

static bool shot_settle(struct shot *s, bool taken)
{
	s->claimed = false;
	return OPS.window->settle(s->p->side[1 - s->from].t, s->from, s->desc, taken);
}

/* As far as open(), which needs a pair that stands. */
static void shot_open_until(struct shot *s)
{
	int rc = -EAGAIN;

	for (int i = 0; i < 10 && rc == -EAGAIN; i++) {
		rc = shot_open(s);
		pair_run(s->p);
	}
	assert_int_equal(rc, 0);
}

/* A window as it should be. */
static void shot_works(struct pair *p, int from, unsigned char fill)
{
	struct shot s = shot_of(p, from, fill);

	shot_open_until(&s);
	assert_int_equal(shot_open(&s), -EBUSY);
	assert_int_equal(shot_claim(&s), 0);
	assert_int_equal(shot_copy(&s), 0);
	assert_true(shot_settle(&s, true));
	assert_int_equal(shot_end(&s, TRANSPORT_TAKEN), 0);
	assert_memory_equal(s.in, s.out, BYTES);
	pair_run(p);
}

/* Nothing is left registered, and the connection has not noticed. */
static void still_good(struct pair *p, int registrations)
{
	assert_int_equal(adapter_registrations(), registrations);
	assert_true(pair_send_until(p, 1, 1, 100));
	pair_run(p);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(p->side[r].downs, 0);
		assert_int_equal(p->side[r].packets, 1);
	}
	pair_close(p);
}

static void test_taken(void **state)
{
	static const char *const tcp[] = {"verbs_windows=always", "verbs_connect=tcp", NULL};

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct pair p;
		int registrations;

		adapter_reset();
		adapter_faults.infiniband = kind == 3;
		adapter_faults.no_srq = kind == 1;
		connected(&p, kind < 2 ? always : tcp);
		registrations = adapter_registrations();
		assert_true(OPS.window->pays(p.side[0].t, 1, 100000));
		assert_false(OPS.window->pays(p.side[0].t, 1, 1000));
		for (int i = 0; i < 4; i++)
			shot_works(&p, i % 2, (unsigned char)(i + 1));
		assert_int_equal(adapter_reads, 4);
		still_good(&p, registrations);
		assert_int_equal(adapter_live(), 0);
	}
}

/* Both sides want the pair at once, or one after the other. */
static void test_both_begin(void **state)
{
	(void)state;
	for (int steps = 0; steps < 4; steps++) {
		struct pair p;
		struct shot a, b;

		adapter_reset();
		connected(&p, always);
		a = shot_of(&p, 0, 1);
		b = shot_of(&p, 1, 2);
		assert_int_equal(shot_open(&a), -EAGAIN);
		for (int i = 0; i < steps; i++)
			side_step(&p.side[i % 2]);
		if (shot_open(&b) == 0) /* theirs had come */
			shot_end(&b, TRANSPORT_TAKEN);
		pair_run(&p);
		shot_works(&p, 0, 3);
		shot_works(&p, 1, 4);
		pair_close(&p);
	}
}

/* The sender does not wait any longer: before it was claimed, before it was copied, after that. */
static void test_sender_gives_up(void **state)
{
	(void)state;
	for (int when = 0; when < 3; when++)
		for (int from = 0; from < 2; from++) {
			struct shot *s = &shots[from];
			struct pair p;
			int registrations, rc;

			adapter_reset();
			connected(&p, always);
			registrations = adapter_registrations();
			*s = shot_of(&p, from, 7);
			shot_open_until(s);
			if (when >= 1)
				assert_int_equal(shot_claim(s), 0);
			if (when == 2)
				assert_int_equal(shot_copy(s), 0);
			assert_int_equal(shot_end(s, TRANSPORT_ABANDON), -EIO);
			if (when == 1) { /* at once, before the other side hears of it */
				rc = shot_copy(s);
				assert_true(rc < 0 && rc != -EPERM && rc != -ENOSYS);
				assert_int_equal(s->in[0], 0);
			}
			pair_run(&p);
			if (when == 0)
				assert_int_equal(shot_claim(s), -ECANCELED);
			if (when >= 1)
				assert_int_equal(shot_settle(s, when == 2), when == 2); /* what was copied counts */
			pair_run(&p);
			shot_works(&p, from, 8);
			shot_works(&p, 1 - from, 9);
			still_good(&p, registrations);
		}
}

/* The read does not end, or ends badly: the receiver comes out in its time, and nothing is written to its memory afterwards.  A pair that cannot be reset is
 * destroyed. */
static void test_receiver_gives_up(void **state)
{
	enum { LATE, LATE_NO_RESET, BADLY, CASES };

	(void)state;
	for (int how = 0; how < CASES; how++) {
		struct shot *s = &shots[0];
		struct pair p;
		int registrations;

		adapter_reset();
		connected(&p, always);
		registrations = adapter_registrations();
		*s = shot_of(&p, 0, 7);
		shot_open_until(s);
		assert_int_equal(shot_claim(s), 0);
		adapter_faults.hold_moves = how != BADLY;
		adapter_faults.no_reset = how == LATE_NO_RESET;
		adapter_faults.next_send = how == BADLY ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
		assert_int_equal(shot_copy(s), how == BADLY ? -EIO : -ETIMEDOUT);
		adapter_release();
		assert_int_equal(s->in[0], 0);
		adapter_faults.no_reset = false;
		assert_false(shot_settle(s, false));
		assert_int_equal(shot_end(s, TRANSPORT_ABANDON), -EIO);
		pair_run(&p);
		shot_works(&p, 0, 8);
		shot_works(&p, 1, 9);
		still_good(&p, registrations);
	}
}

/* A pair that never brings anything home is given up on both sides; one that does now and then is not. */
static void test_broken_too_often(void **state)
{
	(void)state;
	for (int now_and_then = 0; now_and_then < 2; now_and_then++) {
		struct pair p;
		struct shot s;
		int rc = 0;

		adapter_reset();
		connected(&p, always);
		for (int i = 0; i < 20 && rc == 0; i++) {
			s = shot_of(&p, 0, 7);
			for (int n = 0; n < 5 && shot_open(&s) < 0; n++)
				pair_run(&p);
			rc = s.open ? 0 : -1;
			if (s.open)
				shot_end(&s, TRANSPORT_ABANDON);
			pair_run(&p);
			if (now_and_then)
				shot_works(&p, 0, (unsigned char)i);
		}
		assert_int_equal(rc, now_and_then ? 0 : -1);
		for (int r = 0; r < 2; r++)
			assert_int_equal(OPS.window->pays(p.side[r].t, 1 - r, 100000), now_and_then);
		still_good(&p, adapter_registrations());
	}
}

/* No pair to be had on one side: none on either, and nobody asks for ever. */
static void test_no_pair(void **state)
{
	int calls;

	(void)state;
	for (int nth = 1; nth < 40; nth++) {
		struct pair p;
		struct shot s;

		adapter_reset();
		connected(&p, always);
		adapter_faults.fail_call = nth;
		adapter_faults.calls = 0;
		s = shot_of(&p, 0, 7);
		for (int i = 0; i < 10 && shot_open(&s) < 0; i++)
			pair_run(&p);
		calls = adapter_faults.fail_call;
		adapter_faults.fail_call = 0;
		if (s.open) {
			assert_true(calls > 0 || strcmp(adapter_faults.failed, "reg_mr") == 0 ||
				    strcmp(adapter_faults.failed, "post_srq_recv") == 0);
			shot_end(&s, TRANSPORT_TAKEN);
		} else {
			for (int r = 0; r < 2; r++)
				assert_false(OPS.window->pays(p.side[r].t, 1 - r, 100000));
		}
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
		if (calls > 0)
			return;
	}
	fail_msg("creation calls without end");
}

static void test_where_there_are_none(void **state)
{
	static const char *const none[][2] = {{"verbs_windows=never"}, {"verbs_windows=auto"}, {"verbs_windows=always"}};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct pair p;

		adapter_reset();
		adapter_faults.iwarp = i == 2;
		connected(&p, none[i]);
		assert_false(OPS.window->pays(p.side[0].t, 1, 1 << 20));
		pair_close(&p);
	}
}

/* Memory that is kept as a whole, before the device is opened or after: registered once, windows in it register nothing. */
static void test_whole(void **state)
{
	static const char *const settings[] = {"verbs_windows=auto", "register_heap=1", "verbs_cache_bytes=8k", "verbs_cache_entries=1", NULL};

	(void)state;
	for (int late = 0; late < 2; late++) {
		static struct shot s;
		static char small[100];
		struct pair p;
		int registrations;

		adapter_reset();
		pair_open(&p, settings);
		for (int r = 0; r < 2 && !late; r++)
			assert_int_equal(OPS.keep(p.side[r].t, &s, sizeof(s), true), 1);
		assert_true(pair_send_until(&p, 0, 1, 100));
		pair_run(&p);
		for (int r = 0; r < 2 && late; r++)
			assert_int_equal(OPS.keep(p.side[r].t, &s, sizeof(s), true), 1);
		registrations = adapter_registrations();
		s = shot_of(&p, 0, 5);
		assert_true(OPS.window->pays(p.side[0].t, 1, 100000));
		shot_open_until(&s);
		assert_int_equal(shot_claim(&s), 0);
		assert_int_equal(adapter_registrations(), registrations);
		assert_int_equal(shot_copy(&s), 0);
		assert_true(shot_settle(&s, true));
		shot_end(&s, TRANSPORT_TAKEN);
		assert_memory_equal(s.in, s.out, BYTES);
		assert_int_equal(adapter_registrations(), registrations);
		/* the limits are for others, and it cannot be released */
		assert_int_equal(OPS.keep(p.side[0].t, small, sizeof(small), false), 1);
		assert_int_equal(OPS.keep(p.side[0].t, small, 10, false), -ENOSPC);
		assert_int_equal(OPS.unkeep(p.side[0].t, &s, sizeof(s)), -EINVAL);
		assert_int_equal(OPS.unkeep(p.side[0].t, small, sizeof(small)), 0);
		assert_int_equal(adapter_registrations(), registrations);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

/* The peer ends in the middle. */
static void test_peer_ends(void **state)
{
	(void)state;
	for (int claimed = 0; claimed < 2; claimed++) {
		struct pair p;
		struct shot s;

		adapter_reset();
		connected(&p, always);
		s = shot_of(&p, 0, 7);
		shot_open_until(&s);
		if (claimed)
			assert_int_equal(shot_claim(&s), 0);
		OPS.forget(p.side[0].t, 1);
		adapter_disconnect_all();
		pair_run(&p);
		if (claimed) {
			assert_true(shot_copy(&s) < 0);
			assert_int_equal(s.in[0], 0);
			assert_false(shot_settle(&s, false));
		} else {
			assert_true(shot_claim(&s) < 0);
		}
		assert_int_equal(shot_end(&s, TRANSPORT_ABANDON), -EIO);
		assert_true(shot_open(&s) < 0);
		pair_close(&p);
	}
}

/* Everything in any order: nothing is read that was taken back, the two pairs find each other in the end. */
static void test_any_order(void **state)
{
	(void)state;
	for (seed = 1; seed <= 2000; seed++) {
		struct shot *s = shots;
		struct pair p;
		int registrations;

		adapter_reset();
		connected(&p, always);
		registrations = adapter_registrations();
		srand(seed);
		s[0] = shot_of(&p, 0, 7);
		s[1] = shot_of(&p, 1, 8);
		for (int i = 0, ended = 0; i < 60 && ended < 3; i++) {
			struct shot *x = &s[rand() % 2];
			bool was_open = x->open;
			int rc;

			switch (rand() % 8) {
			case 0:
				if (!x->open && !x->claimed)
					shot_open(x);
				break;
			case 1:
				if (x->open && (!x->claimed || rand() % 2)) {
					shot_end(x, TRANSPORT_ABANDON);
					ended++;
				}
				break;
			case 2:
				if (!x->claimed && x->offered && shot_claim(x) == 0)
					x->offered = false; /* each offer arrives once */
				break;
			case 3:
				if (!x->claimed)
					break;
				memset(x->in, 0, BYTES);
				rc = shot_copy(x);
				assert_int_equal(x->in[0], rc == 0 ? x->out[0] : 0);
				assert_true(rc < 0 || was_open);
				shot_settle(x, rc == 0);
				ended += rc < 0;
				if (x->open)
					shot_end(x, TRANSPORT_TAKEN);
				break;
			case 4: /* as in a region: nothing that takes time */
				OPS.poll(p.side[rand() % 2].t, 1 + rand() % 4);
				break;
			default:
				side_step(&p.side[rand() % 2]);
				break;
			}
		}
		for (int i = 0; i < 2; i++) {
			if (s[i].claimed)
				shot_settle(&s[i], false);
			if (s[i].open)
				shot_end(&s[i], TRANSPORT_ABANDON);
		}
		pair_run(&p);
		if (OPS.window->pays(p.side[0].t, 1, 100000)) {
			shot_works(&p, 0, 1);
			shot_works(&p, 1, 2);
		} else {
			assert_false(OPS.window->pays(p.side[1].t, 0, 100000));
		}
		still_good(&p, registrations);
		assert_int_equal(adapter_live(), 0);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int kept_whole(void **state)
{
	(void)state;
	whole = true;
	return 0;
}

int main(void)
{
	int rc;
	const struct CMUnitTest whole_tests[] = {
		TEST(test_sender_gives_up), TEST(test_receiver_gives_up), TEST(test_any_order),
	};
	const struct CMUnitTest tests[] = {
		TEST(test_taken),	     TEST(test_both_begin), TEST(test_sender_gives_up),	    TEST(test_receiver_gives_up),
		TEST(test_broken_too_often), TEST(test_no_pair),    TEST(test_where_there_are_none), TEST(test_peer_ends),
		TEST(test_any_order),	     TEST(test_whole),
	};

	rc = cmocka_run_group_tests_name("windows", tests, NULL, NULL);
	return cmocka_run_group_tests_name("windows of memory that is kept whole", whole_tests, kept_whole, NULL) || rc;
}
