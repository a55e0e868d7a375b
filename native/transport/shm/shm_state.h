/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_STATE_H
#define IBVX_TRANSPORT_SHM_STATE_H
/*
 * shm_state: what shm.c (life and sending), shm_poll.c (receiving, gets, deaths) and shm_lease.c share.
 */
#include <sys/types.h>

#include "transport/shm/segment.h"
#include "transport/shm/stores.h"
#include "transport/transport.h"

/* What a rank publishes at the start. */
struct shm_address {
	uint64_t pid;
	uint64_t probe_addr, probe_word; /* where cma_probe looks and what it must see */
	uint32_t slot_count, payload_max;
	uint64_t data_bytes;
	int64_t segment_fd;     /* of this rank's segment; the first local rank's is the one */
	uint64_t segment_nonce; /* what stands in it */
};

/* What pack_rkey() writes. */
struct shm_desc {
	uint64_t addr[2];
};

struct shm;

struct shm_peer {
	struct shm *shm;
	struct segment_doorbell *doorbell;
	int rank;
	uint32_t local;
	pid_t pid;
	int pidfd;              /* -1: not watched */
	bool ended;             /* its process is gone; what it left in the ring comes first */
	bool reported;          /* the core knows */
	_Atomic bool corrupt;   /* what it wrote makes no sense: not read any more */
	bool polled;            /* its ring is in the list of those that each poll looks into */
	uint64_t packets_swept; /* packets_in when the idle rings were last looked for */
	void *tx_mapping, *rx_mapping;
	struct ring tx, rx;
	struct stores stores; /* of tx */
	uint64_t packets_out, packets_in, full_count, cma_bytes;
	_Atomic uint64_t lease_bytes; /* copied under its leases */
};

/* A get under way; the first in the list is worked on, a piece per poll. */
struct shm_get {
	struct shm_get *next;
	struct shm_peer *peer;
	uint64_t cookie;
	uint64_t addr[2];
	char *to[2];
	size_t left[2];
};

struct shm {
	struct transport base;
	struct transport_env env;
	struct segment segment;
	struct ring_shape shape;
	uint32_t count, me;             /* local ranks */
	int *local_of;                  /* by rank; -1: on another node */
	struct shm_peer *peers;         /* by local rank */
	_Atomic(struct shm_peer *) *rx; /* those whose incoming ring is polled; read without the lock, too */
	_Atomic uint32_t rx_count;
	uint32_t polls; /* since the idle rings were last looked for */
	_Atomic uint32_t connects_seen;
	struct shm_get *gets, **gets_tail;
	_Atomic int chores; /* gets and ended peers that poll() must look after */
	bool cma;
	bool cma_learns; /* cma=auto: whether a get is faster is learned */
	size_t cma_min;
	uint64_t probe_word;
};

/* Looks whether the peer must be woken (struct transport_ops, wake). */
void shm_wake(struct transport *t, void *doorbell, void *flag, bool urgent);

/* Puts the peer on the list of those to be woken after the lock. */
static inline void shm_queue_wakeup(struct shm *s, struct shm_peer *p, _Atomic uint32_t *lacks_room, bool urgent)
{
	struct transport_wakeups *b = s->env.wakeups;
	struct transport_wakeup *last = b->count ? &b->peer[b->count - 1] : NULL;

	if (last && last->doorbell == p && last->flag == lacks_room) {
		last->urgent |= urgent;
		return;
	}
	if (b->count == TRANSPORT_WAKEUPS_MAX) {
		atomic_thread_fence(memory_order_seq_cst);
		shm_wake(&s->base, p, lacks_room, urgent);
		return;
	}
	last = &b->peer[b->count++];
	last->owner = &s->base;
	last->doorbell = p;
	last->flag = lacks_room;
	last->urgent = urgent;
}

/* A pid may have been given to another process since: what was read counts only if the peer still lives. */
bool shm_alive(const struct shm_peer *p);

extern const struct transport_lease shm_lease;

/* struct transport_ops */
int shm_area(struct transport *t, int owner, unsigned index, size_t bytes, void **memory);
void shm_counters(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg);
int shm_describe(const struct settings *settings, char *out, size_t size);

int shm_poll(struct transport *t, int budget);
bool shm_ready(const struct transport *t);
int shm_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2], const size_t len[2],
		  void *desc);
void shm_release_rkey(struct transport *t, int peer, uint64_t cookie);
/* Smallest message for which one copy may be faster than two. */
#define SHM_CMA_MIN (16u << 10)

bool shm_learns_get(const struct transport *t, int peer, size_t bytes);
bool shm_prefers_get(const struct transport *t, int peer, size_t bytes);
int shm_get(struct transport *t, int peer, const struct transport_rma *get);
int shm_cancel(struct transport *t, int peer, uint64_t cookie);

#endif
