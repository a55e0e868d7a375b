/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROTO_DIRECTED_H
#define TESTS_PROTO_DIRECTED_H
/*
 * directed: short words for tests that play one scenario from one thread.
 * Everything that goes wrong in a helper fails the cmocka test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "world.h"

#define CTX 7

/* A calm network of `size` ranks: packets of payload_max bytes (0: 4096), nothing fails. */
struct world_config calm(int size, size_t payload_max);
/* An ugly one, by seed. */
struct world_config ugly(int size, uint64_t seed);

/* Opens; settings end with NULL. */
void begin(struct world *w, struct world_config cfg, ...) __attribute__((sentinel));
/* Closes; everything must close well. */
void end(struct world *w);

/* A message of len bytes filled from its user word; memory lives until end(). */
struct text {
	char *bytes;
	size_t len;
};
struct text text_of(uint64_t user, size_t len);
void text_free(struct text t);
void assert_text(const void *got, uint64_t user, size_t len);

/* isend or issend (sync) of a plain body; the handle. */
ibvx_req put(struct world *w, int src, int dst, int tag, struct text t, uint64_t user, bool sync);
/* irecv in context CTX; the handle. */
ibvx_req take(struct world *w, int rank, int source, int tag, void *memory, size_t capacity);

/* Lets all ranks turn until the request is complete; its result. Fails after many turns. */
int finish(struct world *w, int rank, ibvx_req *req, struct ibvx_status *s);
/* Is it still open after many turns? */
bool stays_open(struct world *w, int rank, ibvx_req *req);
/* Many turns. */
void settle(struct world *w);

#endif
