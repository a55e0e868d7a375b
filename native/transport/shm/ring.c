/* SPDX-License-Identifier: MIT */
#include "transport/shm/ring.h"

#include <string.h>

size_t ring_data_offset(const struct ring_shape *s)
{
	size_t slots = (size_t)s->slot_count * sizeof(struct ring_slot);

	return RING_PAGE + ((slots + RING_PAGE - 1) & ~(size_t)(RING_PAGE - 1)) + RING_SKEW;
}

size_t ring_mapping_bytes(const struct ring_shape *s)
{
	return (size_t)((ring_data_offset(s) + s->data_bytes + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1));
}

void ring_init(struct ring *r, void *mapping, const struct ring_shape *shape)
{
	memset(r, 0, sizeof(*r));
	r->control = mapping;
	r->slots = (struct ring_slot *)(void *)((char *)mapping + RING_PAGE);
	r->data = (unsigned char *)mapping + ring_data_offset(shape);
	r->shape = *shape;
	r->lap_shift = (uint32_t)__builtin_ctz(shape->slot_count);
	r->ready_max = RING_INLINE;
}

void ring_limit(struct ring *r)
{
	if (r->shape.data_bytes <= RING_SMALL_BYTES)
		return;
	r->full = r->shape;
	r->shape.data_bytes = RING_SMALL_BYTES;
	if (r->shape.payload_max > RING_SMALL_BYTES / 4)
		r->shape.payload_max = RING_SMALL_BYTES / 4;
	r->small = true;
}

void ring_grow(struct ring *r)
{
	r->shape = r->full;
	r->small = false;
	r->data_freed = (r->data_at | (r->shape.data_bytes - 1)) + 1;
	r->data_at = r->data_freed + RING_SMALL_BYTES;
	r->data_looked = r->data_at;
}

void ring_grow_consumer(struct ring *r)
{
	ring_grow(r);
	atomic_store_explicit(&r->control->data_freed, r->data_at, memory_order_release);
}

static void ring_see(struct ring *r)
{
	uint64_t data_freed;

	r->slots_freed = atomic_load_explicit(&r->control->slots_freed, memory_order_acquire);
	data_freed = atomic_load_explicit(&r->control->data_freed, memory_order_acquire);
	if (data_freed > r->data_freed) /* else it is from before the ring has grown */
		r->data_freed = data_freed;
}

bool ring_look(struct ring *r, uint32_t at, uint64_t data_end)
{
	ring_see(r);
	if (ring_has_room(r, at, data_end))
		return true;
	atomic_store_explicit(&r->control->lacks_room, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	ring_see(r);
	/* lacks_room stays set: another thread of ours may sleep for room, and only the consumer can wake it */
	return ring_has_room(r, at, data_end);
}

void ring_settle(struct ring *r, struct ring_slot *slot, uint32_t reserved)
{
	uint64_t data_at = r->data_at, end = data_at;
	uint64_t offset = ring_offset(&r->shape, &data_at, reserved);
	uint64_t final;

	if (slot->hdr.len <= RING_INLINE) {
		memcpy(slot->payload, r->data + offset, slot->hdr.len);
		return;
	}
	/* the consumer knows the final length alone; the offset is the same unless the shorter payload would have fitted
	 * before the end of the area, or is not long enough for the start of a page */
	final = ring_offset(&r->shape, &end, slot->hdr.len);
	if (final != offset)
		memmove(r->data + final, r->data + offset, slot->hdr.len);
	r->data_at = end;
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
