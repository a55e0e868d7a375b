/* SPDX-License-Identifier: MIT */
/*
 * bench_floor: what no message layer can beat here, measured as bench_ibvx measures.
 *
 *   cacheline  a cache line there and back, half
 *   memcpy     one copy within one process
 *   ring       two copies through a shared ring: no matching, no queues, no locks
 *   cma        the receiver reads the sender's memory by process_vm_readv
 *   socket     TCP over loopback, both ranks polling: for the transports over TCP
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "couple.h"
#include "harness.h"

#define RING_SLOTS 16u
#define RETURN_EVERY 4u
#define CHUNK_BYTES 16384u
#define INLINE_BYTES 48u
#define SPINS_BEFORE_YIELD 20000

/* Flag, length and a small payload in one cache line; larger pieces behind it. */
struct slot {
	_Alignas(64) _Atomic uint64_t full; /* the number of the piece in it, from 1 */
	uint64_t bytes;
	char small[INLINE_BYTES];
	_Alignas(64) char chunk[CHUNK_BYTES];
};

struct pipe_memory { /* one direction */
	struct slot slots[RING_SLOTS];
	_Alignas(STAGE_LINE_BYTES) _Atomic uint64_t freed; /* pieces that the receiver has done with, returned late */
	_Alignas(STAGE_LINE_BYTES) const void *address;    /* cma: where the message is */
	_Atomic uint64_t offered, taken;
};

struct pair {
	struct layer layer;
	struct pipe_memory *pipes; /* [0]: from rank 0 */
	uint64_t sent, received;   /* pieces */
	uint64_t freed;            /* what the sender last saw */
	uint64_t throws;           /* of the cache line */
	pid_t *pids;               /* shared: of the ranks */
	int fd;                    /* socket: to the other rank */
};

static void await(_Atomic uint64_t *word, uint64_t value)
{
	int spins = 0;

	while (atomic_load_explicit(word, memory_order_acquire) != value) {
		if (++spins > SPINS_BEFORE_YIELD)
			sched_yield();
	}
}

static void ring_send(struct pair *pair, const char *from, size_t bytes)
{
	struct pipe_memory *pipe = &pair->pipes[pair->layer.rank];
	size_t done = 0;

	do {
		struct slot *slot = &pipe->slots[pair->sent % RING_SLOTS];
		size_t piece = bytes - done > CHUNK_BYTES ? CHUNK_BYTES : bytes - done;

		while (pair->sent - pair->freed >= RING_SLOTS)
			pair->freed = atomic_load_explicit(&pipe->freed, memory_order_acquire);
		slot->bytes = piece;
		memcpy(piece <= INLINE_BYTES ? slot->small : slot->chunk, from + done, piece);
		atomic_store_explicit(&slot->full, ++pair->sent, memory_order_release);
		done += piece;
	} while (done < bytes);
}

static void ring_receive(struct pair *pair, char *to, size_t bytes)
{
	struct pipe_memory *pipe = &pair->pipes[1 - pair->layer.rank];
	size_t done = 0;

	do {
		struct slot *slot = &pipe->slots[pair->received % RING_SLOTS];
		size_t piece;

		await(&slot->full, ++pair->received);
		piece = slot->bytes;
		memcpy(to + done, piece <= INLINE_BYTES ? slot->small : slot->chunk, piece);
		if (pair->received % RETURN_EVERY == 0)
			atomic_store_explicit(&pipe->freed, pair->received, memory_order_release);
		done += piece;
	} while (done < bytes);
}

static int ring_pingpong(struct layer *layer, const struct stage_command *command)
{
	struct pair *pair = (struct pair *)layer;

	for (int64_t i = 0; i < command->iterations; i++) {
		if (layer->rank == 0)
			ring_send(pair, layer->out, command->bytes);
		ring_receive(pair, layer->in, command->bytes);
		if (layer->rank == 1)
			ring_send(pair, layer->out, command->bytes);
	}
	return 0;
}

static int cma_send(struct pair *pair, const char *from)
{
	struct pipe_memory *pipe = &pair->pipes[pair->layer.rank];

	pipe->address = from;
	atomic_store_explicit(&pipe->offered, ++pair->sent, memory_order_release);
	await(&pipe->taken, pair->sent);
	return 0;
}

