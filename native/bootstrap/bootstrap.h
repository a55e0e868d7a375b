/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_H
#define IBVX_BOOTSTRAP_H
/*
 * bootstrap: who is rank r, how do I reach it, and is it still alive.
 *
 * Life: bootstrap_open (reads the conf, no network) -> bootstrap_join (everybody meets at rank
 * 0) -> any number of bootstrap_allgather -> bootstrap_watch -> bootstrap_leave -> bootstrap_close.
 *
 * Everybody but rank 0 keeps one TCP connection to rank 0 (a star).  After bootstrap_watch
 * it carries farewells and the news of a lost rank.  Ranks of the next round of
 * the same job (a second MPI.Init in one JVM) may knock while rank 0 is still
 * closing: they retry until the start timeout.
 *
 * Not thread-safe: the core calls it before the endpoint is visible, and after
 * bootstrap_watch from the monitor thread or under the core's lock only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/settings.h"

struct bootstrap;

/* What a conf (file or ";" string) or a peer list says, parsed. conf.c */
struct conf_host {
	char *host;
	int port;          /* the first port of the line (rport); 0: unknown until the starter says */
};
struct conf {
	int size;
	int64_t psl_bytes;      /* -1: not given */
	struct conf_host *hosts; /* size entries, index == rank; NULL for a ";" string */
	char *starter_host;     /* of a ";" string with "#Server Name", else NULL */
	int starter_port;
	char **settings;        /* "name=value" of "#ibvdev name=value" lines, NULL-terminated */
	int *settings_lines;    /* their line numbers */
};
/* text is a path, or a ";" string if it contains "#Number of Processes" and a ';'.
 * Accepts host@rport@wport@rank@debugport, host@rport@wport@rank (niodev) and
 * host@board@rank@debugport (mxdev, as mpjrun writes it).
 * 0, or -ENOENT, -EACCES, -EINVAL with a text that names file, line and remedy. */
int conf_read(struct conf *conf, const char *text);
void conf_fini(struct conf *conf); /* zeroed and half-read ones too */

struct bootstrap_config {
	int rank;
	const char *conf;          /* or */
	const char *const *peers;  /* "host:port", size of them */
	int size;                  /* 0 with conf: whatever it says */
	struct settings *settings; /* receives what the conf file sets (psl included) */
};

/* Parses, sets *size.  Opens nothing. */
int bootstrap_open(struct bootstrap **out, const struct bootstrap_config *cfg, int *size);

/* Meets the other ranks (blocking, bounded by start_timeout_ms) and agrees on the job id
 * (32 hex digits + NUL).  Checks on both sides: protocol version, byte order, size, rank
 * not taken twice, job secret (challenge and response, the secret itself never travels).  Every rank gets the
 * reason when one of them fails.  Errors: see ibvx_open. */
int bootstrap_join(struct bootstrap *b, const struct log *log, char job_id[33]);

/* Gathers len bytes (0..65536) of every rank and gives all of them to all: out must hold the sum;
 * lengths[size] receives each one's length; out is packed in rank order. len 0 everywhere is a barrier.
 * out_size too small: -ENOBUFS. */
int bootstrap_allgather(struct bootstrap *b, const void *mine, size_t len, void *out, size_t out_size,
			uint32_t *lengths);

/* "host:port" (or the pid) as error texts name rank r: "rank 3 (pid 1234 at 10.0.0.7)". Static storage of b. */
const char *bootstrap_peer_name(struct bootstrap *b, int rank);
/* Process id of rank r on its node, and whether it runs on this node (same boot id, pid and ipc namespaces,
 * same /dev/shm). Known after join. */
int bootstrap_peer_pid(const struct bootstrap *b, int rank);
bool bootstrap_peer_local(const struct bootstrap *b, int rank);
/* A name for this rank's node, equal on its ranks, [0-9a-f]{16}. */
const char *bootstrap_node_id(const struct bootstrap *b);

/* From now on lost(arg, rank, why) is called from bootstrap_on_readable() once for every
 * rank that ended without bootstrap_leave; left(arg, rank) for one that left in order. */
struct bootstrap_events {
	void *arg;
	void (*lost)(void *arg, int rank, const char *why);
	void (*left)(void *arg, int rank);
};
void bootstrap_watch(struct bootstrap *b, const struct bootstrap_events *events);
/* The descriptors to poll for reading (at most max written; returns how many: 1, or size - 1 on rank 0). */
int bootstrap_fds(const struct bootstrap *b, int *fds, int max);
void bootstrap_on_readable(struct bootstrap *b, int fd);
/* Tells the others that rank r was seen dead by other means (pidfd). */
void bootstrap_report_lost(struct bootstrap *b, int rank, const char *why);

/* Says goodbye; never blocks for long.  Rank 0 that leaves keeps nothing open: the others' star
 * ends and that is not a loss. */
void bootstrap_leave(struct bootstrap *b);
/* NULL and half-open allowed. Without a leave before: the peers see a death. */
void bootstrap_close(struct bootstrap *b);

#endif
