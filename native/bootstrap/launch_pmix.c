/* SPDX-License-Identifier: MIT */
/*
 * launch_pmix: PMIx (mpirun, prterun, srun --mpi=pmix), by the library of the launcher itself.
 *
 *   rank 0   Init -> Put, Commit -> Fence                     -> (the ranks meet) -> Finalize
 *   others   Init ->                Fence -> Get from rank 0  -> (the ranks meet) -> Finalize
 *
 * Finalize follows at once: a process that exits without it makes mpirun kill the job.  A Get from a process that has
 * finalized may never return (PRRTE); none is under way then, as all ranks have met with the card in their hands.
 *
 * libpmix bounds none of its calls in time, so each one runs on a thread of its own, which is left behind, with
 * everything that it may touch, if it does not return.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "bootstrap/deadline.h"
#include "bootstrap/launch_row.h"
#include "bootstrap/pmix_abi.h"

#define PMIX_LIBRARY "libpmix.so.2"
#define PMIX_KEY "ibvx-card"
#define PMIX_MAJOR_MIN 3
#define PMIX_TEXT_BYTES 512
#define PMIX_ANCESTORS 4

/* Owned by the launch and, while a call is under way, by its thread too. */
struct pmix {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int (*step)(struct pmix *p);
	bool running;
	bool abandoned; /* the launch has gone: the thread frees nothing that libpmix may still touch */
	int rc;
	char error[PMIX_TEXT_BYTES];

	struct pmix_abi abi;
	struct pmix_abi_proc self;
	uint32_t size, local_size;
	char card[CARD_TEXT_BYTES]; /* rank 0: in; others: out */
};

static bool pmix_found(char why[LAUNCH_WHY_BYTES])
{
	const char *rank = getenv("PMIX_RANK"), *name = getenv("PMIX_NAMESPACE");

	if (rank && name)
		snprintf(why, LAUNCH_WHY_BYTES, "PMIX_RANK=%.20s and PMIX_NAMESPACE=%.100s are set", rank, name);
	else
		snprintf(why, LAUNCH_WHY_BYTES, "%s is not set", rank ? "PMIX_NAMESPACE" : "PMIX_RANK");
	return rank && name;
}

static int pmix_bad(struct pmix *p, const char *what, int status)
{
	return error_set(-EPROTO, "PMIx %.20s: %s: %.100s (status %d)", p->abi.get_version(), what, p->abi.error_string(status), status);
}

