/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/self/self.h"

/* A context that no test uses: probing it makes progress and finds nothing.  Only our own rank is asked, because a probe
 * that finds nothing is a reason for the core to let more messages come. */
#define WORLD_IDLE_CONTEXT 0x7ffffff0

static int settings_prepare(struct world *w, const struct world_config *cfg)
{
	int err;

	w->settings = settings_new();
	if (!w->settings)
		return -ENOMEM;
	/* directed tests choose when somebody polls; those of the progress thread ask for it */
	err = settings_set_pair(w->settings, SETTINGS_CALLER, "progress_thread=0", "test");
	if (err)
		return err;
	for (int i = 0; cfg->settings && cfg->settings[i]; i++) {
		err = settings_set_pair(w->settings, SETTINGS_CALLER, cfg->settings[i], "test");
		if (err)
			return err;
	}
	return 0;
}

static int endpoints_attach(struct world *w)
{
	struct core_peer_info info[WORLD_RANKS_MAX];
	char blobs[WORLD_RANKS_MAX][1024];
	int err;

	for (int r = 0; r < w->size; r++) {
		int len = core_address(w->ep[r], blobs[r], sizeof(blobs[r]));

		if (len < 0)
			return len;
		info[r] = (struct core_peer_info){
			.same_node = true,
			.address = blobs[r],
			.address_bytes = (size_t)len,
		};
	}
	for (int r = 0; r < w->size; r++) {
		err = core_attach(w->ep[r], info);
		if (err)
			return err;
	}
	for (int r = 0; r < w->size; r++) {
		err = core_attached(w->ep[r]);
		if (err)
			return err;
	}
	return 0;
}

static void world_free(struct world *w)
{
	for (int r = 0; r < w->size; r++) {
		if (w->ep[r])
			ibvx_abort(w->ep[r]);
		w->ep[r] = NULL;
	}
	fabric_free(w->fabric);
	settings_free(w->settings);
	w->fabric = NULL;
	w->settings = NULL;
}

int world_open(struct world *w, const struct world_config *cfg)
{
	int err = -ENOMEM, first = 0;

	memset(w, 0, sizeof(*w));
	w->size = cfg->net.size;
	w->fabric = fabric_new(&cfg->net);
	if (!w->fabric)
		goto fail;
	err = settings_prepare(w, cfg);
	if (err)
		goto fail;
	if (!cfg->net.carries_self)
		w->transports[first++] = &transport_self_ops;
	w->transports[first] = cfg->ops ? cfg->ops : &fake_ops;
	for (int r = 0; r < w->size; r++) {
		struct core_config core = {
			.rank = r,
			.size = w->size,
			.job_id = "00112233445566778899aabbccddeeff",
			.settings = w->settings,
			.transports = w->transports,
			.test = w->fabric,
			.monitor = cfg->monitor,
		};

		err = core_open(&w->ep[r], &core);
		if (err)
			goto fail;
	}
	err = endpoints_attach(w);
	for (int r = 0; r < w->size && cfg->lease_offer_ns; r++) {
		w->ep[r]->lease_offer_ns = cfg->lease_offer_ns;
		w->ep[r]->lease_claim_ns = 40 * cfg->lease_offer_ns;
		w->ep[r]->oversubscribed = false;
	}
	if (!err)
		return 0;
fail:
	fprintf(stderr, "opening %d ranks: %s (%s)\n", w->size, strerror(-err), ibvx_error());
	world_free(w);
	return err;
}

struct closing {
	pthread_t thread;
	struct ibvx *ep;
	int err;
	char text[512];
};

static void *close_one(void *arg)
{
	struct closing *c = arg;

	c->err = ibvx_close(c->ep);
	if (c->err)
		snprintf(c->text, sizeof(c->text), "%s", ibvx_error());
	return NULL;
}

int world_close(struct world *w)
{
	struct closing closing[WORLD_RANKS_MAX] = {0};
	const char *text;
	int err = 0;

	fabric_clock_start(w->fabric, 100);
	for (int r = 0; r < w->size; r++) {
		closing[r].ep = w->ep[r];
		if (w->ep[r])
			pthread_create(&closing[r].thread, NULL, close_one, &closing[r]);
	}
	for (int r = 0; r < w->size; r++) {
		if (!closing[r].ep)
			continue;
		pthread_join(closing[r].thread, NULL);
		if (!closing[r].err) {
			w->ep[r] = NULL;
			continue;
		}
		fprintf(stderr, "closing rank %d: %s\n", r, closing[r].text);
		err = err ? err : closing[r].err;
	}
	if (fabric_violations(w->fabric, &text)) {
		fprintf(stderr, "contract broken: %s\n", text);
		err = err ? err : -EPROTO;
	}
	world_free(w);
	return err;
}

void world_kill(struct world *w, int rank, bool whole)
{
	fabric_kill(w->fabric, rank, whole);
	ibvx_abort(w->ep[rank]);
	w->ep[rank] = NULL;
}

void world_turn(struct world *w, unsigned ticks)
{
	struct ibvx_status status;

	fabric_step(w->fabric, ticks);
	for (int r = 0; r < w->size; r++)
		if (w->ep[r])
			(void)ibvx_iprobe(w->ep[r], r, 0, WORLD_IDLE_CONTEXT, &status);
}

uint64_t world_counter(struct ibvx *ep, int peer, const char *name)
{
	struct ibvx_counter c[64];
	int count = ibvx_counters(ep, peer, c, 64);

	for (int i = 0; i < count && i < 64; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	return UINT64_MAX;
}
