/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_LOCAL_H
#define IBVX_BOOTSTRAP_LOCAL_H
/*
 * local: how the ranks of one job find each other on one node, without the network.
 *
 * The leader listens at an abstract Unix socket.  Its name is a keyed hash of what only the ranks of this job share, so
 * the secret cannot be derived from it, and two jobs do not meet.  Abstract names belong to a network namespace: it
 * is the namespace, not the machine, that makes a node here.  Both sides check that the other process runs under the
 * same user, and then the job's proofs.  Sockets are non-blocking and close-on-exec.
 */
#include <sys/un.h>

struct local_name {
	struct sockaddr_un addr;
	unsigned len;
};

/* where: how this job calls rank 0's address, equal on every rank; job_id may be "". */
void local_make_name(struct local_name *name, const char *secret, const char *where, const char *job_id, int size);

/* A descriptor; -EADDRINUSE: another process has the name; another -errno; without a text. */
int local_listen(const struct local_name *name);
/* A connected descriptor; -ECONNREFUSED: nobody listens; -EAGAIN: try again; -EPERM: another user's process; without a text. */
int local_connect(const struct local_name *name);
/* Is the process at the other end of this user?  *pid receives its number. */
int local_check(int fd, int *pid);

#endif
