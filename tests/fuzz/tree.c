/* SPDX-License-Identifier: MIT */
/* Damaged frames on the connections of a rank: the readers, and the protocol engine in every state of its start and after. */
#include "fuzz.h"

#include <errno.h>

#include "base/error.h"
#include "bootstrap/gather.h"
#include "bootstrap/tree_state.h"

#define SIZE 4
#define ROOM 4096
#define LINKS 4

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
	for (size_t i = 0; i < len; i++)
		((uint8_t *)out)[i] = (uint8_t)fuzz_next(net);
	return 0;
}

static const struct tree_net net_ops = {net_connect, net_send, net_close, net_close, net_listen, net_unlisten, net_random};

static size_t put_frame(uint8_t *out, enum message_kind kind, const void *body, size_t len)
{
	message_put_header(out, kind, (uint32_t)len);
	memcpy(out + 8, body, len);
	return 8 + len;
}

static size_t make_welcome(uint8_t *out)
{
	struct roster_builder b;
	struct frame *f;
	size_t len = 0;

	if (roster_builder_init(&b, SIZE) < 0)
		return 0;
	for (int i = 0; i < SIZE; i++) {
		struct message_rank member = {.rank = i, .pid = 10 + i, .node = "00112233445566aa", .host = "host"};

		if (roster_add(&b, &member) < 0)
			return 0;
	}
	f = roster_pack(&b);
	if (f) {
		len = f->len;
		memcpy(out, frame_body(f), len);
	}
	frame_unref(f);
	roster_builder_fini(&b);
	return len;
}

static size_t make_body(struct fuzz_rng *rng, enum message_kind kind, uint8_t *body)
{
	struct message_rank member = {.rank = (int)fuzz_below(rng, SIZE),
				      .size = SIZE,
				      .pid = 7,
				      .host = "host",
				      .node = "0123456789abcdef",
				      .purpose = (enum message_purpose)fuzz_below(rng, 3)};
	size_t len = fuzz_below(rng, 64);

	memset(body, 0, 64);
	if (kind == MESSAGE_HELLO) {
		message_put_hello((struct message_hello *)body, &member);
		return sizeof(struct message_hello);
	}
	if (kind == MESSAGE_LOST || kind == MESSAGE_FAILED || kind == MESSAGE_REFUSED || kind == MESSAGE_SUSPECT)
		return message_put_text(body, kind == MESSAGE_LOST || kind == MESSAGE_SUSPECT ? (int)fuzz_below(rng, SIZE) : -110,
					"a reason");
	if (kind == MESSAGE_WELCOME)
		return make_welcome(body);
	if (kind == MESSAGE_JOINED)
		return message_put_joined(body, &member, 0);
	if (kind == MESSAGE_LEFT || kind == MESSAGE_MOVED || kind == MESSAGE_ANCESTORS || kind == MESSAGE_ATTACHED)
		for (size_t i = 0; i < len / 4; i++)
			message_put32(body + 4 * i, (uint32_t)fuzz_below(rng, SIZE));
	if (kind == MESSAGE_GATHER) {
		message_put32(body, 1);
		message_put32(body + 8, 1 + (uint32_t)fuzz_below(rng, SIZE));
		message_put32(body + 12, (uint32_t)fuzz_below(rng, SIZE));
		message_put32(body + 16, 3);
		return fuzz_below(rng, 2) ? 12 : 23;
	}
	if (kind == MESSAGE_GATHERED) {
		message_put32(body, 1);
		message_put32(body + 4, 1);
		return 8 + SIZE;
	}
	return len / 4 * 4;
}

/* A few frames such as a rank may send, then the damage. */
static size_t make_stream(struct fuzz_rng *rng, uint8_t *out)
{
	size_t len = 0;

	for (size_t i = 1 + fuzz_below(rng, 4); i > 0; i--) {
		enum message_kind kind = (enum message_kind)(1 + fuzz_below(rng, MESSAGE_KIND_COUNT - 1));
		uint8_t body[1024] = {0};

		len += put_frame(out + len, kind, body, make_body(rng, kind, body));
	}
	for (size_t i = fuzz_below(rng, 4); i > 0; i--)
		fuzz_damage(rng, out, &len, ROOM);
	return len;
}

static void make_link(struct tree *t, struct fuzz_rng *rng, int rank, enum link_state state)
{
	static const enum link_state incoming[] = {LINK_SILENT, LINK_CHALLENGED, LINK_CHILD};
	static const enum link_state outgoing[] = {LINK_CONNECTING, LINK_HELLO, LINK_PROOF, LINK_PARENT};
	bool out = state <= LINK_PARENT;
	int i = tree_link_new(t), n = out ? 4 : 3;

	t->links[i].purpose = (enum message_purpose)fuzz_below(rng, 3);
	t->links[i].leader = fuzz_below(rng, 2);
	t->links[i].member = (struct message_rank){.rank = rank, .size = SIZE, .pid = 7, .host = "host", .node = "0123456789abcdef"};
	for (int k = 0; k < n; k++) {
		tree_link_set_state(t, i, out ? outgoing[k] : incoming[k]);
		if ((out ? outgoing[k] : incoming[k]) == state)
			return;
	}
}

