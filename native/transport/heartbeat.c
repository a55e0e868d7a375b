/* SPDX-License-Identifier: MIT */
#include "transport/heartbeat.h"

#include <errno.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"

#define HEARTBEAT_PERIOD_MS 250
#define HEARTBEAT_TICKS 8 /* in a timeout, at least */

int64_t heartbeat_period_ms(int64_t timeout_ms)
{
	int64_t period = timeout_ms / HEARTBEAT_TICKS;

	if (timeout_ms == 0 || period > HEARTBEAT_PERIOD_MS)
		return HEARTBEAT_PERIOD_MS;
	return period > 0 ? period : 1;
}

int heartbeat_open(struct heartbeat *h, const struct transport_watch *watch, int64_t timeout_ms, void (*tick)(void *arg), void *arg)
{
	int64_t period = heartbeat_period_ms(timeout_ms);

	h->watch = watch;
	h->ticks_until_lost = (unsigned)((timeout_ms + period - 1) / period);
	h->ticks_until_beat = h->ticks_until_lost / 4;
	h->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (h->fd < 0)
		return error_sys(-errno, "timerfd_create");
	return watch->add(watch->monitor, h->fd, tick, arg);
}

void heartbeat_close(struct heartbeat *h)
{
	if (h->fd < 0)
		return;
	h->watch->remove(h->watch->monitor, h->fd);
	close(h->fd);
	h->fd = -1;
}

int heartbeat_start(struct heartbeat *h, int64_t timeout_ms)
{
	int64_t period = heartbeat_period_ms(timeout_ms);
	struct timespec ts = {period / 1000, period % 1000 * 1000000};
	struct itimerspec every = {ts, ts};

	return timerfd_settime(h->fd, 0, &every, NULL) < 0 ? error_sys(-errno, "timerfd_settime") : 0;
}

void heartbeat_begin(struct heartbeat *h)
{
	uint64_t n;

	while (read(h->fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

enum heartbeat_verdict heartbeat_look(const struct heartbeat *h, struct heartbeat_peer *p)
{
	p->silent = p->heard ? 0 : p->silent + 1;
	p->idle = p->sent ? 0 : p->idle + 1;
	p->heard = p->sent = false;
	if (h->ticks_until_lost == 0)
		return HEARTBEAT_FINE;
	if (p->silent >= h->ticks_until_lost)
		return HEARTBEAT_LOST;
	return p->idle >= h->ticks_until_beat ? HEARTBEAT_SEND : HEARTBEAT_FINE;
}
