/* SPDX-License-Identifier: MIT */
/* Bodies of the frames of control connections: a byte that is the kind, then the body, given to every reader. */
#include "fuzz.h"

#include "base/error.h"
#include "bootstrap/gather.h"
#include "bootstrap/tree_state.h"

#define SIZE 4

static void judge_member(const struct message_rank *member)
{
	fuzz_check(member->rank >= 0 && member->size >= 0 && member->pid >= 0);
	fuzz_check(strlen(member->host) <= MESSAGE_HOST_BYTES && strlen(member->job_id) <= MESSAGE_ID_BYTES);
	fuzz_check(strlen(member->node) <= MESSAGE_NODE_BYTES);
}

static void try_roster(struct frame *f)
{
	char host[MESSAGE_TEXT_BYTES + 1];
	struct roster roster = {0};

	if (roster_set(&roster, f, SIZE) == 0) {
		for (int i = 0; i < SIZE; i++) {
			roster_host(&roster, i, host);
			fuzz_check(roster_pid(&roster, i) >= 0 && strlen(host) <= MESSAGE_HOST_BYTES && roster_same_node(&roster, i, i));
		}
	}
	roster_fini(&roster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[MESSAGE_TEXT_BYTES + 1];
	struct message_rank member = {0};
	uint32_t lengths[SIZE];
	uint8_t *body, out[64];
	struct frame *f;
	int code, parent;

	if (size < 1)
		return 0;
	size--;
	body = fuzz_copy(data + 1, size);
	f = frame_new((enum message_kind)(1 + data[0] % (MESSAGE_KIND_COUNT - 1)), body, size);
	fuzz_check(f);
	message_get_text(body, size, &code, text);
	gather_unpack(body, size, SIZE, 1, out, sizeof(out), lengths);
	gather_check(body, size, SIZE);
	fuzz_check(message_get_joined(body, size, &member, &parent) <= (int)size);
	if (message_get_hello(body, size, &member) == 0)
		judge_member(&member);
	try_roster(f);
	frame_unref(f);
	free(body);
	return 0;
}
