/* SPDX-License-Identifier: MIT */
/* Damaged frames on the connections of a rank that has joined: readers, allgather, watch, on both ends of the star. */
#include "fuzz.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/gather.h"
#include "bootstrap/star.h"

#define SIZE 4
#define ROOM 4096

static struct settings *settings;
static const struct log silence = {.level = LOG_OFF, .fd = -1};

struct ears {
	int heard[SIZE];
};

static void on_lost(void *arg, int rank, const char *why)
{
	struct ears *ears = arg;

	ears->heard[rank] += 1 + (strlen(why) > MESSAGE_TEXT_BYTES ? 100 : 0);
}

static void on_left(void *arg, int rank)
{
	struct ears *ears = arg;

	ears->heard[rank]++;
}

static size_t put_frame(uint8_t *out, enum message_kind kind, const void *body, size_t len)
{
	message_put_header(out, kind, (uint32_t)len);
	memcpy(out + 8, body, len);
	return 8 + len;
}

/* A few frames such as a rank or rank 0 may send, then the damage. */
static size_t make_stream(struct fuzz_rng *rng, uint8_t *out)
{
	size_t len = 0;

	for (size_t i = 1 + fuzz_below(rng, 4); i > 0; i--) {
		enum message_kind kind = (enum message_kind)(1 + fuzz_below(rng, MESSAGE_KIND_COUNT - 1));
		uint8_t body[4 + MESSAGE_TEXT_BYTES] = {0};
		size_t body_len = fuzz_below(rng, 64);

		if (kind == MESSAGE_LOST || kind == MESSAGE_FAILED || kind == MESSAGE_REFUSED) {
			body_len = message_put_text(
				body, kind == MESSAGE_LOST ? (int)fuzz_below(rng, SIZE) : -110, "a reason");
		} else if (kind == MESSAGE_LEFT) {
			message_put32(body, (uint32_t)fuzz_below(rng, SIZE));
			body_len = 4;
		} else if (kind == MESSAGE_GATHER) {
			message_put32(body, 1);
			message_put32(body + 4, 0);
			body_len = 8 + fuzz_below(rng, 32);
		} else if (kind == MESSAGE_GATHERED) {
			message_put32(body, 1);
			message_put32(body + 4, 3);
			body_len = 4 + 4 * SIZE + 3;
		}
		len += put_frame(out + len, kind, body, body_len);
	}
	for (size_t i = fuzz_below(rng, 4); i > 0; i--)
		fuzz_damage(rng, out, &len, ROOM);
	return len;
}

static int make_rank(struct bootstrap **b, int rank, int ends[SIZE])
{
	static const char *const peers[SIZE] = {"a:1", "b:2", "c:3", "d:4"};
	struct bootstrap_config cfg = {.rank = rank, .peers = peers, .size = SIZE, .settings = settings};
	int size, pair[2];

	if (bootstrap_open(b, &cfg, &size))
		return 1;
	(*b)->log = &silence;
	(*b)->timeout_ms = 5;
	for (int i = 0; i < SIZE; i++)
		ends[i] = -1;
	for (int i = 0; i < (*b)->conn_count; i++) {
		if (rank == 0 && i == 0)
			continue;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
			return 1;
		conn_open(&(*b)->conns[i], pair[0], SIZE);
		(*b)->conns[i].expects =
			rank == 0 ? CONN_EXPECT(MESSAGE_GATHER) | CONN_EXPECT(MESSAGE_LOST) |
					    CONN_EXPECT(MESSAGE_LEFT)
				  : CONN_EXPECT(MESSAGE_GATHERED) | CONN_EXPECT(MESSAGE_FAILED) |
					    CONN_EXPECT(MESSAGE_LOST) | CONN_EXPECT(MESSAGE_LEFT);
		ends[i] = pair[1];
	}
	star_set_state(*b, STAR_JOINED);
	return watch_open(*b);
}

