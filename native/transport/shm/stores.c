/* SPDX-License-Identifier: MIT */
#include "transport/shm/stores.h"

#include <string.h>

#include "base/clock.h"

/* The methods, as a choice numbers them. */
enum { STORES_BY_CACHE, STORES_BY_STREAM };

enum stores_mode stores_mode(const struct settings *settings)
{
	const char *text = settings_text(settings, SETTING_SHM_STORES);

	if (!copy_can_stream() || strcmp(text, "cached") == 0)
		return STORES_CACHED;
	return strcmp(text, "streaming") == 0 ? STORES_STREAMING : STORES_LEARN;
}

void stores_init(struct stores *s, enum stores_mode mode)
{
	*s = (struct stores){.mode = mode};
	for (unsigned c = 0; c < STORES_CLASSES; c++)
		choice_init(&s->classes[c]);
}

static unsigned stores_class_of(size_t len)
{
	unsigned c = 0;

	while (c + 1 < STORES_CLASSES && len >= (size_t)STORES_MIN << (c + 1))
		c++;
	return c;
}

/* The consumer's time has come: that of the whole payload is known. */
static void stores_learn(struct stores *s, uint32_t consumer_ns)
{
	struct choice *c = &s->classes[s->size_class];
	uint64_t ns = ((uint64_t)s->own_ns + consumer_ns) * ((uint64_t)STORES_MIN << s->size_class) / s->len;

	s->pending = false;
	choice_learn(c, s->method, ns);
	if (c->hint_pending) {
		c->hint_pending = false;
		choice_hint(c, c->in_best, c->in_interval);
	}
}

/* While one packet is measured others take the best method: what is explored is to be learned from. */
static unsigned stores_choose(struct stores *s, _Atomic uint32_t *measured_ns, size_t len)
{
	unsigned size_class = stores_class_of(len);
	uint32_t consumer_ns;

	if (s->pending) {
		consumer_ns = atomic_load_explicit(measured_ns, memory_order_relaxed);
		if (consumer_ns == 0)
			return s->classes[size_class].best;
		stores_learn(s, consumer_ns);
	}
	s->method = choice_make(&s->classes[size_class], &s->timing);
	if (s->timing) {
		s->size_class = size_class;
		s->len = (uint32_t)len;
		atomic_store_explicit(measured_ns, 0, memory_order_relaxed);
		s->begin_ns = clock_now_ns();
	}
	return s->method;
}

copy_fn *stores_begin(struct stores *s, _Atomic uint32_t *measured_ns, size_t len)
{
	bool stream = s->mode == STORES_LEARN ? stores_choose(s, measured_ns, len) == STORES_BY_STREAM : s->mode == STORES_STREAMING;

	s->streamed_count += stream;
	return stream ? copy_streaming : memcpy;
}

bool stores_end(struct stores *s)
{
	if (!s->timing)
		return false;
	s->timing = false;
	s->pending = true;
	s->own_ns = clock_now_ns() - s->begin_ns;
	return true;
}

void stores_forget(struct stores *s)
{
	s->timing = false;
}
