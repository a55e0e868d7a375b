/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_MESSAGE_H
#define IBVX_BOOTSTRAP_MESSAGE_H
/*
 * message: what crosses the control tree, byte for byte, and its checks.
 *
 * A frame is a header of 8 bytes and `len` bytes of payload.  Numbers are big-endian, so
 * that ranks of different byte order can report that they differ.  The frame
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

#define MESSAGE_VERSION 2u

/* "up" is towards rank 0. */
enum message_kind {
	MESSAGE_NONE,
	MESSAGE_HELLO,     /* up: struct message_hello */
	MESSAGE_CHALLENGE, /* down: struct message_challenge */
	MESSAGE_PROOF,     /* up: 16 bytes */
	MESSAGE_ACCEPTED,  /* down: struct message_accepted */
	MESSAGE_REFUSED,   /* down: code, text; the connection ends */
	MESSAGE_WELCOME,   /* down: the roster (roster.h): all have come */
	MESSAGE_GATHER,    /* up: struct message_gather, records of a subtree (gather.c) */
	MESSAGE_GATHERED,  /* down: number, lengths, the data of all (gather.c) */
	MESSAGE_FAILED,    /* both ways: code, text: the start has failed; or the receiver was given up */
	MESSAGE_LOST,      /* both ways: rank, text */
	MESSAGE_LEFT,      /* both ways: ranks, 4 bytes each */
	MESSAGE_JOINED,    /* up: struct message_joined and a host name, again and again */
	MESSAGE_SEAL,      /* down: all have come, close the local listener */
	MESSAGE_SEALED,    /* up: it is closed in this subtree */
	MESSAGE_ATTACHED,  /* up, to rank 0: 4 bytes: 1 attached to the assigned parent, 0 it cannot be reached */
	MESSAGE_DENIED,    /* down: struct message_denied, text: a rank that has joined twice */
	MESSAGE_ANCESTORS, /* down: struct message_ancestor, again and again, nearest first */
	MESSAGE_MOVED,     /* up: pairs (rank, its new parent) */
	MESSAGE_SUSPECT,   /* both ways: rank, text: seen dead by other means than its connection */
	MESSAGE_KIND_COUNT
};

#define MESSAGE_NONCE_BYTES PROOF_NONCE_BYTES
#define MESSAGE_PROOF_BYTES PROOF_BYTES
#define MESSAGE_ID_BYTES 32
#define MESSAGE_NODE_BYTES 16
#define MESSAGE_HOST_BYTES 64
#define MESSAGE_TEXT_BYTES 480      /* of REFUSED, FAILED, LOST, DENIED, SUSPECT */
#define MESSAGE_GATHER_BYTES 65536u /* data of one rank */
#define MESSAGE_ANCESTORS_MAX 2

struct message_header {
	uint8_t magic[2]; /* 'I' 'B' */
	uint8_t kind;
	uint8_t zero;
	uint32_t len;
};
static_assert(sizeof(struct message_header) == 8, "no padding on the wire");

/* How a connection is meant, which is also the listener it comes to. */
enum message_purpose {
	MESSAGE_JOIN,   /* the leader of a node registers with rank 0 */
	MESSAGE_LOCAL,  /* a rank joins through the leader of its node */
	MESSAGE_ATTACH, /* a rank wants the listener's rank for its parent */
	MESSAGE_PURPOSE_COUNT
};

struct message_hello {
	uint8_t magic[4]; /* "ibvx" */
	uint32_t version; /* MESSAGE_VERSION << 16 | WIRE_VERSION */
	uint32_t order;   /* 0x01020304 as the sender's memory has it */
	uint32_t size;
	uint32_t rank;
	uint32_t pid;
	uint32_t left_ms; /* how long the sender is going to wait */
	uint32_t secret;  /* 1: job_secret is set */
	uint32_t purpose;
	uint32_t port; /* where the sender listens for children; 0: nowhere */
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	uint8_t job_id[MESSAGE_ID_BYTES]; /* zeros: not known */
	uint8_t node[MESSAGE_NODE_BYTES];
	uint8_t host[MESSAGE_HOST_BYTES];
};
static_assert(sizeof(struct message_hello) == 168, "no padding on the wire");
static_assert(offsetof(struct message_hello, nonce) == 40, "nonce follows the numbers");
static_assert(offsetof(struct message_hello, host) == 104, "host comes last");

struct message_challenge {
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	uint32_t secret;
};
static_assert(sizeof(struct message_challenge) == 20, "no padding on the wire");

struct message_address {
	uint32_t family; /* 0: none; 4; 6 */
	uint8_t bytes[16];
	uint32_t port;
};
static_assert(sizeof(struct message_address) == 24, "no padding on the wire");

