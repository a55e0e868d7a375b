/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_PROOF_H
#define IBVX_BOOTSTRAP_PROOF_H
/*
 * proof: showing that one knows the job secret without saying it.
 *
 * Each side draws a nonce; a proof is a keyed hash of the side that gives it, both nonces, the rank and
 * the size.  The rank proves first, so that a stranger who merely knocks at rank 0 learns
 * nothing that he could try a list of secrets on.  It keeps strangers and other jobs out; it does
 * not hide or sign what follows: use it on a network where nobody alters packets.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/message.h"

struct proof {
	uint8_t key[16];
	uint8_t rank_nonce[MESSAGE_NONCE_BYTES];
	uint8_t door_nonce[MESSAGE_NONCE_BYTES];
	int rank, size;
};

/* Random bytes of the kernel.  0 or -errno with text. */
int proof_random(void *out, size_t len);

/* secret may be empty: proofs then show only that both sides speak the protocol. */
void proof_set_key(struct proof *p, const char *secret);

enum proof_side { PROOF_RANK, PROOF_DOOR };
void proof_make(const struct proof *p, enum proof_side side, uint8_t out[MESSAGE_PROOF_BYTES]);
/* In constant time. */
bool proof_holds(const struct proof *p, enum proof_side side, const uint8_t proof[MESSAGE_PROOF_BYTES]);

#endif
