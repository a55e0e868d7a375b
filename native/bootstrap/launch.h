/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_LAUNCH_H
#define IBVX_BOOTSTRAP_LAUNCH_H
/*
 * launch: the seam between the bootstrap and whatever has started the ranks.
 *
 * A launcher answers three questions: which rank this process is, how many there are, and where rank 0 listens.
 * Rank 0 publishes a card (card.h), the others fetch it; every other exchange is the bootstrap's own.
 *
 *   rank 0     open -> listen -> publish -> (the ranks meet) -> done -> close
 *   others     open -> fetch             -> (the ranks meet) -> done -> close
 *              any failure after open: abort -> close
 *
 * The launchers, in the order in which they are looked for:
 *
 *   conf     a conf file, MPJ Express's ";" string or a list of peers that the caller names
 *   pmix     PMIX_RANK and PMIX_NAMESPACE: mpirun of Open MPI, prterun, srun --mpi=pmix
 *   pmi      PMI_FD or PMI_PORT: the PMI-1 wire of Hydra, srun --mpi=pmi2, Flux and ibvrun
 *   slurm    SLURM_STEP_ID: srun without PMI; the card is handed over by munge
 *   single   none of these: one rank alone
 *
 * The setting `launcher` names one of them instead.
 *
 * Sessions.  The session of an engine (pmix, pmi, slurm) can be used once in a process.  When the ranks have met, the process
 * remembers rank, size and card; a later endpoint meets at the same port of rank 0 again, with the same secret and a
 * job id of its own.  A start that failed cannot be repeated, as nobody knows how far the other ranks came.
 *
 * Threads: the calls on one launch come from one thread at a time; several threads may have one each.  Every call is
 * bounded by its deadline (deadline.h), launch_open by the setting start_timeout_ms, except that the resolver of host
 * names may take its own time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/settings.h"
#include "bootstrap/address.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/card.h"

#define LAUNCH_WHERE_BYTES 512

struct launch;

/* Finds the launcher and opens it.  The settings of a conf file are set here.  cfg->rank and size, where given, are
 * checked against the launcher's.  0; -ENOENT, -EACCES, -EINVAL (conf, rank, size, setting), -ENOMEM, -EPROTO, -ETIMEDOUT
 * (the engine), -EBUSY (another thread is opening an endpoint by this engine), -ESTALE (a start by it has failed
 * before): with text. */
int launch_open(struct launch **out, const struct bootstrap_config *cfg);

/* For people: each launcher with what was found of it, the one that would be chosen without a conf and why, and the
 * addresses at which rank 0 would listen.  Opens nothing. */
void launch_report(const struct settings *settings, FILE *out);

int launch_rank(const struct launch *l);
int launch_size(const struct launch *l);
/* The setting's value that would name it: "conf", "pmi", ... */
const char *launch_name(const struct launch *l);
/* What the conf has of rank r before anything is known from itself: NULL, or its host (host.host may be NULL). */
const struct conf_host *launch_host(const struct launch *l, int rank);

/* Rank 0: listens where this launcher's ranks will look for it.  log takes warnings.  0; -EADDRINUSE, -EMFILE, another
 * -errno: with text. */
int launch_listen(struct launch *l, struct address_listener *listener, const struct log *log, int64_t deadline);
/* Rank 0, listening: makes its card known.  With a conf the card stays empty: the conf was the card.  May wait for the
 * other ranks to fetch.  0; -ETIMEDOUT, -EPROTO, -EHOSTUNREACH: with text. */
int launch_publish(struct launch *l, struct card *card, const struct address_listener *listener, int64_t deadline);
/* The others: waits for rank 0's card.  0; -ETIMEDOUT, -EHOSTUNREACH, -EPROTO: with text. */
int launch_fetch(struct launch *l, struct card *card, int64_t deadline);
/* Where rank 0 is, as errors call it: "localhost:20000 (job.conf line 4)".  After listen or fetch. */
void launch_where(const struct launch *l, char out[LAUNCH_WHERE_BYTES]);

/* All ranks have met: the engine's session ends.  No fence is needed before: a rank that was admitted had fetched the card.
 * 0; -ETIMEDOUT, -EPROTO: with text. */
int launch_done(struct launch *l, int64_t deadline);
/* The start has failed.  The engine's session stays open, so that the engine takes the end of this process for what it
 * is, a failure.  Never blocks. */
void launch_abort(struct launch *l);
void launch_close(struct launch *l); /* NULL allowed; without done: as abort */

#endif
