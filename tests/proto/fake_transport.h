/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_FAKE_TRANSPORT_H
#define TESTS_PROTO_FAKE_TRANSPORT_H
/*
 * fake_transport: the seam transport.h, played by a network that lives in this process
 * and misbehaves as far as the contract allows, by seed.
 *
 * A fabric joins `size` endpoints.  Each ordered pair of ranks has a link that keeps
 * order; across links the order is random.  Time is counted in ticks.  Every poll of
 * any endpoint is a tick; fabric_step() adds some; fabric_clock_start() adds a thread
 * that makes ticks while everybody sleeps.
 *
 * What the core does against the contract (a slot left open, two threads inside, a
 * get of memory that is no longer registered, ...) is printed and counted as a violation.
 *
 * Threads: every fabric_ function may be called from any thread, but not from inside an upcall.
 */
#include "transport/transport.h"

struct fabric;

struct fabric_config {
	uint64_t seed;
	int size;
	bool carries_self;         /* is peer == rank reached by the fake, too? */
	unsigned delay_max;        /* ticks that a packet takes at most */
	unsigned connect_max;      /* ticks from the first reserve until a link stands, at most */
	unsigned room_packets;     /* packets under way on one link, at most; 0: 1,000,000 */
	size_t room_bytes;         /* bytes under way on one link, at most; 0: 1 GiB */
	unsigned refuse_percent;   /* reserve and get return -EAGAIN without need */
	size_t payload_max;        /* 0: 256 .. 65536 for each pair at random */
	unsigned spurious_percent; /* rings without cause, polls that deliver nothing */
	bool learns_gets;          /* whether a get is used is learned */
	size_t get_min;            /* prefers_get() from this size on */
	unsigned get_delay_max;    /* ticks that a get takes at most */
	unsigned pack_refuse_percent;
	unsigned pack_delay_max;   /* ticks that the memory of an rkey takes to be registered, at most; pack_rkey() is -EAGAIN meanwhile */
	unsigned cancel_delay_max; /* ticks from cancel() to on_cancelled, at most; 0: cancel() returns 0 */
	unsigned get_fail_percent;
	size_t put_min; /* prefers_put() from this size on */
	unsigned put_fail_percent;
	int get_errno; /* how rma operations and leases fail; 0: -EPERM or -ENOSYS at random */
	unsigned lease_fail_percent;
};

/* Fills everything but size by seed: from a calm network to an ugly one. */
void fabric_config_random(struct fabric_config *cfg, uint64_t seed);

/* NULL only without memory. */
struct fabric *fabric_new(const struct fabric_config *cfg);
/* Every endpoint has been closed. */
void fabric_free(struct fabric *f);

/* Ticks pass; sleepers for which something has become due are woken. */
void fabric_step(struct fabric *f, unsigned ticks);
uint64_t fabric_now(struct fabric *f);
/* A thread that makes a tick every period_us; nothing if it runs already.  0 or -errno. */
int fabric_clock_start(struct fabric *f, unsigned period_us);
void fabric_clock_stop(struct fabric *f);

/* Rank dies: a prefix of what it committed is delivered (by seed; whole == true: all of
 * it), then on_down at everybody.  Only ibvx_abort() may follow on its endpoint. */
void fabric_kill(struct fabric *f, int rank, bool whole);

/* Rank's polls deliver nothing any more (it hangs, but lives), or deliver again. */
void fabric_freeze(struct fabric *f, int rank, bool frozen);

/* Copies from leased segments do not end while held. */
void fabric_hold_leases(struct fabric *f, bool hold);
/* One waits for that. */
bool fabric_lease_held(struct fabric *f);
/* One that can still be read. */
bool fabric_lease_open(struct fabric *f, int from, int to);
/* A sender that looks at a claimed lease finds that its time is over, and abandons it. */
void fabric_expire_leases(struct fabric *f);

/* Puts a packet of the caller's making on the link from src to dst. payload may be NULL
 * if hdr->len is 0.  0 or -ENOMEM. */
int fabric_inject(struct fabric *f, int src, int dst, const struct wire_hdr *hdr, const void *payload);

/* What was committed on the link from src to dst, by packet kind, since the start. */
uint64_t fabric_sent(struct fabric *f, int src, int dst, enum wire_kind kind);
/* Registrations that rank has now. */
int fabric_registrations(struct fabric *f, int rank);
/* Operations and registrations of rank that are cancelled and not yet reported as such. */
int fabric_cancelling(struct fabric *f, int rank);
/* Packets that wait in all links. */
unsigned fabric_in_flight(struct fabric *f);

/* The blob that rank's transport publishes. Returns its length. */
size_t fabric_address(const struct fabric *f, int rank, void *out, size_t size);

/* How often the core has broken the contract, and the first text of it. */
int fabric_violations(struct fabric *f, const char **text);

/* transport_env.test is the struct fabric. */
extern const struct transport_ops fake_ops;
/* The same without gets and puts. */
extern const struct transport_ops fake_plain_ops;

#endif
