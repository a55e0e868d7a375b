/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_CARD_SERVICE_H
#define IBVX_BOOTSTRAP_CARD_SERVICE_H
/*
 * card_service: rank 0 hands its card to processes of the same user, by credentials of munge (munge.h), where the
 * launcher carries nothing (plain Slurm).
 *
 *   rank r                                                rank 0, a thread
 *    | connects                                             |
 *    | "ibcs" length credential{"ask1" nonce[16] job} ----> |  opens it: same user, first time, same job?
 *    | <--- "ibcs" length credential{"card" nonce[16] card} |  else it closes the connection
 *
 * The length is 4 bytes, big-endian.  The answer can be opened by this user only, and the nonce shows that it was made
 * for this question.  A stranger learns nothing but that something listens, and costs a slot for a bounded time: at most
 * CARD_SERVICE_VISITORS connections are open, the oldest is closed.
 */
#include <stdint.h>

#include "bootstrap/address.h"
#include "bootstrap/card.h"

#define CARD_SERVICE_VISITORS 64
#define CARD_SERVICE_VISIT_MS 5000
#define CARD_SERVICE_JOB_BYTES 64

struct card_service;

/* Serves on the listener, which now belongs to the service, until stop.  munge_load() has been called.
 * 0; -ENOMEM, -EMFILE, another -errno: with text, and the listener is the caller's still. */
int card_service_start(struct card_service **out, const struct address_listener *listener, const char *job, const struct card *card);
void card_service_stop(struct card_service *s); /* NULL allowed */

/* Asks once, at each address of the list until one answers.  0; -errno with the text of the last that failed. */
int card_service_ask(const struct address_list *where, const char *job, struct card *card, int64_t deadline);

#endif
