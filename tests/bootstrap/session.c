/* SPDX-License-Identifier: MIT */
#include "session.h"
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

static const struct log session_silence = {.level = LOG_OFF, .fd = -1};

static int session_meet(struct bootstrap *b, int size)
{
	struct member m = {.b = b, .rank = bootstrap_rank(b), .joined_size = size};
	static const struct bootstrap_events none = {0};
	int err = member_gather(&m, 2);

	if (err)
		return err;
	bootstrap_watch(b, &none);
	bootstrap_leave(b);
	return 0;
}

static int session_round(struct session_rank *r, char job_id[33])
{
	struct settings *settings = settings_new();
	struct bootstrap_config cfg = {.rank = r->rank, .settings = settings};
	struct bootstrap *b = NULL;
	int err = settings ? 0 : -ENOMEM;

	for (int i = 0; !err && i < 6 && r->settings[i]; i++)
		err = settings_set_pair(settings, SETTINGS_CALLER, r->settings[i], "test");
	if (!err)
		err = bootstrap_open(&b, &cfg, &r->joined_size);
	if (!err)
		r->joined_rank = bootstrap_rank(b);
	if (!err)
		err = bootstrap_join(b, &session_silence, job_id);
	if (!err)
		err = session_meet(b, r->joined_size);
	if (err)
		snprintf(r->text, sizeof(r->text), "%s", error_text());
	if (err && !*r->first_text)
		memcpy(r->first_text, r->text, sizeof(r->text));
	bootstrap_close(b);
	settings_free(settings);
	return err;
}

static void session_run(struct session_rank *r)
{
	static char copies[8][512];

	for (int i = 0; i < 8 && r->variables[i]; i++) {
		snprintf(copies[i], sizeof(copies[i]), "%s", r->variables[i]);
		putenv(copies[i]);
	}
	r->result = 0;
	for (int i = 0; i < r->rounds; i++) {
		r->result = session_round(r, r->job_ids[i % 4]);
		r->rounds_done += r->result == 0;
	}
	r->fd_open = r->fd >= 0 && fcntl(r->fd, F_GETFD) >= 0;
}

void session_start(struct session_rank *r)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		close(ends[0]);
		session_run(r);
		child_exit(write(ends[1], r, sizeof(*r)) == (ssize_t)sizeof(*r) ? 0 : 1);
	}
	close(ends[1]);
	r->pipe_fd = ends[0];
	if (r->fd >= 0)
		close(r->fd);
}

void session_wait(struct session_rank *r)
{
	struct session_rank got;
	size_t len = 0;
	int status = -1;

	while (len < sizeof(got)) {
		ssize_t n = read(r->pipe_fd, (char *)&got + len, sizeof(got) - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(r->pipe_fd);
	waitpid(r->pid, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(len, sizeof(got));
	*r = got;
}

void session_forget_engines(void)
{
	static const char *const names[] = {"PMI_FD",
					    "PMI_PORT",
					    "PMI_ID",
					    "PMI_RANK",
					    "PMI_SIZE",
					    "PMIX_RANK",
					    "PMIX_NAMESPACE",
					    "PMIX_PREFIX",
					    "SLURM_STEP_ID",
					    "SLURM_PROCID",
					    "SLURM_STEP_NUM_TASKS",
					    "SLURM_STEP_NODELIST",
					    "SLURM_STEP_RESV_PORTS",
					    "SLURM_JOB_ID",
					    "SLURMD_NODENAME",
					    "OMPI_COMM_WORLD_SIZE",
					    "MPI_LOCALNRANKS",
					    "FLUX_JOB_SIZE",
					    "PALS_NRANKS",
					    "MV2_COMM_WORLD_SIZE",
					    "IBVDEV_LAUNCHER"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}
