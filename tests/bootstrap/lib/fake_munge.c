/* SPDX-License-Identifier: MIT */
/*
 * A double of libmunge.so.2 for tests: "MUNGE:" and hex of the user that made a credential, the user it is for, and the payload; a sum
 * notices changes.  It hides nothing.
 *
 *   FAKE_MUNGE_FAIL=encode|decode   that call fails as if no daemon ran
 *   FAKE_MUNGE_UID=1234             the user that makes this process's credentials
 *   FAKE_MUNGE_FOR=1234             the user they are for, whatever was asked
 *   FAKE_MUNGE_TWICE=1              a credential is noted as opened before it is opened: every one is a replay
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define SEEN 256

enum { SUCCESS = 0, SOCKET = 6, BAD_CRED = 8, INVALID = 14, REPLAYED = 17, UNAUTHORIZED = 18 };

struct ctx {
	uid_t restricted;
	int cipher, ttl;
};

#pragma GCC visibility push(default)
struct ctx *munge_ctx_create(void);
void munge_ctx_destroy(struct ctx *ctx);
int munge_ctx_set(struct ctx *ctx, int option, ...);
const char *munge_strerror(int err);
int munge_encode(char **cred, struct ctx *ctx, const void *buf, int len);
int munge_decode(const char *cred, struct ctx *ctx, void **buf, int *len, uid_t *uid, gid_t *gid);
#pragma GCC visibility pop

static uint64_t seen[SEEN];
static int seen_count;

static int is_set_to(const char *name, const char *value)
{
	return getenv(name) && strcmp(getenv(name), value) == 0;
}

static uint64_t sum(const char *text, size_t len)
{
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 1099511628211u;
	return h;
}

struct ctx *munge_ctx_create(void)
{
	struct ctx *ctx = calloc(1, sizeof(*ctx));

	ctx->restricted = (uid_t)-1;
	return ctx;
}

void munge_ctx_destroy(struct ctx *ctx)
{
	free(ctx);
}

int munge_ctx_set(struct ctx *ctx, int option, ...)
{
	va_list args;

	va_start(args, option);
	if (option == 9)
		ctx->restricted = va_arg(args, uid_t);
	else if (option == 0)
		ctx->cipher = va_arg(args, int);
	else if (option == 4)
		ctx->ttl = va_arg(args, int);
	va_end(args);
	return SUCCESS;
}

const char *munge_strerror(int err)
{
	switch (err) {
	case SOCKET: return "Socket communication error";
	case BAD_CRED: return "Invalid credential format";
	case INVALID: return "Invalid credential";
	case REPLAYED: return "Replayed credential";
	case UNAUTHORIZED: return "Unauthorized credential decode";
	default: return "?";
	}
}

int munge_encode(char **cred, struct ctx *ctx, const void *buf, int len)
{
	unsigned uid = getenv("FAKE_MUNGE_UID") ? (unsigned)atoi(getenv("FAKE_MUNGE_UID")) : geteuid();
	unsigned reader = getenv("FAKE_MUNGE_FOR") ? (unsigned)atoi(getenv("FAKE_MUNGE_FOR")) : ctx->restricted;
	char *text;
	size_t at;

	/* A secret travels inside: a context that does not ask for encryption is a bug of the caller. */
	if (is_set_to("FAKE_MUNGE_FAIL", "encode") || ctx->cipher < 2 || ctx->ttl <= 0)
		return SOCKET;
	text = malloc(64 + 2 * (size_t)len);
	at = (size_t)sprintf(text, "MUNGE:%08x%08x", uid, reader);
	for (int i = 0; i < len; i++)
		at += (size_t)sprintf(text + at, "%02x", ((const uint8_t *)buf)[i]);
	sprintf(text + at, "%016llx:", (unsigned long long)sum(text, at));
	*cred = text;
	return SUCCESS;
}

static int unpack(const char *cred, size_t len, void **buf, int *out_len)
{
	size_t bytes = (len - 6 - 16 - 17) / 2;

	*buf = malloc(bytes + 1);
	for (size_t i = 0; i < bytes; i++) {
		unsigned byte;

		if (sscanf(cred + 22 + 2 * i, "%2x", &byte) != 1)
			return BAD_CRED;
		((uint8_t *)*buf)[i] = (uint8_t)byte;
	}
	*out_len = (int)bytes;
	return SUCCESS;
}

int munge_decode(const char *cred, struct ctx *ctx, void **buf, int *len, uid_t *uid, gid_t *gid)
{
	unsigned maker, reader;
	size_t length = strlen(cred);
	char check[18];
	uint64_t h;

	(void)ctx;
	if (is_set_to("FAKE_MUNGE_FAIL", "decode"))
		return SOCKET;
	if (length < 6 + 16 + 17 || strncmp(cred, "MUNGE:", 6) != 0 || sscanf(cred + 6, "%8x%8x", &maker, &reader) != 2)
		return BAD_CRED;
	h = sum(cred, length - 17);
	snprintf(check, sizeof(check), "%016llx:", (unsigned long long)h);
	if (strcmp(check, cred + length - 17) != 0)
		return INVALID;
	if (reader != (unsigned)-1 && reader != geteuid())
		return UNAUTHORIZED;
	*uid = maker;
	*gid = getegid();
	if (unpack(cred, length, buf, len) != SUCCESS)
		return BAD_CRED;
	if (getenv("FAKE_MUNGE_TWICE"))
		return REPLAYED;
	for (int i = 0; i < seen_count && i < SEEN; i++)
		if (seen[i] == h)
			return REPLAYED;
	seen[seen_count++ % SEEN] = h;
	return SUCCESS;
}
