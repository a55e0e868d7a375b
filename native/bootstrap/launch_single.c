/* SPDX-License-Identifier: MIT */
/*
 * launch_single: nothing has started this process but its user: one rank alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bootstrap/launch_row.h"

/* Variables by which engines give how many processes they have started. */
static const char *const single_counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",        "PALS_NRANKS",
					    "FLUX_JOB_SIZE",        "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE"};

/* Many ranks that each take themselves for the only one would be worse than an error. */
static bool single_found(char why[LAUNCH_WHY_BYTES])
{
	for (size_t i = 0; i < sizeof(single_counts) / sizeof(single_counts[0]); i++) {
		int count = 1;

		if (launch_variable(single_counts[i], 2, INT32_MAX, &count) == 0) {
			snprintf(why, LAUNCH_WHY_BYTES,
				 "%s=%d means that this is one of several processes, but their launcher offers neither "
				 "PMIx nor PMI; start them by other means (ibvdev-info --launcher)",
				 single_counts[i], count);
			return false;
		}
	}
	snprintf(why, LAUNCH_WHY_BYTES, "no other launcher was found");
	return true;
}

static int single_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline)
{
	(void)cfg;
	(void)deadline;
	l->rank = 0;
	l->size = 1;
	l->local_size = 1;
	return 0;
}

const struct launch_row launch_single = {
	.name = "single",
	.title = "the lack of any launcher",
	.found = single_found,
	.open = single_open,
};
