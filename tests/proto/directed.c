/* SPDX-License-Identifier: MIT */
#include "directed.h"

#include <stdlib.h>

#define TURNS_MANY 3000
#define TURNS_MOST 300000

struct world_config calm(int size, size_t payload_max)
{
	return (struct world_config){.net = {.seed = 1, .size = size, .payload_max = payload_max ? payload_max : 4096}};
}

struct world_config ugly(int size, uint64_t seed)
{
	struct world_config cfg = {.net = {.size = size}};

	fabric_config_random(&cfg.net, seed);
	return cfg;
}

void begin(struct world *w, struct world_config cfg, ...)
{
	const char *settings[WORLD_SETTINGS_MAX + 1] = {0};
	va_list ap;

	va_start(ap, cfg);
	for (int i = 0; i < WORLD_SETTINGS_MAX; i++) {
		settings[i] = va_arg(ap, const char *);
		if (!settings[i])
			break;
	}
	va_end(ap);
	cfg.settings = settings;
	assert_int_equal(world_open(w, &cfg), 0);
}

void end(struct world *w)
{
	assert_int_equal(world_close(w), 0);
}

static unsigned char text_byte(uint64_t user, size_t i)
{
	return (unsigned char)((user * 131 + i * 7 + (i >> 8) + 1) & 0xff);
}

struct text text_of(uint64_t user, size_t len)
{
	struct text t = {malloc(len ? len : 1), len};

	assert_non_null(t.bytes);
	for (size_t i = 0; i < len; i++)
		t.bytes[i] = (char)text_byte(user, i);
	return t;
}

void text_free(struct text t)
{
	free(t.bytes);
}

void assert_text(const void *got, uint64_t user, size_t len)
{
	const unsigned char *p = got;

	for (size_t i = 0; i < len; i++)
		if (p[i] != text_byte(user, i))
			fail_msg("byte %zu of message %llu is %#x, sent was %#x", i, (unsigned long long)user, p[i], text_byte(user, i));
}

ibvx_req put(struct world *w, int src, int dst, int tag, struct text t, uint64_t user, bool sync)
{
	struct ibvx_sbuf buf = {NULL, 0, t.bytes, t.len, user};
	ibvx_req req = IBVX_REQ_NULL;
	int err = sync ? ibvx_issend(w->ep[src], &buf, dst, tag, CTX, &req) : ibvx_isend(w->ep[src], &buf, dst, tag, CTX, &req);

	if (err)
		fail_msg("isend to rank %d: %d (%s)", dst, err, ibvx_error());
	return req;
}

ibvx_req take(struct world *w, int rank, int source, int tag, void *memory, size_t capacity)
{
	struct ibvx_rbuf buf = {memory, capacity, 0};
	ibvx_req req = IBVX_REQ_NULL;
	int err = ibvx_irecv(w->ep[rank], &buf, source, tag, CTX, &req);

	if (err)
		fail_msg("irecv: %d (%s)", err, ibvx_error());
	return req;
}

int finish(struct world *w, int rank, ibvx_req *req, struct ibvx_status *s)
{
	for (int i = 0; i < TURNS_MOST; i++) {
		int ret = ibvx_test(w->ep[rank], req, s);

		if (ret)
			return ret < 0 ? ret : 0;
		world_turn(w, 1);
	}
	fail_msg("rank %d: a request does not complete", rank);
	return -1;
}

bool stays_open(struct world *w, int rank, ibvx_req *req)
{
	for (int i = 0; i < TURNS_MANY; i++) {
		if (ibvx_test(w->ep[rank], req, NULL))
			return false;
		world_turn(w, 1);
	}
	return true;
}

void settle(struct world *w)
{
	for (int i = 0; i < TURNS_MANY; i++)
		world_turn(w, 1);
}
