/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_NEAR_H
#define IBVX_BASE_NEAR_H
/*
 * near: which known names may have been meant by an unknown one.
 */
#include <stdbool.h>
#include <stddef.h>

/* Restricted Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of
 * neighbours, each counted as one; upper and lower case are alike.  Names longer than 63
 * bytes are as far from everything as they are long. */
size_t near_distance(const char *a, const char *b);

/* Near enough to be suggested: a distance of at most a third of the longer one's length, or one
 * contains the other (three letters or more). */
bool near_miss(const char *unknown, const char *known);

#endif
