/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_CONF_H
#define IBVX_BOOTSTRAP_CONF_H
/*
 * conf: the inside of conf_read() (bootstrap.h), open to tests and fuzzers.
 */
#include "bootstrap/bootstrap.h"

#define CONF_RANKS_MAX 65536
#define CONF_FILE_BYTES_MAX (16 << 20)

/* Decimal, whole text, within [min, max].  0 or -EINVAL without a text. */
int conf_number(const char *text, int64_t min, int64_t max, int64_t *out);

/* Reads the len bytes of a conf file (memory need not end in NUL) into a zeroed conf; name is
 * what errors call it; salt distinguishes files of equal content (see conf.derived_port). */
int conf_parse_file(struct conf *conf, const char *name, const char *bytes, size_t len, uint64_t salt);

/* Reads MPJ Express's ";" string into a zeroed conf. */
int conf_parse_string(struct conf *conf, const char *text);

#endif
