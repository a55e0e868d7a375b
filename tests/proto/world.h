/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_WORLD_H
#define TESTS_PROTO_WORLD_H
/*
 * world: N endpoints of the real core over one fabric, in this process, and no bootstrap.
 */
#include "core/core.h"
#include "fake_transport.h"
#include "ibvx.h"

#define WORLD_RANKS_MAX 8
#define WORLD_SETTINGS_MAX 8

struct world_config {
	struct fabric_config net;        /* net.size is the number of ranks */
	const char *const *settings;     /* "name=value", NULL-terminated, or NULL */
	const struct transport_ops *ops; /* NULL: fake_ops */
	bool monitor;                    /* every endpoint has a monitor thread */
	int64_t lease_offer_ns; /* how long leases are offered, 40 times as long left to the receiver that claimed them, whatever the number of processors; 0: as always */
};

struct world {
	struct fabric *fabric;
	int size;
	struct settings *settings;
	const struct transport_ops *transports[3];
	struct ibvx *ep[WORLD_RANKS_MAX]; /* NULL once closed */
};

/* 0, or -errno with a text on stderr; half-open worlds are freed. */
int world_open(struct world *w, const struct world_config *cfg);

/* Closes all endpoints that are still open, each on its own thread, while the clock runs.
 * Returns the first error (text on stderr) and also -EPROTO if the core broke the contract of the seam.
 * What could not be closed is aborted.  Frees the world. */
int world_close(struct world *w);

/* Kills the rank and frees its endpoint. */
void world_kill(struct world *w, int rank, bool whole);

/* Lets every open endpoint make progress once, without blocking, and `ticks` pass. */
void world_turn(struct world *w, unsigned ticks);

/* Counter `name` of the endpoint (peer == -1) or of one peer; UINT64_MAX: there is none. */
uint64_t world_counter(struct ibvx *ep, int peer, const char *name);

#endif
