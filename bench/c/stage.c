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

static struct stage *map(int fd)
{
	void *at = mmap(NULL, sizeof(struct stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		fprintf(stderr, "bench: cannot map the stage: %s\n", strerror(errno));
		return NULL;
	}
	return at;
}

struct stage *stage_create(char path[STAGE_PATH_BYTES])
{
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct stage *stage = NULL;
	int fd;

	snprintf(path, STAGE_PATH_BYTES, "%s/ibvx-bench-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, sizeof(struct stage)) < 0)
		fprintf(stderr, "bench: cannot create the stage in %s: %s\n", folder, strerror(errno));
	else
		stage = map(fd);
	if (fd >= 0)
		close(fd);
	return stage;
}

struct stage *stage_attach(const char *path)
{
	struct stage *stage = NULL;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "bench: cannot open the stage %s: %s (both ranks must run on one machine)\n", path,
			strerror(errno));
		return NULL;
	}
	stage = map(fd);
	close(fd);
	return stage;
}

void stage_unlink(const char *path)
{
	unlink(path);
}

void stage_meet(struct stage *stage, int rank)
{
	stage->cpu[rank] = stage_pinned_cpu();
	if (rank == 1)
		atomic_store_explicit(&stage->met, true, memory_order_release);
	while (!atomic_load_explicit(&stage->met, memory_order_acquire))
		sched_yield();
}

void stage_say(struct stage *stage, const struct stage_command *command)
{
	uint64_t turn = atomic_load_explicit(&stage->turn, memory_order_relaxed);

	stage->command = *command;
	atomic_store_explicit(&stage->turn, turn + 1, memory_order_release);
}

struct stage_command stage_hear(struct stage *stage, uint64_t *turn)
{
	int spins = 0;

	while (atomic_load_explicit(&stage->turn, memory_order_acquire) == *turn) {
		if (++spins < SPINS_BEFORE_YIELD)
			relax();
		else
			sched_yield();
	}
	(*turn)++;
	return stage->command;
}

static uint64_t catch_ball(struct stage *stage, uint64_t expected)
{
	uint64_t ball;
	int spins = 0;

	while ((ball = atomic_load_explicit(&stage->ball, memory_order_acquire)) != expected && ball != BALL_OVER) {
		if (++spins > SPINS_BEFORE_YIELD)
			sched_yield();
	}
	return ball;
}

double stage_probe(struct stage *stage, int64_t duration_ns)
{
	int64_t start = stage_now_ns(), now = start;
	uint64_t throws = 0, first = 0;

	while (now - start < duration_ns) {
		for (int i = 0; i < 64; i++) {
			atomic_store_explicit(&stage->ball, 2 * throws + 1, memory_order_release);
			catch_ball(stage, 2 * throws + 2);
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
	atomic_store_explicit(&stage->ball, BALL_OVER, memory_order_release);
	while (atomic_load_explicit(&stage->ball, memory_order_acquire) == BALL_OVER)
		sched_yield();
	return throws > first ? (double)(now - start) / (double)(throws - first) / 2 : 0;
}

void stage_follow(struct stage *stage)
{
	for (uint64_t throws = 0; catch_ball(stage, 2 * throws + 1) != BALL_OVER; throws++)
		atomic_store_explicit(&stage->ball, 2 * throws + 2, memory_order_release);
	atomic_store_explicit(&stage->ball, 0, memory_order_release);
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
