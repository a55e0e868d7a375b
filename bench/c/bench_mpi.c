/* SPDX-License-Identifier: MIT */
/* bench_mpi: what bench_ibvx measures, against MPI; built once for each MPI that is installed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { TAG = 1 };
enum { OPT_TOOL = 512, OPT_DEVICE, OPT_PIN };

static int pingpong(struct layer *layer, size_t bytes, int64_t iterations)
{
	int other = 1 - layer->rank, n = (int)bytes;

	if (layer->rank == 1)
		MPI_Recv(layer->in, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int64_t i = layer->rank; i < iterations; i++) {
		MPI_Send(layer->out, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
		MPI_Recv(layer->in, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (layer->rank == 1)
		MPI_Send(layer->out, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
	return 0; /* MPI ends the job on an error */
}

static int stream(struct layer *layer, size_t bytes, int64_t iterations, int window)
{
	MPI_Request requests[HARNESS_MAX_WINDOW];
	int other = 1 - layer->rank, n = (int)bytes;

	for (int64_t i = 0; i < iterations; i++) {
		for (int k = 0; k < window; k++) {
			if (layer->rank == 0)
				MPI_Isend(layer->out, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &requests[k]);
			else
				MPI_Irecv(layer->in, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &requests[k]);
		}
		MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
		if (layer->rank == 0)
			MPI_Recv(NULL, 0, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(NULL, 0, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
	}
	return 0;
}

static int tell(struct layer *layer, char *text, size_t bytes)
{
	if (layer->rank == 0)
		MPI_Send(text, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	else
		MPI_Recv(text, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}

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
		"usage: mpirun -np 2 bench_openmpi|bench_mpich [options]\n"
		"%s"
		"      --tool NAME        what the report calls this MPI\n"
		"      --device NAME      what the report calls the way that it is configured\n"
		"      --pin              pin each rank to a processor of its own (give mpirun --bind-to none)\n",
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
	struct layer layer = {
		.tool = "mpi", .level = "c", .device = "default", .pingpong = pingpong, .stream = stream, .tell = tell};
	struct options options;
	int c, size, rc = 0;

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
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &layer.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2) {
		fprintf(stderr, "bench_mpi: the job has %d ranks; this needs 2\n", size);
		rc = 1;
	} else {
		rc = harness_run(&layer, &options);
	}
	if (rc)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return rc;
}
