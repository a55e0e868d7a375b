/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SPINS_BEFORE_YIELD 20000
#define DOZE_NS 100000
#define NAP_NS 20000000
#define BALL_OVER UINT64_MAX

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

int64_t stage_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int map(struct stage *stage, int fd)
{
	void *at = mmap(NULL, sizeof(struct stage_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		fprintf(stderr, "bench: cannot map the stage: %s\n", strerror(errno));
		return -1;
	}
	stage->board = at;
	if (stage->rank < 2)
		stage->board->cpu[stage->rank] = stage_pinned_cpu();
	return 0;
}

int stage_create(struct stage *stage, int size, char path[STAGE_PATH_BYTES])
{
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	int fd, rc = -1;

	*stage = (struct stage){.size = size};
	snprintf(path, STAGE_PATH_BYTES, "%s/ibvx-bench-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, sizeof(struct stage_board)) < 0)
		fprintf(stderr, "bench: cannot create the stage in %s: %s\n", folder, strerror(errno));
	else
		rc = map(stage, fd);
	if (fd >= 0)
		close(fd);
	return rc;
}

int stage_attach(struct stage *stage, int rank, int size, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), rc;

	*stage = (struct stage){.rank = rank, .size = size};
	if (fd < 0) {
		fprintf(stderr, "bench: cannot open the stage %s: %s (all ranks must run on one machine)\n", path, strerror(errno));
		return -1;
	}
	rc = map(stage, fd);
	close(fd);
	return rc;
}

void stage_unlink(const char *path)
{
	unlink(path);
}

static void await_count(_Atomic uint64_t *count, uint64_t wanted)
{
	for (int spins = 0; atomic_load_explicit(count, memory_order_acquire) < wanted;) {
		if (++spins < SPINS_BEFORE_YIELD)
			relax();
		else
			sched_yield();
	}
}

void stage_gather(struct stage *stage)
{
	atomic_fetch_add(&stage->board->arrived, 1);
	stage->gathered++;
	/* More ranks than processors: those that are not here yet want this one. */
	while (atomic_load(&stage->board->arrived) < stage->gathered * (uint64_t)stage->size)
		sched_yield();
}

void stage_await_done(struct stage *stage)
{
	await_count(&stage->board->done, stage->turn * (uint64_t)(stage->size - 1));
}

void stage_send(struct stage *stage, const struct stage_command *command)
{
	stage_await_done(stage);
	stage->board->command = *command;
	atomic_store_explicit(&stage->board->turn, ++stage->turn, memory_order_release);
}

struct stage_command stage_hear(struct stage *stage)
{
	static const struct timespec doze = {.tv_nsec = DOZE_NS};
	int spins = 0;

	while (atomic_load_explicit(&stage->board->turn, memory_order_acquire) == stage->turn) {
		if (stage->rank > 1)
			nanosleep(&doze, NULL); /* leaves the processor to ranks 0 and 1 and their probe */
		else if (++spins < SPINS_BEFORE_YIELD)
			relax();
		else
			sched_yield();
	}
	stage->turn++;
	return stage->board->command;
}

void stage_done(struct stage *stage)
{
	atomic_fetch_add(&stage->board->done, 1);
}

void stage_add(struct stage *stage, int64_t value)
{
	atomic_fetch_add(&stage->board->sum, value);
}

int64_t stage_take_sum(struct stage *stage)
{
	return atomic_exchange(&stage->board->sum, 0);
}

static uint64_t catch_ball(struct stage_board *board, uint64_t expected)
{
	uint64_t ball;
	int spins = 0;

	while ((ball = atomic_load_explicit(&board->ball, memory_order_acquire)) != expected && ball != BALL_OVER) {
		if (++spins > SPINS_BEFORE_YIELD)
			sched_yield();
	}
	return ball;
}

double stage_probe(struct stage *stage, int64_t duration_ns)
{
	struct stage_board *board = stage->board;
	int64_t start = stage_now_ns(), now = start;
	uint64_t throws = 0, first = 0;

	while (now - start < duration_ns) {
		for (int i = 0; i < 64; i++) {
			atomic_store_explicit(&board->ball, 2 * throws + 1, memory_order_release);
			catch_ball(board, 2 * throws + 2);
			throws++;
		}
		now = stage_now_ns();
		/* The first round includes the other rank's arrival. */
		if (!first) {
			first = throws;
			start = now;
		}
	}
	/* The other rank lays it down, or it might miss the end in the next probe's beginning. */
	atomic_store_explicit(&board->ball, BALL_OVER, memory_order_release);
	while (atomic_load_explicit(&board->ball, memory_order_acquire) == BALL_OVER)
		sched_yield();
	return throws > first ? (double)(now - start) / (double)(throws - first) / 2 : 0;
}

void stage_follow(struct stage *stage)
{
	struct stage_board *board = stage->board;

	for (uint64_t throws = 0; catch_ball(board, 2 * throws + 1) != BALL_OVER; throws++)
		atomic_store_explicit(&board->ball, 2 * throws + 2, memory_order_release);
	atomic_store_explicit(&board->ball, 0, memory_order_release);
}

void stage_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

void stage_pin(int rank)
{
	cpu_set_t allowed, one;
	int nth = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	rank %= CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || nth++ != rank)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

int stage_pinned_cpu(void)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0 || CPU_COUNT(&allowed) != 1)
		return -1;
	return sched_getcpu();
}
