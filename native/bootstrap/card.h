/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_CARD_H
#define IBVX_BOOTSTRAP_CARD_H
/*
 * card: what a rank has to know to reach rank 0 and to prove that it belongs there.
 *
 * Rank 0 makes one when it listens; a launcher carries it to the other ranks (launch.h).  Its text, at most
 * CARD_TEXT_BYTES with the NUL, holds only characters that PMI allows in a value (no blank, no control character,
 * no '=', no ';'):
 *
 *   ibvx1/<job id, 32 hex>/<secret, 32 hex>/<port>/<host>/<address>,<address>.../<check, 16 hex>
 *
 * An address is numeric, 10.0.0.1 or fd00::1.  The check is a hash of what precedes it: a card that was cut or
 * mixed up is refused.  It is no protection against forgery; the launcher is trusted with the secret.
 */
#include <stddef.h>

#include "bootstrap/address.h"

#define CARD_SECRET_CHARS 32
#define CARD_HOST_CHARS 64
#define CARD_TEXT_BYTES 1000

struct card {
	char job_id[33];                    /* 32 hex digits; "": none (conf file) */
	char secret[CARD_SECRET_CHARS + 1]; /* 32 hex digits; "": none (conf file) */
	char host[CARD_HOST_CHARS + 1];     /* rank 0's host name, for texts only */
	struct address_list addresses;      /* each with the port, best first */
};

/* A random job id and secret.  0 or -errno with text. */
int card_draw(struct card *card);
/* Addresses that do not fit into the text are left out, the last ones first.  The text's length. */
size_t card_print(const struct card *card, char out[CARD_TEXT_BYTES]);
/* 0, or -EPROTO: cut, garbled, or of another version of ibvdev; the error text never repeats the card. */
int card_parse(struct card *card, const char *text);

#endif
