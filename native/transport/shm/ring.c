/* SPDX-License-Identifier: MIT */
#include "transport/shm/ring.h"

#include <string.h>

size_t ring_data_offset(const struct ring_shape *s)
{
	size_t slots = (size_t)s->slot_count * sizeof(struct ring_slot);

	return RING_PAGE + ((slots + RING_PAGE - 1) & ~(size_t)(RING_PAGE - 1));
}

size_t ring_window_bytes(const struct ring_shape *s)
{
	return ring_data_offset(s) + ((s->data_bytes + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1));
}

void ring_init(struct ring *r, void *window, const struct ring_shape *shape)
{
	memset(r, 0, sizeof(*r));
	r->control = window;
	r->slots = (struct ring_slot *)(void *)((char *)window + RING_PAGE);
	r->data = (unsigned char *)window + ring_data_offset(shape);
	r->shape = *shape;
}

static bool ring_has_room(const struct ring *r, uint32_t at, uint64_t data_end)
{
	return at - r->slots_freed < r->shape.slot_count && data_end - r->data_freed <= r->shape.data_bytes;
}

static void ring_look(struct ring *r)
{
	r->slots_freed = atomic_load_explicit(&r->control->slots_freed, memory_order_acquire);
	r->data_freed = atomic_load_explicit(&r->control->data_freed, memory_order_acquire);
}

bool ring_reserve(struct ring *r, uint32_t len, struct ring_slot **slot, void **payload)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);
	uint64_t data_end = r->data_at;
	uint64_t place = 0;

	if (len > RING_INLINE)
		place = ring_place(&r->shape, &data_end, len);
	if (!ring_has_room(r, at, data_end)) {
		ring_look(r);
		if (!ring_has_room(r, at, data_end)) {
			atomic_store_explicit(&r->control->starved, 1, memory_order_relaxed);
			atomic_thread_fence(memory_order_seq_cst);
			ring_look(r);
			if (!ring_has_room(r, at, data_end))
				return false;
		}
		/* starved stays set: another thread of ours may sleep for room, and only the consumer can wake it */
	}
	*slot = &r->slots[at & (r->shape.slot_count - 1)];
	*payload = len > RING_INLINE ? r->data + place : (*slot)->payload;
	return true;
}

void ring_commit(struct ring *r, struct ring_slot *slot, uint32_t reserved)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);
	uint64_t data_at = r->data_at;

	if (reserved > RING_INLINE) {
		uint64_t place = ring_place(&r->shape, &data_at, reserved);

		if (slot->hdr.len > RING_INLINE) {
			/* the consumer knows the final length alone; the place is the same unless the
			 * shorter payload would have fitted before the end of the area */
			uint64_t end = r->data_at;
			uint64_t final = ring_place(&r->shape, &end, slot->hdr.len);

			if (final != place)
				memmove(r->data + final, r->data + place, slot->hdr.len);
			r->data_at = end;
		} else {
			memcpy(slot->payload, r->data + place, slot->hdr.len);
		}
	}
	atomic_store_explicit(ring_stamp_of(slot), ring_stamp(&r->shape, at), memory_order_release);
	atomic_store_explicit(&r->slot_at, at + 1, memory_order_relaxed);
}

bool ring_next(struct ring *r, struct wire_hdr *hdr, const void **payload)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);
	struct ring_slot *slot = &r->slots[at & (r->shape.slot_count - 1)];
	uint64_t end = r->data_at;

	if (atomic_load_explicit(ring_stamp_of(slot), memory_order_acquire) != ring_stamp(&r->shape, at))
		return false;
	*hdr = slot->hdr;
	*payload = slot->payload;
	if (hdr->len > RING_INLINE && hdr->len <= r->shape.payload_max)
		*payload = r->data + ring_place(&r->shape, &end, hdr->len);
	return true;
}

void ring_free(struct ring *r, uint32_t len)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);

	if (len > RING_INLINE) {
		ring_place(&r->shape, &r->data_at, len);
		atomic_store_explicit(&r->control->data_freed, r->data_at, memory_order_release);
	}
	atomic_store_explicit(&r->slot_at, at + 1, memory_order_relaxed);
	atomic_store_explicit(&r->control->slots_freed, at + 1, memory_order_release);
}

bool ring_look_due(struct ring *r)
{
	uint32_t at = atomic_load_explicit(&r->slot_at, memory_order_relaxed);

	if (at - r->slots_looked < r->shape.slot_count / 4 && r->data_at - r->data_looked < r->shape.data_bytes / 4)
		return false;
	r->slots_looked = at;
	r->data_looked = r->data_at;
	return true;
}
