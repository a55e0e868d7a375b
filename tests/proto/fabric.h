/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_FABRIC_H
#define TESTS_PROTO_FABRIC_H
/*
 * fabric: what the fake transport's endpoints share; only for fabric*.c and fake_*.c.
 *
 * One mutex guards all of it (`lock`), taken inside the core's lock and never held
 * across an upcall.  Doorbells and armed flags are atomic.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "fake_transport.h"
#include "rng.h"

struct packet {
	struct packet *next;
	uint64_t due;
	size_t reserved;
	struct wire_hdr *wire; /* one block of exactly the packet's size, so that ASan sees overruns */
};

/* The lease that the source of a link has opened. */
enum fake_lease_state { FAKE_CLOSED, FAKE_OFFERED, FAKE_CLAIMED, FAKE_COPIED, FAKE_REFUSED, FAKE_ABANDONED };

struct link {
	atomic_uint lease; /* number << 3 | enum fake_lease_state */
	int lease_err;     /* how the next copy fails; 0: it does not */
	struct packet *head, *tail;
	unsigned packets;
	size_t bytes;
	uint64_t last_due;
	size_t payload_max;
	bool connecting;
	uint64_t up_at;
	bool lacked;           /* a reserve was refused and its sender waits for a wake-up */
	uint64_t lacked_until; /* a refusal without need ends here */
	bool down;             /* the source is gone: on_down after the last packet */
	uint64_t down_at;
	bool down_reported;
	bool forgotten; /* the destination has given the source up */
	bool refuses;   /* the destination is gone: reserve fails */
	uint64_t sent[WIRE_KIND_COUNT];
};

struct registration {
	struct registration *next;
	uint64_t id, cookie;
	uint64_t due; /* registered from then on */
	bool packed;  /* pack_rkey() has given its descriptor */
	bool revoked; /* cancelled: an access is refused, and no violation */
	int peer;
	enum transport_access access;
	const void *base[2];
	size_t len[2];
};

/* A get or a put. */
struct get {
	struct get *next;
	uint64_t due, cookie, id;
	int peer;
	int err;
	enum transport_access access;
	struct wire_hdr behind;
	void *base[2];
	size_t len[2];
};

/* cancel() has returned -EINPROGRESS: the adapter may still write to the memory of a get. */
struct cancelled {
	struct cancelled *next;
	uint64_t due, cookie;
	int peer;
	void *base[2];
	size_t len[2];
};

struct node {
	bool open, dead, frozen, left;
	struct registration *registrations;
	struct get *gets;
	struct cancelled *cancelled;
	_Atomic uint32_t doorbell[TRANSPORT_DOORBELL_WORDS];
	atomic_bool armed;
};

struct fabric {
	struct fabric_config cfg;
	pthread_mutex_t lock;
	struct rng rng;
	uint64_t now;
	uint64_t next_id;
	struct node *nodes;
	struct link *links; /* size * size */
	int violations;
	char violation[256];
	atomic_bool lease_hold, lease_expired;
	atomic_int leases_held;
	bool clock_runs;
	atomic_bool clock_stop;
	unsigned clock_period_us;
	pthread_t clock;
};

static inline struct link *fabric_link(struct fabric *f, int src, int dst)
{
	return &f->links[src * f->cfg.size + dst];
}

void fabric_violate(struct fabric *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All below: with the lock held, except fabric_wake. */
bool fabric_link_has_room(const struct fabric *f, const struct link *l, size_t len);
/* Would a poll of rank find something, or may a refused reserve be tried again? */
bool fabric_due(struct fabric *f, int rank);
void fabric_push(struct fabric *f, int src, int dst, struct packet *p);
struct packet *fabric_pop(struct link *l);
void fabric_drop(struct link *l, unsigned keep);
void fabric_packet_free(struct packet *p);
struct registration *fabric_registration(struct fabric *f, int rank, uint64_t id);
void fabric_drop_registrations(struct fabric *f, int rank, int peer); /* peer -1: all */
void fabric_drop_gets(struct fabric *f, int rank, int peer);
void fabric_drop_cancelled(struct fabric *f, int rank);
void fabric_source_gone(struct fabric *f, int src, bool everybody);
void fabric_wake(struct node *n);

#endif
