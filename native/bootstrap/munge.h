/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_MUNGE_H
#define IBVX_BOOTSTRAP_MUNGE_H
/*
 * munge: credentials of the cluster's munge daemon, by its library libmunge.so.2, opened at run time.
 *
 * A credential is a printable text with a payload.  The daemon of a node encrypts and signs it with the key of the
 * cluster and records the user that asked for it; the daemon of another node opens it, once, for the user that it was made
 * for.  Here that is always the user of this process: both ends of a job are one user's.
 *
 * Calls talk to the daemon over a local socket: about 0.1 ms each, seconds if the daemon is ill.
 */
#include <stddef.h>

#define MUNGE_TEXT_BYTES 4096

/* Opens the library (once in a process, it stays).  socket: where the daemon listens, of the first call; "": where the
 * library expects it.  0; -ENOENT, -EPROTO: with text. */
int munge_load(const char *socket);

/* A credential with this payload for processes of this user, encrypted, valid for a minute or two.  out ends with NUL.
 * 0; -EACCES (the daemon refuses, or does not run), -EMSGSIZE: with text. */
int munge_seal(const void *payload, size_t len, char out[MUNGE_TEXT_BYTES]);

/* Opens a credential: 0, and *len bytes in payload, if it is whole, fresh, opened for the first time on this node, and
 * made by this user.  -EACCES, -EMSGSIZE: with text. */
int munge_unseal(const char *text, void *payload, size_t size, size_t *len);

#endif
