/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned char pair_byte(uint64_t value, size_t i)
{
	return (unsigned char)(value * 31 + i);
}

static void on_packet(void *core, int peer, const struct wire_hdr *hdr, const void *payload)
{
	struct side *s = core;
	const unsigned char *bytes = payload;

	if (s->from ? hdr->ctl.value != ++s->from[peer] : s->packets > 0 && hdr->ctl.value != s->last_value + 1)
		s->in_order = false;
	for (uint32_t i = 0; i < hdr->len; i++)
		s->whole = s->whole && bytes[i] == pair_byte(hdr->ctl.value, i);
	s->last_value = hdr->ctl.value;
	s->packets++;
}

static void on_get(void *core, int peer, uint64_t cookie, int err)
{
	struct side *s = core;

	(void)peer;
	s->gets++;
	s->get_error = err;
	s->get_cookie = cookie;
}

static void on_put(void *core, int peer, uint64_t cookie, int err)
{
	struct side *s = core;

	(void)peer;
	s->puts++;
	s->get_error = err;
	s->get_cookie = cookie;
}

static void on_cancelled(void *core, int peer, uint64_t cookie)
{
	struct side *s = core;

	(void)peer;
	(void)cookie;
	s->cancels++;
}

static void on_down(void *core, int peer, int err, const char *why)
{
	struct side *s = core;

	(void)peer;
	s->downs++;
	s->down_error = err;
	s->packets_at_down = s->packets;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static int watch_add(void *monitor, int fd, void (*fn)(void *arg), void *arg)
{
	struct side *s = monitor;

	for (int i = 0; i < PAIR_WATCHES; i++) {
		if (i < s->watch_count && s->watch[i].fn)
			continue;
		s->watch[i].fd = fd;
		s->watch[i].fn = fn;
		s->watch[i].arg = arg;
		if (i == s->watch_count)
			s->watch_count++;
		return 0;
	}
	return -ENOSPC;
}

static void watch_remove(void *monitor, int fd)
{
	struct side *s = monitor;

	for (int i = 0; i < s->watch_count; i++) {
		if (s->watch[i].fd == fd)
			s->watch[i].fn = NULL;
	}
}

/* There is one thread, which has both cores' locks but between these. */
static void watch_unlock(void *monitor)
{
	(void)monitor;
	if (!adapter_locked)
		abort();
	adapter_locked = false;
}

static void watch_lock(void *monitor)
{
	(void)monitor;
	if (adapter_locked)
		abort();
	adapter_locked = true;
}

int side_open(struct side *s, int rank, int size, const struct settings *settings, const struct log *log, void *blob, size_t blob_bytes)
{
	s->in_order = s->whole = true;
	s->env = (struct transport_env){.rank = rank,
					.size = size,
					.job_id = "0123456789abcdef0123456789abcdef",
					.settings = settings,
					.log = log,
					.sink = {s, on_packet, on_get, on_put, on_cancelled, on_down},
					.watch = {s, watch_add, watch_remove, watch_unlock, watch_lock},
					.wakeups = &s->wakeups,
					.test = (void *)(uintptr_t)&adapter_provider};
	if (transport_verbs_ops.open(&s->t, &s->env))
		abort();
	return transport_verbs_ops.address(s->t, blob, blob_bytes);
}

void pair_open(struct pair *p, const char *const *settings)
{
	unsigned char blob[2][1024];
	struct transport_peer_info info[2];

	*p = (struct pair){.settings = settings_new(), .log = {.level = LOG_OFF, .fd = -1}};
	for (int i = 0; settings && settings[i]; i++) {
		if (settings_set_pair(p->settings, SETTINGS_CALLER, settings[i], "test"))
			abort();
		p->sockets |= strcmp(settings[i], "verbs_connect=tcp") == 0;
	}
	for (int r = 0; r < 2; r++) {
		struct side *s = &p->side[r];

		info[r].address_bytes = (size_t)side_open(s, r, 2, p->settings, &p->log, blob[r], sizeof(blob[r]));
		info[r].address = blob[r];
	}
	for (int r = 0; r < 2; r++) {
		if (transport_verbs_ops.attach(p->side[r].t, info))
			abort();
	}
	adapter_locked = true;
}

void side_close(struct side *s)
{
	adapter_locked = false; /* nobody else is left inside */
	transport_verbs_ops.close(s->t);
	s->t = NULL;
	adapter_locked = true;
}

void pair_close(struct pair *p)
{
	for (int r = 0; r < 2; r++) {
		struct side *s = &p->side[r];

		side_close(s);
		for (int i = 0; i < s->watch_count; i++) {
			if (!s->watch[i].fn)
				continue;
			fprintf(stderr, "rank %d has closed descriptor %d, which is still watched\n", r, s->watch[i].fd);
			abort();
		}
	}
	adapter_locked = false;
	settings_free(p->settings);
}

int side_step(struct side *s)
{
	int events = 0;

	if (!s->t) /* closed by the test */
		return 0;
	if (s->polls_first)
		events += transport_verbs_ops.poll(s->t, 32);
	for (int i = 0; i < s->watch_count; i++) {
		struct pollfd fd = {.fd = s->watch[i].fd, .events = POLLIN};

		if (!s->watch[i].fn || poll(&fd, 1, 0) <= 0 || !(fd.revents & POLLIN))
			continue;
		s->watch[i].fn(s->watch[i].arg);
		events++;
	}
	return events + transport_verbs_ops.poll(s->t, 32);
}

int pair_step(struct pair *p)
{
	return side_step(&p->side[0]) + side_step(&p->side[1]);
}

void pair_run(struct pair *p)
{
	bool waits;
	int idle = 0;

	for (int i = 0; i < 10000; i++) {
		if (pair_step(p) > 0) {
			idle = 0;
			continue;
		}
		if (p->sockets && idle++ < 3) { /* what they carry may take its time */
			usleep(100);
			continue;
		}
		waits = (p->side[0].t && transport_verbs_ops.ready(p->side[0].t)) ||
			(p->side[1].t && transport_verbs_ops.ready(p->side[1].t));
		if (!waits)
			return;
		usleep(200); /* the end of a peer is reported a little later */
	}
}

int pair_send(struct pair *p, int from, uint64_t value, size_t len)
{
	struct transport *t = p->side[from].t;
	struct transport_slot slot;
	int rc = transport_verbs_ops.reserve(t, 1 - from, len, &slot);

	if (rc < 0)
		return rc;
	slot.hdr->kind = WIRE_CTS;
	slot.hdr->flags = 0;
	slot.hdr->len = (uint32_t)len;
	slot.hdr->ctl = (struct wire_ctl){.value = value};
	for (size_t i = 0; i < len; i++)
		((unsigned char *)slot.payload)[i] = pair_byte(value, i);
	transport_verbs_ops.commit(t, 1 - from, &slot);
	return 0;
}

bool pair_send_until(struct pair *p, int from, uint64_t value, size_t len)
{
	for (int i = 0; i < 100; i++) {
		int rc = pair_send(p, from, value, len);

		if (rc != -EAGAIN)
			return rc == 0;
		pair_run(p);
	}
	return false;
}

int pair_pack(struct pair *p, int owner, uint64_t cookie, enum transport_access access, const void *base[2], const size_t len[2],
	      void *desc)
{
	for (;;) {
		int n = transport_verbs_ops.pack_rkey(p->side[owner].t, 1 - owner, cookie, access, base, len, desc);

		if (n != -EAGAIN)
			return n;
		if (side_step(&p->side[owner]) == 0)
			abort(); /* nothing prepares it */
	}
}
