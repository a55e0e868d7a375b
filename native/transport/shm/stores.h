/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_STORES_H
#define IBVX_TRANSPORT_SHM_STORES_H
/*
 * stores: how the producer of a ring copies long payloads into it.
 *
 * By ordinary stores the payload stays in the producer's cache and the consumer fetches each line from there; by streaming
 * stores (copy_streaming) it goes to memory, from where it is read ahead.  Which is faster depends on the
 * processors' distance and the size.  Both sides measure one payload in some: the producer its copy, the consumer
 * what it does with the packet; the sum of the two decides (base/choice.h), for each size class.
 *
 * Used by the producer, under the core's lock.  One packet at a time is measured.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/choice.h"
#include "base/copy.h"
#include "base/settings.h"

#define STORES_MIN 4096u  /* shorter payloads are copied by ordinary stores: no difference was measured */
#define STORES_CLASSES 4u /* 4, 8, 16, 32 KB and more */

enum stores_mode { STORES_LEARN, STORES_CACHED, STORES_STREAMING };

struct stores {
	enum stores_mode mode;
	struct choice classes[STORES_CLASSES];
	bool pending; /* a packet has been sent whose time the consumer has not reported yet */
	bool timing;  /* between stores_begin() and stores_end() */
	unsigned size_class, method;
	uint32_t len;
	int64_t begin_ns, own_ns;
	uint64_t streamed_count;
};

/* The setting shm_stores. */
enum stores_mode stores_mode(const struct settings *settings);
void stores_init(struct stores *s, enum stores_mode mode);

/* What to copy a payload of len bytes with, STORES_MIN or more.  measured_ns: where the consumer answers. */
copy_fn *stores_begin(struct stores *s, _Atomic uint32_t *measured_ns, size_t len);
/* The payload has been copied. True: the packet is to carry WIRE_MEASURED. */
bool stores_end(struct stores *s);
/* It was not copied after all. */
void stores_forget(struct stores *s);

#endif