static struct tree *make_rank(struct fuzz_rng *rng, struct ears *ears)
{
	struct bootstrap_events events = {.arg = ears, .lost = on_lost, .left = on_left};
	int rank = (int)fuzz_below(rng, SIZE), how = (int)fuzz_below(rng, 4);
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
				  .net_arg = rng};
	struct tree *t;

	if (tree_new(&t, &cfg) < 0)
		exit(1);
	tree_start(t, 1000);
	snprintf(t->job_id, sizeof(t->job_id), "%s", cfg.drawn_id);
	if (rank != 0 && t->parent < 0 && t->state == TREE_MEETING)
		make_link(t, rng, (int)fuzz_below(rng, (size_t)rank), how ? LINK_PARENT : LINK_HELLO);
	for (int i = 1; i < SIZE; i++)
		if (i != rank && t->state == TREE_MEETING)
			make_link(t, rng, i, how && fuzz_below(rng, 3) ? LINK_CHILD : LINK_SILENT);
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

static int try_engine(struct fuzz_rng *rng)
{
	uint8_t stream[ROOM + 4096];
	struct ears ears = {{0}};
	struct tree *t = make_rank(rng, &ears);
	int64_t now = 3000;
	int bad = 0;

	for (int i = 0; i < LINKS && i < tree_link_max(t); i++, now += 1000000)
		if (tree_link_is_open(t, i))
			feed(t, i, stream, make_stream(rng, stream), now);
	if (fuzz_below(rng, 2))
		tree_report_lost(t, (int)fuzz_below(rng, SIZE), "gone", now);
	for (int i = 0; i < 8 && tree_next(t) != INT64_MAX; i++)
		tree_on_time(t, now = tree_next(t) > now ? tree_next(t) : now);
	if (tree_state(t) == TREE_FAILED && (tree_error(t) >= 0 || !*error_text())) {
		fprintf(stderr, "a failed start has no reason\n");
		bad = 1;
	}
	tree_leave(t, now);
	for (int i = 0; i < SIZE; i++)
		if (ears.heard[i] > 1 || (i == t->cfg.rank && ears.heard[i])) {
			fprintf(stderr, "rank %d was reported %d times to rank %d\n", i, ears.heard[i], t->cfg.rank);
			bad = 1;
		}
	tree_free(t);
	return bad;
}

static int try_readers(struct fuzz_rng *rng)
{
	uint8_t stream[ROOM + 4096], *exact, out[64];
	enum message_kind kind = (enum message_kind)(1 + fuzz_below(rng, MESSAGE_KIND_COUNT - 1));
	size_t len = make_body(rng, kind, stream);
	char text[MESSAGE_TEXT_BYTES + 1];
	struct message_rank member = {0};
	struct roster roster = {0};
	uint32_t lengths[SIZE];
	struct frame *f;
	int code, parent, bad = 0;

	for (size_t i = fuzz_below(rng, 3); i > 0; i--)
		fuzz_damage(rng, stream, &len, ROOM);
	exact = malloc(len ? len : 1);
	f = frame_new(kind, stream, len);
	if (!exact || !f)
		return 1;
	memcpy(exact, stream, len);
	message_get_text(exact, len, &code, text);
	gather_unpack(exact, len, SIZE, 1, out, sizeof(out), lengths);
	gather_check(exact, len, SIZE);
	if (message_get_joined(exact, len, &member, &parent) > (int)len)
		bad = 1;
	if (message_get_hello(exact, len, &member) == 0)
		bad |= member.rank < 0 || member.size < 0 || member.pid < 0 || strlen(member.host) > MESSAGE_HOST_BYTES ||
		       strlen(member.job_id) > MESSAGE_ID_BYTES || strlen(member.node) > MESSAGE_NODE_BYTES;
	if (roster_set(&roster, f, SIZE) == 0)
		for (int i = 0; i < SIZE; i++) {
			roster_host(&roster, i, text);
			bad |= roster_pid(&roster, i) < 0 || strlen(text) > MESSAGE_HOST_BYTES || !roster_same_node(&roster, i, i);
		}
	roster_fini(&roster);
	frame_unref(f);
	free(exact);
	return bad;
}

static int target(struct fuzz_rng *rng)
{
	return fuzz_below(rng, 3) ? try_engine(rng) : try_readers(rng);
}

int main(int argc, char **argv)
{
	return fuzz_main(argc, argv, 20000, target);
}
