/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_DESCRIPTORS_H
#define IBVX_BOOTSTRAP_DESCRIPTORS_H
/*
 * descriptors: waiting for file descriptors, and what to do when none is left.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* poll(2) that survives signals: >= 0 (0 also after a signal) or -errno with text. */
int descriptors_poll(struct pollfd *fds, int count, int64_t deadline);

/* Raises the soft limit of open files to the hard one.  True: it was lower. */
bool descriptors_raise(void);

/* Sets the error for a process without free descriptors that wants `more` of them: the limit, the need, the
 * remedy.  -EMFILE. */
int descriptors_none(const char *what, int more);

#endif
