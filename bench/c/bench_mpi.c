/* SPDX-License-Identifier: MIT */
/* bench_mpi: what bench_ibvx measures, against MPI; built once for each MPI that is installed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_layer.h"

enum { OPT_TOOL = 512, OPT_DEVICE, OPT_PIN };

/* Launchers pin in ways of their own, so the ranks do it as ibvrun does; before MPI_Init, which allocates. */
static void pin(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (getenv(names[i])) {
			stage_pin(atoi(getenv(names[i])));
			return;
		}
	}
}

static int usage(FILE *to)
{
	fprintf(to,
		"usage: mpirun -np N bench_openmpi|bench_mpich [options]\n"
		"%s"
		"      --tool NAME        what the report calls this MPI\n"
		"      --device NAME      what the report calls the way that it is configured\n"
		"      --pin              pin each rank to a processor of its own (give mpirun --bind-to "
		"none)\n",
		harness_usage);
	return to == stderr ? 2 : 0;
}

int main(int argc, char **argv)
{
	static const struct option more[] = {
		{"tool", required_argument, NULL, OPT_TOOL},
		{"device", required_argument, NULL, OPT_DEVICE},
		{"pin", no_argument, NULL, OPT_PIN},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct layer layer = {.tool = "mpi", .level = "c", .device = "default"};
	struct options options;
	int c, wanted, given, rc = 0;

	harness_defaults(&options);
	while ((c = getopt_long(argc, argv, HARNESS_OPTIONS "h", harness_join(more), NULL)) != -1) {
		if (c == 'h')
			return usage(stdout);
		if (c == OPT_TOOL)
			layer.tool = optarg;
		else if (c == OPT_DEVICE)
			layer.device = optarg;
		else if (c == OPT_PIN)
			pin();
		else if (harness_option(&options, c, optarg))
			return usage(stderr);
	}
	if (optind < argc)
		return usage(stderr);
	/* What only threads need is not put on the others. */
	wanted = harness_wants(&options, STAGE_THREADS) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
	MPI_Init_thread(&argc, &argv, wanted, &given);
	mpi_layer_init(&layer);
	if (layer.size < 2 || given < wanted) {
		fprintf(stderr, "bench_mpi: %s\n",
			given < wanted ? "this MPI does not offer MPI_THREAD_MULTIPLE" : "the job has one rank; this needs two or more");
		rc = 1;
	} else {
		rc = harness_run(&layer, &options);
	}
	if (rc)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return rc;
}
