/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_KNOCK_H
#define IBVX_BOOTSTRAP_KNOCK_H
/*
 * knock: how every rank but 0 gets in.
 */
#include <stdint.h>

struct bootstrap;
struct card;

/* Knocks at the addresses of rank 0 until it opens, all are there and the job begins.  where is what errors call
 * the address.  0; -ETIMEDOUT, -EHOSTUNREACH, -EACCES, -EEXIST, -EINVAL, -EPROTONOSUPPORT, -ECONNRESET: with text. */
int knock(struct bootstrap *b, const struct card *card, const char *where, const char *secret, const char *job_id,
	  int64_t deadline);

#endif
