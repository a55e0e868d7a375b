/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_STARTER_H
#define IBVX_BOOTSTRAP_STARTER_H
/*
 * starter: asks MPJ Express's starter (mpjrun, or a launcher that plays it) where the others are.
 *
 *   rank                                              starter
 *    | UTF "Sending Info", int wport, int rport, int rank |
 *    |--------------------------------------------------->|   until every rank has reported it
 *    |<---------------------------------------------------|
 *    | UTF "#Peer Information;ip@rport@wport@rank@debug;..."    and it closes
 *
 * UTF is Java's writeUTF: two bytes of length, big-endian, then the text; int is 4 bytes, big-endian.
 */
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"

/* Reads the answer's text into hosts[size] (zeroed; index == rank; strings are allocated).  0, -EPROTO with text,
 * -ENOMEM.  On an error hosts holds what was read so far. */
int starter_parse(const char *text, size_t len, int size, struct conf_host *hosts);

/* Reports rank and port, waits for the answer, fills conf->hosts.  An address that is a loopback one only from
 * the starter's view is replaced by the starter's own.  0; -EHOSTUNREACH; -ETIMEDOUT; -EPROTO; with text. */
int starter_ask(struct conf *conf, int rank, int port, int64_t deadline);

#endif
