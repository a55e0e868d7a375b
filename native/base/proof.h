/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_PROOF_H
#define IBVX_BASE_PROOF_H
/*
 * proof: showing that one knows the job secret without sending it; for the start of a job, and for whatever ranks
 * send each other over sockets later.
 *
 * Each side draws a nonce; a proof is a keyed hash of the side that gives it, both nonces, the rank and
 * the size (or another number that both know; each use has its own).  The rank proves first, so that a
 * stranger that merely connects to rank 0 learns
 * nothing that he could try a list of secrets on.  It keeps strangers and other jobs out; it does
 * not hide or sign what follows: use it on a network where nobody alters packets.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROOF_NONCE_BYTES 16
#define PROOF_BYTES 16

struct proof {
	uint8_t key[16];
	uint8_t rank_nonce[PROOF_NONCE_BYTES];
	uint8_t listener_nonce[PROOF_NONCE_BYTES];
	int rank, size;
};

/* Random bytes of the kernel.  0 or -errno with text. */
int proof_random(void *out, size_t len);

/* secret may be empty: proofs then show only that both sides speak the protocol. */
void proof_set_key(struct proof *p, const char *secret);

enum proof_side { PROOF_RANK, PROOF_LISTENER };
void proof_make(const struct proof *p, enum proof_side side, uint8_t out[PROOF_BYTES]);
/* In constant time. */
bool proof_holds(const struct proof *p, enum proof_side side, const uint8_t proof[PROOF_BYTES]);

#endif
