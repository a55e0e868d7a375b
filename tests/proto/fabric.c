/* SPDX-License-Identifier: MIT */
#include "fabric.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void fabric_config_random(struct fabric_config *cfg, uint64_t seed)
{
	struct rng r = rng_seed(seed, 77);
	int size = cfg->size;

	*cfg = (struct fabric_config){
		.seed = seed,
		.size = size,
		.carries_self = rng_percent(&r, 50),
		.delay_max = rng_percent(&r, 30) ? 0 : (unsigned)rng_range(&r, 1, 60),
		.connect_max = rng_percent(&r, 30) ? 0 : (unsigned)rng_range(&r, 1, 100),
		.room_packets = rng_percent(&r, 30) ? 0 : (unsigned)rng_range(&r, 1, 40),
		.room_bytes = rng_percent(&r, 50) ? 0 : (size_t)rng_range(&r, 300, 200000),
		.refuse_percent = rng_percent(&r, 40) ? 0 : (unsigned)rng_range(&r, 1, 50),
		.spurious_percent = rng_percent(&r, 40) ? 0 : (unsigned)rng_range(&r, 1, 40),
		.learns_gets = seed % 3 == 0,
		.get_min = rng_percent(&r, 60) ? 0 : (size_t)rng_range(&r, 1, 100000),
		.get_delay_max = rng_percent(&r, 30) ? 0 : (unsigned)rng_range(&r, 1, 100),
		.pack_refuse_percent = rng_percent(&r, 50) ? 0 : (unsigned)rng_range(&r, 1, 60),
		.get_fail_percent = rng_percent(&r, 50) ? 0 : (unsigned)rng_range(&r, 1, 60),
		.put_min = rng_percent(&r, 60) ? 0 : (size_t)rng_range(&r, 1, 100000),
		.lease_fail_percent = rng_percent(&r, 70) ? 0 : (unsigned)rng_range(&r, 1, 60),
		.put_fail_percent = rng_percent(&r, 50) ? 0 : (unsigned)rng_range(&r, 1, 60),
		.pack_delay_max = rng_percent(&r, 60) ? 0 : (unsigned)rng_range(&r, 1, 100),
		.cancel_delay_max = rng_percent(&r, 50) ? 0 : (unsigned)rng_range(&r, 1, 100),
	};
}

/* By seed and pair only, so that the core may ask at any time. */
static size_t pair_payload_max(const struct fabric_config *cfg, int src, int dst)
{
	static const size_t usual[] = {256, 257, 300, 512, 1024, 4096, 8192, 65536};
	struct rng r = rng_seed(cfg->seed, 1000 + (uint64_t)(src * cfg->size + dst));

	if (cfg->payload_max)
		return cfg->payload_max;
	if (rng_percent(&r, 60))
		return usual[rng_below(&r, sizeof(usual) / sizeof(usual[0]))];
	return (size_t)rng_range(&r, 256, 65536);
}

struct fabric *fabric_new(const struct fabric_config *cfg)
{
	struct fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->cfg = *cfg;
	if (!f->cfg.room_packets)
		f->cfg.room_packets = 1000000;
	if (!f->cfg.room_bytes)
		f->cfg.room_bytes = (size_t)1 << 30;
	f->rng = rng_seed(cfg->seed, 1);
	f->nodes = calloc((size_t)cfg->size, sizeof(*f->nodes));
	f->links = calloc((size_t)cfg->size * (size_t)cfg->size, sizeof(*f->links));
	if (!f->nodes || !f->links) {
		free(f->nodes);
		free(f->links);
		free(f);
		return NULL;
	}
	pthread_mutex_init(&f->lock, NULL);
	for (int s = 0; s < cfg->size; s++)
		for (int d = 0; d < cfg->size; d++)
			fabric_link(f, s, d)->payload_max = pair_payload_max(cfg, s, d);
	return f;
}

void fabric_free(struct fabric *f)
{
	if (!f)
		return;
	fabric_clock_stop(f);
	for (int r = 0; r < f->cfg.size; r++) {
		fabric_drop_registrations(f, r, -1);
		fabric_drop_gets(f, r, -1);
	}
	for (int i = 0; i < f->cfg.size * f->cfg.size; i++)
		fabric_drop(&f->links[i], 0);
	pthread_mutex_destroy(&f->lock);
	free(f->nodes);
	free(f->links);
	free(f);
}

void fabric_violate(struct fabric *f, const char *fmt, ...)
{
	char text[sizeof(f->violation)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "fabric (seed %llu): contract broken: %s\n", (unsigned long long)f->cfg.seed, text);
	if (!f->violations++)
		memcpy(f->violation, text, sizeof(text));
}

int fabric_violations(struct fabric *f, const char **text)
{
	int count;

	pthread_mutex_lock(&f->lock);
	count = f->violations;
	if (text)
		*text = f->violation;
	pthread_mutex_unlock(&f->lock);
	return count;
}

