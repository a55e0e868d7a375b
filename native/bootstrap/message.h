/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_MESSAGE_H
#define IBVX_BOOTSTRAP_MESSAGE_H
/*
 * message: what crosses the star, byte for byte, and its checks.
 *
 * A frame is a header of 8 bytes and `len` bytes of payload.  Numbers are big-endian, so
 * that ranks of different byte order can tell each other that they differ.  The frame
 * header, the first 16 bytes of HELLO, and REFUSED never change: versions refuse each other by them.
 *
 * The readers here take bytes from strangers: they check every length before
 * they look, and hand out texts with nothing but printable ASCII in them.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/proof.h"

#define MESSAGE_VERSION 1u

enum message_kind {
	MESSAGE_NONE,
	MESSAGE_HELLO,     /* rank -> 0: struct message_hello */
	MESSAGE_CHALLENGE, /* 0 -> rank: struct message_challenge */
	MESSAGE_PROOF,     /* rank -> 0: 16 bytes */
	MESSAGE_ACCEPTED,  /* 0 -> rank: 16 bytes, the proof of rank 0 */
	MESSAGE_REFUSED,   /* 0 -> rank: code, text; the connection ends */
	MESSAGE_WELCOME,   /* 0 -> rank: struct message_welcome, size times struct message_member */
	MESSAGE_GATHER,    /* rank -> 0: struct message_gather, data */
	MESSAGE_GATHERED,  /* 0 -> rank: number, size lengths, the data of all */
	MESSAGE_FAILED,    /* 0 -> rank: code, text: the job is given up; the connection ends */
	MESSAGE_LOST,      /* both ways: rank, text */
	MESSAGE_LEFT,      /* both ways: rank */
	MESSAGE_KIND_COUNT
};

#define MESSAGE_NONCE_BYTES PROOF_NONCE_BYTES
#define MESSAGE_PROOF_BYTES PROOF_BYTES
#define MESSAGE_ID_BYTES 32
#define MESSAGE_NODE_BYTES 16
#define MESSAGE_HOST_BYTES 64
#define MESSAGE_TEXT_BYTES 480      /* of REFUSED, FAILED, LOST */
#define MESSAGE_GATHER_BYTES 65536u /* data of one rank */

struct message_header {
	uint8_t magic[2]; /* 'I' 'B' */
	uint8_t kind;
	uint8_t zero;
	uint32_t len;
};
static_assert(sizeof(struct message_header) == 8, "no padding on the wire");

struct message_hello {
	uint8_t magic[4]; /* "ibvx" */
	uint32_t version; /* MESSAGE_VERSION << 16 | WIRE_VERSION */
	uint32_t order;   /* 0x01020304 as the sender's memory has it */
	uint32_t size;
	uint32_t rank;
	uint32_t pid;
	uint32_t left_ms; /* how long the sender is going to wait */
	uint32_t secret;  /* 1: job_secret is set */
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	uint8_t job_id[MESSAGE_ID_BYTES]; /* zeros: not set */
	uint8_t node[MESSAGE_NODE_BYTES];
	uint8_t host[MESSAGE_HOST_BYTES];
};
static_assert(sizeof(struct message_hello) == 160, "no padding on the wire");
static_assert(offsetof(struct message_hello, nonce) == 32, "nonce follows the numbers");
static_assert(offsetof(struct message_hello, host) == 96, "host comes last");

struct message_challenge {
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	uint32_t secret;
};
static_assert(sizeof(struct message_challenge) == 20, "no padding on the wire");

struct message_welcome {
	uint8_t job_id[MESSAGE_ID_BYTES];
	uint32_t size;
};
static_assert(sizeof(struct message_welcome) == 36, "no padding on the wire");

struct message_member {
	uint32_t pid;
	uint8_t node[MESSAGE_NODE_BYTES];
	uint8_t host[MESSAGE_HOST_BYTES];
};
static_assert(sizeof(struct message_member) == 84, "no padding on the wire");

struct message_gather {
	uint32_t number; /* of the allgather, from 1 */
	uint32_t left_ms;
};
static_assert(sizeof(struct message_gather) == 8, "no padding on the wire");

/* Longest payload of this kind in a job of this size. */
size_t message_limit(enum message_kind kind, int size);

void message_put_header(uint8_t out[8], enum message_kind kind, uint32_t len);
/* The kind, or -EPROTO.  Does not judge the length. */
int message_get_header(const uint8_t in[8], uint32_t *len);

void message_put32(void *out, uint32_t value);
uint32_t message_get32(const void *in);

/* What a HELLO or a member entry says about a rank; texts end in NUL. */
struct message_rank {
	int rank, size, pid;
	int64_t left_ms;
	bool secret;
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	char job_id[MESSAGE_ID_BYTES + 1]; /* "": not set */
	char node[MESSAGE_NODE_BYTES + 1];
	char host[MESSAGE_HOST_BYTES + 1];
};
void message_put_hello(struct message_hello *out, const struct message_rank *in);
/* 0; -EPROTO: not a rank of ours at all (no text); -EPROTONOSUPPORT: one that cannot join, text says why. */
int message_get_hello(const void *in, size_t len, struct message_rank *out);

void message_put_member(struct message_member *out, const struct message_rank *in);
void message_get_member(const struct message_member *in, struct message_rank *out);

/* code (negative errno or rank) and text, as REFUSED, FAILED and LOST have it; returns the length. */
size_t message_put_text(uint8_t out[4 + MESSAGE_TEXT_BYTES], int code, const char *text);
/* 0 or -EPROTO */
int message_get_text(const void *in, size_t len, int *code, char text[MESSAGE_TEXT_BYTES + 1]);

#endif
