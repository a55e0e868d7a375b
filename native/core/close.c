/* SPDX-License-Identifier: MIT */
/* ibvx_close and ibvx_abort (PROTOCOL.md section 6), and the small questions of ibvx.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/complete.h"
#include "core/core.h"
#include "core/lifecycle.h"
#include "core/match.h"
#include "core/peer.h"
#include "core/progress.h"
#include "core/receive.h"
#include "core/wait.h"
#include "core/waiter.h"

/* How long the goodbyes may take once everything else has gone out. */
#define CLOSE_BYE_NS (2 * CLOCK_NS_PER_S)
#define CLOSE_LISTED 4
/* How often an abort looks whether the threads inside have left, a millisecond apart. */
#define CLOSE_ABORT_LOOKS 2000
/* How often in a row it must find nobody inside, and how long it looks each time. */
#define CLOSE_DESERTED 2
#define CLOSE_HOLD_NS (100 * CLOCK_NS_PER_US)

static bool close_pending(const struct request *r)
{
	return r->state != REQ_DONE && r->state != REQ_MESSAGE;
}

static void close_list(char *text, size_t size, const struct request *r)
{
	size_t at = strlen(text);
	char source[24] = "any rank", tag[24] = "any";

	if (r->source != IBVX_ANY_SOURCE)
		snprintf(source, sizeof(source), "rank %d", r->source);
	if (r->tag != IBVX_ANY_TAG)
		snprintf(tag, sizeof(tag), "%d", r->tag);
	snprintf(text + at, size - at, "%s%s %s %s (tag %s, context %d, %s)", at ? ", " : "", r->kind == REQ_SEND ? "send" : "receive",
		 r->kind == REQ_SEND ? "to" : "from", source, tag, r->context, request_state_name(r->state));
}

/* Close cannot flush these: what would complete them is up to somebody else. */
static bool close_refuses(const struct request *r)
{
	return r->state == REQ_POSTED || (r->kind == REQ_SEND && r->sync && !r->detached);
}

/* Lists pending requests in text; how many there are. refusing_only: just those that forbid to close. */
static int close_count(struct ibvx *ep, bool refusing_only, char *text, size_t size)
{
	int n = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < ep->requests.chunk_count * REQUEST_CHUNK; i++) {
		struct request *r = request_at(&ep->requests, i);

		if (!r || !close_pending(r) || (refusing_only && !close_refuses(r)))
			continue;
		if (n++ < CLOSE_LISTED)
			close_list(text, size, r);
	}
	if (n > CLOSE_LISTED)
		strncat(text, ", ...", size - strlen(text) - 1);
	return n;
}

/* Nobody holds a handle of these any more. */
static void close_cancel_detached(struct ibvx *ep)
{
	for (uint32_t i = 0; i < ep->requests.chunk_count * REQUEST_CHUNK; i++) {
		struct request *r = request_at(&ep->requests, i);

		if (!r || !r->detached || r->completion || r->state != REQ_POSTED)
			continue;
		match_unpost(ep, r);
		complete_request(ep, r, -ECANCELED);
	}
}

static bool close_drained(struct ibvx *ep, void *arg)
{
	(void)arg;
	for (int r = 0; r < ep->size; r++) {
		if (ep->peers[r].state == PEER_OPEN && !peer_idle(&ep->peers[r]))
			return false;
	}
	for (uint32_t i = 0; i < ep->requests.chunk_count * REQUEST_CHUNK; i++) {
		const struct request *r = request_at(&ep->requests, i);

		if (r && (close_pending(r) || r->pending_control))
			return false;
	}
	for (int i = 0; i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		if (t->ops->drained && !t->ops->drained(t))
			return false;
	}
	return true;
}

static bool close_bye_sent(struct ibvx *ep, void *arg)
{
	(void)arg;
	for (int r = 0; r < ep->size; r++) {
		if (ep->peers[r].state == PEER_OPEN && ep->peers[r].pending_bye)
			return false;
	}
	return close_drained(ep, NULL);
}

/* Everything that was accepted goes out. Lock held. */
static int close_drain(struct ibvx *ep)
{
	char text[512];
	struct waiter w = {.wants_any = true};
	int rc, n;

	close_cancel_detached(ep);
	n = close_count(ep, true, text, sizeof(text));
	if (n > 0)
		return error_set(-EBUSY,
				 "rank %d finishes with %d receives or synchronous sends pending: %s: complete or cancel them first",
				 ep->rank, n, text);
	n = ep->users + ep->area_users;
	if (n > 0)
		return error_set(-EBUSY, "rank %d finishes while %d of its threads are inside operations: let them return first", ep->rank,
				 n);
	rc = wait_until(ep, &w, close_drained, NULL, settings_int(ep->settings, SETTING_FINISH_TIMEOUT_MS) * CLOCK_NS_PER_MS);
	if (rc != -ETIMEDOUT)
		return rc;
	n = close_count(ep, false, text, sizeof(text));
	return error_set(rc, "rank %d could not finish within %lld ms (setting finish_timeout_ms): %d operations are pending: %s", ep->rank,
			 (long long)settings_int(ep->settings, SETTING_FINISH_TIMEOUT_MS), n, text);
}

