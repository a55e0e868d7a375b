/* SPDX-License-Identifier: MIT */
#include "bootstrap/local.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/siphash.h"

void local_make_name(struct local_name *name, const char *secret, const char *where, const char *job_id, int size)
{
	static const uint8_t domain[16] = "ibvdev local 1";
	uint8_t key[16], hash[16];
	char text[1024];
	int n = snprintf(text, sizeof(text), "%u %d %s %.600s", (unsigned)geteuid(), size, job_id, where);

	siphash128(domain, secret, strlen(secret), key);
	siphash128(key, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text), hash);
	memset(name, 0, sizeof(*name));
	name->addr.sun_family = AF_UNIX;
	n = snprintf(name->addr.sun_path + 1, sizeof(name->addr.sun_path) - 1, "ibvdev-");
	for (int i = 0; i < 16; i++)
		n += snprintf(name->addr.sun_path + 1 + n, sizeof(name->addr.sun_path) - 1 - (size_t)n, "%02x", hash[i]);
	name->len = (unsigned)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int local_listen(const struct local_name *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&name->addr, name->len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int local_check(int fd, int *pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	*pid = (int)peer.pid;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

int local_connect(const struct local_name *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0, pid;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&name->addr, name->len) < 0)
		err = -errno;
	if (!err)
		err = local_check(fd, &pid);
	if (err)
		close(fd);
	return err ? err : fd;
}
