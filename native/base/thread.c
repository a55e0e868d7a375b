/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>

#include "base/error.h"

int thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? error_sys(-rc, "cannot start a thread (limits: ulimit -u, ulimit -v)") : 0;
}
