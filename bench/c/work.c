/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "ops.h"

#define CALIBRATION_TURNS 200000

static void turn_round(int64_t turns)
{
	double x = 1;

	for (int64_t i = 0; i < turns; i++)
		__asm__ volatile("" : "+m"(x));
}

void work_compute(int64_t ns)
{
	static double turns_per_ns; /* by one thread: the harness computes in the main thread only */

	if (ns <= 0)
		return;
	if (turns_per_ns == 0) {
		int64_t best = INT64_MAX;

		for (int i = 0; i < 9; i++) {
			int64_t start = stage_now_ns(), took;

			turn_round(CALIBRATION_TURNS);
			took = stage_now_ns() - start;
			best = took < best ? took : best;
		}
		turns_per_ns = (double)CALIBRATION_TURNS / (double)(best > 0 ? best : 1);
	}
	turn_round((int64_t)((double)ns * turns_per_ns));
}

int64_t work_processor_ns(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000 + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

int64_t work_memory_kb(void)
{
	FILE *rollup = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long long kb = -1;

	while (rollup && fgets(line, sizeof(line), rollup)) {
		if (sscanf(line, "Pss: %lld kB", &kb) == 1)
			break;
	}
	if (rollup)
		fclose(rollup);
	return kb;
}

struct thread {
	pthread_t id;
	int number, rc;
	int (*body)(int thread, void *arg);
	void *arg;
};

static void *run_thread(void *arg)
{
	struct thread *thread = arg;

	thread->rc = thread->body(thread->number, thread->arg);
	return NULL;
}

int work_threads(int count, int (*body)(int thread, void *arg), void *arg)
{
	struct thread threads[OPS_MAX_THREADS];
	int started = 0, rc = 0;

	for (; started < count && !rc; started++) {
		threads[started] = (struct thread){.number = started, .body = body, .arg = arg};
		rc = pthread_create(&threads[started].id, NULL, run_thread, &threads[started]);
		if (rc) {
			fprintf(stderr, "bench: starting thread %d of %d: %s\n", started + 1, count, strerror(rc));
			return 1; /* the others wait for it and are ended with the process */
		}
	}
	for (int i = 0; i < started; i++) {
		pthread_join(threads[i].id, NULL);
		rc |= threads[i].rc;
	}
	return rc;
}
