/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_RING_H
#define IBVX_TRANSPORT_SHM_RING_H
/*
 * ring: one direction between two ranks, single producer, single consumer, lock-free.
 *
 *   page 0      what the consumer has freed (line 0), whether the producer lacks room and whether the consumer polls (line 1), the producer's lease (line 2),
 *               what a packet took the consumer (line 3)
 *   slots       one cache line each: a packet's header and up to RING_INLINE bytes of payload
 *   data        longer payloads, in whole cache lines, contiguous
 *
 * A slot is full when its stamp is the current lap; so one line carries a small message and
 * the consumer touches nothing else.  Positions count up for ever; both sides derive a payload's offset
 * from what went before it (ring_offset), nothing in shared memory is trusted as an index.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define RING_LINE 64u
#define RING_PAGE 4096u
#define RING_INLINE 32u
/* Copies between two addresses at the same offset in their pages are slow: the processor compares the lowest twelve bits of addresses first
 * (measured: ARCHITECTURE.md).  Users' buffers begin at the start of a page or a little behind it, so the data area does not, and
 * long payloads keep that distance. */
#define RING_SKEW (43u * RING_LINE)
#define RING_LONG 16384u
/* What the data area of a fresh ring is limited to: a pair of ranks that exchanges short messages only takes no more memory. */
#define RING_SMALL_BYTES 16384u

struct ring_slot {
	struct wire_hdr hdr; /* hdr.stamp is accessed atomically */
	unsigned char payload[RING_INLINE];
};
static_assert(sizeof(struct ring_slot) == RING_LINE, "a slot is a cache line");

struct ring_control {
	_Alignas(RING_LINE) _Atomic uint32_t slots_freed; /* consumer */
	_Atomic uint64_t data_freed;
	_Alignas(RING_LINE) _Atomic uint32_t lacks_room;  /* set by the producer: wake me when there is room; cleared
							   * by the consumer that does */
	_Atomic uint32_t unpolled;                        /* set by the consumer: announce the next packet; cleared by the
							   * producer that does */
	_Alignas(RING_LINE) _Atomic uint32_t lease;       /* shm_lease.c */
	_Alignas(RING_LINE) _Atomic uint32_t measured_ns; /* consumer: what the packet with WIRE_MEASURED took it; 0: not yet (stores.h) */
};
static_assert(sizeof(struct ring_control) <= RING_PAGE, "the control lines fit in their page");

/* The shape of a ring, the same on all ranks of a node. */
struct ring_shape {
	uint32_t slot_count;  /* power of two */
	uint64_t data_bytes;  /* power of two */
	uint32_t payload_max; /* a multiple of a line, at most a quarter of data_bytes */
};

/* One side's view. */
struct ring {
	struct ring_control *control;
	struct ring_slot *slots;
	unsigned char *data;
	struct ring_shape shape;
	uint32_t lap_shift;       /* slot_count is 1 << lap_shift */
	_Atomic uint32_t slot_at; /* next slot; written by its side's lock holder, read by ring_ready */
	uint64_t data_at;
	bool small; /* shape is that of the small data area (ring_limit), full that of the whole */
	struct ring_shape full;
	/* producer: what it last saw freed */
	uint32_t slots_freed;
	uint64_t data_freed;
	uint32_t ready_max; /* producer: the largest payload for which there is memory */
	/* consumer: where it was when it last looked whether the producer lacks room */
	uint32_t slots_looked;
	uint64_t data_looked;
};

size_t ring_mapping_bytes(const struct ring_shape *shape);
/* Offset of the data area in the mapping; not a multiple of the page size. */
size_t ring_data_offset(const struct ring_shape *shape);
void ring_init(struct ring *r, void *mapping, const struct ring_shape *shape);

/* Limits a fresh ring to the first RING_SMALL_BYTES of its data area, on both sides, until ring_grow(). */
void ring_limit(struct ring *r);
/* From here on the whole data area is used: on both sides behind the same packet, which carries no payload.  Positions jump
 * to the byte behind the small area, which the producer takes as not freed until the consumer has grown, too. */
void ring_grow(struct ring *r);
/* The consumer's: grows, and announces it to the producer. */
void ring_grow_consumer(struct ring *r);

/* Where a payload of len bytes that follows position *at begins; advances *at behind it. */
static inline uint64_t ring_offset(const struct ring_shape *s, uint64_t *at, uint32_t len)
{
	uint64_t size = ((uint64_t)len + RING_LINE - 1) & ~(uint64_t)(RING_LINE - 1);
	uint64_t begin = *at;

	if (len >= RING_LONG)
		begin = (begin + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1);
	if ((begin & (s->data_bytes - 1)) + size > s->data_bytes)
		begin = (begin | (s->data_bytes - 1)) + 1;
	*at = begin + size;
	return begin & (s->data_bytes - 1);
}

static inline uint16_t ring_stamp(const struct ring *r, uint32_t at)
{
	return (uint16_t)((at >> r->lap_shift) + 1u);
}

