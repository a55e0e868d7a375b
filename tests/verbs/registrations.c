/* SPDX-License-Identifier: MIT */
/* Registrations of user memory: shared, persistent, given up, and never used after their memory has gone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "transport/verbs/regcache.h"

#define READ IBV_ACCESS_REMOTE_READ
#define BUFFER 65536

static char memory[16][BUFFER];

static struct work nobody = {.fd = -1, .single = true};

static struct regcache cache_of(struct regcache_ranges *ranges)
{
	return (struct regcache){.api = &adapter_provider, .work = &nobody, .ranges = ranges};
}

static struct regcache_use uses[16];
static int reported;

static void on_ready(struct regcache_use *use, int err)
{
	assert_true(err == 0 || !use->entry);
	reported = err;
}

static void work_all(struct regcache *c)
{
	while (regcache_work(c))
		;
}

/* A use, registered at once; NULL: errno. */
static struct regcache_entry *regcache_get(struct regcache *c, void *addr, size_t len, int access)
{
	struct regcache_use *use = uses;

	while (use->entry)
		use++;
	*use = (struct regcache_use){.ready = on_ready};
	reported = 0;
	assert_true(regcache_use(c, use, addr, len, access) != -ENOMEM);
	work_all(c);
	errno = -reported;
	return use->entry;
}

static void regcache_put(struct regcache *c, const struct regcache_entry *e)
{
	struct regcache_use *use = uses;

	while (use->entry != e)
		use++;
	regcache_unuse(c, use);
	work_all(c);
}

/* Outside of registered ranges a registration ends with its last user, and only the very same memory shares it. */
static void test_without_owner(void **state)
{
	struct regcache_ranges ranges = {.count_max = 4, .bytes_max = 1 << 20};
	struct regcache c = cache_of(&ranges);
	struct regcache_entry *a = regcache_get(&c, memory[0], BUFFER, READ), *b = regcache_get(&c, memory[0], BUFFER, READ);
	struct regcache_entry *part = regcache_get(&c, memory[0], 100, READ), *write = regcache_get(&c, memory[0], BUFFER, 1);

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, part);
	assert_ptr_not_equal(a, write);
	assert_int_equal(adapter_registrations(), 3);
	regcache_put(&c, a);
	assert_int_equal(adapter_registrations(), 3);
	regcache_put(&c, b);
	regcache_put(&c, part);
	regcache_put(&c, write);
	assert_int_equal(adapter_registrations(), 0);
	assert_int_equal(c.shared_count, 1);
	regcache_close(&c);
}

static struct regcache *registering;
static int registered;

/* While this memory is registered for the first time its use ends; then, it may be other memory by now, comes another use. */
static struct ibv_mr *reg_mr_meanwhile(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = adapter_provider.reg_mr(pd, addr, len, access);

	if (registered++ == 0) {
		regcache_unuse(registering, &uses[0]);
		assert_int_equal(regcache_use(registering, &uses[1], addr, len, access), -EINPROGRESS);
	}
	return mr;
}

/* The second use must not get the pages of the first one. */
static void test_use_ends_while_registered(void **state)
{
	struct verbs_provider meanwhile = adapter_provider;
	struct regcache_ranges ranges = {.count_max = 4, .bytes_max = 1 << 20};
	struct regcache c = cache_of(&ranges);

	(void)state;
	meanwhile.reg_mr = reg_mr_meanwhile;
	c.api = &meanwhile;
	registering = &c;
	registered = 0;
	uses[0] = uses[1] = (struct regcache_use){.ready = on_ready};
	assert_int_equal(regcache_use(&c, &uses[0], memory[0], BUFFER, READ), -EINPROGRESS);
	work_all(&c);
	assert_int_equal(registered, 2);
	assert_int_equal(adapter_registrations(), 1);
	regcache_put(&c, uses[1].entry);
	assert_int_equal(adapter_registrations(), 0);
	regcache_close(&c);
}

