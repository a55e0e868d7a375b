/* SPDX-License-Identifier: MIT */
/*
 * launch_slurm: srun without any PMI (--mpi=none).  Slurm provides rank, size, the nodes and reserved ports; rank 0's card is
 * handed over by munge, which a Slurm cluster has (card_service.h).
 *
 * Rank 0 is on the first node of the step.  The card service listens on the first of the ports that Slurm has reserved
 * for the step (or, if it has reserved none, of SLURM_PORTS ports drawn from the step's id) that is free, and
 * the others try them all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/siphash.h"
#include "bootstrap/card_service.h"
#include "bootstrap/deadline.h"
#include "bootstrap/hostlist.h"
#include "bootstrap/launch_row.h"
#include "bootstrap/munge.h"

#define SLURM_PORTS 8
#define SLURM_DERIVED_FIRST 20000
#define SLURM_DERIVED_COUNT 10000
/* Steps of Slurm's own (batch script, interactive shell, extern) have numbers above this. */
#define SLURM_STEP_MAX 0xfffffff0u
#define SLURM_PAUSE_FIRST_MS 20
#define SLURM_PAUSE_MAX_MS 200

struct slurm {
	char job[CARD_SERVICE_JOB_BYTES]; /* "1234.0" */
	char host[256];                   /* of rank 0 */
	int ports[SLURM_PORTS];
	int port_count;
	struct card_service *service; /* rank 0 */
};

static const char *slurm_variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static bool slurm_found(char why[LAUNCH_WHY_BYTES])
{
	static const char *const needed[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
					     "SLURM_STEP_NODELIST"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!slurm_variable(needed[i])) {
			snprintf(why, LAUNCH_WHY_BYTES, "%s is not set%s", needed[i],
				 i == 1 ? ": this is a batch script or the shell of an allocation, not a task of srun" : "");
			return false;
		}
	if (strtoull(getenv("SLURM_STEP_ID"), NULL, 10) >= SLURM_STEP_MAX) {
		snprintf(why, LAUNCH_WHY_BYTES, "SLURM_STEP_ID=%.20s is the shell of an allocation, not a task of srun",
			 getenv("SLURM_STEP_ID"));
		return false;
	}
	snprintf(why, LAUNCH_WHY_BYTES, "SLURM_STEP_ID=%.20s and SLURM_PROCID=%.20s are set", getenv("SLURM_STEP_ID"),
		 getenv("SLURM_PROCID"));
	return true;
}

static int slurm_read_ports(struct slurm *s)
{
	static const uint8_t key[16] = "ibvdev slurm 1";
	const char *reserved = slurm_variable("SLURM_STEP_RESV_PORTS");
	char text[CARD_SERVICE_JOB_BYTES + 24];
	uint8_t hash[16];

	s->port_count = reserved ? hostlist_ports(reserved, s->ports, SLURM_PORTS) : SLURM_PORTS;
	if (s->port_count < 0)
		return error_set(-EINVAL, "SLURM_STEP_RESV_PORTS=%.60s is not a list of ports", reserved);
	if (reserved)
		return 0;
	siphash128(key, text, (size_t)snprintf(text, sizeof(text), "%s %u", s->job, (unsigned)geteuid()), hash);
	for (int i = 0; i < SLURM_PORTS; i++)
		s->ports[i] = SLURM_DERIVED_FIRST + ((hash[0] | hash[1] << 8) + i) % SLURM_DERIVED_COUNT;
	return 0;
}

/* A munge that does not work here is better noticed now than when all time is gone. */
static int slurm_check_munge(const struct launch *l)
{
	char text[MUNGE_TEXT_BYTES];
	int err = munge_load(settings_text(l->settings, SETTING_MUNGE_SOCKET));

	return err ? err : munge_seal("", 0, text);
}

static int slurm_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline)
{
	struct slurm *s = calloc(1, sizeof(*s));
	int nodes = 0, err;

	(void)cfg;
	(void)deadline;
	if (!s)
		return error_set(-ENOMEM, "no memory");
	l->session = s;
	snprintf(s->job, sizeof(s->job), "%.24s.%.24s", getenv("SLURM_JOB_ID"), getenv("SLURM_STEP_ID"));
	err = launch_variable("SLURM_STEP_NUM_TASKS", 1, CONF_RANKS_MAX, &l->size);
	if (!err)
		err = launch_variable("SLURM_PROCID", 0, l->size - 1, &l->rank);
	if (!err && hostlist_first(getenv("SLURM_STEP_NODELIST"), s->host, sizeof(s->host)) < 0)
		err = error_set(-EINVAL, "SLURM_STEP_NODELIST=%.100s is not a list of nodes", getenv("SLURM_STEP_NODELIST"));
	if (!err)
		err = slurm_read_ports(s);
	if (!err && launch_variable("SLURM_STEP_NUM_NODES", 1, INT32_MAX, &nodes) == 0 && nodes == 1)
		l->local_size = l->size;
	return err || l->size == 1 ? err : slurm_check_munge(l);
}