static int cma_receive(struct pair *pair, char *to, size_t bytes)
{
	struct pipe_memory *pipe = &pair->pipes[1 - pair->layer.rank];
	struct iovec here = {.iov_base = to, .iov_len = bytes}, there = {.iov_len = bytes};

	await(&pipe->offered, ++pair->received);
	memcpy(&there.iov_base, &pipe->address, sizeof(there.iov_base));
	if (bytes && process_vm_readv(pair->pids[1 - pair->layer.rank], &here, 1, &there, 1, 0) != (ssize_t)bytes) {
		fprintf(stderr, "bench_floor: process_vm_readv: %s\n", strerror(errno));
		return 1;
	}
	atomic_store_explicit(&pipe->taken, pair->received, memory_order_release);
	return 0;
}

static int cma_pingpong(struct layer *layer, const struct stage_command *command)
{
	struct pair *pair = (struct pair *)layer;
	int rc = 0;

	for (int64_t i = 0; i < command->iterations && !rc; i++) {
		if (layer->rank == 0)
			cma_send(pair, layer->out);
		rc = cma_receive(pair, layer->in, command->bytes);
		if (layer->rank == 1 && !rc)
			cma_send(pair, layer->out);
	}
	return rc;
}

/* Both ranks copy at the same time, as both do in a two-copy transfer; an iteration counts as two copies. */
static int copy_pingpong(struct layer *layer, const struct stage_command *command)
{
	for (int64_t i = 0; i < 2 * command->iterations; i++) {
		memcpy(layer->in, layer->out, command->bytes);
		__asm__ volatile("" : : "r"(layer->in) : "memory");
	}
	return 0;
}

static int line_pingpong(struct layer *layer, const struct stage_command *command)
{
	struct pair *pair = (struct pair *)layer;
	_Atomic uint64_t *ball = &pair->pipes[0].offered; /* odd: thrown by rank 0 */

	for (int64_t i = 0; i < command->iterations; i++, pair->throws += 2) {
		if (layer->rank == 0) {
			atomic_store_explicit(ball, pair->throws + 1, memory_order_release);
			await(ball, pair->throws + 2);
		} else {
			await(ball, pair->throws + 1);
			atomic_store_explicit(ball, pair->throws + 2, memory_order_release);
		}
	}
	return 0;
}

