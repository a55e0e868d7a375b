/* SPDX-License-Identifier: MIT */
#include "couple.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&address, &length) == 0)
		port = ntohs(address.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

void couple_addresses(const char *peers[2], char addresses[2][COUPLE_ADDRESS_BYTES])
{
	for (int r = 0; r < 2; r++) {
		snprintf(addresses[r], COUPLE_ADDRESS_BYTES, "127.0.0.1:%d", free_port());
		peers[r] = addresses[r];
	}
}

int couple_run(int (*rank)(int rank, void *arg), void *arg)
{
	pid_t pids[2] = {-1, -1};
	int status, rc = 0;

	fflush(stdout);
	for (int r = 0; r < 2; r++) {
		pids[r] = fork();
		if (pids[r] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing spins on when this program is killed */
			exit(rank(r, arg));
		}
		if (pids[r] < 0) {
			fprintf(stderr, "bench: fork: %s\n", strerror(errno));
			rc = 1;
		}
	}
	if (rc && pids[0] > 0)
		kill(pids[0], SIGKILL);
	for (pid_t pid; (pid = wait(&status)) > 0;) {
		if (status == 0)
			continue;
		rc = 1;
		if (pids[pid == pids[0]] > 0)
			kill(pids[pid == pids[0]], SIGKILL);
	}
	return rc;
}
