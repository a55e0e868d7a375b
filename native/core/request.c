/* SPDX-License-Identifier: MIT */
#include "core/request.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

#define BIT(s) (1u << (s))

const uint16_t request_legal[REQ_STATE_COUNT] = {
	[REQ_FREE] = 0,
	[REQ_QUEUED] = BIT(REQ_PUSHING) | BIT(REQ_WAIT_ACK) | BIT(REQ_WAIT_CTS) | BIT(REQ_ENDING) | BIT(REQ_DONE),
	[REQ_PUSHING] = BIT(REQ_WAIT_ACK) | BIT(REQ_DONE),
	[REQ_WAIT_ACK] = BIT(REQ_DONE),
	[REQ_WAIT_CTS] = BIT(REQ_STREAMING) | BIT(REQ_PUTTING) | BIT(REQ_ENDING) | BIT(REQ_DONE),
	[REQ_PUTTING] = BIT(REQ_STREAMING) | BIT(REQ_ENDING) | BIT(REQ_DONE),
	[REQ_STREAMING] = BIT(REQ_WAIT_CTS) | BIT(REQ_ENDING) | BIT(REQ_DONE),
	[REQ_POSTED] = BIT(REQ_FILLING) | BIT(REQ_GETTING) | BIT(REQ_DONE),
	[REQ_FILLING] = BIT(REQ_ENDING) | BIT(REQ_DONE),
	[REQ_GETTING] = BIT(REQ_FILLING) | BIT(REQ_ENDING) | BIT(REQ_DONE),
	[REQ_MESSAGE] = BIT(REQ_POSTED) | BIT(REQ_DONE),
	[REQ_ENDING] = BIT(REQ_DONE),
	[REQ_DONE] = BIT(REQ_FREE),
};

static const char *const request_names[REQ_STATE_COUNT] = {
	[REQ_FREE] = "free",         [REQ_QUEUED] = "queued",       [REQ_PUSHING] = "pushing", [REQ_WAIT_ACK] = "wait-ack",
	[REQ_WAIT_CTS] = "wait-cts", [REQ_STREAMING] = "streaming", [REQ_POSTED] = "posted",   [REQ_FILLING] = "filling",
	[REQ_GETTING] = "getting",   [REQ_MESSAGE] = "message",     [REQ_DONE] = "done",       [REQ_PUTTING] = "putting",
	[REQ_ENDING] = "ending",
};

const char *request_state_name(enum req_state s)
{
	return request_names[s];
}

int request_table_init(struct request_table *t)
{
	*t = (struct request_table){0};
	t->chunks = calloc(REQUEST_SLOTS_MAX / REQUEST_CHUNK, sizeof(*t->chunks));
	return t->chunks ? 0 : error_set(-ENOMEM, "no memory for the request table");
}

void request_table_fini(struct request_table *t)
{
	for (uint32_t i = 0; i < t->chunk_count; i++)
		free(t->chunks[i]);
	free(t->chunks);
	*t = (struct request_table){0};
}

int request_table_grow(struct request_table *t)
{
	struct request *chunk;

	if (t->chunk_count >= REQUEST_SLOTS_MAX / REQUEST_CHUNK)
		return error_set(-ENOMEM, "%u requests are pending, the most one rank can have: complete some first", REQUEST_SLOTS_MAX);
	chunk = calloc(REQUEST_CHUNK, sizeof(*chunk));
	if (!chunk)
		return error_set(-ENOMEM, "no memory for more than %u pending requests", t->live_count);
	for (uint32_t i = REQUEST_CHUNK; i-- > 0;) {
		chunk[i].slot = t->chunk_count * REQUEST_CHUNK + i;
		chunk[i].generation = 1;
		chunk[i].next_free = t->free;
		t->free = &chunk[i];
	}
	t->chunks[t->chunk_count++] = chunk;
	return 0;
}

struct request *request_find_wire(const struct request_table *t, uint32_t id)
{
	struct request *r = request_at(t, id & (REQUEST_SLOTS_MAX - 1));

	return r && (r->generation & 0xff) == id >> 24 ? r : NULL;
}
