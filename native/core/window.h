/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_WINDOW_H
#define IBVX_CORE_WINDOW_H
/*
 * window: from array to array with one copy (PROTOCOL.md section 10), where a transport has windows.
 *
 * The sender opens a region of its array and offers a piece of it; the receiver opens a region of its own, claims what is
 * offered, copies, says so.  The sender's region waits for that: for somebody who claims a short time, then the offer is taken back; for who has
 * claimed, and has nothing to do but to copy, a longer one.  The receiver's region waits for nobody but its own adapter.
 *
 * Where both see one word (transport_window.seen) the answer is in it.  Where they do not it is a packet, TAKEN or CTS: every WINDOW gets one of them, also
 * one whose sender has given it up meanwhile, and what it says is what happened.
 *
 * The caller holds the lock.
 */
#include "core/core.h"

/* Most bytes of one window: how long its copy lasts, some tens of microseconds. */
#define WINDOW_BYTES (512u << 10)
/* How long one is offered whose claim can be seen: a receiver that waits comes within one or two microseconds, if its collector lets it.  To who has claimed it, and may
 * have lost its processor, it is left for the setting window_us, from the offer on; so is one whose claim cannot be seen. */
#define WINDOW_OFFER_NS 50000
/* The thread of r, a rendezvous, is in the library with its memory at hand, and windows would pay. */
bool window_waits(const struct request *r);

/* Sender, a region of r is open at `at`: offers the next piece and waits, with the lock released, until it is taken or taken back.
 * False: nothing was offered, r goes another way. */
bool window_push(struct ibvx *ep, struct request *r, const char *at);

/* Receiver: the sender offers the next so many bytes of r. */
void window_note(struct request *r, const void *desc, size_t bytes);
/* What was offered is not taken now: where the sender does not see that for itself, it is told. */
void window_decline(struct request *r);
/* Sender: the receiver has taken the window that is open, and so everything before `at`.  False: that cannot be. */
bool window_taken(struct request *r, uint64_t at);
/* What was offered has come in another way. */
void window_forget(struct request *r);

/* Before a region of r is opened: if a window waits for it, its transport makes ready what it is to go by. */
void window_prepare(struct ibvx *ep, const struct request *r);
/* Receiver, a region of r is open at `at`: takes what is offered, with the lock released.  False: there was nothing to take. */
bool window_pull(struct ibvx *ep, struct request *r, char *at);

#endif
