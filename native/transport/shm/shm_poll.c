/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/shm/cma.h"
#include "transport/shm/shm.h"
#include "transport/shm/shm_state.h"

/* What one poll copies of a get: about a hundred microseconds of the core's lock at most. */
#define SHM_GET_PIECE (256u << 10)

/* Rings that carry nothing for so many polls are polled no more, if there are more than a few: the cost of a poll follows
 * the ranks that talk, not the ranks of the node. */
#define SHM_IDLE_POLLS 256
#define SHM_POLLED_MIN 4

static void shm_start_polling(struct shm *s, struct shm_peer *p)
{
	uint32_t n = atomic_load_explicit(&s->rx_count, memory_order_relaxed);

	if (p->polled)
		return;
	p->polled = true;
	p->packets_swept = UINT64_MAX; /* not idle yet */
	/* shm_ready() may see the peer before the count: its ring comes first */
	atomic_store_explicit(&s->rx[n], p, memory_order_release);
	atomic_store_explicit(&s->rx_count, n + 1, memory_order_release);
}

/* A neighbour has opened a ring to us, or sent through one that was not polled. */
static void shm_accept_from(struct shm *s, struct shm_peer *p)
{
	if (!p->rx_mapping) {
		void *mapping;

		if (segment_map(&s->segment, p->local, s->me, &mapping) < 0) {
			s->env.sink.on_down(s->env.sink.core, p->rank, -ENOMEM, error_text());
			return;
		}
		ring_init(&p->rx, mapping, &s->shape);
		ring_limit(&p->rx);
		p->rx_mapping = mapping;
	}
	shm_start_polling(s, p);
}

static void shm_accept(struct shm *s)
{
	struct segment_doorbell *doorbell = &s->segment.head->doorbells[s->me];
	uint32_t count = atomic_load_explicit(&doorbell->connect_count, memory_order_acquire);

	if (count == atomic_load_explicit(&s->connects_seen, memory_order_relaxed))
		return;
	atomic_store_explicit(&s->connects_seen, count, memory_order_relaxed);
	for (uint32_t first = 0; first < s->count; first += 64) {
		uint64_t bits = atomic_exchange(&doorbell->connects[first / 64], 0);

		for (; bits; bits &= bits - 1) {
			uint32_t local = first + (uint32_t)__builtin_ctzll(bits);

			if (local < s->count)
				shm_accept_from(s, &s->peers[local]);
		}
	}
}

/* Idle rings leave the list. */
static void shm_sweep(struct shm *s)
{
	uint32_t count = atomic_load_explicit(&s->rx_count, memory_order_relaxed);

	s->polls = 0;
	for (uint32_t i = count; i-- > 0;) {
		struct shm_peer *p = atomic_load_explicit(&s->rx[i], memory_order_relaxed);
		bool idle = p->packets_swept == p->packets_in;

		p->packets_swept = p->packets_in;
		if (!idle || !ring_stop_polling(&p->rx))
			continue;
		p->polled = false;
		count--;
		atomic_store_explicit(&s->rx[i], atomic_load_explicit(&s->rx[count], memory_order_relaxed), memory_order_release);
	}
	atomic_store_explicit(&s->rx_count, count, memory_order_release);
}

/* A packet that is not for the core: the ring grows.  Anything else is nonsense. */
static __attribute__((cold)) void shm_poll_own(struct shm *s, struct shm_peer *p, const struct wire_hdr *hdr)
{
	if (hdr->kind == WIRE_NONE && hdr->len == 0 && p->rx.small) {
		ring_grow_consumer(&p->rx);
		ring_free(&p->rx, 0);
		return;
	}
	atomic_store_explicit(&p->corrupt, true, memory_order_relaxed);
	s->env.sink.on_down(s->env.sink.core, p->rank, -EPROTO, "a ring in shared memory is corrupt");
}

/* Reports to the producer how long this took (stores.h). */
static __attribute__((noinline)) void shm_deliver_measured(struct shm *s, struct shm_peer *p, struct wire_hdr *hdr, const void *payload)
{
	int64_t ns, begin_ns = clock_now_ns();

	hdr->flags &= (uint8_t)~WIRE_MEASURED;
	s->env.sink.on_packet(s->env.sink.core, p->rank, hdr, payload);
	ns = clock_now_ns() - begin_ns;
	atomic_store_explicit(&p->rx.control->measured_ns, ns <= 0 ? 1 : ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns, memory_order_relaxed);
}