static int slurm_publish(struct launch *l, const struct card *card, const struct address_listener *listener, int64_t deadline)
{
	struct slurm *s = l->session;
	struct address_listener service = {.count = 0};
	struct address_list list;
	bool only;
	int err = launch_engine_addresses(l, &list, &only);

	(void)listener;
	(void)deadline;
	if (err)
		return err;
	err = -EADDRINUSE;
	for (int i = 0; i < s->port_count && err == -EADDRINUSE; i++)
		err = address_listen(&service, only ? &list : NULL, s->ports[i]);
	if (err == -EADDRINUSE)
		return error_set(err,
				 "Slurm: the ports %d to %d of rank 0's node are all in use; let Slurm reserve some "
				 "(MpiParams=ports=..., srun --resv-ports)",
				 s->ports[0], s->ports[s->port_count - 1]);
	if (err)
		return err;
	err = card_service_start(&s->service, &service, s->job, card);
	if (err)
		address_unlisten(&service);
	return err;
}

/* A node's name need not be known to the resolver of its own node. */
static int slurm_resolve(const struct launch *l, const struct slurm *s, struct address_list *list, int64_t deadline)
{
	const char *here = slurm_variable("SLURMD_NODENAME");
	static const struct timespec pause = {.tv_nsec = 100 * CLOCK_NS_PER_MS};
	int64_t patience = deadline_earlier(deadline, deadline_after_ms(3000));
	int err = -EHOSTUNREACH;

	if (l->local_size == l->size || (here && strcmp(here, s->host) == 0)) {
		launch_engine_loopback(list);
		return 0;
	}
	while ((err = address_resolve(list, s->host, 1)) == -EAGAIN && deadline_left_ms(patience) > 0)
		nanosleep(&pause, NULL);
	return err ? error_prefix(-EHOSTUNREACH, "rank 0's node; srun --mpi=pmi2 and --mpi=pmix need no names") : 0;
}

/* How informative an error is. */
static int slurm_weight(int err)
{
	return err == -EACCES ? 2 : err == -ECONNREFUSED || err == -ECONNRESET ? 0 : 1;
}

static int slurm_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	const struct slurm *s = l->session;
	struct address_list list;
	int pause_ms = SLURM_PAUSE_FIRST_MS, err = slurm_resolve(l, s, &list, deadline);
	char last[256] = "";
	int weight = 0;

	if (err)
		return err;
	for (;;) {
		for (int i = 0; i < s->port_count; i++) {
			for (int n = 0; n < list.count; n++)
				address_set_port(&list.at[n], s->ports[i]);
			err = card_service_ask(&list, s->job, card, deadline);
			if (!err)
				return 0;
			/* A port without listener is less informative than a refusal. */
			if (slurm_weight(err) < weight)
				continue;
			weight = slurm_weight(err);
			snprintf(last, sizeof(last), "port %d: %.200s", s->ports[i], error_text());
		}
		if (deadline_left_ms(deadline) == 0)
			return error_set(-ETIMEDOUT,
					 "rank 0 on %s did not hand over its card in time (start_timeout_ms), the "
					 "last attempt: %s; was rank 0 started, and does munge run on both nodes?",
					 s->host, last);
		nanosleep(&(struct timespec){.tv_nsec = pause_ms * CLOCK_NS_PER_MS}, NULL);
		pause_ms = pause_ms * 2 < SLURM_PAUSE_MAX_MS ? pause_ms * 2 : SLURM_PAUSE_MAX_MS;
	}
}

static int slurm_done(struct launch *l, int64_t deadline)
{
	struct slurm *s = l->session;

	(void)deadline;
	card_service_stop(s->service);
	s->service = NULL;
	return 0;
}

static void slurm_close(struct launch *l)
{
	struct slurm *s = l->session;

	card_service_stop(s->service);
	free(s);
}

const struct launch_row launch_slurm = {
	.name = "slurm",
	.title = "Slurm",
	.engine = true,
	.found = slurm_found,
	.open = slurm_open,
	.publish = slurm_publish,
	.fetch = slurm_fetch,
	.done = slurm_done,
	.close = slurm_close,
};