struct message_accepted {
	uint8_t proof[MESSAGE_PROOF_BYTES];
	uint32_t rank; /* of the sender */
	uint32_t pid;
	uint32_t port;   /* where the sender takes orphans; 0: nowhere */
	uint32_t parent; /* the rank to attach to: the sender, or the one at the address */
	struct message_address address;
	uint8_t job_id[MESSAGE_ID_BYTES];
	uint8_t host[MESSAGE_HOST_BYTES];
};
static_assert(sizeof(struct message_accepted) == 152, "no padding on the wire");

/* A rank that has come; the name of its host, not terminated, follows. */
struct message_joined {
	uint32_t rank, parent, pid;
	uint32_t left_ms;
	uint8_t node[MESSAGE_NODE_BYTES / 2];
	uint32_t host_bytes;
};
static_assert(sizeof(struct message_joined) == 28, "no padding on the wire");

struct message_denied {
	uint32_t rank, pid;
	uint8_t node[MESSAGE_NODE_BYTES / 2];
	uint32_t code;
};
static_assert(sizeof(struct message_denied) == 20, "no padding on the wire");

struct message_ancestor {
	uint32_t rank;
	struct message_address address;
};
static_assert(sizeof(struct message_ancestor) == 28, "no padding on the wire");

struct message_gather {
	uint32_t number; /* of the allgather, from 1 */
	uint32_t left_ms;
	uint32_t ranks; /* of the subtree; those without a record have no data */
};
static_assert(sizeof(struct message_gather) == 12, "no padding on the wire");

/* One frame, header included, shared by all the queues that it waits in.  Not thread-safe. */
struct frame {
	int refs;
	size_t len; /* of the body */
	uint8_t bytes[];
};

/* With room for `len` bytes of body and one reference.  NULL without memory. */
struct frame *frame_new(enum message_kind kind, const void *body, size_t len);
static inline struct frame *frame_ref(struct frame *f)
{
	f->refs++;
	return f;
}
void frame_unref(struct frame *f); /* NULL allowed */
static inline enum message_kind frame_kind(const struct frame *f)
{
	return (enum message_kind)f->bytes[2];
}
static inline const uint8_t *frame_body(const struct frame *f)
{
	return f->bytes + sizeof(struct message_header);
}

/* Longest payload of this kind in a job of this size. */
size_t message_limit(enum message_kind kind, int size);

void message_put_header(uint8_t out[8], enum message_kind kind, uint32_t len);
/* The kind, or -EPROTO.  Does not judge the length. */
int message_get_header(const uint8_t in[8], uint32_t *len);

void message_put32(void *out, uint32_t value);
uint32_t message_get32(const void *in);

/* What a HELLO or a record of JOINED reports of a rank; texts end in NUL. */
struct message_rank {
	int rank, size, pid;
	int64_t left_ms;
	bool secret;
	enum message_purpose purpose;
	int port;
	uint8_t nonce[MESSAGE_NONCE_BYTES];
	char job_id[MESSAGE_ID_BYTES + 1]; /* "": not set */
	char node[MESSAGE_NODE_BYTES + 1];
	char host[MESSAGE_HOST_BYTES + 1];
};
void message_put_hello(struct message_hello *out, const struct message_rank *in);
/* 0; -EPROTO: not a rank of ours at all (no text); -EPROTONOSUPPORT: one that cannot join, text gives the reason. */
int message_get_hello(const void *in, size_t len, struct message_rank *out);

/* Up to MESSAGE_HOST_BYTES characters of `in` as printable text. */
void message_get_chars(char *out, const void *in, size_t len);
void message_put_chars(void *out, size_t size, const char *in);
/* The 16 hex digits of a node as 8 bytes, and back. */
void message_put_node(uint8_t out[MESSAGE_NODE_BYTES / 2], const char *node);
void message_get_node(const uint8_t in[MESSAGE_NODE_BYTES / 2], char node[MESSAGE_NODE_BYTES + 1]);
bool message_is_job_id(const char *id);

/* Appends nothing: writes one record at out (room for sizeof + MESSAGE_HOST_BYTES); returns its length. */
size_t message_put_joined(uint8_t *out, const struct message_rank *member, int parent);
/* Takes one record off the front: its length, or -EPROTO. */
int message_get_joined(const uint8_t *in, size_t len, struct message_rank *member, int *parent);

/* code (negative errno or rank) and text, as REFUSED, FAILED, LOST and SUSPECT have it; returns the length. */
size_t message_put_text(uint8_t out[4 + MESSAGE_TEXT_BYTES], int code, const char *text);
/* 0 or -EPROTO */
int message_get_text(const void *in, size_t len, int *code, char text[MESSAGE_TEXT_BYTES + 1]);

#endif
