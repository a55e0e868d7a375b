/* SPDX-License-Identifier: MIT */
#include "transport/shm/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/copy.h"
#include "base/error.h"
#include "transport/shm/cma.h"
#include "transport/shm/shm_state.h"

static struct shm *shm_of(struct transport *t)
{
	return (struct shm *)t;
}

static int shm_open_transport(struct transport **out, const struct transport_env *env)
{
	struct shm *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return error_set(-ENOMEM, "no memory for the transport shm");
	s->base.ops = &transport_shm_ops;
	s->env = *env;
	s->segment.fd = -1;
	s->probe_word = 0x69627664657621ull ^ ((uint64_t)getpid() << 32 | (uint32_t)env->rank);
	s->gets_tail = &s->gets;
	rc = segment_create(&s->segment, env->job_id);
	if (rc < 0) {
		segment_close(&s->segment);
		free(s);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static int shm_address(struct transport *t, void *out, size_t size)
{
	struct shm *s = shm_of(t);
	struct shm_address a = {
		.pid = (uint64_t)getpid(),
		.probe_addr = (uint64_t)(uintptr_t)&s->probe_word,
		.probe_word = s->probe_word,
		.slot_count = (uint32_t)settings_int(s->env.settings, SETTING_SHM_SLOTS),
		.payload_max = (uint32_t)settings_int(s->env.settings, SETTING_SHM_CHUNK),
		.data_bytes = (uint64_t)settings_int(s->env.settings, SETTING_SHM_RING),
		.segment_fd = s->segment.fd,
		.segment_nonce = s->segment.nonce,
	};

	if (size < sizeof(a))
		return error_set(-ENOBUFS, "no room for an address of %zu bytes", sizeof(a));
	a.payload_max &= ~(RING_LINE - 1);
	if (a.payload_max > a.data_bytes / 4)
		a.payload_max = (uint32_t)(a.data_bytes / 4);
	memcpy(out, &a, sizeof(a));
	return (int)sizeof(a);
}

/* A pidfd becomes readable when the process has ended. */
static void shm_on_death(void *arg)
{
	struct shm_peer *p = arg;

	p->shm->env.watch.remove(p->shm->env.watch.monitor, p->pidfd);
	p->ended = true;
	if (!p->reported)
		atomic_fetch_add_explicit(&p->shm->chores, 1, memory_order_relaxed);
}

static int shm_watch(struct shm *s, struct shm_peer *p)
{
	p->pidfd = -1;
	if (p->rank == s->env.rank || p->pid == getpid() || !s->env.watch.monitor)
		return 0;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0 && (errno == ENOSYS || errno == EPERM)) {
		/* a seccomp filter, or a tool such as valgrind: the control tree reports deaths too */
		log_info(s->env.log, "shm: no pidfd for rank %d: %s", p->rank, strerror(errno));
		return 0;
	}
	if (p->pidfd < 0)
		return error_sys(-errno, "cannot watch rank %d (process %d)", p->rank, (int)p->pid);
	return s->env.watch.add(s->env.watch.monitor, p->pidfd, shm_on_death, p);
}

/* Tries whether this rank may read the memory of a neighbour. */
static void shm_choose_cma(struct shm *s, const struct transport_peer_info *peers)
{
	const char *choice = settings_text(s->env.settings, SETTING_CMA);
	int64_t set_min = settings_int(s->env.settings, SETTING_CMA_MIN);
	const struct shm_peer *other = s->peers[0].rank == s->env.rank ? &s->peers[s->count - 1] : &s->peers[0];
	struct shm_address a;

	s->cma_learns = strcmp(choice, "auto") == 0;
	s->cma_min = set_min >= 0 ? (size_t)set_min : s->cma_learns ? SHM_CMA_MIN : 1;
	s->cma = false;
	if (strcmp(choice, "never") == 0 || other->rank == s->env.rank)
		return;
	memcpy(&a, peers[other->rank].address, sizeof(a));
	if (cma_probe((pid_t)a.pid, a.probe_addr, a.probe_word) == 0)
		s->cma = true;
	else if (strcmp(choice, "always") == 0)
		log_warn(s->env.log, "cma=always, but %s: messages are copied twice", error_text());
	else
		log_info(s->env.log, "cma: %s", error_text());
}

static int shm_find_locals(struct shm *s, const struct transport_peer_info *peers)
{
	s->local_of = malloc((size_t)s->env.size * sizeof(*s->local_of));
	s->peers = calloc((size_t)s->env.size, sizeof(*s->peers));
	s->rx = calloc((size_t)s->env.size, sizeof(*s->rx));
	if (!s->local_of || !s->peers || !s->rx)
		return error_set(-ENOMEM, "no memory for %d ranks", s->env.size);
	for (int r = 0; r < s->env.size; r++) {
		struct shm_peer *p = &s->peers[s->count];
		struct shm_address a;

		s->local_of[r] = -1;
		if (!(peers[r].same_node || r == s->env.rank) || peers[r].address_bytes != sizeof(a))
			continue;
		if (s->count == SEGMENT_RANKS_MAX)
			return error_set(-EINVAL, "more than %u ranks on one node", SEGMENT_RANKS_MAX);
		memcpy(&a, peers[r].address, sizeof(a));
		if (s->count == 0) /* the first local rank's settings shape the rings of all */
			s->shape = (struct ring_shape){a.slot_count, a.data_bytes, a.payload_max};
		if (r == s->env.rank)
			s->me = s->count;
		*p = (struct shm_peer){.shm = s, .rank = r, .local = s->count, .pid = (pid_t)a.pid, .pidfd = -1};
		s->local_of[r] = (int)s->count++;
	}
	return 0;
}

static int shm_attach(struct transport *t, const struct transport_peer_info *peers)
{
	struct shm *s = shm_of(t);
	int rc = shm_find_locals(s, peers);

	if (rc < 0 || s->count < 2)
		return rc;
	if (s->me != 0) {
		struct shm_address first;

		memcpy(&first, peers[s->peers[0].rank].address, sizeof(first));
		rc = segment_adopt(&s->segment, (pid_t)first.pid, (int)first.segment_fd, first.segment_nonce);
	}
	if (rc == 0)
		rc = segment_map_head(&s->segment, s->count, &s->shape);
	for (uint32_t i = 0; rc == 0 && i < s->count; i++) {
		s->peers[i].doorbell = &s->segment.head->doorbells[i];
		rc = shm_watch(s, &s->peers[i]);
	}
	if (rc == 0)
		shm_choose_cma(s, peers);
	return rc;
}

static void shm_close_transport(struct transport *t)
{
	struct shm *s = shm_of(t);

	if (!s)
		return;
	for (uint32_t i = 0; s->peers && i < s->count; i++) {
		segment_unmap(&s->segment, s->peers[i].tx_mapping);
		segment_unmap(&s->segment, s->peers[i].rx_mapping);
		if (s->peers[i].pidfd >= 0)
			close(s->peers[i].pidfd);
	}
	while (s->gets) {
		struct shm_get *g = s->gets;

		s->gets = g->next;
		free(g);
	}
	segment_close(&s->segment);
	free(s->rx);
	free(s->peers);
	free(s->local_of);
	free(s);
}

static void shm_leave(struct transport *t)
{
	struct shm *s = shm_of(t);

	if (s->segment.head)
		atomic_store(&s->segment.head->doorbells[s->me].left, 1);
}

static void shm_blame(struct transport *t, int rank)
{
	struct shm *s = shm_of(t);

	if (s->segment.head && s->local_of[rank] >= 0)
		atomic_store(&s->segment.head->doorbells[s->me].cause, (uint32_t)s->local_of[rank] + 1);
}

static int shm_cause(const struct transport *t, int rank)
{
	const struct shm *s = (const struct shm *)t;
	uint32_t cause = 0;

	if (s->segment.head && s->local_of[rank] >= 0)
		cause = atomic_load(&s->segment.head->doorbells[s->local_of[rank]].cause);
	return cause > 0 && cause <= s->count ? s->peers[cause - 1].rank : -1;
}

static bool shm_reaches(const struct transport *t, int peer)
{
	const struct shm *s = (const struct shm *)t;

	return s->segment.head && s->local_of[peer] >= 0 && peer != s->env.rank;
}

static size_t shm_payload_max(const struct transport *t, int peer)
{
	(void)peer;
	return ((const struct shm *)t)->shape.payload_max;
}

/* There is something new in our ring to p, which does not poll it. */
static __attribute__((cold)) void shm_announce(struct shm *s, struct shm_peer *p)
{
	atomic_fetch_or(&p->doorbell->connects[s->me / 64], UINT64_C(1) << s->me % 64);
	atomic_fetch_add(&p->doorbell->connect_count, 1);
	atomic_thread_fence(memory_order_seq_cst); /* before the look whether p sleeps */
}

/* doorbell is a struct shm_peer, flag a ring's `lacks_room`, or NULL. */
void shm_wake(struct transport *t, void *doorbell, void *flag, bool urgent)
{
	struct shm_peer *p = doorbell;

	if (flag && !ring_take_lack(flag))
		return;
	if (!flag && ring_take_unpolled(p->tx.control))
		shm_announce(shm_of(t), p);
	segment_wake(p->doorbell, TRANSPORT_DOORBELL_POLLER);
	if (urgent)
		segment_wake(p->doorbell, TRANSPORT_DOORBELL_BACKGROUND);
}

/* The first packet to a neighbour: its ring is created and announced at its doorbell. */
static int shm_connect(struct shm *s, struct shm_peer *p)
{
	void *mapping;
	int rc = segment_allocate(&s->segment, s->me, p->local, 0, ring_data_offset(&s->shape));

	if (rc == 0)
		rc = segment_map(&s->segment, s->me, p->local, &mapping);
	if (rc < 0)
		return error_prefix(rc, "connecting to rank %d", p->rank);
	ring_init(&p->tx, mapping, &s->shape);
	ring_limit(&p->tx);
	stores_init(&p->stores, stores_mode(s->env.settings));
	p->tx_mapping = mapping;
	shm_announce(s, p);
	shm_queue_wakeup(s, p, NULL, false);
	log_debug(s->env.log, "shm: ring to rank %d", p->rank);
	return 0;
}

/* Eager messages complete at their sender without the receiver, and wait for its next call. */
static bool shm_urgent(const struct wire_hdr *hdr)
{
	return hdr->kind > WIRE_EAGER_MORE || hdr->flags & WIRE_SYNC;
}

/* No room: a receiver that computes makes some if its progress thread is armed. */
static int shm_full(struct shm *s, struct shm_peer *p)
{
	p->full_count++;
	shm_queue_wakeup(s, p, NULL, true);
	return -EAGAIN;
}

/* The ring's data area, with the first payload that needs it. */
static int shm_prepare_data(struct shm *s, struct shm_peer *p)
{
	int rc = segment_allocate(&s->segment, s->me, p->local, ring_data_offset(&s->shape), p->tx.shape.data_bytes);

	if (rc < 0)
		return error_prefix(rc, "sending to rank %d", p->rank);
	p->tx.ready_max = p->tx.shape.payload_max;
	return 0;
}

/* The small data area is full, or too small for a payload of len bytes: the ring goes on with the whole one, behind a packet that announces it. */
static int shm_grow(struct shm *s, struct shm_peer *p)
{
	struct ring_slot *line;
	void *payload;
	int rc;

	if (!ring_reserve(&p->tx, 0, &line, &payload))
		return shm_full(s, p);
	rc = segment_allocate(&s->segment, s->me, p->local, ring_data_offset(&s->shape), p->tx.full.data_bytes);
	if (rc < 0)
		return error_prefix(rc, "sending to rank %d", p->rank);
	line->hdr.kind = WIRE_NONE;
	line->hdr.flags = 0;
	line->hdr.len = 0;
	ring_commit(&p->tx, line, 0);
	ring_grow(&p->tx);
	p->tx.ready_max = p->tx.shape.payload_max;
	shm_queue_wakeup(s, p, NULL, true);
	return 0;
}

/* A ring, and memory for a payload of len bytes. */
static __attribute__((cold)) int shm_prepare(struct shm *s, struct shm_peer *p, size_t len)
{
	int rc = p->tx_mapping ? 0 : shm_connect(s, p);

	if (rc == 0 && len > p->tx.shape.payload_max)
		rc = shm_grow(s, p);
	if (rc == 0 && len > p->tx.ready_max)
		rc = shm_prepare_data(s, p);
	return rc;
}

static bool shm_prepared(const struct shm_peer *p, size_t len)
{
	return p->tx_mapping && len <= p->tx.ready_max;
}

static int shm_reserve(struct transport *t, int peer, size_t len, struct transport_slot *slot)
{
	struct shm *s = shm_of(t);
	struct shm_peer *p = &s->peers[s->local_of[peer]];
	struct ring_slot *line;
	int rc = shm_prepared(p, len) ? 0 : shm_prepare(s, p, len);

	if (rc < 0)
		return rc;
	if (!ring_reserve(&p->tx, (uint32_t)len, &line, &slot->payload)) {
		rc = p->tx.small ? shm_grow(s, p) : shm_full(s, p);
		if (rc < 0)
			return rc;
		if (!ring_reserve(&p->tx, (uint32_t)len, &line, &slot->payload))
			return shm_full(s, p);
	}
	slot->hdr = &line->hdr;
	slot->private = len;
	if (len >= STORES_MIN)
		slot->copy = stores_begin(&p->stores, &p->tx.control->measured_ns, len);
	return 0;
}

static void shm_commit(struct transport *t, int peer, struct transport_slot *slot)
{
	struct shm *s = shm_of(t);
	struct shm_peer *p = &s->peers[s->local_of[peer]];

	if (stores_end(&p->stores))
		slot->hdr->flags |= WIRE_MEASURED;
	ring_commit(&p->tx, (struct ring_slot *)(void *)slot->hdr, (uint32_t)slot->private);
	p->packets_out++;
	shm_queue_wakeup(s, p, NULL, shm_urgent(slot->hdr));
}

static __attribute__((noinline)) void shm_post_long(struct shm_peer *p, struct ring_slot *line, void *payload, const void *head,
						    size_t head_bytes, const void *body, size_t body_bytes)
{
	copy_fn *copy = stores_begin(&p->stores, &p->tx.control->measured_ns, head_bytes + body_bytes);

	if (head_bytes)
		copy(payload, head, head_bytes);
	if (body_bytes)
		copy((char *)payload + head_bytes, body, body_bytes);
	if (stores_end(&p->stores))
		line->hdr.flags |= WIRE_MEASURED;
}

static int shm_post(struct transport *t, int peer, const struct wire_hdr *hdr, const void *head, size_t head_bytes, const void *body,
		    size_t body_bytes)
{
	struct shm *s = shm_of(t);
	struct shm_peer *p = &s->peers[s->local_of[peer]];
	struct ring_slot *line;
	void *payload;

	if (!shm_prepared(p, hdr->len)) {
		int rc = shm_prepare(s, p, hdr->len);

		if (rc < 0)
			return rc;
	}
	if (!ring_reserve(&p->tx, hdr->len, &line, &payload)) {
		struct transport_slot slot;
		int rc = shm_reserve(t, peer, hdr->len, &slot); /* grows the ring if that helps */

		if (rc < 0)
			return rc;
		line = (struct ring_slot *)(void *)slot.hdr;
		payload = slot.payload;
	}
	/* all but the stamp */
	line->hdr.kind = hdr->kind;
	line->hdr.flags = hdr->flags;
	line->hdr.len = hdr->len;
	line->hdr.msg = hdr->msg;
	if (hdr->len >= STORES_MIN) {
		shm_post_long(p, line, payload, head, head_bytes, body, body_bytes);
	} else {
		copy_small(payload, head, head_bytes);
		if (body_bytes)
			memcpy((char *)payload + head_bytes, body, body_bytes);
	}
	ring_commit(&p->tx, line, hdr->len);
	p->packets_out++;
	shm_queue_wakeup(s, p, NULL, shm_urgent(hdr));
	return 0;
}

static void shm_discard(struct transport *t, int peer, struct transport_slot *slot)
{
	struct shm *s = shm_of(t);

	(void)slot; /* nothing was advanced */
	stores_forget(&s->peers[s->local_of[peer]].stores);
}

static void shm_nothing(struct transport *t)
{
	(void)t; /* bit 0 of the doorbell already marks us as asleep */
}

static void shm_forget(struct transport *t, int peer)
{
	(void)t; /* rings stay mapped until close: another thread may be about to ring */
	(void)peer;
}

static uint32_t *shm_doorbell(struct transport *t)
{
	struct shm *s = shm_of(t);

	return s->segment.head ? s->segment.head->doorbells[s->me].word : NULL;
}

const struct transport_ops transport_shm_ops = {
	.name = "shm",
	.covers_node = true,
	.describe = shm_describe,
	.open = shm_open_transport,
	.address = shm_address,
	.attach = shm_attach,
	.close = shm_close_transport,
	.leave = shm_leave,
	.blame = shm_blame,
	.cause = shm_cause,
	.reaches = shm_reaches,
	.payload_max = shm_payload_max,
	.reserve = shm_reserve,
	.commit = shm_commit,
	.discard = shm_discard,
	.post = shm_post,
	.poll = shm_poll,
	.ready = shm_ready,
	.arm = shm_nothing,
	.disarm = shm_nothing,
	.wake = shm_wake,
	.doorbell = shm_doorbell,
	.pack_rkey = shm_pack_rkey,
	.release_rkey = shm_release_rkey,
	.prefers_get = shm_prefers_get,
	.learns_get = shm_learns_get,
	.get = shm_get,
	.cancel = shm_cancel,
	.lease = &shm_lease,
	.area = shm_area,
	.forget = shm_forget,
	.counters = shm_counters,
};
