/* SPDX-License-Identifier: MIT */
/*
 * Packets from a peer with any header and payload, at a rank that has requests of every kind open towards it.
 *
 * Input: [network: 1], then packets [flags: 1] [struct wire_hdr, its len cut to what follows and to a packet] [payload].
 * Flags, bit 0: the receiver polls before the next packet; bit 1: the peer polls, too, and what it answers arrives.
 */
#include "fuzz.h"

#include "../proto/world.h"

#define CONTEXT 7
#define SMALL 100
#define LARGE 20000
#define PACKETS 64
#define PAYLOAD_MAX 512

struct memory {
	char *sent[3], *got[3];
};

/* Exactly so large each, so that a byte beyond them is seen. */
static void fill(struct memory *m)
{
	static const size_t sizes[3] = {SMALL, LARGE, LARGE};

	for (int i = 0; i < 3; i++) {
		m->sent[i] = calloc(1, sizes[i]);
		m->got[i] = calloc(1, sizes[i]);
		fuzz_check(m->sent[i] && m->got[i]);
	}
}

static void start_requests(struct ibvx *ep, const struct memory *m)
{
	struct ibvx_sbuf small = {NULL, 0, m->sent[0], SMALL, 1}, large = {m->sent[1], LARGE, m->sent[2], LARGE, 2};
	struct ibvx_rbuf in[3] = {{.base = m->got[0], .capacity_bytes = SMALL},
				  {.base = m->got[1], .capacity_bytes = LARGE},
				  {.base = m->got[2], .capacity_bytes = LARGE}};
	ibvx_req req[6];

	fuzz_check(ibvx_issend(ep, &small, 1, 1, CONTEXT, &req[0]) == 0);
	fuzz_check(ibvx_isend(ep, &large, 1, 2, CONTEXT, &req[1]) == 0);
	fuzz_check(ibvx_issend(ep, &large, 1, 3, CONTEXT, &req[2]) == 0);
	fuzz_check(ibvx_irecv(ep, &in[0], 1, 1, CONTEXT, &req[3]) == 0);
	fuzz_check(ibvx_irecv(ep, &in[1], 1, 2, CONTEXT, &req[4]) == 0);
	fuzz_check(ibvx_irecv(ep, &in[2], IBVX_ANY_SOURCE, IBVX_ANY_TAG, CONTEXT, &req[5]) == 0);
}

static void poll_rank(struct world *w, int rank)
{
	struct ibvx_status status;

	fabric_step(w->fabric, 2);
	(void)ibvx_iprobe(w->ep[rank], rank, 0, CONTEXT + 1, &status);
}

static void receive_packets(struct world *w, struct fuzz_input *in)
{
	for (int i = 0; i < PACKETS && in->left; i++) {
		uint8_t payload[PAYLOAD_MAX];
		struct wire_hdr hdr;
		int flags = fuzz_below(in, 256);

		fuzz_take(in, &hdr, sizeof(hdr));
		hdr.len = hdr.len < PAYLOAD_MAX ? hdr.len : PAYLOAD_MAX;
		hdr.len = hdr.len < in->left ? hdr.len : (uint32_t)in->left;
		fuzz_take(in, payload, hdr.len);
		fuzz_check(fabric_inject(w->fabric, 1, 0, &hdr, payload) == 0);
		if (flags & 1)
			poll_rank(w, 0);
		if (flags & 2)
			poll_rank(w, 1);
	}
	for (int i = 0; i < 4; i++)
		poll_rank(w, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const settings[] = {"log=off", "psl=4096", NULL};
	struct fuzz_input in = {data, size};
	struct world_config cfg = {.net = {.seed = 1, .size = 2, .payload_max = PAYLOAD_MAX}, .settings = settings};
	int network = fuzz_below(&in, 4);
	struct memory m;
	struct world w;

	cfg.net.get_min = network & 1 ? 1024 : SIZE_MAX;
	cfg.net.put_min = network & 2 ? 1024 : SIZE_MAX;
	fill(&m);
	fuzz_check(world_open(&w, &cfg) == 0);
	start_requests(w.ep[0], &m);
	poll_rank(&w, 0);
	receive_packets(&w, &in);
	world_kill(&w, 0, false);
	world_kill(&w, 1, false);
	fabric_free(w.fabric);
	settings_free(w.settings);
	for (int i = 0; i < 3; i++) {
		free(m.sent[i]);
		free(m.got[i]);
	}
	return 0;
}
