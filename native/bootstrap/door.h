/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_DOOR_H
#define IBVX_BOOTSTRAP_DOOR_H
/*
 * door: rank 0's side of the meeting.
 */
#include <stdint.h>

struct bootstrap;
struct address_listener;

/* Lets the others in until all have come or the deadline (their own ones included) has passed, closes the
 * listener, then welcomes everybody.  secret and job_id may be "".  0; -ETIMEDOUT; -ECONNRESET: a rank died
 * meanwhile; all with text, and the ranks that came were told. */
int door_meet(struct bootstrap *b, struct address_listener *listener, const char *secret, const char *job_id,
	      int64_t deadline);

#endif
