/* SPDX-License-Identifier: MIT */
/* The functions of ibvx_watch.h but for ibvx_look(). */
#include <errno.h>

#include "base/error.h"
#include "core/api.h"
#include "core/match.h"
#include "core/pin.h"
#include "core/receive.h"
#include "core/wait.h"
#include "core/waiter.h"
#include "core/watch.h"
#include "ibvx_watch.h"

void watch_complete(struct ibvx *ep, struct request *r)
{
	list_append(&ep->watched, &r->finished);
	waiter_signal(ep, &ep->watcher);
}

int ibvx_watch(struct ibvx *ep, ibvx_req req)
{
	struct request *r;
	int rc = 0;

	core_lock(ep);
	r = api_find(ep, req);
	if (r)
		receive_end_hopeless(ep, r);
	if (!r)
		rc = -EINVAL;
	else if (r->state == REQ_DONE)
		rc = 1;
	else if (ep->aborted)
		rc = api_not_open(ep);
	if (rc == 0) {
		r->watched = true;
		ep->watches++;
	}
	pin_unlock(ep);
	return rc;
}

/* The watcher has nothing more to wait for? */
static void watch_end(struct ibvx *ep)
{
	if (--ep->watches == 0)
		waiter_signal(ep, &ep->watcher);
}

/* r is as if it had never been watched. */
static void watch_forget(struct ibvx *ep, struct request *r)
{
	r->watched = false;
	if (r->state == REQ_DONE) {
		list_remove(&r->finished);
		list_append(&ep->finished, &r->finished);
	}
	watch_end(ep);
}

void ibvx_unwatch(struct ibvx *ep, ibvx_req req)
{
	struct request *r;

	core_lock(ep);
	r = request_find(&ep->requests, req);
	if (r && r->watched)
		watch_forget(ep, r);
	core_unlock(ep);
}

void ibvx_watch_messages(struct ibvx *ep, int by)
{
	core_lock(ep);
	match_interest(ep, IBVX_ANY_SOURCE, by);
	ep->message_watches += by;
	if (by > 0)
		ep->watches++;
	else
		watch_end(ep);
	core_unlock(ep);
}

static bool watch_any(struct ibvx *ep, void *arg)
{
	(void)arg;
	return ep->watches == 0 || !list_empty(&ep->watched) || (ep->message_came && ep->message_watches > 0);
}

/* Takes out what is to be returned. */
static int watch_take(struct ibvx *ep, int count, ibvx_req reqs[])
{
	int n = 0;

	if (ep->message_came && ep->message_watches > 0)
		reqs[n++] = IBVX_REQ_NULL;
	ep->message_came = false;
	while (n < count && !list_empty(&ep->watched)) {
		struct request *r = LIST_ITEM(ep->watched.next, struct request, finished);

		reqs[n++] = request_handle(r);
		watch_forget(ep, r);
	}
	return n;
}

int ibvx_watched(struct ibvx *ep, int count, ibvx_req reqs[])
{
	int rc = 0;

	core_lock(ep);
	ep->watcher.stands_back = true;
	if (ep->watches > 0)
		rc = wait_until(ep, &ep->watcher, watch_any, NULL, -1);
	if (rc == 0)
		rc = watch_take(ep, count, reqs);
	pin_unlock(ep);
	return rc;
}
