/* SPDX-License-Identifier: MIT */
#include "core/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "core/background.h"
#include "core/progress.h"
#include "core/wait.h"
#include "core/waiter.h"

struct watch {
	struct watch *next;
	int fd; /* -1: removed */
	void (*fn)(void *arg);
	void *arg;
};

struct monitor {
	struct ibvx *ep;
	int epoll_fd, stop_fd;
	struct watch *watches;
	struct watch *removed; /* an event may be on its way: freed before the thread asks for more */
	pthread_t thread;
	bool running;
};

int monitor_open(struct monitor **out, struct ibvx *ep)
{
	struct monitor *m = calloc(1, sizeof(*m));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

	*out = NULL;
	if (!m)
		return error_set(-ENOMEM, "no memory for the monitor");
	m->ep = ep;
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	m->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->epoll_fd < 0 || m->stop_fd < 0 || epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, m->stop_fd, &ev) < 0) {
		int rc = error_sys(-errno, "cannot set up the monitor (limit of open files?)");

		monitor_close(m);
		return rc;
	}
	*out = m;
	return 0;
}

static void monitor_free_list(struct watch **list)
{
	while (*list) {
		struct watch *w = *list;

		*list = w->next;
		free(w);
	}
}

/* Deaths may leave work in the rings: deliver it before anybody looks. */
static void monitor_event(struct monitor *m, struct watch *w, bool last)
{
	struct ibvx *ep = m->ep;

	core_lock(ep);
	if (w->fd >= 0) {
		w->fn(w->arg);
		progress_run(ep);
		waiter_wake(ep);
		background_rest(ep);
	}
	if (last)
		monitor_free_list(&m->removed);
	core_unlock(ep);
}

static void *monitor_main(void *arg)
{
	struct monitor *m = arg;
	struct epoll_event ev[16];

	for (;;) {
		int n = epoll_wait(m->epoll_fd, ev, 16, -1);

		if (n < 0 && errno != EINTR)
			return NULL;
		for (int i = 0; i < n; i++) {
			if (!ev[i].data.ptr)
				return NULL;
			monitor_event(m, ev[i].data.ptr, i == n - 1);
		}
	}
}

int monitor_start(struct monitor *m)
{
	int rc = thread_start(&m->thread, monitor_main, m);

	m->running = rc == 0;
	return rc;
}

void monitor_stop(struct monitor *m)
{
	uint64_t one = 1;

	if (!m || !m->running)
		return;
	while (write(m->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(m->thread, NULL);
	m->running = false;
}

void monitor_close(struct monitor *m)
{
	if (!m)
		return;
	monitor_stop(m);
	if (m->epoll_fd >= 0)
		close(m->epoll_fd);
	if (m->stop_fd >= 0)
		close(m->stop_fd);
	monitor_free_list(&m->watches);
	monitor_free_list(&m->removed);
	free(m);
}

int monitor_add(void *monitor, int fd, void (*fn)(void *arg), void *arg)
{
	struct monitor *m = monitor;
	struct watch *w;
	struct epoll_event ev = {.events = EPOLLIN};

	if (!m)
		return error_set(-EINVAL, "this endpoint has no monitor");
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, "no memory for a watch");
	*w = (struct watch){.next = m->watches, .fd = fd, .fn = fn, .arg = arg};
	ev.data.ptr = w;
	if (epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(w);
		return error_sys(-errno, "cannot watch descriptor %d", fd);
	}
	m->watches = w;
	return 0;
}

void monitor_remove(void *monitor, int fd)
{
	struct monitor *m = monitor;

	if (!m)
		return;
	for (struct watch **at = &m->watches; *at;) {
		struct watch *w = *at;

		if (w->fd != fd) {
			at = &w->next;
			continue;
		}
		epoll_ctl(m->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		*at = w->next;
		w->fd = -1;
		w->next = m->removed;
		m->removed = w;
	}
}

void monitor_unlock(void *monitor)
{
	struct monitor *m = monitor;

	if (m)
		core_unlock(m->ep);
}

void monitor_lock(void *monitor)
{
	struct monitor *m = monitor;

	if (m)
		core_lock(m->ep);
}
