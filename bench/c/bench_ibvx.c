/* SPDX-License-Identifier: MIT */
/* bench_ibvx: latency and bandwidth of ibvx.h between two ranks (see harness.h). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "couple.h"
#include "harness.h"
#include "ibvx.h"

enum { TAG = 1, CONTEXT = 1 };
enum { OPT_RANK = 512, OPT_CONF, OPT_SET };

struct ibvx_layer {
	struct layer layer;
	struct ibvx *ep;
};

static struct ibvx *endpoint(struct layer *layer)
{
	return ((struct ibvx_layer *)layer)->ep;
}

static int failed(const char *what)
{
	fprintf(stderr, "bench_ibvx: %s: %s\n", what, ibvx_error());
	return 1;
}

static int pingpong(struct layer *layer, size_t bytes, int64_t iterations)
{
	struct ibvx *ep = endpoint(layer);
	struct ibvx_sbuf out = {.head = layer->out, .head_bytes = bytes};
	struct ibvx_rbuf in = {.base = layer->in, .capacity_bytes = bytes};
	int other = 1 - layer->rank;

	if (layer->rank == 1 && ibvx_recv(ep, &in, other, TAG, CONTEXT, NULL) < 0)
		return failed("recv");
	for (int64_t i = layer->rank; i < iterations; i++) {
		if (ibvx_send(ep, &out, other, TAG, CONTEXT) < 0)
			return failed("send");
		if (ibvx_recv(ep, &in, other, TAG, CONTEXT, NULL) < 0)
			return failed("recv");
	}
	if (layer->rank == 1 && ibvx_send(ep, &out, other, TAG, CONTEXT) < 0)
		return failed("send");
	return 0;
}

static int stream(struct layer *layer, size_t bytes, int64_t iterations, int window)
{
	struct ibvx *ep = endpoint(layer);
	struct ibvx_sbuf out = {.head = layer->out, .head_bytes = bytes}, empty = {0};
	struct ibvx_rbuf in = {.base = layer->in, .capacity_bytes = bytes}, nothing = {0};
	ibvx_req requests[HARNESS_MAX_WINDOW];
	bool sends = layer->rank == 0;
	int other = 1 - layer->rank;

	for (int64_t i = 0; i < iterations; i++) {
		for (int k = 0; k < window; k++) {
			if ((sends ? ibvx_isend(ep, &out, other, TAG, CONTEXT, &requests[k])
				   : ibvx_irecv(ep, &in, other, TAG, CONTEXT, &requests[k])) < 0)
				return failed(sends ? "isend" : "irecv");
		}
		for (int k = 0; k < window; k++) {
			if (ibvx_wait(ep, &requests[k], NULL) < 0)
				return failed("wait");
		}
		if ((sends ? ibvx_recv(ep, &nothing, other, TAG, CONTEXT, NULL)
			   : ibvx_send(ep, &empty, other, TAG, CONTEXT)) < 0)
			return failed("answer");
	}
	return 0;
}

static int tell(struct layer *layer, char *text, size_t bytes)
{
	struct ibvx_sbuf out = {.head = text, .head_bytes = bytes};
	struct ibvx_rbuf in = {.base = text, .capacity_bytes = bytes};
	int rc = layer->rank == 0 ? ibvx_send(endpoint(layer), &out, 1, TAG, CONTEXT)
				  : ibvx_recv(endpoint(layer), &in, 0, TAG, CONTEXT, NULL);

	return rc < 0 ? failed("the first message") : 0;
}

static int run(const struct ibvx_config *cfg, const struct options *options)
{
	struct ibvx_layer self = {.layer = {.tool = "ibvx",
					    .level = "c",
					    .device = "ibvdev",
					    .rank = cfg->rank,
					    .pingpong = pingpong,
					    .stream = stream,
					    .tell = tell}};
	int rc;

	if (ibvx_open(&self.ep, cfg) < 0)
		return failed("open");
	if (ibvx_size(self.ep) != 2) {
		fprintf(stderr, "bench_ibvx: the job has %d ranks; this needs 2\n", ibvx_size(self.ep));
		rc = 1;
	} else {
		rc = harness_run(&self.layer, options);
	}
	if (rc) /* the other rank may wait for this one: it shall see it die */
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
		"usage: bench_ibvx [options]                                     two ranks, pinned, by itself\n"
		"       ibvrun -np 2 --bind core --exec bench_ibvx --rank {rank} --conf {conf} [options]\n"
		"%s"
		"      --set NAME=VALUE   a setting of the library (may be repeated)\n"
		"      --rank R --conf F  this rank and the job's conf file, from a launcher\n",
		harness_usage);
	return to == stderr ? 2 : 0;
}

int main(int argc, char **argv)
{
	static const struct option more[] = {
		{"rank", required_argument, NULL, OPT_RANK}, {"conf", required_argument, NULL, OPT_CONF},
		{"set", required_argument, NULL, OPT_SET},   {"help", no_argument, NULL, 'h'},
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
