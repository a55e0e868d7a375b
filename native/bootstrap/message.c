/* SPDX-License-Identifier: MIT */
#include "bootstrap/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "wire.h"

#define MESSAGE_ORDER 0x01020304u
#define MESSAGE_OTHER_ORDER 0x04030201u
/* Whatever a HELLO of another version may grow to. */
#define MESSAGE_HELLO_BYTES_MAX 1024
#define MESSAGE_HELLO_BYTES_MIN 16

struct frame *frame_new(enum message_kind kind, const void *body, size_t len)
{
	struct frame *f = malloc(sizeof(*f) + sizeof(struct message_header) + len + 1);

	if (!f)
		return NULL;
	f->refs = 1;
	f->len = len;
	message_put_header(f->bytes, kind, (uint32_t)len);
	if (body && len > 0)
		memcpy(f->bytes + sizeof(struct message_header), body, len);
	return f;
}

void frame_unref(struct frame *f)
{
	if (f && --f->refs == 0)
		free(f);
}

size_t message_limit(enum message_kind kind, int size)
{
	size_t ranks = (size_t)size;

	switch (kind) {
	case MESSAGE_HELLO: return MESSAGE_HELLO_BYTES_MAX;
	case MESSAGE_CHALLENGE: return sizeof(struct message_challenge);
	case MESSAGE_PROOF: return MESSAGE_PROOF_BYTES;
	case MESSAGE_ACCEPTED: return sizeof(struct message_accepted);
	case MESSAGE_REFUSED:
	case MESSAGE_FAILED:
	case MESSAGE_LOST:
	case MESSAGE_SUSPECT: return 4 + MESSAGE_TEXT_BYTES;
	case MESSAGE_WELCOME: return 16 + ranks * (8 + 12 + MESSAGE_HOST_BYTES);
	case MESSAGE_GATHER: return sizeof(struct message_gather) + ranks * (8 + (size_t)MESSAGE_GATHER_BYTES);
	case MESSAGE_GATHERED: return 8 + ranks * (4 + (size_t)MESSAGE_GATHER_BYTES);
	case MESSAGE_LEFT: return 4 * ranks;
	case MESSAGE_JOINED: return ranks * (sizeof(struct message_joined) + MESSAGE_HOST_BYTES);
	case MESSAGE_DENIED: return sizeof(struct message_denied) + MESSAGE_TEXT_BYTES;
	case MESSAGE_ANCESTORS: return MESSAGE_ANCESTORS_MAX * sizeof(struct message_ancestor);
	case MESSAGE_MOVED: return 8 * ranks;
	case MESSAGE_ATTACHED: return 4;
	case MESSAGE_SEAL:
	case MESSAGE_SEALED:
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
	if (in[0] != 'I' || in[1] != 'B' || in[2] == MESSAGE_NONE || in[2] >= MESSAGE_KIND_COUNT || in[3] != 0)
		return -EPROTO;
	*len = message_get32(in + 4);
	return in[2];
}

/* Bytes of a stranger become a text that may go to a log or an exception. */
void message_get_chars(char *out, const void *in, size_t len)
{
	const uint8_t *p = in;
	size_t i = 0;

	for (; i < len && p[i]; i++)
		out[i] = p[i] >= ' ' && p[i] <= '~' ? (char)p[i] : '?';
	out[i] = '\0';
}

void message_put_chars(void *out, size_t size, const char *in)
{
	size_t len = strnlen(in, size);

	memcpy(out, in, len);
	memset((uint8_t *)out + len, 0, size - len);
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
	message_put32(&out->purpose, (uint32_t)in->purpose);
	message_put32(&out->port, (uint32_t)in->port);
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
		return error_set(-EPROTONOSUPPORT, "its processor has the other byte order than that of rank 0");
	return 0;
}

int message_get_hello(const void *in, size_t len, struct message_rank *out)
{
	struct message_hello hello;
	uint32_t rank, size, pid, purpose, port;
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
	purpose = message_get32(&hello.purpose);
	port = message_get32(&hello.port);
	if (rank > INT32_MAX || size > INT32_MAX || pid > INT32_MAX || purpose >= MESSAGE_PURPOSE_COUNT || port > UINT16_MAX)
		return -EPROTO;
	out->purpose = (enum message_purpose)purpose;
	out->port = (int)port;
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

void message_put_node(uint8_t out[MESSAGE_NODE_BYTES / 2], const char *node)
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < MESSAGE_NODE_BYTES / 2; i++) {
		unsigned value = 0;

		for (int half = 0; half < 2; half++) {
			const char *at = *node ? strchr(digits, *node++) : digits;

			value = value << 4 | (at ? (unsigned)(at - digits) : 0);
		}
		out[i] = (uint8_t)value;
	}
}

void message_get_node(const uint8_t in[MESSAGE_NODE_BYTES / 2], char node[MESSAGE_NODE_BYTES + 1])
{
	for (int i = 0; i < MESSAGE_NODE_BYTES / 2; i++)
		snprintf(node + 2 * i, 3, "%02x", in[i]);
}

bool message_is_job_id(const char *id)
{
	return strlen(id) == MESSAGE_ID_BYTES && strspn(id, "0123456789abcdefABCDEF") == MESSAGE_ID_BYTES;
}

size_t message_put_joined(uint8_t *out, const struct message_rank *member, int parent)
{
	struct message_joined record;
	size_t host = strnlen(member->host, MESSAGE_HOST_BYTES);

	message_put32(&record.rank, (uint32_t)member->rank);
	message_put32(&record.parent, (uint32_t)parent);
	message_put32(&record.pid, (uint32_t)member->pid);
	message_put32(&record.left_ms, (uint32_t)member->left_ms);
	message_put_node(record.node, member->node);
	message_put32(&record.host_bytes, (uint32_t)host);
	memcpy(out, &record, sizeof(record));
	memcpy(out + sizeof(record), member->host, host);
	return sizeof(record) + host;
}

int message_get_joined(const uint8_t *in, size_t len, struct message_rank *member, int *parent)
{
	struct message_joined record;
	uint32_t rank, above, pid, host;

	if (len < sizeof(record))
		return -EPROTO;
	memcpy(&record, in, sizeof(record));
	rank = message_get32(&record.rank);
	above = message_get32(&record.parent);
	pid = message_get32(&record.pid);
	host = message_get32(&record.host_bytes);
	if (rank > INT32_MAX || above > INT32_MAX || pid > INT32_MAX || host > MESSAGE_HOST_BYTES || len - sizeof(record) < host)
		return -EPROTO;
	memset(member, 0, sizeof(*member));
	member->rank = (int)rank;
	member->pid = (int)pid;
	member->left_ms = message_get32(&record.left_ms);
	message_get_node(record.node, member->node);
	message_get_chars(member->host, in + sizeof(record), host);
	*parent = (int)above;
	return (int)(sizeof(record) + host);
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
