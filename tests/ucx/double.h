/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UCX_DOUBLE_H
#define TESTS_UCX_DOUBLE_H
/*
 * double: every call of libucp.so.0 that the transport makes, around workers in memory.
 *
 * A packet that is sent lies in its receiver's queue until that worker makes progress.  A test can make any call that creates
 * something fail, let packets overtake each other, keep completions back, and end endpoints.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/ucx/ucx_abi.h"

extern const struct ucx_library double_library;

struct double_faults {
	int fail_call;        /* the n-th call from now that creates something fails; 0: none */
	int calls;            /* such calls so far */
	const char *failed;   /* the one that failed */
	bool shuffle;         /* packets arrive in any order */
	bool hold;            /* sends complete at double_release() */
	bool lose;            /* sends vanish, as into a dead host */
	ucx_status send;      /* sends fail with it */
	bool busy;            /* worker_arm() reports news */
	bool slow_close;      /* closing an endpoint takes a turn of progress */
};
extern struct double_faults double_faults;
/* The core's lock is held: a call that may take its time ends the program. */
extern bool double_locked;
/* Sends so far. */
extern unsigned double_sends;

/* Forgets the faults; everything must be gone. */
void double_reset(void);
/* Objects and requests that exist. */
int double_live(void);
/* Held sends complete, the last first. */
void double_release(void);
/* All endpoints to this worker report the status. */
void double_fail(int worker, ucx_status status);
/* A packet from nowhere arrives at the worker. */
void double_inject(int worker, const void *header, size_t header_bytes, const void *data, size_t bytes, uint64_t attr);

#endif
