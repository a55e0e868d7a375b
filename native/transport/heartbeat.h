/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_HEARTBEAT_H
#define IBVX_TRANSPORT_HEARTBEAT_H
/*
 * heartbeat: notices that a peer is silent, where the library below does not.
 *
 * A timer ticks on the core's monitor thread.  A rank that has sent a peer nothing for a few ticks sends it a packet that
 * means nothing else; a rank that has heard nothing of it for the timeout gives it up.  Silence is counted in ticks of our own, so a rank that
 * was stopped for a while does not blame the others.  No clock is read for a packet.  The caller holds the core's lock.
 */
#include <stdbool.h>

#include "transport/transport.h"

struct heartbeat {
	const struct transport_watch *watch;
	int fd;                                      /* timerfd, -1: none */
	unsigned ticks_until_beat, ticks_until_lost; /* 0: silence is no end */
};

/* Of each peer. */
struct heartbeat_peer {
	bool heard, sent;      /* since the last tick; the transport sets them */
	unsigned silent, idle; /* ticks */
};

/* tick(arg) is called every 250 ms or, with a short timeout, more often; first after heartbeat_start(). timeout_ms 0: for nothing
 * but the ticks.  0 or -errno with text; heartbeat_close() in any case. */
int heartbeat_open(struct heartbeat *h, const struct transport_watch *watch, int64_t timeout_ms, void (*tick)(void *arg), void *arg);
void heartbeat_close(struct heartbeat *h);
/* The fewest milliseconds between two ticks. */
int64_t heartbeat_period_ms(int64_t timeout_ms);
int heartbeat_start(struct heartbeat *h, int64_t timeout_ms);
/* At the beginning of tick(). */
void heartbeat_begin(struct heartbeat *h);
/* At each tick, for each peer that is connected, after what had arrived was taken in. */
enum heartbeat_verdict { HEARTBEAT_FINE, HEARTBEAT_SEND, HEARTBEAT_LOST };
enum heartbeat_verdict heartbeat_look(const struct heartbeat *h, struct heartbeat_peer *p);

#endif
