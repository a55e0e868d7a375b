/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_STATE_H
#define IBVX_TRANSPORT_SHM_STATE_H
/*
 * shm_state: what shm.c (life and sending), shm_poll.c (receiving, gets, deaths) and shm_window.c share.
 */
#include <sys/types.h>

#include "transport/shm/segment.h"
#include "transport/transport.h"

/* What a rank tells the others at the start. */
struct shm_address {
	uint64_t pid;
	uint64_t probe_addr, probe_word; /* where cma_probe looks and what it must see */
	uint32_t slot_count, payload_max;
	uint64_t data_bytes;
	int64_t segment_fd;              /* of this rank's segment; the first local rank's is the one */
};

/* What expose() writes. */
struct shm_desc {
	uint64_t addr[2];
};

struct shm;

struct shm_peer {
	struct shm *shm;
	int rank;
	uint32_t local;
	pid_t pid;
	int pidfd;             /* -1: not watched */
	bool ended;            /* its process is gone; what it left in the ring comes first */
	bool told;             /* the core knows */
	_Atomic bool corrupt;  /* what it wrote makes no sense: not read any more */
	void *tx_window, *rx_window;
	struct ring tx, rx;
	uint64_t packets_out, packets_in, full_count, cma_bytes;
	_Atomic uint64_t window_bytes; /* of its windows that we took */
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
	uint32_t count, me;     /* local ranks */
	int *local_of;          /* by rank; -1: on another node */
	struct shm_peer *peers; /* by local rank */
	struct shm_peer **rx;   /* those with an incoming ring */
	_Atomic uint32_t rx_count;
	_Atomic uint32_t connects_seen;
	struct shm_get *gets, **gets_tail;
	_Atomic int chores;     /* gets and ended peers that poll() must look after */
	bool cma;
	size_t cma_min;
	uint64_t probe_word;
};

/* Looks behind a full fence whether the peer must be woken. */
void shm_ring_now(struct shm *s, struct segment_door *door, _Atomic uint32_t *starved);

/* Puts the peer's door on the list of those to be rung after the lock. */
static inline void shm_remember_bell(struct shm *s, struct shm_peer *p, _Atomic uint32_t *starved)
{
	struct transport_bells *b = s->env.bells;
	struct segment_door *door = &s->segment.head->doors[p->local];

	if (b->count && b->bell[b->count - 1].door == door && b->bell[b->count - 1].flag == starved)
		return;
	if (b->count == TRANSPORT_BELLS_MAX) {
		shm_ring_now(s, door, starved);
		return;
	}
	b->bell[b->count].owner = &s->base;
	b->bell[b->count].door = door;
	b->bell[b->count].flag = starved;
	b->count++;
}

/* A pid may have been given to another process since: what was read counts only if the peer still lives. */
bool shm_alive(const struct shm_peer *p);

extern const struct transport_window shm_window;

int shm_poll(struct transport *t, int budget);
bool shm_ready(const struct transport *t);
int shm_expose(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2],
	       const size_t len[2], void *desc);
void shm_unexpose(struct transport *t, int peer, uint64_t cookie);
bool shm_get_pays(const struct transport *t, int peer, size_t bytes);
int shm_get(struct transport *t, int peer, const struct transport_move *get);
void shm_cancel(struct transport *t, int peer, uint64_t cookie);

#endif
