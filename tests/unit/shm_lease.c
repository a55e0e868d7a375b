/* SPDX-License-Identifier: MIT */
/* The lease word of the shm transport: every transition, from both sides. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/shm/shm_state.h"

/* Rank 0 leases segments to rank 1; both are this process. */
struct pair {
	struct shm from, to;
	struct shm_peer from_peers[2], to_peers[2];
	struct ring_control control;
};

static int local_of[] = {0, 1};

static void pair_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->from.local_of = local_of;
	p->to.local_of = local_of;
	p->from.peers = p->from_peers;
	p->to.peers = p->to_peers;
	p->from_peers[1] = (struct shm_peer){.rank = 1, .pid = getpid(), .pidfd = -1, .tx = {.control = &p->control}};
	p->to_peers[0] = (struct shm_peer){.rank = 0, .pid = getpid(), .pidfd = -1, .rx_mapping = p, .rx = {.control = &p->control}};
}

static int lease_open(struct pair *p, const void *base, void *desc)
{
	return shm_lease.open(&p->from.base, 1, base, desc);
}

static int lease_end(struct pair *p, enum transport_lease_end how)
{
	return shm_lease.end(&p->from.base, 1, how);
}

static int lease_claim(struct pair *p, const void *desc)
{
	return shm_lease.claim(&p->to.base, 0, desc);
}

static bool lease_settle(struct pair *p, const void *desc, bool copied)
{
	return shm_lease.settle(&p->to.base, 0, desc, copied);
}

static void copied(void **state)
{
	char desc[WIRE_LEASE_BYTES], to[5] = {0};
	struct pair p;

	(void)state;
	pair_init(&p);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(lease_open(&p, "data", desc), 0);
		assert_int_equal(lease_open(&p, "data", desc), -EBUSY);
		assert_int_equal(lease_end(&p, TRANSPORT_LOOK), -EAGAIN);
		assert_int_equal(lease_claim(&p, desc), 0);
		assert_int_equal(lease_claim(&p, desc), -ECANCELED);
		assert_int_equal(lease_end(&p, TRANSPORT_REVOKE), -EAGAIN);
		assert_int_equal(shm_lease.copy(&p.to.base, 0, desc, to, 5), 0);
		assert_string_equal(to, "data");
		assert_true(lease_settle(&p, desc, true));
		assert_int_equal(lease_end(&p, TRANSPORT_LOOK), 1);
	}
}

/* Taken back: it cannot be claimed any more, nor can its successor by its description. */
static void taken_back(void **state)
{
	char desc[WIRE_LEASE_BYTES], next[WIRE_LEASE_BYTES];
	struct pair p;

	(void)state;
	pair_init(&p);
	assert_int_equal(lease_open(&p, "a", desc), 0);
	assert_int_equal(lease_end(&p, TRANSPORT_REVOKE), 0);
	assert_int_equal(lease_claim(&p, desc), -ECANCELED);
	assert_int_equal(lease_open(&p, "b", next), 0);
	assert_int_equal(lease_claim(&p, desc), -ECANCELED);
	assert_int_equal(lease_claim(&p, next), 0);
	assert_int_equal(lease_end(&p, TRANSPORT_LOOK), -EAGAIN);
	assert_false(lease_settle(&p, next, false));
	assert_int_equal(lease_end(&p, TRANSPORT_LOOK), -EIO);
	assert_int_equal(lease_open(&p, "c", desc), 0);
	assert_int_equal(lease_end(&p, TRANSPORT_ABANDON), 0); /* nobody has it */
}

/* Abandoned while the receiver has claimed it: settle() reports it, and the next lease has to wait. */
static void given_up(void **state)
{
	char desc[WIRE_LEASE_BYTES], next[WIRE_LEASE_BYTES];
	struct pair p;

	(void)state;
	pair_init(&p);
	for (int done = 0; done < 2; done++) {
		assert_int_equal(lease_open(&p, "a", desc), 0);
		assert_int_equal(lease_claim(&p, desc), 0);
		assert_int_equal(lease_end(&p, TRANSPORT_ABANDON), -EIO);
		assert_int_equal(lease_open(&p, "b", next), -EBUSY);
		assert_false(lease_settle(&p, desc, done));
		assert_int_equal(lease_open(&p, "b", next), 0);
		assert_int_equal(lease_end(&p, TRANSPORT_REVOKE), 0);
	}
}

static void unreadable(void **state)
{
	char desc[WIRE_LEASE_BYTES], to[8];
	struct pair p;

	(void)state;
	pair_init(&p);
	assert_int_equal(lease_open(&p, (const void *)(uintptr_t)64, desc), 0);
	assert_int_equal(lease_claim(&p, desc), 0);
	assert_int_equal(shm_lease.copy(&p.to.base, 0, desc, to, sizeof(to)), -EFAULT);
	assert_false(lease_settle(&p, desc, false));
	assert_int_equal(lease_end(&p, TRANSPORT_LOOK), -EIO);
}

/* The number goes round. */
static void round_again(void **state)
{
	char desc[WIRE_LEASE_BYTES];
	struct pair p;

	(void)state;
	pair_init(&p);
	atomic_store(&p.control.lease, UINT32_MAX & ~7u);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lease_open(&p, "a", desc), 0);
		assert_int_equal(lease_claim(&p, desc), 0);
		assert_true(lease_settle(&p, desc, true));
		assert_int_equal(lease_end(&p, TRANSPORT_LOOK), 1);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied),     cmocka_unit_test(taken_back),  cmocka_unit_test(given_up),
		cmocka_unit_test(unreadable), cmocka_unit_test(round_again),
	};

	return cmocka_run_group_tests_name("shm_lease", tests, NULL, NULL);
}
