/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static unsigned char byte_of(uint64_t value, size_t i)
{
	return (unsigned char)(value * 31 + i);
}

static void on_packet(void *core, int peer, const struct wire_hdr *hdr, const void *payload)
{
	struct side *s = core;

	assert_int_equal(peer, 1 - s->env.rank);
	s->in_order = s->in_order && hdr->ctl.value == s->last + 1;
	for (uint32_t i = 0; i < hdr->len; i++)
		s->whole = s->whole && ((const unsigned char *)payload)[i] == byte_of(hdr->ctl.value, i);
	s->last = hdr->ctl.value;
	s->packets++;
}

static void on_down(void *core, int peer, int err, const char *why)
{
	struct side *s = core;

	assert_int_equal(peer, 1 - s->env.rank);
	s->downs++;
	s->down_error = err;
	s->packets_at_down = s->packets;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

int pair_watch_add(void *monitor, int fd, void (*fn)(void *arg), void *arg)
{
	struct side *s = monitor;

	assert_true(s->watch_count < WATCHES);
	s->watch[s->watch_count].fd = fd;
	s->watch[s->watch_count].fn = fn;
	s->watch[s->watch_count++].arg = arg;
	return 0;
}

void pair_watch_remove(void *monitor, int fd)
{
	struct side *s = monitor;

	for (int i = 0; i < s->watch_count; i++) {
		if (s->watch[i].fd == fd)
			s->watch[i].fn = NULL;
	}
}

static struct side *outside; /* the side whose monitor thread has released the lock */

static void watch_unlock(void *monitor)
{
	struct side *s = monitor;
	struct transport_slot slot;

	/* what other threads may do meanwhile comes to nothing, but breaks nothing */
	outside = s;
	assert_int_equal(OPS.poll(s->t, 32), 0);
	assert_int_not_equal(OPS.reserve(s->t, 1 - s->env.rank, 8, &slot), 0);
	assert_false(OPS.drained(s->t));
	OPS.arm(s->t);
	OPS.disarm(s->t);
	assert_true(double_locked);
	double_locked = false;
}

static void watch_lock(void *monitor)
{
	assert_ptr_equal(outside, monitor);
	assert_false(double_locked);
	double_locked = true;
}

int side_open(struct side *s, int rank, const struct settings *settings, const struct log *log, void *blob, size_t size)
{
	s->in_order = s->whole = true;
	s->env = (struct transport_env){.rank = rank,
					.size = 2,
					.job_id = "0123456789abcdef0123456789abcdef",
					.settings = settings,
					.log = log,
					.sink = {.core = s, .on_packet = on_packet, .on_down = on_down},
					.watch = {s, pair_watch_add, pair_watch_remove, watch_unlock, watch_lock},
					.wakeups = &s->wakeups,
					.test = double_test};
	assert_int_equal(OPS.open(&s->t, &s->env), 0);
	return OPS.address(s->t, blob, size);
}

void pair_open(struct pair *p, const char *setting)
{
	struct transport_peer_info info[2] = {{0}};
	char blob[2][256], text[64];

	*p = (struct pair){.settings = settings_new(), .log = {.level = LOG_OFF, .fd = -1}};
	assert_non_null(p->settings);
	snprintf(text, sizeof(text), "%s_%s", OPS.name, setting ? setting : "");
	if (setting)
		assert_int_equal(settings_set_pair(p->settings, SETTINGS_CALLER, text, "test"), 0);
	for (int r = 0; r < 2; r++) {
		info[r].address = blob[r];
		info[r].address_bytes = (size_t)side_open(&p->side[r], r, p->settings, &p->log, blob[r], sizeof(blob[r]));
	}
	for (int r = 0; r < 2; r++) {
		assert_int_equal(OPS.attach(p->side[r].t, info), 0);
		if (OPS.reaches(p->side[r].t, 1 - r))
			OPS.use(p->side[r].t, 1 - r);
	}
	double_locked = true;
}

void side_close(struct side *s)
{
	double_locked = false;
	OPS.close(s->t);
	s->t = NULL;
	double_locked = true;
	for (int i = 0; i < s->watch_count; i++)
		assert_null(s->watch[i].fn);
}

void pair_close(struct pair *p)
{
	for (int r = 0; r < 2; r++) {
		if (p->side[r].t)
			side_close(&p->side[r]);
	}
	double_locked = false;
	settings_free(p->settings);
}

bool side_readable(const struct side *s, int watch)
{
	struct pollfd fd = {.fd = s->watch[watch].fd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

int side_step(struct side *s)
{
	int events = 0;

	if (!s->t)
		return 0;
	if (side_readable(s, WATCH_WORK)) {
		s->watch[WATCH_WORK].fn(s->watch[WATCH_WORK].arg);
		events++;
	}
	return events + OPS.poll(s->t, 32);
}

void side_tick(struct side *s)
{
	s->watch[WATCH_BEAT].fn(s->watch[WATCH_BEAT].arg);
	OPS.poll(s->t, 32);
}

void pair_run(struct pair *p)
{
	while (side_step(&p->side[0]) + side_step(&p->side[1]) > 0)
		;
}

int pair_send(struct pair *p, int from, uint64_t value, size_t len)
{
	struct transport *t = p->side[from].t;
	struct transport_slot slot;
	int rc = OPS.reserve(t, 1 - from, len, &slot);

	if (rc < 0)
		return rc;
	slot.hdr->kind = WIRE_CTS;
	slot.hdr->flags = 0;
	slot.hdr->len = (uint32_t)len;
	slot.hdr->ctl = (struct wire_ctl){.value = value};
	for (size_t i = 0; i < len; i++)
		((unsigned char *)slot.payload)[i] = byte_of(value, i);
	OPS.commit(t, 1 - from, &slot);
	return 0;
}

void pair_connect(struct pair *p)
{
	assert_int_equal(pair_send(p, 0, 1, 8), -EAGAIN);
	pair_run(p);
	assert_int_equal(pair_send(p, 0, 1, 8), 0);
	pair_run(p);
	assert_int_equal(pair_send(p, 1, 1, 8), 0); /* rank 1 has an endpoint since the first packet */
	pair_run(p);
	assert_int_equal(p->side[0].packets, 1);
	assert_int_equal(p->side[1].packets, 1);
}

struct netlib_peer *pair_peer(struct pair *p, int rank)
{
	return &netlib_of(p->side[rank].t)->peers[1 - rank];
}

int pair_setup(void **state)
{
	(void)state;
	double_reset();
	return 0;
}

int pair_teardown(void **state)
{
	(void)state;
	return double_live() ? -1 : 0;
}
