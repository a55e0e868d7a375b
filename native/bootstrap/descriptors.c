/* SPDX-License-Identifier: MIT */
#include "bootstrap/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/error.h"
#include "bootstrap/deadline.h"

#define DESCRIPTORS_SCAN 65536

int descriptors_poll(struct pollfd *fds, int count, int64_t deadline)
{
	int n = poll(fds, (nfds_t)count, deadline_left_ms(deadline));

	if (n >= 0)
		return n;
	for (int i = 0; i < count; i++)
		fds[i].revents = 0;
	return errno == EINTR || errno == EAGAIN ? 0 : error_sys(-errno, "waiting for the other ranks");
}

bool descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int descriptors_none(const char *what, int more)
{
	struct rlimit limit;
	int open_count = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return error_sys(-EMFILE, "%s", what);
	for (int fd = 0; fd < DESCRIPTORS_SCAN && (rlim_t)fd < limit.rlim_cur; fd++)
		open_count += fcntl(fd, F_GETFD) >= 0;
	return error_set(-EMFILE,
			 "%s: this process has no file descriptor left: its limit RLIMIT_NOFILE is %llu, it needs "
			 "at least %d; raise it (ulimit -n)",
			 what, (unsigned long long)limit.rlim_cur, open_count + more);
}
