/* SPDX-License-Identifier: MIT */
#include "bootstrap/munge.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"

#define MUNGE_LIBRARY "libmunge.so.2"
/* munge.h: the options and values that are used here. */
#define MUNGE_SUCCESS 0
#define MUNGE_OPTION_CIPHER 0
#define MUNGE_OPTION_TTL 4
#define MUNGE_OPTION_SOCKET 8
#define MUNGE_OPTION_UID 9
#define MUNGE_CIPHER_AES_128 4
/* Clocks of nodes may differ by this; the rest of the start is bounded by the nonce. */
#define MUNGE_TTL_SECONDS 120

struct munge_api {
	int (*encode)(char **cred, void *ctx, const void *buf, int len);
	int (*decode)(const char *cred, void *ctx, void **buf, int *len, uid_t *uid, gid_t *gid);
	const char *(*explain)(int err);
	void *(*create)(void);
	void (*destroy)(void *ctx);
	int (*set)(void *ctx, int option, ...);
};

static struct munge_api munge_api;
static int munge_state; /* 1: loaded; 0: not yet */
static char munge_socket[108];
static pthread_mutex_t munge_lock = PTHREAD_MUTEX_INITIALIZER;

static int munge_load_locked(void)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"munge_encode", &munge_api.encode},     {"munge_decode", &munge_api.decode},       {"munge_strerror", &munge_api.explain},
		{"munge_ctx_create", &munge_api.create}, {"munge_ctx_destroy", &munge_api.destroy}, {"munge_ctx_set", &munge_api.set},
	};
	void *handle = dlopen(MUNGE_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return error_set(-ENOENT,
				 "munge: %.300s; install it (Debian: libmunge2), or start the job with srun "
				 "--mpi=pmi2 or --mpi=pmix, which need no munge",
				 dlerror());
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(handle, symbols[i].name);

		if (!found)
			return error_set(-EPROTO, MUNGE_LIBRARY " has no %s: is it munge?", symbols[i].name);
		memcpy(symbols[i].to, &found, sizeof(found));
	}
	munge_state = 1;
	return 0;
}

int munge_load(const char *socket)
{
	int err;

	pthread_mutex_lock(&munge_lock);
	if (!munge_state)
		snprintf(munge_socket, sizeof(munge_socket), "%s", socket);
	err = munge_state ? 0 : munge_load_locked();
	pthread_mutex_unlock(&munge_lock);
	return err;
}

static int munge_bad(const char *doing, int status)
{
	return error_set(-EACCES, "munge: %s: %.100s", doing, munge_api.explain(status));
}

static int munge_context(void **out)
{
	void *ctx = munge_api.create();
	int status = ctx ? munge_api.set(ctx, MUNGE_OPTION_UID, geteuid()) : MUNGE_SUCCESS;

	if (!ctx)
		return error_set(-ENOMEM, "munge: no memory");
	if (status == MUNGE_SUCCESS && *munge_socket)
		status = munge_api.set(ctx, MUNGE_OPTION_SOCKET, munge_socket);
	if (status == MUNGE_SUCCESS)
		status = munge_api.set(ctx, MUNGE_OPTION_CIPHER, MUNGE_CIPHER_AES_128);
	if (status == MUNGE_SUCCESS)
		status = munge_api.set(ctx, MUNGE_OPTION_TTL, MUNGE_TTL_SECONDS);
	if (status != MUNGE_SUCCESS) {
		munge_api.destroy(ctx);
		return munge_bad("restricting a credential to this user", status);
	}
	*out = ctx;
	return 0;
}

int munge_seal(const void *payload, size_t len, char out[MUNGE_TEXT_BYTES])
{
	char *text = NULL;
	void *ctx = NULL;
	int status, err = munge_context(&ctx);

	if (err)
		return err;
	status = munge_api.encode(&text, ctx, payload, (int)len);
	munge_api.destroy(ctx);
	if (status != MUNGE_SUCCESS || !text)
		err = munge_bad("making a credential", status);
	else if (strlen(text) >= MUNGE_TEXT_BYTES)
		err = error_set(-EMSGSIZE, "munge: a credential of %zu bytes", strlen(text));
	else
		memcpy(out, text, strlen(text) + 1);
	free(text);
	return err;
}

int munge_unseal(const char *text, void *payload, size_t size, size_t *len)
{
	void *bytes = NULL, *ctx = NULL;
	int got = 0, status, err = munge_context(&ctx);
	uid_t uid = (uid_t)-1;
	gid_t gid;

	if (err)
		return err;
	status = munge_api.decode(text, ctx, &bytes, &got, &uid, &gid);
	munge_api.destroy(ctx);
	if (status != MUNGE_SUCCESS)
		err = munge_bad("opening a credential", status);
	else if (uid != geteuid())
		err = error_set(-EACCES, "munge: the credential is of the user %u, this one is %u", (unsigned)uid, (unsigned)geteuid());
	else if (got < 0 || (size_t)got > size)
		err = error_set(-EMSGSIZE, "munge: a credential with %d bytes", got);
	else
		memcpy(payload, bytes, (size_t)got);
	if (!err)
		*len = (size_t)got;
	/* The daemon hands over the payload of stale and replayed credentials too. */
	free(bytes);
	return err;
}
