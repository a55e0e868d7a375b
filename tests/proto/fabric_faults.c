/* SPDX-License-Identifier: MIT */
#include "fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct registration *fabric_registration(struct fabric *f, int rank, uint64_t id)
{
	for (struct registration *e = f->nodes[rank].registrations; e; e = e->next)
		if (e->id == id)
			return e;
	return NULL;
}

void fabric_drop_registrations(struct fabric *f, int rank, int peer)
{
	struct registration **at = &f->nodes[rank].registrations;

	while (*at) {
		struct registration *e = *at;

		if (peer >= 0 && e->peer != peer) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
}

void fabric_drop_gets(struct fabric *f, int rank, int peer)
{
	struct get **at = &f->nodes[rank].gets;

	while (*at) {
		struct get *g = *at;

		if (peer >= 0 && g->peer != peer) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		free(g);
	}
}

void fabric_drop_cancelled(struct fabric *f, int rank)
{
	while (f->nodes[rank].cancelled) {
		struct cancelled *c = f->nodes[rank].cancelled;

		f->nodes[rank].cancelled = c->next;
		free(c);
	}
}

int fabric_cancelling(struct fabric *f, int rank)
{
	int n = 0;

	pthread_mutex_lock(&f->lock);
	for (struct cancelled *c = f->nodes[rank].cancelled; c; c = c->next)
		n++;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* src sends no more. Peers that never talked to it are notified only if it died. */
void fabric_source_gone(struct fabric *f, int src, bool everybody)
{
	for (int dst = 0; dst < f->cfg.size; dst++) {
		struct link *out = fabric_link(f, src, dst), *in = fabric_link(f, dst, src);

		if (dst == src)
			continue;
		fabric_drop(in, 0);
		in->refuses = rng_percent(&f->rng, 50);
		if (in->lacked)
			in->lacked_until = 0;
		if (out->down || (!everybody && !out->connecting && !in->connecting))
			continue;
		out->down = true;
		out->down_at = f->now + rng_below(&f->rng, (uint64_t)f->cfg.delay_max + 1);
	}
}

void fabric_kill(struct fabric *f, int rank, bool whole)
{
	pthread_mutex_lock(&f->lock);
	f->nodes[rank].dead = true;
	for (int dst = 0; dst < f->cfg.size; dst++) {
		struct link *out = fabric_link(f, rank, dst);

		if (!whole)
			fabric_drop(out, (unsigned)rng_below(&f->rng, (uint64_t)out->packets + 1));
	}
	fabric_source_gone(f, rank, true);
	fabric_drop_registrations(f, rank, -1);
	fabric_drop_gets(f, rank, -1);
	fabric_drop_cancelled(f, rank);
	/* a get from the dead ends with an error, after its time */
	for (int r = 0; r < f->cfg.size; r++)
		for (struct get *g = f->nodes[r].gets; g; g = g->next)
			if (g->peer == rank)
				g->err = -ESRCH;
	pthread_mutex_unlock(&f->lock);
	fabric_step(f, 0);
}

void fabric_freeze(struct fabric *f, int rank, bool frozen)
{
	pthread_mutex_lock(&f->lock);
	f->nodes[rank].frozen = frozen;
	pthread_mutex_unlock(&f->lock);
	fabric_step(f, 0);
}

int fabric_inject(struct fabric *f, int src, int dst, const struct wire_hdr *hdr, const void *payload)
{
	struct packet *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->wire = malloc(sizeof(*hdr) + hdr->len);
	if (!p->wire) {
		free(p);
		return -ENOMEM;
	}
	*p->wire = *hdr;
	if (hdr->len)
		memcpy(p->wire + 1, payload, hdr->len);
	pthread_mutex_lock(&f->lock);
	fabric_push(f, src, dst, p);
	pthread_mutex_unlock(&f->lock);
	fabric_step(f, 0);
	return 0;
}

uint64_t fabric_sent(struct fabric *f, int src, int dst, enum wire_kind kind)
{
	uint64_t count;

	pthread_mutex_lock(&f->lock);
	count = fabric_link(f, src, dst)->sent[kind];
	pthread_mutex_unlock(&f->lock);
	return count;
}

int fabric_registrations(struct fabric *f, int rank)
{
	int count = 0;

	pthread_mutex_lock(&f->lock);
	for (struct registration *e = f->nodes[rank].registrations; e; e = e->next)
		count += !e->revoked;
	pthread_mutex_unlock(&f->lock);
	return count;
}

unsigned fabric_in_flight(struct fabric *f)
{
	unsigned count = 0;

	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < f->cfg.size * f->cfg.size; i++)
		count += f->links[i].packets;
	pthread_mutex_unlock(&f->lock);
	return count;
}

size_t fabric_address(const struct fabric *f, int rank, void *out, size_t size)
{
	int len = snprintf(out, size, "fake %d of %d", rank, f->cfg.size);

	return (size_t)len < size ? (size_t)len : size;
}
