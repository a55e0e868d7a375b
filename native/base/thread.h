/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_THREAD_H
#define IBVX_BASE_THREAD_H
/* thread: starting the library's own threads. */
#include <pthread.h>

/* The thread takes no signals: they go to the embedding program's own threads. 0 or -errno with text. */
int thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

#endif