/* end: whoever reads must not wait for more. */
static void feed(struct fuzz_rng *rng, const int ends[SIZE], int end)
{
	uint8_t stream[ROOM];

	for (int i = 0; i < SIZE; i++) {
		size_t len = make_stream(rng, stream);

		if (ends[i] < 0)
			continue;
		send(ends[i], stream, len, MSG_NOSIGNAL);
		if (end || fuzz_below(rng, 2))
			shutdown(ends[i], SHUT_WR);
	}
}

static int try_watch(struct bootstrap *b)
{
	struct ears ears = {{0}};
	struct bootstrap_events events = {.arg = &ears, .lost = on_lost, .left = on_left};
	int fd;

	bootstrap_watch(b, &events);
	if (bootstrap_fds(b, &fd, 1) != 1)
		return 1;
	for (int i = 0; i < 4; i++)
		bootstrap_on_readable(b, fd);
	bootstrap_report_lost(b, 1, "gone");
	bootstrap_leave(b);
	for (int i = 0; i < SIZE; i++)
		if (ears.heard[i] > 1 || (i == b->rank && ears.heard[i])) {
			fprintf(stderr, "rank %d was reported %d times to rank %d\n", i, ears.heard[i],
				b->rank);
			return 1;
		}
	return 0;
}

static int try_gather(struct bootstrap *b)
{
	uint8_t out[64];
	uint32_t lengths[SIZE];
	int err = bootstrap_allgather(b, "xyz", 3, out, sizeof(out), lengths);

	if (err == 0 || err == -ENOBUFS)
		return 0;
	if (!*error_text() || bootstrap_allgather(b, "xyz", 3, out, sizeof(out), lengths) == 0) {
		fprintf(stderr, "a failed star went on after %d\n", err);
		return 1;
	}
	bootstrap_leave(b);
	return 0;
}

static int try_readers(struct fuzz_rng *rng)
{
	uint8_t stream[ROOM], *exact, out[64];
	uint32_t lengths[SIZE];
	size_t len = make_stream(rng, stream);
	char text[MESSAGE_TEXT_BYTES + 1];
	struct message_rank who = {.rank = 1, .size = SIZE, .host = "host", .node = "0123456789abcdef"};
	struct message_hello hello;
	size_t hello_len = sizeof(hello);
	int code, bad = 0;

	exact = malloc(len ? len : 1);
	if (!exact)
		return 1;
	memcpy(exact, stream, len);
	message_get_text(exact, len, &code, text);
	gather_unpack(exact, len, SIZE, 1, out, sizeof(out), lengths);
	free(exact);

	message_put_hello(&hello, &who);
	memcpy(stream, &hello, hello_len);
	for (size_t i = fuzz_below(rng, 3); i > 0; i--)
		fuzz_damage(rng, stream, &hello_len, ROOM);
	exact = malloc(hello_len ? hello_len : 1);
	if (!exact)
		return 1;
	memcpy(exact, stream, hello_len);
	memset(&who, 0, sizeof(who));
	if (message_get_hello(exact, hello_len, &who) == 0)
		bad = who.rank < 0 || who.size < 0 || who.pid < 0 || strlen(who.host) > MESSAGE_HOST_BYTES ||
		      strlen(who.job_id) > MESSAGE_ID_BYTES || strlen(who.node) > MESSAGE_NODE_BYTES;
	free(exact);
	return bad;
}

static int target(struct fuzz_rng *rng)
{
	struct bootstrap *b = NULL;
	int ends[SIZE], gather = fuzz_below(rng, 3) == 0, bad;

	if (fuzz_below(rng, 2))
		return try_readers(rng);
	if (make_rank(&b, (int)fuzz_below(rng, SIZE), ends)) {
		fprintf(stderr, "%s\n", error_text());
		return 1;
	}
	feed(rng, ends, gather);
	bad = gather ? try_gather(b) : try_watch(b);
	bootstrap_close(b);
	for (int i = 0; i < SIZE; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return bad;
}

int main(int argc, char **argv)
{
	int bad;

	settings = settings_new();
	if (!settings)
		return 1;
	bad = fuzz_main(argc, argv, 10000, target);
	settings_free(settings);
	return bad;
}