static void test_kept(void **state)
{
	struct regcache_ranges ranges = {.count_max = 4, .bytes_max = 1 << 20};
	struct regcache c = cache_of(&ranges);
	struct regcache_entry *a, *b;

	(void)state;
	assert_int_equal(regcache_range_add(&ranges, memory[1], BUFFER), 1);
	assert_int_equal(regcache_range_add(&ranges, memory[1], BUFFER), 1);
	a = regcache_get(&c, memory[1] + 100, 50, READ);
	regcache_put(&c, a);
	assert_int_equal(adapter_registrations(), 1);
	b = regcache_get(&c, memory[1], BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_ptr_equal(a, b); /* the whole range, for everything */
	assert_int_equal(regcache_range_remove(&ranges, memory[1], BUFFER), 0);
	assert_int_equal(regcache_range_remove(&ranges, memory[1], BUFFER - 1), -EINVAL);
	assert_int_equal(regcache_range_remove(&ranges, memory[1], BUFFER), 1);
	regcache_drop(&c, memory[1], BUFFER);
	work_all(&c);
	assert_int_equal(adapter_registrations(), 1); /* a message uses it still */
	a = regcache_get(&c, memory[1], BUFFER, READ);
	assert_ptr_not_equal(a, b); /* but nobody else shares it */
	regcache_put(&c, b);
	regcache_put(&c, a);
	assert_int_equal(adapter_registrations(), 0);
	assert_int_equal(regcache_range_remove(&ranges, memory[1], BUFFER), -EINVAL);
	regcache_close(&c);
	free(ranges.range);
}

/* A range within another, and one that laps over its end. */
static void test_overlapping(void **state)
{
	struct regcache_ranges ranges = {.count_max = 4, .bytes_max = 1 << 20};
	struct regcache c = cache_of(&ranges);
	struct regcache_entry *e;

	(void)state;
	regcache_range_add(&ranges, memory[2], BUFFER);
	regcache_range_add(&ranges, memory[2] + 1000, 1000);
	e = regcache_get(&c, memory[2] + 1500, 5000, READ); /* begins in both, is within the larger */
	assert_ptr_equal(e->addr, memory[2]);
	regcache_put(&c, e);
	assert_int_equal(regcache_range_remove(&ranges, memory[2] + 1000, 1000), 1);
	regcache_drop(&c, memory[2] + 1000, 1000);
	work_all(&c);
	assert_int_equal(adapter_registrations(), 1); /* the larger vouches for it */
	assert_int_equal(regcache_range_remove(&ranges, memory[2], BUFFER), 1);
	regcache_drop(&c, memory[2], BUFFER);
	work_all(&c);
	assert_int_equal(adapter_registrations(), 0);
	free(ranges.range);
}

static void touch(struct regcache *c, int i)
{
	struct regcache_entry *e = regcache_get(c, memory[i], BUFFER, READ);

	assert_non_null(e);
	regcache_put(c, e);
}

/* Bounds of the registered ranges, and the least recently used out first when the system refuses more. */
static void test_bounds(void **state)
{
	struct regcache_ranges ranges = {.count_max = 3, .bytes_max = 10 * BUFFER}, none = {.count_max = 0, .bytes_max = 100};
	struct regcache c = cache_of(&ranges);

	(void)state;
	assert_int_equal(regcache_range_add(&none, memory[0], 10), -EFBIG);
	assert_int_equal(regcache_range_add(&ranges, memory[0], 11 * BUFFER), -EFBIG);
	for (int i = 0; i < 3; i++)
		assert_int_equal(regcache_range_add(&ranges, memory[i], BUFFER), 1);
	assert_int_equal(regcache_range_add(&ranges, memory[3], BUFFER), -ENOSPC);
	for (int i = 0; i < 3; i++)
		touch(&c, i);
	touch(&c, 0); /* 1 is the oldest now */
	assert_int_equal(adapter_registrations(), 3);
	adapter_faults.refuse_reg = 1;
	touch(&c, 3);
	assert_int_equal(c.evicted_count, 1);
	assert_int_equal(c.refused_count, 0);
	assert_int_equal(adapter_registrations(), 2);
	assert_int_equal(c.registered_count, 4);
	touch(&c, 0);
	touch(&c, 2);
	assert_int_equal(c.registered_count, 4);
	touch(&c, 1);
	assert_int_equal(c.registered_count, 5);
	/* nothing left to give up: refused, and all is as before but empty */
	adapter_faults.refuse_reg = 100;
	assert_null(regcache_get(&c, memory[4], BUFFER, READ));
	assert_int_equal(errno, ENOMEM);
	adapter_faults.refuse_reg = 0;
	assert_int_equal(c.refused_count, 1);
	assert_int_equal(adapter_registrations(), 0);
	/* bytes that may be registered at a time, those in use included */
	c.bytes_max = 2 * BUFFER;
	touch(&c, 0);
	touch(&c, 1);
	touch(&c, 2);
	assert_int_equal(adapter_registrations(), 2);
	assert_null(regcache_get(&c, memory[0], 3 * BUFFER, READ));
	regcache_close(&c);
	assert_int_equal(adapter_registrations(), 0);
	free(ranges.range);
}

/* A whole that cannot be registered (read-only memory in it): the part is, and the whole is not tried again. */
static void test_parts(void **state)
{
	struct regcache_ranges ranges = {.count_max = 3, .bytes_max = 10 * BUFFER};
	struct regcache c = cache_of(&ranges);
	struct regcache_entry *e;

	(void)state;
	regcache_range_add(&ranges, memory[0], BUFFER);
	adapter_faults.fail_call = 1;
	adapter_faults.fail_errno = EFAULT;
	e = regcache_get(&c, memory[0] + 100, 1000, READ);
	assert_ptr_equal(e->addr, memory[0] + 100);
	regcache_put(&c, e);
	touch(&c, 0);
	assert_int_equal(adapter_registrations(), 2);
	regcache_put(&c, regcache_get(&c, memory[0] + 200, 10, READ)); /* a registered range, so a part will do */
	assert_int_equal(c.registered_count, 2);
	c.len_max = 10;
	assert_null(regcache_get(&c, memory[1], 11, READ));
	assert_int_equal(errno, EMSGSIZE);
	regcache_close(&c);
	free(ranges.range);
}

/* One message of a buffer from rank 0 to rank 1, by get or by put. */
static void transfer(struct pair *p, char *from, char *to, size_t len, bool put)
{
	const void *base[2] = {put ? to : from, NULL};
	const size_t bytes[2] = {len, 0};
	const struct wire_hdr behind = {.kind = WIRE_DONE, .ctl = {.value = p->side[1].last_value + 1}};
	unsigned char desc[WIRE_RMA_MAX];
	struct transport_rma m = {.cookie = 1, .desc = desc, .local = {{put ? from : to, len}, {NULL, 0}}};
	int owner = put ? 1 : 0, n = pair_pack(p, owner, 2, put ? TRANSPORT_PUT : TRANSPORT_GET, base, bytes, desc);

	assert_true(n > 0);
	m.desc_bytes = (size_t)n;
	if (put)
		assert_int_equal(OPS.put(p->side[0].t, 1, &m, &behind), 0);
	else
		assert_int_equal(OPS.get(p->side[1].t, 0, &m), 0);
	pair_run(p);
	OPS.release_rkey(p->side[owner].t, 1 - owner, 2);
	pair_run(p);
}

/* Send from a buffer, free it, get another at the same address, send again: the right bytes each time; likewise the
 * receiver.  The adapter's double goes on to reach the old pages, as a real one does. */
static void test_stale(void **state)
{
	static char from[BUFFER], to[BUFFER];
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	for (int round = 0; round < 10000; round++) {
		bool keep = round % 3 != 0;
		size_t len = 33000 + (size_t)round * 7 % 30000;

		if (keep)
			assert_int_equal(OPS.buffer_register(p.side[0].t, from, BUFFER) + OPS.buffer_register(p.side[1].t, to, BUFFER), 2);
		for (int again = 0; again < 2; again++) {
			memset(from, round * 2 + again, len);
			memset(to, ~(round * 2 + again), len);
			transfer(&p, from, to, len, round & 1);
			for (size_t i = 0; i < len; i += 997)
				assert_int_equal((unsigned char)to[i], (unsigned char)(round * 2 + again));
			assert_int_equal(to[len - 1], (char)(round * 2 + again));
		}
		if (keep)
			assert_int_equal(OPS.buffer_release(p.side[0].t, from, BUFFER) + OPS.buffer_release(p.side[1].t, to, BUFFER), 0);
		assert_int_equal(adapter_remap(from, BUFFER) + adapter_remap(to, BUFFER), 0); /* nothing refers to them */
	}
	/* the double would show it: memory freed in spite of the promise has the old bytes */
	OPS.buffer_register(p.side[0].t, from, BUFFER);
	memset(from, 1, BUFFER);
	transfer(&p, from, to, BUFFER, false);
	assert_int_equal(adapter_remap(from, BUFFER), 1);
	memset(from, 2, BUFFER);
	transfer(&p, from, to, BUFFER, false);
	assert_int_equal(to[0], 1);
	pair_close(&p);
}

static uint64_t counted;
static const char *counted_name;

static void count(void *arg, const char *name, uint64_t value)
{
	(void)arg;
	if (strcmp(name, counted_name) == 0)
		counted = value;
}

static uint64_t counter(struct pair *p, int rank, const char *name)
{
	counted = UINT64_MAX;
	counted_name = name;
	OPS.counters(p->side[rank].t, -1, count, NULL);
	return counted;
}

/* The counters; and nothing is registered where the setting forbids it. */
static void test_counters(void **state)
{
	static const char *const off[] = {"verbs_cache_entries=0", NULL};
	struct pair p;

	(void)state;
	open_connected(&p, NULL);
	assert_int_equal(OPS.buffer_register(p.side[0].t, memory[0], BUFFER), 1);
	for (int i = 0; i < 10; i++)
		transfer(&p, memory[0], memory[1], BUFFER, false);
	assert_int_equal(counter(&p, 0, "verbs_registrations"), 1);
	assert_int_equal(counter(&p, 0, "verbs_registrations_shared"), 9);
	assert_int_equal(counter(&p, 0, "verbs_buffers_registered"), 1);
	assert_int_equal(counter(&p, 1, "verbs_registrations"), 10);
	pair_close(&p);
	assert_int_equal(adapter_live(), 0);
	adapter_reset();
	pair_open(&p, off);
	assert_int_equal(OPS.buffer_register(p.side[0].t, memory[0], BUFFER), -EFBIG);
	pair_close(&p);
}

static void test_access_flags(void **state)
{
	static const char *const odp[] = {"verbs_odp=1", NULL};

	(void)state;
	for (int paging = 0; paging < 2; paging++) {
		struct pair p;
		const void *base[2] = {memory[0], NULL};
		const size_t len[2] = {BUFFER, 0};
		unsigned char desc[WIRE_RMA_MAX];

		adapter_reset();
		adapter_faults.paging = paging;
		open_connected(&p, odp);
		assert_true(pair_pack(&p, 0, 5, TRANSPORT_GET, base, len, desc) > 0);
		assert_int_equal(adapter_access() & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_RELAXED_ORDERING),
				 IBV_ACCESS_RELAXED_ORDERING | (paging ? IBV_ACCESS_ON_DEMAND : 0));
		OPS.release_rkey(p.side[0].t, 1, 5);
		pair_close(&p);
		assert_int_equal(adapter_live(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_without_owner), TEST(test_use_ends_while_registered),
		TEST(test_kept),          TEST(test_overlapping),
		TEST(test_bounds),        TEST(test_parts),
		TEST(test_stale),         TEST(test_counters),
		TEST(test_access_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
