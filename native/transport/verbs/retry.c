/* SPDX-License-Identifier: MIT */
#include "transport/verbs/retry.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* The first wait, on average, and how often it doubles.  Ends of waits that are closer together than the step share one timer. */
#define RETRY_FIRST_NS (20 * CLOCK_NS_PER_MS)
#define RETRY_DOUBLINGS 6u
#define RETRY_STEP_NS (5 * CLOCK_NS_PER_MS)

static const unsigned retry_most[RETRY_REASONS] = {[RETRY_BUSY] = 8, [RETRY_SILENT] = 3};

static void retry_start_timer(const struct verbs *v, int64_t ns)
{
	struct itimerspec t = {.it_value = {.tv_sec = ns / CLOCK_NS_PER_S, .tv_nsec = ns % CLOCK_NS_PER_S}};

	if (timerfd_settime(v->retry_fd, TFD_TIMER_ABSTIME, &t, NULL) < 0)
		log_warn(v->env.log, "verbs: timerfd_settime: %s", strerror(errno));
}

/* Half of the mean wait to one and a half: by the ranks, which differ where their attempts have failed together. */
static int64_t retry_wait_ns(const struct verbs_peer *p, unsigned count)
{
	uint64_t x = ((uint64_t)p->verbs->env.rank << 40) + ((uint64_t)p->rank << 8) + count;
	int64_t mean = RETRY_FIRST_NS << (count - 1 < RETRY_DOUBLINGS ? count - 1 : RETRY_DOUBLINGS);

	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
	return mean / 2 + (int64_t)(x >> 32) * mean / UINT32_MAX;
}

bool retry_later(struct verbs_conn *c, enum retry_reason why)
{
	struct verbs_peer *p = c->peer;
	struct verbs *v = c->verbs;
	unsigned count = 1;

	if (p->retries[why] == retry_most[why])
		return false;
	p->retries[why]++;
	for (int i = 0; i < RETRY_REASONS; i++)
		count += p->retries[i];
	p->unanswered |= why == RETRY_SILENT && p->state == PEER_CONNECTING;
	p->retry_ns = clock_now_ns() + retry_wait_ns(p, count - 1);
	if (p->state != PEER_RESOLVING)
		peer_set_state(p, PEER_RESOLVING);
	log_debug(v->env.log, "verbs: rank %d %s: attempt %u to connect follows", p->rank,
		  why == RETRY_BUSY ? "is busy" : "does not answer", count);
	if (v->retry_ns == 0 || p->retry_ns < v->retry_ns) {
		v->retry_ns = p->retry_ns;
		retry_start_timer(v, v->retry_ns);
	}
	connection_close(c);
	return true;
}

static void retry_on_timer(void *verbs)
{
	struct verbs *v = verbs;
	int64_t now = clock_now_ns(), next = 0;
	uint64_t n;

	if (read(v->retry_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_warn(v->env.log, "verbs: timerfd: %s", strerror(errno));
	for (int r = 0; r < v->env.size; r++) {
		struct verbs_peer *p = &v->peers[r];

		if (p->state != PEER_RESOLVING || p->conn || p->retry_ns == 0)
			continue;
		if (p->retry_ns <= now)
			peer_request(p);
		else if (next == 0 || p->retry_ns < next)
			next = p->retry_ns;
	}
	v->retry_ns = next && next < now + RETRY_STEP_NS ? now + RETRY_STEP_NS : next;
	if (next)
		retry_start_timer(v, v->retry_ns);
}

int retry_open(struct verbs *v)
{
	v->retry_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (v->retry_fd < 0)
		return error_sys(-errno, "timerfd_create");
	return v->env.watch.add(v->env.watch.monitor, v->retry_fd, retry_on_timer, v);
}

void retry_close(struct verbs *v)
{
	if (v->retry_fd < 0)
		return;
	v->env.watch.remove(v->env.watch.monitor, v->retry_fd);
	close(v->retry_fd);
	v->retry_fd = -1;
}