static int shm_poll_ring(struct shm *s, struct shm_peer *p, int budget)
{
	const void *payload;
	struct wire_hdr hdr;
	int n = 0;

	while (n < budget && !p->corrupt && ring_next(&p->rx, &hdr, &payload)) {
		if (hdr.len > p->rx.shape.payload_max || hdr.kind == WIRE_NONE) {
			shm_poll_own(s, p, &hdr);
			continue;
		}
		if (hdr.flags & WIRE_MEASURED)
			shm_deliver_measured(s, p, &hdr, payload);
		else
			s->env.sink.on_packet(s->env.sink.core, p->rank, &hdr, payload);
		ring_free(&p->rx, hdr.len);
		n++;
	}
	if (n > 0) {
		p->packets_in += (uint64_t)n;
		if (ring_look_due(&p->rx))
			shm_queue_wakeup(s, p, &p->rx.control->lacks_room, true);
	}
	return n;
}

bool shm_alive(const struct shm_peer *p)
{
	struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};

	return p->pidfd < 0 || poll(&fd, 1, 0) <= 0; /* a signal interrupts even this */
}

static int shm_poll_get(struct shm *s)
{
	struct shm_get *g = s->gets;
	int piece = g->left[0] ? 0 : 1;
	size_t n = g->left[piece] < SHM_GET_PIECE ? g->left[piece] : SHM_GET_PIECE;
	int rc = n ? cma_read(g->peer->pid, g->addr[piece], g->to[piece], n) : 0;

	if (rc == 0) {
		g->addr[piece] += n;
		g->to[piece] += n;
		g->left[piece] -= n;
		g->peer->cma_bytes += n;
		if (g->left[0] || g->left[1])
			return 1;
		if (!shm_alive(g->peer))
			rc = -ESRCH;
	}
	s->gets = g->next;
	if (!s->gets)
		s->gets_tail = &s->gets;
	atomic_fetch_sub_explicit(&s->chores, 1, memory_order_relaxed);
	s->env.sink.on_get(s->env.sink.core, g->peer->rank, g->cookie, rc);
	free(g);
	return 1;
}

/* Is there something in its ring that can still be delivered?  A rank that died may not have announced it. */
static bool shm_unread(struct shm *s, struct shm_peer *p)
{
	bool unread = p->rx_mapping && !p->corrupt && ring_ready(&p->rx);

	if (unread)
		shm_start_polling(s, p);
	return unread;
}

/* The neighbour because of whose death p gave up, if that was not noticed yet; else NULL. */
static struct shm_peer *shm_cause_of(struct shm *s, const struct shm_peer *p)
{
	uint32_t cause = atomic_load(&s->segment.head->doorbells[p->local].cause);
	struct shm_peer *c;

	if (cause == 0 || cause > s->count)
		return NULL;
	c = &s->peers[cause - 1];
	/* its pidfd may not report it yet: a dying process closes its sockets, which others watch, long before */
	return c == p || c->reported || c->local == s->me ? NULL : c;
}

/* p's process has ended and its ring is empty, or will never be read: notify the core. */
static void shm_report_end(struct shm *s, struct shm_peer *p)
{
	char why[128];

	p->reported = true;
	if (p->ended)
		atomic_fetch_sub_explicit(&s->chores, 1, memory_order_relaxed);
	if (atomic_load(&s->segment.head->doorbells[p->local].left)) {
		s->env.sink.on_down(s->env.sink.core, p->rank, -EPIPE, "left");
		return;
	}
	snprintf(why, sizeof(why), "rank %d died: its process (pid %d) ended without finish", p->rank, (int)p->pid);
	s->env.sink.on_down(s->env.sink.core, p->rank, -ECONNRESET, why);
}

/* The rings of ended processes have been emptied: notify the core, the first cause first. */
static int shm_poll_ended(struct shm *s)
{
	int events = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		struct shm_peer *p = &s->peers[i];
		struct shm_peer *cause;

		if (!p->ended || p->reported || shm_unread(s, p))
			continue;
		cause = shm_cause_of(s, p);
		if (cause) {
			if (shm_unread(s, cause))
				continue; /* its last words first */
			shm_report_end(s, cause);
		}
		shm_report_end(s, p);
		events++;
	}
	return events;
}