void fabric_packet_free(struct packet *p)
{
	if (!p)
		return;
	free(p->wire);
	free(p);
}

void fabric_push(struct fabric *f, int src, int dst, struct packet *p)
{
	struct link *l = fabric_link(f, src, dst);

	p->next = NULL;
	p->due = f->now + rng_below(&f->rng, (uint64_t)f->cfg.delay_max + 1);
	if (p->due < l->last_due)
		p->due = l->last_due;
	l->last_due = p->due;
	if (l->tail)
		l->tail->next = p;
	else
		l->head = p;
	l->tail = p;
	l->packets++;
	l->bytes += sizeof(*p->wire) + p->wire->len;
	if (p->wire->kind < WIRE_KIND_COUNT)
		l->sent[p->wire->kind]++;
}

struct packet *fabric_pop(struct link *l)
{
	struct packet *p = l->head;

	if (!p)
		return NULL;
	l->head = p->next;
	if (!l->head)
		l->tail = NULL;
	l->packets--;
	l->bytes -= sizeof(*p->wire) + p->wire->len;
	return p;
}

void fabric_drop(struct link *l, unsigned keep)
{
	struct packet **at = &l->head, *p, *last = NULL;

	while (*at && keep--) {
		last = *at;
		at = &last->next;
	}
	p = *at;
	*at = NULL;
	l->tail = last;
	while (p) {
		struct packet *next = p->next;

		l->packets--;
		l->bytes -= sizeof(*p->wire) + p->wire->len;
		fabric_packet_free(p);
		p = next;
	}
}

bool fabric_link_has_room(const struct fabric *f, const struct link *l, size_t len)
{
	if (!l->connecting || f->now < l->up_at || f->now < l->lacked_until)
		return false;
	if (l->packets >= f->cfg.room_packets)
		return false;
	return !l->packets || l->bytes + sizeof(struct wire_hdr) + len <= f->cfg.room_bytes;
}

bool fabric_due(struct fabric *f, int rank)
{
	struct node *n = &f->nodes[rank];

	if (n->frozen || n->dead)
		return false;
	for (struct get *g = n->gets; g; g = g->next)
		if (g->due <= f->now)
			return true;
	for (struct registration *e = n->registrations; e; e = e->next)
		if (!e->packed && !e->revoked && e->due <= f->now)
			return true;
	for (struct cancelled *c = n->cancelled; c; c = c->next)
		if (c->due <= f->now)
			return true;
	for (int peer = 0; peer < f->cfg.size; peer++) {
		struct link *in = fabric_link(f, peer, rank), *out = fabric_link(f, rank, peer);

		if (in->head ? in->head->due <= f->now : in->down && !in->down_reported && !in->forgotten && in->down_at <= f->now)
			return true;
		if (out->lacked && fabric_link_has_room(f, out, 0))
			return true;
	}
	return false;
}

/* As transport_ops.doorbell has it: bit 0 means that somebody sleeps. */
static void wake_word(_Atomic uint32_t *word)
{
	uint32_t v = atomic_load(word);

	while (v & 1u)
		if (atomic_compare_exchange_weak(word, &v, (v & ~1u) + 2u)) {
			syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
			return;
		}
}

void fabric_wake(struct node *n)
{
	for (int i = 0; i < TRANSPORT_DOORBELL_WORDS; i++)
		wake_word(&n->doorbell[i]);
}

static void wake_due(struct fabric *f)
{
	for (int r = 0; r < f->cfg.size; r++)
		if (atomic_load(&f->nodes[r].armed) && fabric_due(f, r))
			fabric_wake(&f->nodes[r]);
}

void fabric_step(struct fabric *f, unsigned ticks)
{
	pthread_mutex_lock(&f->lock);
	f->now += ticks;
	wake_due(f);
	pthread_mutex_unlock(&f->lock);
}

uint64_t fabric_now(struct fabric *f)
{
	uint64_t now;

	pthread_mutex_lock(&f->lock);
	now = f->now;
	pthread_mutex_unlock(&f->lock);
	return now;
}

static void *clock_run(void *arg)
{
	struct fabric *f = arg;

	while (!atomic_load(&f->clock_stop)) {
		usleep(f->clock_period_us);
		fabric_step(f, 1);
	}
	return NULL;
}

int fabric_clock_start(struct fabric *f, unsigned period_us)
{
	int err;

	if (f->clock_runs)
		return 0;
	atomic_store(&f->clock_stop, false);
	f->clock_period_us = period_us;
	err = pthread_create(&f->clock, NULL, clock_run, f);
	f->clock_runs = !err;
	return -err;
}

void fabric_clock_stop(struct fabric *f)
{
	if (!f->clock_runs)
		return;
	atomic_store(&f->clock_stop, true);
	pthread_join(f->clock, NULL);
	f->clock_runs = false;
}
