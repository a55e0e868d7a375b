/* SPDX-License-Identifier: MIT */
/* What the C library takes for what SelfBench.java does: nanoseconds for a send and a recv of 8 bytes to itself. */
#include <ibvx.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define SAMPLES 41
#define TIMES 20000

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int once(struct ibvx *ep)
{
	static char out[8], in[8];
	struct ibvx_status status;
	int rc = ibvx_send(ep, &(struct ibvx_sbuf){.body = out, .body_bytes = sizeof(out)}, 0, 1, 0);

	return rc ? rc : ibvx_recv(ep, &(struct ibvx_rbuf){.base = in, .capacity_bytes = sizeof(in)}, 0, 1, 0, &status);
}

int main(void)
{
	const char *peers[] = {"localhost:11313"};
	const struct ibvx_config config = {.peers = peers, .size = 1};
	double best = 0;
	struct ibvx *ep;

	if (ibvx_open(&ep, &config) < 0) {
		fprintf(stderr, "bench_self: %s\n", ibvx_error());
		return 1;
	}
	for (int s = 0; s < SAMPLES; s++) {
		int64_t begin = now_ns();

		for (int i = 0; i < TIMES; i++)
			if (once(ep) < 0) {
				fprintf(stderr, "bench_self: %s\n", ibvx_error());
				return 1;
			}
		double each = (double)(now_ns() - begin) / TIMES;

		if (s == 0 || each < best)
			best = each;
	}
	printf("%.1f\n", best);
	return ibvx_close(ep) < 0;
}
