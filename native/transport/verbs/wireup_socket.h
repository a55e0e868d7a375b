/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_WIREUP_SOCKET_H
#define IBVX_TRANSPORT_VERBS_WIREUP_SOCKET_H
/* wireup_socket: the frames of the TCP wire-up, and one socket that carries them.  Nothing blocks. */
#include "base/proof.h"
#include "transport/verbs/connection.h"

/* The accepting side sends first, so that every step waits for something to read. */
enum wireup_kind { WIREUP_CHALLENGE, WIREUP_REQUEST, WIREUP_ACCEPT, WIREUP_REFUSE };

/* In host order: ranks of different order were refused at the start. */
struct wireup_frame {
	uint32_t magic;
	uint32_t kind;
	uint8_t nonce[PROOF_NONCE_BYTES]; /* CHALLENGE, REQUEST */
	uint8_t proof[PROOF_BYTES];       /* REQUEST, ACCEPT */
	struct private_data data;         /* REQUEST, ACCEPT, REFUSE */
	struct qp_address qp;             /* REQUEST, ACCEPT */
};
static_assert(sizeof(struct wireup_frame) == 8 + 32 + 32 + 28, "no padding on the wire");

/* One socket: pending until its REQUEST is accepted, then a connection's. */
struct wireup {
	struct verbs *verbs;
	struct verbs_conn *conn; /* NULL: pending */
	int fd, tries;
	struct proof proof;
	size_t got;
	struct wireup_frame in;
};

/* A socket of the wire-up; takes the descriptor over. NULL: it is closed. */
struct wireup *wireup_new(struct verbs *v, int fd);
/* Options of a fresh socket. */
void wireup_tune(int fd);
/* The monitor watches it no longer. */
void wireup_unwatch(const struct wireup *x);
/* The ranks that the proofs are about; a size that no start of a job uses. */
void wireup_name(struct wireup *x, int requester, int accepter);
/* 0 or -errno with text: a frame fits the buffer of a socket that has sent nothing yet. */
int wireup_send(struct wireup *x, struct wireup_frame *f);
/* 1: a frame is in x->in; 0: not yet; -errno: over. */
int wireup_receive(struct wireup *x);

#endif
