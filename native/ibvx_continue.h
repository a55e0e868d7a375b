/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CONTINUE_H
#define IBVX_CONTINUE_H
/*
 * ibvx_continue: operations of many messages that go on when one of them completes, for native/coll.  Not exported.
 *
 * A continuation is a function that the library calls after messages of its operation have completed.  Whatever thread is
 * inside a call that waits, tests or probes calls it, or the progress thread if none is.  It is called without locks and
 * by one thread at a time, and may start messages; it must not wait.
 */
#include <stdbool.h>

#include "ibvx.h"

struct settings;
struct ibvx_continuation;

/* One message.  The layer fills in the owner. */
struct ibvx_completion {
	struct ibvx_continuation *owner;
	/* The library's, valid once the message is complete. */
	int error;
	uint64_t user, bytes; /* of a receive: as sent */
	struct ibvx_completion *next;
};

struct ibvx_continuation {
	/* `done`: the messages that have completed since the last call, through next; NULL in the first call.  Sets over after
	 * the last one, when no message is under way. */
	void (*run)(struct ibvx_continuation *c, struct ibvx_completion *done);
	/* Does it need this rank, which has died?  Then all its messages end with an error: others may have given up because of
	 * it.  Called with the endpoint locked. */
	bool (*needs)(const struct ibvx_continuation *c, int rank);
	/* It is over and was abandoned.  Called without locks. */
	void (*release)(struct ibvx_continuation *c);
	/* The progress thread does not call run(): it may call into the layer above, whose threads alone may enter that. */
	bool by_caller;
	bool over;
	/* The library's. */
	bool running, due, abandoned;
	struct ibvx_continuation *next_due;
	struct ibvx_completion *done;
	char why[200]; /* the first error of a message: its text, and the rank that it concerns, -1: none */
	int why_rank;
};

/* Calls c->run() for the first time.  c is zero but for the layer's fields. */
void ibvx_continuation_start(struct ibvx *ep, struct ibvx_continuation *c);

/* Start a message; from within run().  1: it is complete, *done is filled in, run() will not get it; 0: it is under way;
 * or a negative errno with text, and nothing was started. */
int ibvx_continuation_send(struct ibvx *ep, struct ibvx_completion *done, const struct ibvx_sbuf *buf, int dest, int tag, int context);
int ibvx_continuation_recv(struct ibvx *ep, struct ibvx_completion *done, const struct ibvx_rbuf *buf, int source, int tag, int context);

/* An error with text if a rank that c needs has died, or any if that ends the job; else 0. */
int ibvx_continuation_check(struct ibvx *ep, const struct ibvx_continuation *c);

/* Until c is over: 0, or -ESHUTDOWN: the endpoint was aborted, and the library does not use c any more.  test: 1 or 0. */
int ibvx_continuation_wait(struct ibvx *ep, struct ibvx_continuation *c);
/* start and wait in one call. */
int ibvx_continuation_run(struct ibvx *ep, struct ibvx_continuation *c);
int ibvx_continuation_test(struct ibvx *ep, struct ibvx_continuation *c);
/* Nobody will wait: true if c is over, else c->release() will be called. */
bool ibvx_continuation_abandon(struct ibvx *ep, struct ibvx_continuation *c);

/* The processors that the ranks of our node may use, if this rank is one of them and there are more ranks than that; else 0.
 * All ranks of a node get the same answer. */
int ibvx_shared_processors(const struct ibvx *ep, int rank);

const struct settings *ibvx_settings(const struct ibvx *ep);

#endif
