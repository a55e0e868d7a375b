/* SPDX-License-Identifier: MIT */
/*
 * Frames on the connections of a rank: the protocol engine in every state of its start and after.
 *
 * Input: 32 bytes that choose the state, then for each connection [length: 2] [what comes on it], the last as long as it is.
 */
#include "fuzz.h"

#include <errno.h>

#include "base/error.h"
#include "bootstrap/tree_state.h"

#define SIZE 4
#define LINKS 4
#define CHOICE_BYTES 32u

static const struct log silence = {.level = LOG_OFF, .fd = -1};

struct ears {
	int heard[SIZE];
};

static void on_lost(void *arg, int rank, const char *why)
{
	struct ears *ears = arg;

	ears->heard[rank] += 1 + (strlen(why) > MESSAGE_TEXT_BYTES + 64 ? 100 : 0);
}

static void on_left(void *arg, int rank)
{
	struct ears *ears = arg;

	ears->heard[rank]++;
}

/* A network on which nothing ever arrives by itself. */
static int net_connect(void *net, int link, enum message_purpose purpose, int index, const struct message_address *address)
{
	(void)net, (void)link, (void)purpose, (void)address;
	return index > 0 ? -EALREADY : fuzz_below(net, 2) ? 0 : error_set(-ECONNREFUSED, "refused");
}

static void net_send(void *net, int link, struct frame *frame)
{
	(void)net, (void)link, (void)frame;
}

static void net_close(void *net, int link)
{
	(void)net, (void)link;
}

static int net_listen(void *net, enum message_purpose purpose, bool loopback)
{
	(void)net, (void)loopback;
	return purpose == MESSAGE_LOCAL ? 0 : 4000;
}

static void net_unlisten(void *net, enum message_purpose purpose)
{
	(void)net, (void)purpose;
}

static int net_random(void *net, void *out, size_t len)
{
	fuzz_take(net, out, len);
	return 0;
}

static const struct tree_net net_ops = {net_connect, net_send, net_close, net_close, net_listen, net_unlisten, net_random};

static void make_link(struct tree *t, struct fuzz_input *in, int rank, enum link_state state)
{
	static const enum link_state incoming[] = {LINK_SILENT, LINK_CHALLENGED, LINK_CHILD};
	static const enum link_state outgoing[] = {LINK_CONNECTING, LINK_HELLO, LINK_PROOF, LINK_PARENT};
	bool out = state <= LINK_PARENT;
	int i = tree_link_new(t), n = out ? 4 : 3;

	t->links[i].purpose = (enum message_purpose)fuzz_below(in, 3);
	t->links[i].leader = fuzz_below(in, 2);
	t->links[i].member = (struct message_rank){.rank = rank, .size = SIZE, .pid = 7, .host = "host", .node = "0123456789abcdef"};
	for (int k = 0; k < n; k++) {
		tree_link_set_state(t, i, out ? outgoing[k] : incoming[k]);
		if ((out ? outgoing[k] : incoming[k]) == state)
			return;
	}
}

static struct tree *make_rank(struct fuzz_input *in, struct ears *ears)
{
	struct bootstrap_events events = {.arg = ears, .lost = on_lost, .left = on_left};
	int rank = fuzz_below(in, SIZE), how = fuzz_below(in, 4);
	struct tree_config cfg = {.rank = rank,
				  .size = SIZE,
				  .pid = 5,
				  .host = "host",
				  .node = "0123456789abcdef",
				  .secret = "",
				  .job_id = "",
				  .drawn_id = "0123456789abcdef0123456789abcdef",
				  .timeout_ms = 5,
				  .addresses = 1,
				  .where = "there",
				  .log = &silence,
				  .net = &net_ops,
				  .net_arg = in};
	struct tree *t;

	if (tree_new(&t, &cfg) < 0)
		exit(1);
	tree_start(t, 1000);
	snprintf(t->job_id, sizeof(t->job_id), "%s", cfg.drawn_id);
	if (rank != 0 && t->parent < 0 && t->state == TREE_MEETING)
		make_link(t, in, fuzz_below(in, rank), how ? LINK_PARENT : LINK_HELLO);
	for (int i = 1; i < SIZE; i++)
		if (i != rank && t->state == TREE_MEETING)
			make_link(t, in, i, how && fuzz_below(in, 3) ? LINK_CHILD : LINK_SILENT);
	if (how == 0 || t->state != TREE_MEETING)
		return t;
	tree_set_state(t, how == 1 ? TREE_MEETING : TREE_JOINED);
	if (how == 2)
		tree_gather(t, "xyz", 3, 2000);
	if (how == 3)
		tree_watch(t, &events);
	return t;
}

/* As a connection does: a header is judged before its body is looked at. */
static void feed(struct tree *t, int link, const uint8_t *in, size_t len, int64_t now)
{
	while (len >= 8 && tree_link_is_open(t, link)) {
		uint32_t body;
		int kind = message_get_header(in, &body);
		struct frame *f;

		if (kind < 0 || tree_expects(t, link, (enum message_kind)kind) < (int64_t)body) {
			tree_on_down(t, link, -EPROTO, "what it sends is not ibvdev's protocol", now);
			return;
		}
		if (body > len - 8)
			break;
		f = frame_new((enum message_kind)kind, in + 8, body);
		if (!f)
			exit(1);
		tree_on_frame(t, link, f, now);
		frame_unref(f);
		in += 8 + body;
		len -= 8 + body;
	}
	if (tree_link_is_open(t, link))
		tree_on_down(t, link, -ECONNRESET, "the connection was closed", now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input choice = {data, size < CHOICE_BYTES ? size : CHOICE_BYTES};
	struct fuzz_input in = {data + choice.left, size - choice.left};
	int lost = fuzz_below(&choice, 2 * SIZE);
	struct ears ears = {{0}};
	struct tree *t = make_rank(&choice, &ears);
	int64_t now = 3000;

	for (int i = 0; i < LINKS && i < tree_link_max(t) && in.left > 2; i++, now += 1000000) {
		uint8_t length[2];
		size_t len;
		uint8_t *stream;

		fuzz_take(&in, length, 2);
		len = length[0] + 256u * length[1];
		len = len < in.left ? len : in.left;
		stream = fuzz_copy(in.at, len);
		in.at += len;
		in.left -= len;
		if (tree_link_is_open(t, i))
			feed(t, i, stream, len, now);
		free(stream);
	}
	if (lost < SIZE)
		tree_report_lost(t, lost, "gone", now);
	for (int i = 0; i < 8 && tree_next(t) != INT64_MAX; i++)
		tree_on_time(t, now = tree_next(t) > now ? tree_next(t) : now);
	if (tree_state(t) == TREE_FAILED)
		fuzz_check(tree_error(t) < 0 && *error_text()); /* a failed start has a reason */
	tree_leave(t, now);
	for (int i = 0; i < SIZE; i++)
		fuzz_check(ears.heard[i] <= (i != t->cfg.rank)); /* reported once, and never a rank to itself */
	tree_free(t);
	return 0;
}
