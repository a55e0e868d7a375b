/* SPDX-License-Identifier: MIT */
#ifndef TESTS_COLL_ALGORITHMS_H
#define TESTS_COLL_ALGORITHMS_H
/*
 * algorithms: settings that choose an algorithm of each operation at random.
 */
#include <stdio.h>

#include "base/settings.h"
#include "proto/rng.h"

#define ALGORITHM_SETTINGS 9

/* Fills settings[0..ALGORITHM_SETTINGS-1] and ends them with NULL; the texts are in `text`. */
static inline void algorithms_choose(struct rng *rng, char text[ALGORITHM_SETTINGS][64], const char **settings)
{
	int n = 0;

	for (int id = SETTING_COLL_BARRIER; id <= SETTING_COLL_REDUCE_SCATTER; id++) {
		const struct setting_info *info = setting_info((enum setting)id);

		snprintf(text[n], sizeof(text[n]), "%s=%s", info->name, info->choices[rng_below(rng, (uint64_t)info->max + 1)]);
		settings[n] = text[n];
		n++;
	}
	settings[n] = NULL;
}

#endif
