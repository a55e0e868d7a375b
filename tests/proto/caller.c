/* SPDX-License-Identifier: MIT */
#include "caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/waiter.h"

struct world_config timed(uint64_t seed)
{
	struct world_config cfg = ugly(2, seed);

	cfg.monitor = false;
	return cfg;
}

/* Pinning with the core's lock held would end here. */
static void needs_lock(struct fake_array *m, void *arg)
{
	struct caller *c = arg;
	struct ibvx_counter one;

	(void)m;
	(void)ibvx_counters(c->ep, -1, &one, 1);
}

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	const struct ibvx_sbuf buf = {.body_bytes = c->bytes, .user = c->user};
	const struct ibvx_want want = {.source = c->peer, .tag = c->tag, .context = CTX, .capacity_bytes = c->bytes};

	if (c->send)
		c->err = ibvx_pin_send(c->ep, &c->m.pinnable, &buf, c->peer, c->tag, CTX, c->sync);
	else
		c->err = ibvx_pin_recv(c->ep, &c->m.pinnable, &want, &c->status);
	if (c->err)
		snprintf(c->text, sizeof(c->text), "%s", ibvx_error());
	fake_array_bring(&c->m);
	return NULL;
}

void call_prepare(struct caller *c, struct world *w, int rank, bool send, int peer, int tag, size_t bytes)
{
	*c = (struct caller){.ep = w->ep[rank], .send = send, .peer = peer, .tag = tag, .bytes = bytes, .user = (uint64_t)tag};
	fake_array_init(&c->m, send ? text_of(c->user, bytes).bytes : calloc(1, bytes + 1), bytes, (uint64_t)tag + 7);
	c->m.on_enter = needs_lock;
	c->m.arg = c;
}

void call_start(struct caller *c)
{
	assert_int_equal(pthread_create(&c->thread, NULL, caller_main, c), 0);
}

void call(struct caller *c, struct world *w, int rank, bool send, int peer, int tag, size_t bytes)
{
	call_prepare(c, w, rank, send, peer, tag, bytes);
	call_start(c);
}

int ended(struct caller *c)
{
	pthread_join(c->thread, NULL);
	assert_false(c->m.open);
	return c->err;
}

int ended_with(struct caller *c, struct world *w)
{
	while (pthread_tryjoin_np(c->thread, NULL))
		world_turn(w, 1);
	assert_false(c->m.open);
	return c->err;
}

void caller_free(struct caller *c)
{
	free(c->m.at);
}

void call_dies(struct world_config cfg, uint64_t seed, size_t bytes, unsigned after_us)
{
	struct caller mine, other;
	struct world w;

	begin(&w, cfg, "spin_us=0", "yield_us=0", "psl=4000", NULL);
	fabric_clock_start(w.fabric, 50);
	call(&mine, &w, 0, seed % 2, 1, 5, bytes);
	call(&other, &w, 1, !(seed % 2), 0, 5, bytes);
	usleep(after_us);
	fabric_kill(w.fabric, 1, seed % 5 == 0);
	if (ended(&mine))
		assert_non_null(strstr(mine.text, "rank 1"));
	core_lock(w.ep[1]);
	w.ep[1]->aborted = true; /* its own thread is to let go, too */
	waiter_signal_all(w.ep[1]);
	core_unlock(w.ep[1]);
	(void)ended(&other);
	ibvx_abort(w.ep[1]);
	w.ep[1] = NULL;
	caller_free(&mine);
	caller_free(&other);
	end(&w);
}