int shm_poll(struct transport *t, int budget)
{
	struct shm *s = (struct shm *)t;
	uint32_t count;
	int events = 0;

	if (!s->segment.head)
		return 0;
	shm_accept(s);
	count = atomic_load_explicit(&s->rx_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		events += shm_poll_ring(s, atomic_load_explicit(&s->rx[i], memory_order_relaxed), budget);
	if (count > SHM_POLLED_MIN && ++s->polls > SHM_IDLE_POLLS)
		shm_sweep(s);
	if (atomic_load_explicit(&s->chores, memory_order_relaxed) > 0) {
		if (s->gets)
			events += shm_poll_get(s);
		events += shm_poll_ended(s);
	}
	return events;
}

bool shm_ready(const struct transport *t)
{
	const struct shm *s = (const struct shm *)t;
	const struct segment_doorbell *doorbell;
	_Atomic(struct shm_peer *) *rx = s->rx;
	uint32_t count;

	if (!s->segment.head)
		return false;
	count = atomic_load_explicit(&s->rx_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++) {
		/* pairs with the stores of a peer that the count does not announce: those that a sweep has put elsewhere */
		const struct shm_peer *p = atomic_load_explicit(&rx[i], memory_order_acquire);

		if (ring_ready(&p->rx) && !atomic_load_explicit(&p->corrupt, memory_order_relaxed))
			return true;
	}
	doorbell = &s->segment.head->doorbells[s->me];
	return atomic_load_explicit(&s->chores, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&doorbell->connect_count, memory_order_relaxed) !=
		       atomic_load_explicit(&s->connects_seen, memory_order_relaxed);
}

int shm_pack_rkey(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2], const size_t len[2],
		  void *desc)
{
	const struct shm *s = (const struct shm *)t;
	struct shm_desc d = {{(uint64_t)(uintptr_t)base[0], (uint64_t)(uintptr_t)base[1]}};

	(void)cookie;
	(void)peer;
	if (access != TRANSPORT_GET || !s->cma || len[0] + len[1] < s->cma_min)
		return 0;
	memcpy(desc, &d, sizeof(d));
	return (int)sizeof(d);
}

void shm_release_rkey(struct transport *t, int peer, uint64_t cookie)
{
	(void)t;
	(void)peer;
	(void)cookie;
}

bool shm_prefers_get(const struct transport *t, int peer, size_t bytes)
{
	const struct shm *s = (const struct shm *)t;

	(void)peer;
	return s->cma && bytes >= s->cma_min;
}

bool shm_learns_get(const struct transport *t, int peer, size_t bytes)
{
	return ((const struct shm *)t)->cma_learns && shm_prefers_get(t, peer, bytes);
}

int shm_get(struct transport *t, int peer, const struct transport_rma *get)
{
	struct shm *s = (struct shm *)t;
	struct shm_desc d;
	struct shm_get *g;

	if (get->desc_bytes != sizeof(d))
		return error_set(-EPROTO, "a descriptor of %zu bytes from rank %d", get->desc_bytes, peer);
	g = calloc(1, sizeof(*g));
	if (!g)
		return error_set(-ENOMEM, "no memory for a get");
	memcpy(&d, get->desc, sizeof(d));
	g->peer = &s->peers[s->local_of[peer]];
	g->cookie = get->cookie;
	for (int i = 0; i < 2; i++) {
		g->addr[i] = d.addr[i];
		g->to[i] = get->local[i].base;
		g->left[i] = get->local[i].len;
	}
	*s->gets_tail = g;
	s->gets_tail = &g->next;
	atomic_fetch_add_explicit(&s->chores, 1, memory_order_relaxed);
	return 0;
}

int shm_cancel(struct transport *t, int peer, uint64_t cookie)
{
	struct shm *s = (struct shm *)t;

	(void)peer;
	for (struct shm_get **at = &s->gets; *at; at = &(*at)->next) {
		struct shm_get *g = *at;

		if (g->cookie != cookie)
			continue;
		*at = g->next;
		if (!g->next)
			s->gets_tail = at;
		free(g);
		atomic_fetch_sub_explicit(&s->chores, 1, memory_order_relaxed);
		return 0;
	}
	return 0;
}
