/* SPDX-License-Identifier: MIT */
#include "bootstrap/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "wire.h"

#define MESSAGE_ORDER 0x01020304u
#define MESSAGE_OTHER_ORDER 0x04030201u
/* Whatever a HELLO of another version may grow to. */
#define MESSAGE_HELLO_BYTES_MAX 1024
#define MESSAGE_HELLO_BYTES_MIN 16

size_t message_limit(enum message_kind kind, int size)
{
	size_t ranks = (size_t)size;

	switch (kind) {
	case MESSAGE_HELLO: return MESSAGE_HELLO_BYTES_MAX;
	case MESSAGE_CHALLENGE: return sizeof(struct message_challenge);
	case MESSAGE_PROOF:
	case MESSAGE_ACCEPTED: return MESSAGE_PROOF_BYTES;
	case MESSAGE_REFUSED:
	case MESSAGE_FAILED:
	case MESSAGE_LOST: return 4 + MESSAGE_TEXT_BYTES;
	case MESSAGE_WELCOME: return sizeof(struct message_welcome) + ranks * sizeof(struct message_member);
	case MESSAGE_GATHER: return sizeof(struct message_gather) + MESSAGE_GATHER_BYTES;
	case MESSAGE_GATHERED: return 4 + ranks * (4 + (size_t)MESSAGE_GATHER_BYTES);
	case MESSAGE_LEFT: return 4;
	case MESSAGE_NONE:
	case MESSAGE_KIND_COUNT: break;
	}
	return 0;
}

void message_put32(void *out, uint32_t value)
{
	value = htonl(value);
	memcpy(out, &value, 4);
}

uint32_t message_get32(const void *in)
{
	uint32_t value;

	memcpy(&value, in, 4);
	return ntohl(value);
}

void message_put_header(uint8_t out[8], enum message_kind kind, uint32_t len)
{
	out[0] = 'I';
	out[1] = 'B';
	out[2] = (uint8_t)kind;
	out[3] = 0;
	message_put32(out + 4, len);
}

int message_get_header(const uint8_t in[8], uint32_t *len)
{
	if (in[0] != 'I' || in[1] != 'B' || in[2] == MESSAGE_NONE || in[2] >= MESSAGE_KIND_COUNT ||
	    in[3] != 0)
		return -EPROTO;
	*len = message_get32(in + 4);
	return in[2];
}

/* Bytes of a stranger become a text that may go to a log or an exception. */
static void message_get_chars(char *out, const void *in, size_t len)
{
	const uint8_t *p = in;
	size_t i = 0;

	for (; i < len && p[i]; i++)
		out[i] = p[i] >= ' ' && p[i] <= '~' ? (char)p[i] : '?';
	out[i] = '\0';
}

static void message_put_chars(uint8_t *out, size_t size, const char *in)
{
	size_t len = strnlen(in, size);

	memcpy(out, in, len);
	memset(out + len, 0, size - len);
}

void message_put_hello(struct message_hello *out, const struct message_rank *in)
{
	static const uint32_t order = MESSAGE_ORDER;

	memcpy(out->magic, "ibvx", 4);
	message_put32(&out->version, MESSAGE_VERSION << 16 | WIRE_VERSION);
	memcpy(&out->order, &order, 4);
	message_put32(&out->size, (uint32_t)in->size);
	message_put32(&out->rank, (uint32_t)in->rank);
	message_put32(&out->pid, (uint32_t)in->pid);
	message_put32(&out->left_ms, (uint32_t)in->left_ms);
	message_put32(&out->secret, in->secret);
	memcpy(out->nonce, in->nonce, sizeof(out->nonce));
	message_put_chars(out->job_id, sizeof(out->job_id), in->job_id);
	message_put_chars(out->node, sizeof(out->node), in->node);
	message_put_chars(out->host, sizeof(out->host), in->host);
}

static int message_check_version(const uint8_t *in)
{
	uint32_t version = message_get32(in + offsetof(struct message_hello, version));
	uint32_t order;

	memcpy(&order, in + offsetof(struct message_hello, order), 4);
	if (order != MESSAGE_ORDER && order != MESSAGE_OTHER_ORDER)
		return -EPROTO;
	if (version != (MESSAGE_VERSION << 16 | WIRE_VERSION))
		return error_set(-EPROTONOSUPPORT,
				 "it speaks protocol version %u.%u, rank 0 speaks %u.%u; install the same "
				 "ibvdev everywhere",
				 version >> 16, version & 0xffff, MESSAGE_VERSION, WIRE_VERSION);
	if (order != MESSAGE_ORDER)
		return error_set(-EPROTONOSUPPORT,
				 "its processor has the other byte order than that of rank 0");
	return 0;
}

int message_get_hello(const void *in, size_t len, struct message_rank *out)
{
	struct message_hello hello;
	uint32_t rank, size, pid;
	int err;

	if (len < MESSAGE_HELLO_BYTES_MIN || memcmp(in, "ibvx", 4) != 0)
		return -EPROTO;
	err = message_check_version(in);
	if (err)
		return err;
	if (len != sizeof(hello))
		return -EPROTO;
	memcpy(&hello, in, sizeof(hello));
	rank = message_get32(&hello.rank);
	size = message_get32(&hello.size);
	pid = message_get32(&hello.pid);
	if (rank > INT32_MAX || size > INT32_MAX || pid > INT32_MAX)
		return -EPROTO;
	out->rank = (int)rank;
	out->size = (int)size;
	out->pid = (int)pid;
	out->left_ms = message_get32(&hello.left_ms);
	out->secret = message_get32(&hello.secret) != 0;
	memcpy(out->nonce, hello.nonce, sizeof(out->nonce));
	message_get_chars(out->job_id, hello.job_id, sizeof(hello.job_id));
	message_get_chars(out->node, hello.node, sizeof(hello.node));
	message_get_chars(out->host, hello.host, sizeof(hello.host));
	return 0;
}

void message_put_member(struct message_member *out, const struct message_rank *in)
{
	message_put32(&out->pid, (uint32_t)in->pid);
	message_put_chars(out->node, sizeof(out->node), in->node);
	message_put_chars(out->host, sizeof(out->host), in->host);
}

void message_get_member(const struct message_member *in, struct message_rank *out)
{
	out->pid = (int)(message_get32(&in->pid) & INT32_MAX);
	message_get_chars(out->node, in->node, sizeof(in->node));
	message_get_chars(out->host, in->host, sizeof(in->host));
}

size_t message_put_text(uint8_t out[4 + MESSAGE_TEXT_BYTES], int code, const char *text)
{
	size_t len = strnlen(text, MESSAGE_TEXT_BYTES);

	message_put32(out, (uint32_t)code);
	memcpy(out + 4, text, len);
	return 4 + len;
}

int message_get_text(const void *in, size_t len, int *code, char text[MESSAGE_TEXT_BYTES + 1])
{
	if (len < 4 || len > 4 + MESSAGE_TEXT_BYTES)
		return -EPROTO;
	*code = (int)message_get32(in);
	message_get_chars(text, (const uint8_t *)in + 4, len - 4);
	return 0;
}
