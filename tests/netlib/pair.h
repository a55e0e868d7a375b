/* SPDX-License-Identifier: MIT */
#ifndef TESTS_NETLIB_PAIR_H
#define TESTS_NETLIB_PAIR_H
/*
 * pair: two ranks with a transport over the double of its library, and nothing of the core.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "double.h"
#include "transport/netlib/netlib_state.h"

#define OPS (*double_transport)
#define WATCHES 8
#define PAYLOAD 70000

struct side {
	struct transport *t;
	struct transport_env env;
	struct transport_wakeups wakeups;
	struct {
		int fd;
		void (*fn)(void *arg);
		void *arg;
	} watch[WATCHES]; /* in the order of their coming: work, heartbeat, gate */
	int watch_count;
	int packets;
	uint64_t last;
	bool in_order, whole;
	int downs, down_error, packets_at_down;
	char why[512];
};
enum { WATCH_WORK, WATCH_BEAT, WATCH_GATE };

struct pair {
	struct settings *settings;
	struct log log;
	struct side side[2];
};

int pair_watch_add(void *monitor, int fd, void (*fn)(void *arg), void *arg);
void pair_watch_remove(void *monitor, int fd);
/* Opens a transport and writes its address; returns the length of that. */
int side_open(struct side *s, int rank, const struct settings *settings, const struct log *log, void *blob, size_t size);
void side_close(struct side *s);
bool side_readable(const struct side *s, int watch);
/* One poll, and slow work if there is any. */
int side_step(struct side *s);
void side_tick(struct side *s);

/* Around each test: the double as it begins, and nothing of it left. */
int pair_setup(void **state);
int pair_teardown(void **state);
/* setting: NULL, or what comes behind the transport's name: "timeout_ms=8000". */
void pair_open(struct pair *p, const char *setting);
void pair_close(struct pair *p);
/* Until nothing is left to do. */
void pair_run(struct pair *p);
int pair_send(struct pair *p, int from, uint64_t value, size_t len);
/* A packet each way. */
void pair_connect(struct pair *p);
/* Counters of rank `rank` for the other one. */
struct netlib_peer *pair_peer(struct pair *p, int rank);

#endif
