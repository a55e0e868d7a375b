/* SPDX-License-Identifier: MIT */
/* bench_ibvx: ibvx.h between the ranks of a job (see harness.h). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "couple.h"
#include "harness.h"
#include "ibvx_layer.h"

enum { OPT_RANK = 512, OPT_CONF, OPT_SET };

static int failed(const char *what)
{
	fprintf(stderr, "bench_ibvx: %s: %s\n", what, ibvx_error());
	return 1;
}

static int run(const struct ibvx_config *cfg, const struct options *options)
{
	struct ibvx_layer self = {.layer = {.tool = "ibvx", .level = "c", .device = "ibvdev", .rank = cfg->rank}};
	int rc;

	if (ibvx_open(&self.ep, cfg) < 0)
		return failed("open");
	self.layer.size = ibvx_size(self.ep);
	rc = ibvx_layer_init(&self);
	if (rc == 0 && self.layer.size < 2) {
		fprintf(stderr, "bench_ibvx: the job has one rank; this needs two or more\n");
		rc = 1;
	} else if (rc == 0) {
		rc = harness_run(&self.layer, options);
	}
	ibvx_comm_free(self.world);
	if (rc) /* the others may wait for this one: they shall see it die */
		ibvx_abort(self.ep);
	else if (ibvx_close(self.ep) < 0)
		rc = failed("close");
	return rc;
}

struct both {
	struct ibvx_config cfg;
	const struct options *options;
	char addresses[2][COUPLE_ADDRESS_BYTES];
	const char *peers[2];
};

static int run_one(int rank, void *arg)
{
	struct both *both = arg;

	stage_pin(rank);
	both->cfg.rank = rank;
	return run(&both->cfg, both->options);
}

/* Without a launcher: two ranks by fork, each on a processor of its own. */
static int run_two(const struct ibvx_config *cfg, const struct options *options)
{
	struct both both = {.cfg = *cfg, .options = options};

	couple_addresses(both.peers, both.addresses);
	both.cfg.peers = both.peers;
	both.cfg.size = 2;
	return couple_run(run_one, &both);
}

static int usage(FILE *to)
{
	fprintf(to,
		"usage: bench_ibvx [options]                                     two ranks, pinned, by "
		"itself\n"
		"       ibvrun -np N --bind core --exec bench_ibvx --rank {rank} --conf {conf} [options]\n"
		"%s"
		"      --set NAME=VALUE   a setting of the library (may be repeated)\n"
		"      --rank R --conf F  this rank and the job's conf file, from a launcher\n",
		harness_usage);
	return to == stderr ? 2 : 0;
}

int main(int argc, char **argv)
{
	static const struct option more[] = {
		{"rank", required_argument, NULL, OPT_RANK},
		{"conf", required_argument, NULL, OPT_CONF},
		{"set", required_argument, NULL, OPT_SET},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *settings[64] = {NULL};
	struct ibvx_config cfg = {.rank = -1, .settings = settings, .settings_origin = "--set"};
	struct options options;
	int c, count = 0;

	harness_defaults(&options);
	while ((c = getopt_long(argc, argv, HARNESS_OPTIONS "h", harness_join(more), NULL)) != -1) {
		if (c == 'h')
			return usage(stdout);
		if (c == OPT_RANK)
			cfg.rank = atoi(optarg);
		else if (c == OPT_CONF)
			cfg.conf = optarg;
		else if (c == OPT_SET && count < 63)
			settings[count++] = optarg;
		else if (harness_option(&options, c, optarg))
			return usage(stderr);
	}
	if (optind < argc || (cfg.rank < 0) != (cfg.conf == NULL))
		return usage(stderr);
	return cfg.conf ? run(&cfg, &options) : run_two(&cfg, &options);
}
