/* SPDX-License-Identifier: MIT */
#include "job.h"
#include "child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t job_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Ports that nobody has now: held all at once, so that they differ. */
static int ports_find(struct job *j)
{
	int fds[JOB_RANKS_MAX], count = 0, err = 0;

	while (count < j->size && !err) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof(a);

		fds[count] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fds[count] < 0 || bind(fds[count], (struct sockaddr *)&a, sizeof(a)) ||
		    getsockname(fds[count], (struct sockaddr *)&a, &len))
			err = -1;
		snprintf(j->address[count], sizeof(j->address[count]), "127.0.0.1:%d", ntohs(a.sin_port));
		j->peers[count] = j->address[count];
		count++;
	}
	while (count > 0)
		close(fds[--count]);
	return err;
}

static int rank_main(struct job *j, int rank, job_fn fn, void *arg)
{
	struct ibvx_config cfg = {.rank = rank, .peers = j->peers, .size = j->size, .settings = j->settings};
	struct ibvx *ep;
	int err = ibvx_open(&ep, &cfg), ret;

	if (err) {
		fprintf(stderr, "rank %d: open: %s\n", rank, ibvx_error());
		return 3;
	}
	ret = fn(&ep, rank, arg);
	if (ret == 0 && ep && ibvx_close(ep)) {
		fprintf(stderr, "rank %d: close: %s\n", rank, ibvx_error());
		return 4;
	}
	return ret;
}

int job_start(struct job *j, int size, const char *const *settings, job_fn fn, void *arg)
{
	unsigned char raw[16];
	int count = 0;

	memset(j, 0, sizeof(*j));
	j->size = size;
	if (ports_find(j) || getrandom(raw, sizeof(raw), 0) != sizeof(raw)) {
		perror("job_start");
		return -1;
	}
	for (int i = 0; i < 16; i++)
		snprintf(j->id + 2 * i, 3, "%02x", raw[i]);
	snprintf(j->id_setting, sizeof(j->id_setting), "job_id=%s", j->id);
	for (; settings && settings[count] && count < JOB_SETTINGS_MAX; count++)
		j->settings[count] = settings[count];
	j->settings[count] = j->id_setting;
	fflush(stdout);
	fflush(stderr);
	for (int r = 0; r < size; r++) {
		j->pid[r] = fork();
		if (j->pid[r] < 0) {
			perror("fork");
			j->pid[r] = 0;
			job_wait(j, 0);
			return -1;
		}
		if (j->pid[r] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			r = rank_main(j, r, fn, arg);
			fflush(stdout);
			child_exit(r);
		}
	}
	return 0;
}

int job_wait(struct job *j, int timeout_s)
{
	int64_t until = job_now_ms() + (int64_t)timeout_s * 1000;
	int left, failed = 0;

	do {
		left = 0;
		for (int r = 0; r < j->size; r++) {
			if (j->pid[r] && waitpid(j->pid[r], &j->status[r], WNOHANG) == j->pid[r])
				j->pid[r] = 0;
			left += j->pid[r] != 0;
		}
		if (left)
			usleep(2000);
	} while (left && job_now_ms() < until);
	for (int r = 0; r < j->size; r++) {
		if (j->pid[r]) {
			fprintf(stderr, "rank %d (pid %d) did not end within %d s\n", r, (int)j->pid[r], timeout_s);
			kill(j->pid[r], SIGKILL);
			waitpid(j->pid[r], &j->status[r], 0);
			j->pid[r] = 0;
		}
		failed += j->status[r] != 0;
	}
	return failed;
}