static void close_send_bye(struct ibvx *ep)
{
	struct waiter w = {.wants_any = true};

	for (int r = 0; r < ep->size; r++) {
		struct peer *p = &ep->peers[r];

		if (p->state != PEER_OPEN || !p->talked || r == ep->rank)
			continue;
		p->pending_bye = true;
		peer_flush(p);
	}
	/* past the first BYE there is no way back: a rank that cannot take it learns from the control tree */
	if (wait_until(ep, &w, close_bye_sent, NULL, CLOSE_BYE_NS) == -ETIMEDOUT)
		log_info(&ep->log, "some ranks were too busy for a goodbye");
	for (int i = 0; i < ep->transport_count; i++) {
		if (ep->transports[i]->ops->leave)
			ep->transports[i]->ops->leave(ep->transports[i]);
	}
	life_leave(ep);
}

static void close_print_counters(struct ibvx *ep)
{
	struct ibvx_counter c[64];

	for (int r = -1; r < ep->size; r++) {
		char line[1600] = "";
		size_t at = 0;
		int n = ibvx_counters(ep, r, c, 64);

		if (r >= 0 && !ep->peers[r].talked)
			continue;
		for (int i = 0; i < n && i < 64 && at < sizeof(line); i++)
			at += (size_t)snprintf(line + at, sizeof(line) - at, " %s=%llu", c[i].name, (unsigned long long)c[i].value);
		if (r < 0)
			log_write(&ep->log, LOG_OFF, "counters:%s", line);
		else
			log_write(&ep->log, LOG_OFF, "counters of rank %d:%s", r, line);
	}
}

int ibvx_close(struct ibvx *ep)
{
	int rc;

	if (!ep)
		return 0;
	core_lock(ep);
	if (ep->closing) {
		core_unlock(ep);
		return error_set(-ESHUTDOWN, "another thread is closing rank %d already", ep->rank);
	}
	ep->closing = true;
	rc = close_drain(ep);
	if (rc < 0) {
		ep->closing = false;
		core_unlock(ep);
		return rc;
	}
	close_send_bye(ep);
	core_unlock(ep);
	if (settings_int(ep->settings, SETTING_COUNTERS))
		close_print_counters(ep);
	life_end(ep);
	return 0;
}

static bool close_is_cut_off(struct ibvx *ep)
{
	bool all = true;

	core_lock(ep);
	for (int i = 0; i < ep->transport_count; i++) {
		struct transport *t = ep->transports[i];

		all = all && (!t->ops->drained || t->ops->drained(t));
	}
	core_unlock(ep);
	return all;
}

/* Callers may take their memory away as soon as their calls return: by then nothing writes to it or reads it, neither
 * peers (forget() cuts their operations off) nor this rank (progress_run). */
static void close_cut_off(struct ibvx *ep)
{
	struct timespec ms = {0, CLOCK_NS_PER_MS};

	core_lock(ep);
	for (int r = 0; r < ep->size; r++) {
		struct peer *p = &ep->peers[r];

		if (p->state == PEER_OPEN && p->transport && r != ep->rank)
			p->transport->ops->forget(p->transport, r);
	}
	core_unlock(ep);
	for (int i = 0; i < CLOSE_ABORT_LOOKS && !close_is_cut_off(ep); i++)
		nanosleep(&ms, NULL);
}

/* Is no thread inside a call?  Calls that never block are not counted, but may wait for the lock: it is held for a
 * moment, so that one that was about to ask for it is seen, too. */
static bool close_is_deserted(struct ibvx *ep)
{
	struct timespec hold = {0, CLOSE_HOLD_NS};
	bool deserted;

	core_lock(ep);
	deserted = ep->users + ep->area_users == 0;
	if (deserted) {
		nanosleep(&hold, NULL);
		deserted = !lock_is_awaited(&ep->lock);
	}
	core_unlock(ep);
	return deserted;
}

void ibvx_cut_off(struct ibvx *ep)
{
	core_lock(ep);
	ep->closing = true;
	core_unlock(ep);
	close_cut_off(ep);
	core_lock(ep);
	ep->aborted = true;
	waiter_signal_all(ep);
	core_unlock(ep);
}

void ibvx_abort(struct ibvx *ep)
{
	struct timespec ms = {0, CLOCK_NS_PER_MS};
	int deserted = 0; /* so many times in a row */

	if (!ep)
		return;
	ibvx_cut_off(ep);
	for (int i = 0; i < CLOSE_ABORT_LOOKS && deserted < CLOSE_DESERTED; i++) {
		deserted = close_is_deserted(ep) ? deserted + 1 : 0;
		if (deserted == 0)
			nanosleep(&ms, NULL);
	}
	if (deserted == CLOSE_DESERTED)
		life_end(ep); /* else better leaked than pulled away under a thread */
}

int ibvx_rank(const struct ibvx *ep)
{
	return ep->rank;
}

int ibvx_size(const struct ibvx *ep)
{
	return ep->size;
}

const char *ibvx_job_id(const struct ibvx *ep)
{
	return ep->job_id;
}

const char *ibvx_error(void)
{
	return error_text();
}

const char *ibvx_version(void)
{
	return IBVX_VERSION;
}
