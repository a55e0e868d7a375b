/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_H
#define IBVX_BOOTSTRAP_H
/*
 * bootstrap: which process is rank r, how is it reached, and is it alive.
 *
 * Life: bootstrap_open (reads the conf or asks the launcher, no network) -> bootstrap_join (everybody meets at rank
 * 0) -> any number of bootstrap_allgather -> bootstrap_watch -> bootstrap_leave -> bootstrap_close.
 * A join or allgather that fails ends this life: what is left is bootstrap_close.
 *
 * The ranks form a tree with rank 0 at its root (tree.h): one rank of each node, its leader, has a parent on the
 * network, the others are its children over a Unix socket.  After bootstrap_watch the tree carries farewells and the
 * news of a lost rank; a rank whose parent is gone attaches to its grandparent or to rank 0.  The port of rank 0 that
 * the launcher knows is open during bootstrap_join only: ranks of the next round of the same job (a second MPI.Init in
 * one JVM) may come while rank 0 is still closing, they retry until the start timeout.
 *
 * Not thread-safe: the core calls it before the endpoint is visible, and after
 * bootstrap_watch from the monitor thread or under the core's lock only.  No signal is raised, no
 * descriptor survives an exec, nothing is global.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/settings.h"

struct bootstrap;

/* A conf (file or ";" string) or a peer list, parsed. conf.c */
struct conf_host {
	char *host;
	int port; /* the first port of the line (rport); 0: the line has none (mxdev) */
	int line; /* where the conf file has it; 0: not from a file */
};
struct conf {
	int size;
	int64_t psl_bytes;       /* -1: not given */
	int psl_line;            /* 0: not from a file */
	struct conf_host *hosts; /* size entries, index == rank; NULL for a ";" string */
	char *starter_host;      /* of a ";" string with "#Server Name", else NULL */
	int starter_port;
	bool derived_port;   /* the file has no ports (mxdev): hosts[0].port was drawn from its content,
				 * inode and modification time, which every rank sees alike */
	char **settings;     /* "name=value" of "#ibvdev name=value" lines, NULL-terminated */
	int *settings_lines; /* their line numbers */
};
/* text is a path, or a ";" string if it contains "#Number of Processes" and a ';'.
 * A file's lines may be host@rport@wport@rank@debugport, host@rport@wport@rank (niodev) and
 * host@board@rank@debugport (mxdev, as mpjrun writes it; recognized by its second field being
 * below 1024, which no niodev port is).
 * 0, or -ENOENT, -EACCES, -EINVAL with a text that names file, line and remedy. */
int conf_read(struct conf *conf, const char *text);
void conf_fini(struct conf *conf); /* zeroed and half-read ones too */

struct bootstrap_config {
	int rank;                  /* -1: the launcher knows (not with a conf or peers) */
	const char *conf;          /* "auto", or NULL without peers: a launcher knows (launch.h); or */
	const char *const *peers;  /* "host:port" or "[v6]:port", size of them; only that of rank 0 is ever connected to */
	int size;                  /* 0: the conf's or the launcher's */
	struct settings *settings; /* receives what the conf file sets (psl included); must outlive the bootstrap */
};

/* Parses, sets *size.  With a conf nothing is opened; with a launcher its session is, and launch_open() (launch.h) reports
 * what can go wrong.  -ENOENT, -EACCES (unreadable), -EINVAL, -ENOMEM. */
int bootstrap_open(struct bootstrap **out, const struct bootstrap_config *cfg, int *size);

/* Meets the other ranks (blocking, bounded by the smallest start_timeout_ms of those that came, plus two seconds to
 * hear the verdict) and agrees on the job id (32 hex digits + NUL).  Checks on both sides: protocol version, byte
 * order, size, rank not taken twice, job secret (challenge and response, the secret itself never travels).
 *
 * A connection that fails a check is refused, gets the reason (and fails), and rank 0 goes on waiting: a stranger
 * cannot end a job.  A rank that was let in and then dies, or ranks that do not come in time, fail the start of
 * all, with the same text.  log must outlive b.
 * -ETIMEDOUT (names the missing), -EADDRINUSE, -EACCES (secret), -EEXIST (rank taken), -EINVAL (another
 * size, bad job_id), -EPROTONOSUPPORT (version, byte order), -EHOSTUNREACH (rank 0 or the starter), -ECONNRESET (a
 * rank died meanwhile), -EPROTO (the starter's answer). */
int bootstrap_join(struct bootstrap *b, const struct log *log, char job_id[33]);

/* Gathers len bytes (0..65536) of every rank and gives all of them to all: out must hold the sum;
 * lengths[size] receives each one's length; out is packed in rank order. len 0 everywhere is a barrier.
 * Bounded like the join.  -ENOBUFS: out_size is too small here (lengths are set, the others are served, the
 * bootstrap lives on); -EINVAL: len; -ECONNRESET, -ETIMEDOUT: over for all, the text names the rank. */
int bootstrap_allgather(struct bootstrap *b, const void *mine, size_t len, void *out, size_t out_size, uint32_t *lengths);

/* This process's rank. */
int bootstrap_rank(const struct bootstrap *b);
/* How error texts name rank r: "rank 3 (pid 1234 on host)"; before the join "rank 3 (host:port)".  Any number
 * is allowed.  Owned by b, valid until the next call. */
const char *bootstrap_peer_name(struct bootstrap *b, int rank);
/* Process id of rank r on its node, and whether it runs on this node (same boot id, pid and ipc namespaces,
 * same /dev/shm). Known after join. */
int bootstrap_peer_pid(const struct bootstrap *b, int rank);
bool bootstrap_peer_local(const struct bootstrap *b, int rank);
/* A name for this rank's node, equal on its ranks, [0-9a-f]{16}.  Known after join. */
const char *bootstrap_node_id(const struct bootstrap *b);

/* From now on lost(arg, rank, why) is called from bootstrap_on_readable() once for every
 * rank that ended without bootstrap_leave; left(arg, rank) for one that left in order: one of the two, once, per
 * rank.  When rank 0 has left (left) or is lost, nothing more is heard of anybody.  A callback may call
 * anything but bootstrap_leave and bootstrap_close. */
struct bootstrap_events {
	void *arg;
	void (*lost)(void *arg, int rank, const char *why);
	void (*left)(void *arg, int rank);
};
void bootstrap_watch(struct bootstrap *b, const struct bootstrap_events *events);
/* The descriptor to poll for reading: 1, or 0 before watch, after leave.  It is an epoll
 * descriptor that bundles the connections: it stays the same and open until bootstrap_close. */
int bootstrap_fds(const struct bootstrap *b, int *fds, int max);
/* Takes what has arrived and sends what waited.  Never blocks; any other fd is ignored. */
void bootstrap_on_readable(struct bootstrap *b, int fd);
/* Notifies the others that rank r was seen dead by other means (pidfd).  No event follows here for r.  Never blocks.
 * A process that ends in good order ends too: call bootstrap_on_readable first, its farewell may lie unread.  (The
 * parent of r does so for what other ranks report.) */
void bootstrap_report_lost(struct bootstrap *b, int rank, const char *why);

/* Leaves in good order; takes 0.2 s at the very most, for a leader whose own parent is gone one second more.  Rank 0 that
 * leaves keeps nothing open: that is not a loss. */
void bootstrap_leave(struct bootstrap *b);
/* NULL and half-open allowed. Without a leave before: the peers see a death. */
void bootstrap_close(struct bootstrap *b);

#endif
