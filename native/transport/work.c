/* SPDX-License-Identifier: MIT */
#include "transport/work.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

int work_open(struct work *w, const struct transport_watch *watch, void (*handler)(void *arg), void *arg)
{
	w->watch = watch;
	w->single = true;
	w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->fd < 0)
		return error_sys(-errno, "eventfd");
	return watch->add(watch->monitor, w->fd, handler, arg);
}

void work_close(struct work *w)
{
	if (w->fd < 0)
		return;
	w->watch->remove(w->watch->monitor, w->fd);
	close(w->fd);
	w->fd = -1;
}

void work_signal(struct work *w)
{
	uint64_t one = 1;

	while (!w->single && write(w->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void work_begin(struct work *w)
{
	uint64_t n;

	while (read(w->fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

void work_unlock(struct work *w)
{
	if (!w->single)
		w->watch->unlock(w->watch->monitor);
}

void work_lock(struct work *w)
{
	int err = errno;

	if (!w->single)
		w->watch->lock(w->watch->monitor);
	errno = err;
}
