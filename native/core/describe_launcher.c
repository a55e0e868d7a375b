/* SPDX-License-Identifier: MIT */
/* ibvx_describe_launcher: what ibvdev-info --launcher prints. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/launch.h"
#include "core/lifecycle.h"

#define DESCRIBE_RANKS 64

static int describe_barrier(struct bootstrap *b, int size)
{
	uint32_t *lengths = calloc((size_t)size, sizeof(*lengths));
	int rc = lengths ? bootstrap_allgather(b, NULL, 0, NULL, 0, lengths) : error_set(-ENOMEM, "no memory");

	free(lengths);
	return rc;
}

static void describe_ranks(FILE *f, struct bootstrap *b, int size, int64_t ns)
{
	fprintf(f, "rendezvous:  %d rank%s met in %" PRId64 ".%" PRId64 " ms\n", size, size == 1 ? "" : "s", ns / CLOCK_NS_PER_MS,
		ns % CLOCK_NS_PER_MS * 10 / CLOCK_NS_PER_MS);
	for (int r = 0; r < size && r < DESCRIBE_RANKS; r++)
		fprintf(f, "  %s\n", bootstrap_peer_name(b, r));
	if (size > DESCRIBE_RANKS)
		fprintf(f, "  and %d more\n", size - DESCRIBE_RANKS);
}

/* Meets the others and parts from them. */
static int describe_meet(FILE *f, struct settings *s, int *rank)
{
	static const struct bootstrap_events none = {0};
	struct bootstrap_config bc = {.rank = -1, .conf = "auto", .settings = s};
	struct bootstrap *b = NULL;
	struct log log = {.fd = -1};
	int64_t begin = clock_now_ns();
	char job_id[33];
	int size = 0, rc = bootstrap_open(&b, &bc, &size);

	if (rc == 0) {
		*rank = bootstrap_rank(b);
		rc = log_open(&log, (enum log_level)settings_int(s, SETTING_LOG), settings_text(s, SETTING_LOG_FILE), *rank);
	}
	if (rc == 0)
		rc = bootstrap_join(b, &log, job_id);
	if (rc == 0)
		rc = describe_barrier(b, size);
	if (rc == 0) {
		describe_ranks(f, b, size, clock_now_ns() - begin);
		bootstrap_watch(b, &none);
		bootstrap_leave(b);
	}
	bootstrap_close(b);
	log_close(&log);
	return rc;
}

int ibvx_describe_launcher(const struct ibvx_config *cfg, char **out)
{
	struct settings *s;
	size_t bytes = 0;
	int rank = -1, rc = life_settings(&s, cfg);
	FILE *f;

	*out = NULL;
	if (rc < 0)
		return rc;
	f = open_memstream(out, &bytes);
	if (!f) {
		settings_free(s);
		return error_set(-ENOMEM, "no memory for a description");
	}
	launch_report(s, f);
	rc = describe_meet(f, s, &rank);
	if (rc < 0)
		fprintf(f, "rendezvous:  failed: %s\n", error_text());
	fclose(f);
	settings_free(s);
	/* One report is enough where all is well. */
	if (rc == 0 && rank != 0)
		**out = '\0';
	return rc;
}