static inline _Atomic uint16_t *ring_stamp_of(struct ring_slot *slot)
{
	return (_Atomic uint16_t *)(void *)&slot->hdr.stamp;
}

static inline bool ring_has_room(const struct ring *r, uint32_t at, uint64_t data_end)
{
	return at - r->slots_freed < r->shape.slot_count && data_end - r->data_freed <= r->shape.data_bytes;
}

/* Producer: is there room after all? Looks at what the consumer has freed; if not, lacks_room is set and room was looked for
 * once more after that. */
bool ring_look(struct ring *r, uint32_t at, uint64_t data_end);

/* Producer: the slot and payload for len bytes, or false (ring_look). */
static inline bool ring_reserve(struct ring *r, uint32_t len, struct ring_slot **slot, void **payload)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);
	uint64_t data_end = r->data_at;
	uint64_t offset = 0;

	if (len > RING_INLINE)
		offset = ring_offset(&r->shape, &data_end, len);
	if (!ring_has_room(r, at, data_end) && !ring_look(r, at, data_end))
		return false;
	*slot = &r->slots[at & (r->shape.slot_count - 1)];
	*payload = len > RING_INLINE ? r->data + offset : (*slot)->payload;
	return true;
}

/* Producer: the payload of a packet for which more than RING_INLINE bytes were reserved takes its final position. */
void ring_settle(struct ring *r, struct ring_slot *slot, uint32_t reserved);

/* Producer: slot->hdr is filled; `reserved` as given to ring_reserve. */
static inline void ring_commit(struct ring *r, struct ring_slot *slot, uint32_t reserved)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);

	if (reserved > RING_INLINE)
		ring_settle(r, slot, reserved);
	atomic_store_explicit(ring_stamp_of(slot), ring_stamp(r, at), memory_order_release);
	atomic_store_explicit(&r->slot_at, at + 1, memory_order_relaxed);
}

/* Consumer: the next packet, or false.  The header is copied out, so that what was checked stays so; a payload
 * of more than payload_max bytes means that the ring is corrupt: then only hdr->len is valid. */
static inline bool ring_next(struct ring *r, struct wire_hdr *hdr, const void **payload)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);
	struct ring_slot *slot = &r->slots[at & (r->shape.slot_count - 1)];
	uint64_t end = r->data_at;

	if (atomic_load_explicit(ring_stamp_of(slot), memory_order_acquire) != ring_stamp(r, at))
		return false;
	*hdr = slot->hdr;
	*payload = slot->payload;
	if (hdr->len > RING_INLINE && hdr->len <= r->shape.payload_max)
		*payload = r->data + ring_offset(&r->shape, &end, hdr->len);
	return true;
}

/* Consumer: done with the packet, whose payload was len bytes. */
static inline void ring_free(struct ring *r, uint32_t len)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);

	if (len > RING_INLINE) {
		ring_offset(&r->shape, &r->data_at, len);
		atomic_store_explicit(&r->control->data_freed, r->data_at, memory_order_release);
	}
	atomic_store_explicit(&r->slot_at, at + 1, memory_order_relaxed);
	atomic_store_explicit(&r->control->slots_freed, at + 1, memory_order_release);
}

/* Consumer, after it has freed something: is it time to look whether the producer lacks room?  Every quarter of the
 * ring is enough.  A producer is stuck only behind more than a quarter of unread packets: before the consumer has
 * read them all it looks at least once after the producer saw how little was freed. */
bool ring_look_due(struct ring *r);
/* Consumer, when that was due, and a full fence after it freed: must the producer be woken?  True once. */
static inline bool ring_take_lack(_Atomic uint32_t *lacks_room)
{
	return atomic_load_explicit(lacks_room, memory_order_relaxed) && atomic_exchange_explicit(lacks_room, 0, memory_order_relaxed);
}

/* Producer, a full fence after a packet: must it be announced?  True once. */
static inline bool ring_take_unpolled(struct ring_control *control)
{
	return atomic_load_explicit(&control->unpolled, memory_order_relaxed) &&
	       atomic_exchange_explicit(&control->unpolled, 0, memory_order_relaxed);
}

/* Consumer, without the lock: is a packet there? */
static inline bool ring_ready(const struct ring *r)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);
	struct ring_slot *slot = &r->slots[at & (r->shape.slot_count - 1)];

	return atomic_load_explicit(ring_stamp_of(slot), memory_order_relaxed) == ring_stamp(r, at);
}

/* Consumer: polls this ring no more until the producer announces a packet.  False: one is there, it goes on polling. */
static inline bool ring_stop_polling(struct ring *r)
{
	atomic_store_explicit(&r->control->unpolled, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with the one before ring_take_unpolled() */
	if (!ring_ready(r))
		return true;
	atomic_store_explicit(&r->control->unpolled, 0, memory_order_relaxed);
	return false;
}

#endif