static int socket_transfer(struct pair *pair, char *memory, size_t bytes, bool sends)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = sends ? send(pair->fd, memory + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL)
				  : recv(pair->fd, memory + done, bytes - done, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			fprintf(stderr, "bench_floor: %s: %s\n", sends ? "send" : "recv", n ? strerror(errno) : "the other rank has ended");
			return 1;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int socket_pingpong(struct layer *layer, const struct stage_command *command)
{
	struct pair *pair = (struct pair *)layer;
	int rc = 0;

	for (int64_t i = 0; i < command->iterations && !rc; i++) {
		if (layer->rank == 0)
			rc = socket_transfer(pair, layer->out, command->bytes, true);
		if (!rc)
			rc = socket_transfer(pair, layer->in, command->bytes, false);
		if (layer->rank == 1 && !rc)
			rc = socket_transfer(pair, layer->out, command->bytes, true);
	}
	return rc;
}

static int socket_stream(struct layer *layer, const struct stage_command *command)
{
	struct pair *pair = (struct pair *)layer;
	bool sends = layer->rank == 0;
	char answer = 0;
	int rc = 0;

	for (int64_t i = 0; i < command->iterations && !rc; i++) {
		for (int k = 0; k < command->param && !rc; k++)
			rc = socket_transfer(pair, harness_slot(sends ? layer->out : layer->in, command, k), command->bytes, sends);
		if (!rc)
			rc = socket_transfer(pair, &answer, 1, !sends);
	}
	return rc;
}

/* The two ends of one connection. */
static int socket_connect(int fd[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t length = sizeof(address);
	bool ok = listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0 &&
		  getsockname(listener, (struct sockaddr *)&address, &length) == 0;

	fd[0] = ok ? socket(AF_INET, SOCK_STREAM, 0) : -1;
	ok = fd[0] >= 0 && connect(fd[0], (struct sockaddr *)&address, length) == 0;
	fd[1] = ok ? accept(listener, NULL, NULL) : -1;
	for (int i = 0; fd[1] >= 0 && i < 2; i++)
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fd[1] < 0)
		fprintf(stderr, "bench_floor: a TCP connection over loopback: %s\n", strerror(errno));
	if (listener >= 0)
		close(listener);
	return fd[1] < 0;
}

static int broadcast(struct layer *layer, char *text, size_t bytes)
{
	if (layer->rank == 0)
		ring_send((struct pair *)layer, text, bytes);
	else
		ring_receive((struct pair *)layer, text, bytes);
	return 0;
}

static const struct floor {
	const char *name;
	layer_op *pingpong, *stream;
} floors[] = {{"cacheline", line_pingpong, NULL},
	      {"memcpy", copy_pingpong, NULL},
	      {"ring", ring_pingpong, NULL},
	      {"cma", cma_pingpong, NULL},
	      {"socket", socket_pingpong, socket_stream}};

struct run {
	const struct floor *floor;
	void *memory;
	int fd[2];
	const struct options *options;
};

static int run_rank(int rank, void *arg)
{
	struct run *run = arg;
	struct pair pair = {
		.layer = {.tool = "floor",
			  .level = "c",
			  .device = run->floor->name,
			  .rank = rank,
			  .size = 2,
			  .ops[STAGE_LATENCY] = run->floor->pingpong,
			  .ops[STAGE_BANDWIDTH] = run->floor->stream,
			  .broadcast = broadcast},
		.pipes = run->memory,
		.pids = (pid_t *)((struct pipe_memory *)run->memory + 2),
		.fd = run->fd[rank],
	};

	stage_pin(rank);
	pair.pids[rank] = getpid();
	/* As the ranks of a job are no relatives, so would these not be allowed without it. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	return harness_run(&pair.layer, run->options);
}

static int run_floor(const struct floor *floor, const struct options *options)
{
	size_t bytes = 2 * sizeof(struct pipe_memory) + 4096;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run run = {.floor = floor, .memory = memory, .options = options, .fd = {-1, -1}};
	int rc = 0;

	if (memory == MAP_FAILED) {
		fprintf(stderr, "bench_floor: no memory: %s\n", strerror(errno));
		return 1;
	}
	if (floor->stream)
		rc = socket_connect(run.fd);
	if (!rc)
		rc = couple_run(run_rank, &run);
	for (int i = 0; i < 2; i++) {
		if (run.fd[i] >= 0)
			close(run.fd[i]);
	}
	munmap(memory, bytes);
	return rc;
}

static int usage(FILE *to)
{
	fprintf(to,
		"usage: bench_floor [options]\n"
		"%s"
		"      --only NAME        cacheline, memcpy, ring, cma or socket (default: all)\n",
		harness_usage);
	return to == stderr ? 2 : 0;
}

int main(int argc, char **argv)
{
	enum { OPT_ONLY = 512 };
	static const struct option more[] = {
		{"only", required_argument, NULL, OPT_ONLY}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *only = NULL;
	struct options options, one;
	int c, rc = 0, found = 0;

	harness_defaults(&options);
	while ((c = getopt_long(argc, argv, HARNESS_OPTIONS "h", harness_join(more), NULL)) != -1) {
		if (c == 'h')
			return usage(stdout);
		if (c == OPT_ONLY)
			only = optarg;
		else if (harness_option(&options, c, optarg))
			return usage(stderr);
	}
	for (size_t i = 0; i < sizeof(floors) / sizeof(floors[0]); i++) {
		if (only && strcmp(only, floors[i].name))
			continue;
		found++;
		one = options;
		one.no_heading = found > 1;
		if (floors[i].pingpong == line_pingpong) {
			one.plan_count = ops_parse("latency=8", one.plans);
		}
		/* A kernel that refuses cma takes nothing from the others. */
		if (run_floor(&floors[i], &one) && floors[i].pingpong != cma_pingpong)
			rc = 1;
	}
	return optind < argc || !found ? usage(stderr) : rc;
}