static void *pmix_thread(void *arg)
{
	struct pmix *p = arg;
	int rc = p->step(p);

	pthread_mutex_lock(&p->lock);
	p->rc = rc;
	if (rc < 0)
		snprintf(p->error, sizeof(p->error), "%s", error_text());
	p->running = false;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* A thread of libpmix may return into this library at any time: it must stay where it is. */
static void pmix_abandon(struct pmix *p)
{
	Dl_info self;

	p->abandoned = true;
	if (dladdr((void *)(uintptr_t)&launch_pmix, &self) && self.dli_fname)
		dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static int pmix_start_thread(struct pmix *p)
{
	pthread_t thread;
	/* libpmix's own threads inherit its signal mask: signals are the program's business. */
	int err = thread_start(&thread, pmix_thread, p);

	if (!err)
		pthread_detach(thread);
	return err;
}

/* Runs one step to its end or to the deadline. */
static int pmix_run(struct pmix *p, int (*step)(struct pmix *p), const char *what, int64_t deadline)
{
	struct timespec until = {.tv_sec = deadline / (1000 * CLOCK_NS_PER_MS), .tv_nsec = deadline % (1000 * CLOCK_NS_PER_MS)};
	int err;

	p->step = step;
	p->running = true;
	err = pmix_start_thread(p);
	if (err)
		return err;
	pthread_mutex_lock(&p->lock);
	while (p->running && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&p->changed, &p->lock, &until);
	if (p->running) {
		pmix_abandon(p);
		err = error_set(-ETIMEDOUT,
				"PMIx: %s did not end in time (start_timeout_ms); were all ranks started, and "
				"do they all open an endpoint?",
				what);
	} else {
		err = p->rc < 0 ? error_set(p->rc, "%s", p->error) : 0;
	}
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* The file that a process has mapped as libpmix, from /proc; false: none, or not ours to look at. */
static bool pmix_mapped(pid_t pid, char path[PATH_MAX])
{
	char name[64], line[PATH_MAX + 128];
	bool found = false;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	maps = fopen(name, "re");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		const char *begin = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		found = begin && strstr(begin, "/" PMIX_LIBRARY) && strlen(begin) < PATH_MAX;
		if (found)
			memcpy(path, begin, strlen(begin) + 1);
	}
	if (maps)
		fclose(maps);
	return found;
}

static pid_t pmix_parent_of(pid_t pid)
{
	char name[64], text[512];
	const char *after = NULL;
	FILE *stat;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	stat = fopen(name, "re");
	if (stat && fgets(text, sizeof(text), stat))
		after = strrchr(text, ')'); /* the name of the program may hold anything */
	if (stat)
		fclose(stat);
	return after && strlen(after) > 4 ? (pid_t)strtol(after + 4, NULL, 10) : 0; /* ") S 1234 ..." */
}

/* The launcher's own library first: another version of it works, but complains on standard error.  The daemon that
 * has started this process, perhaps by way of a script, has it mapped. */
static void *pmix_open_library(void)
{
	const char *prefix = getenv("PMIX_PREFIX");
	char path[PATH_MAX];
	void *handle = NULL;
	pid_t pid = getppid();

	if (prefix && *prefix && (size_t)snprintf(path, sizeof(path), "%s/lib/" PMIX_LIBRARY, prefix) < sizeof(path))
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	for (int i = 0; !handle && i < PMIX_ANCESTORS && pid > 1; i++, pid = pmix_parent_of(pid))
		if (pmix_mapped(pid, path))
			handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return handle ? handle : dlopen(PMIX_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static int pmix_load(struct pmix *p)
{
	struct pmix_abi *abi = &p->abi;
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"PMIx_Get_version", &abi->get_version},
		{"PMIx_Error_string", &abi->error_string},
		{"PMIx_Init", &abi->init},
		{"PMIx_Finalize", &abi->finalize},
		{"PMIx_Put", &abi->put},
		{"PMIx_Commit", &abi->commit},
		{"PMIx_Fence", &abi->fence},
		{"PMIx_Get", &abi->get},
	};
	void *handle = pmix_open_library(); /* never closed: libpmix has threads and exit handlers */
	const char *version;
	long major;

	if (!handle)
		return error_set(-ENOENT,
				 "PMIx has started this process, but its library cannot be opened: %.300s; install "
				 "it (Debian: libpmix2), or let PMIX_PREFIX name its folder",
				 dlerror());
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(handle, symbols[i].name);

		if (!found)
			return error_set(-EPROTO, PMIX_LIBRARY " has no %s: is it PMIx?", symbols[i].name);
		memcpy(symbols[i].to, &found, sizeof(found));
	}
	version = abi->get_version(); /* "OpenPMIx 4.2.2 (PMIx Standard: ...", "PMIx 3.2.0 ..." */
	major = strtol(version + strcspn(version, "0123456789"), NULL, 10);
	if (major < PMIX_MAJOR_MIN)
		return error_set(-EPROTO, PMIX_LIBRARY " is version \"%.60s\"; PMIx %d or later is needed", version, PMIX_MAJOR_MIN);
	return 0;
}

/* Calls Get; *found is false where there is no such value. */
static int pmix_get_number(struct pmix *p, const char *key, uint32_t *out)
{
	struct pmix_abi_proc all = p->self;
	struct pmix_abi_value *value = NULL;
	int status;

	all.rank = PMIX_ABI_RANK_WILDCARD;
	status = p->abi.get(&all, key, NULL, 0, &value);
	if (status != PMIX_ABI_SUCCESS || !value)
		return pmix_bad(p, key, status);
	if (value->type == PMIX_ABI_UINT32)
		*out = value->data.uint32;
	else if (value->type == PMIX_ABI_UINT16)
		*out = value->data.uint16;
	else
		status = -1;
	if (status)
		error_set(-EPROTO, "PMIx: %s has the type %u, not a number", key, value->type);
	free(value);
	return status ? -EPROTO : 0;
}

static int pmix_step_init(struct pmix *p)
{
	int status = p->abi.init(&p->self, NULL, 0), err;

	if (status != PMIX_ABI_SUCCESS)
		return pmix_bad(p, "PMIx_Init", status);
	err = pmix_get_number(p, PMIX_ABI_JOB_SIZE, &p->size);
	if (!err && (p->size < 1 || p->size > CONF_RANKS_MAX || p->self.rank >= p->size))
		err = error_set(-EPROTO, "PMIx: rank %u of %u ranks cannot be", p->self.rank, p->size);
	if (!err && pmix_get_number(p, PMIX_ABI_LOCAL_SIZE, &p->local_size) < 0)
		p->local_size = 0; /* not every launcher knows it */
	return err;
}

static int pmix_fence(struct pmix *p)
{
	struct pmix_abi_info collect = {.key = PMIX_ABI_COLLECT, .value = {.type = PMIX_ABI_BOOL}};
	struct pmix_abi_proc all = p->self;
	int status;

	all.rank = PMIX_ABI_RANK_WILDCARD;
	collect.value.data.flag = true;
	status = p->abi.fence(&all, 1, &collect, 1);
	return status == PMIX_ABI_SUCCESS ? 0 : pmix_bad(p, "PMIx_Fence", status);
}

static int pmix_step_publish(struct pmix *p)
{
	struct pmix_abi_value value = {.type = PMIX_ABI_BYTE_OBJECT};
	int status;

	value.data.bo.bytes = p->card;
	value.data.bo.size = strlen(p->card);
	status = p->abi.put(PMIX_ABI_SCOPE_GLOBAL, PMIX_KEY, &value);
	if (status != PMIX_ABI_SUCCESS)
		return pmix_bad(p, "PMIx_Put", status);
	status = p->abi.commit();
	if (status != PMIX_ABI_SUCCESS)
		return pmix_bad(p, "PMIx_Commit", status);
	return pmix_fence(p);
}

static int pmix_step_fetch(struct pmix *p)
{
	struct pmix_abi_proc root = p->self;
	struct pmix_abi_value *value = NULL;
	int status, err = pmix_fence(p);

	if (err)
		return err;
	root.rank = 0;
	status = p->abi.get(&root, PMIX_KEY, NULL, 0, &value);
	if (status != PMIX_ABI_SUCCESS || !value)
		return pmix_bad(p, "PMIx_Get of rank 0's card", status);
	if (value->type != PMIX_ABI_BYTE_OBJECT || !value->data.bo.bytes || value->data.bo.size >= sizeof(p->card)) {
		err = error_set(-EPROTO, "PMIx: rank 0's card has the type %u", value->type);
	} else {
		memcpy(p->card, value->data.bo.bytes, value->data.bo.size);
		p->card[value->data.bo.size] = '\0';
	}
	if (value->type == PMIX_ABI_BYTE_OBJECT)
		free(value->data.bo.bytes);
	free(value);
	return err;
}

static int pmix_step_finalize(struct pmix *p)
{
	int status = p->abi.finalize(NULL, 0);

	return status == PMIX_ABI_SUCCESS ? 0 : pmix_bad(p, "PMIx_Finalize", status);
}

static int pmix_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline)
{
	struct pmix *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int err;

	(void)cfg;
	if (!p)
		return error_set(-ENOMEM, "no memory");
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	l->session = p;
	err = pmix_load(p);
	if (!err)
		err = pmix_run(p, pmix_step_init, "PMIx_Init", deadline);
	if (err)
		return err;
	l->rank = (int)p->self.rank;
	l->size = (int)p->size;
	l->local_size = p->local_size <= p->size ? (int)p->local_size : 0;
	return 0;
}

static int pmix_publish(struct launch *l, const struct card *card, const struct address_listener *listener, int64_t deadline)
{
	struct pmix *p = l->session;

	(void)listener;
	card_print(card, p->card);
	return pmix_run(p, pmix_step_publish, "PMIx_Fence", deadline);
}

static int pmix_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	struct pmix *p = l->session;
	int err = pmix_run(p, pmix_step_fetch, "PMIx_Fence or PMIx_Get", deadline);

	if (!err && card_parse(card, p->card) < 0)
		err = error_prefix(-EPROTO, "PMIx");
	return err;
}

static int pmix_done(struct launch *l, int64_t deadline)
{
	return pmix_run(l->session, pmix_step_finalize, "PMIx_Finalize", deadline);
}

static void pmix_close(struct launch *l)
{
	struct pmix *p = l->session;

	if (p->abandoned)
		return;
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

const struct launch_row launch_pmix = {
	.name = "pmix",
	.title = "PMIx",
	.engine = true,
	.found = pmix_found,
	.open = pmix_open,
	.publish = pmix_publish,
	.fetch = pmix_fetch,
	.done = pmix_done,
	.close = pmix_close,
};
